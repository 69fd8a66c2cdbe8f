"""How many sentences are decoded at once, and what happens if memory does not suffice."""

from collections.abc import Callable

import torch
from torch import Tensor

from console import print_note
from device import free_memory, is_out_of_memory
from model import Transformer

# Padded source tokens of a batch. On a CPU more are not faster. A GPU decodes a token of many
# sentences in the time of one, because it waits for each operation to start.
CPU_TOKENS, GPU_TOKENS = 4096, 8 * 4096


def decoding_budget(model: Transformer, device: torch.device, hypotheses: int = 1) -> int:
    """Return the token budget of a batch to translate with some hypotheses for each sentence.

    It is halved until the batch takes at most half of the memory that is free on the device.
    """
    budget = (CPU_TOKENS if device.type == "cpu" else GPU_TOKENS) // hypotheses
    each = hypotheses * bytes_per_token(model)
    while budget > 1 and budget * each > free_memory(device) / 2:
        budget //= 2
    return max(budget, 1)


def bytes_per_token(model: Transformer) -> int:
    """Return about how many bytes decoding takes for a token of a source.

    They are keys and values of the source and of a translation of its length in each layer, twice
    while they grow, and the logits of one token of a sentence of 16, four times for a search.
    """
    weight = model.projection.linear.weight
    V, D = weight.shape
    numbers = len(model.decoder.layers) * 2 * 2 * 2 * D + 4 * V // 16
    return numbers * weight.element_size()


def within_memory(work: Callable[..., list], *tensors: Tensor) -> list:
    """Return what `work` makes of tensors with a row (B, ...) for each sentence: B results.

    If memory does not suffice, it does each half of the rows, and says so. If it does not suffice
    for one sentence, the error is the device's.
    """
    count = len(tensors[0])
    try:
        return work(*tensors)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or count == 1:
            raise
    # Outside the handler, because the exception keeps the computed tensors in memory.
    half = count // 2
    print_note(f"{tensors[0].device} has not enough memory for {count} sentences: trying {half}")
    parts = ([each[:half] for each in tensors], [each[half:] for each in tensors])
    return [result for part in parts for result in within_memory(work, *part)]
