"""Validation: translating a whole dataset and scoring the translations."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from tqdm import tqdm

from config import Config
from dataset import Batch, BilingualDataset, form_batches
from model import Transformer
from training import processes
from training.loss import cross_entropy_sum
from training.update import LOGITS_AT_ONCE
from translation import metrics
from translation.budget import decoding_budget, within_memory
from translation.decode import beam_search, greedy_decode


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch off dropout and gradients inside the `with` block."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)


def loss_sum(model: Transformer, batch: Batch, pad_id: int) -> float:
    """Return the summed loss (nats, without label smoothing) of the target tokens of a batch.

    Like in training, logits are computed for some target tokens at a time.
    """
    x = model.hidden_states(batch.src, batch.src_mask, batch.tgt_in).flatten(0, 1)
    x, labels = (each[batch.target_positions] for each in (x, batch.tgt_out.flatten()))
    total = torch.zeros((), device=x.device)
    for start in range(0, len(labels), LOGITS_AT_ONCE):
        group = slice(start, start + LOGITS_AT_ONCE)
        total += cross_entropy_sum(model.project(x[group]), labels[group], pad_id)
    return total.item()


def run_validation(
    model: Transformer,
    dataset: BilingualDataset,
    config: Config,
    device: torch.device,
    name: str = "validation",
    between_batches: Callable[[], None] = lambda: None,
) -> tuple[float, metrics.Scores, list[str]]:
    """Translate a whole dataset by free-running decode, and score the translations.

    Returns the loss (nats per target token, without label smoothing), the scores, and the predicted
    text of each item. It computes in fp32 like `translate.py`, so that both give the same text.
    `between_batches` is called before each batch. Raises ArithmeticError if the loss is not finite.
    """
    tokenizer = dataset.tokenizers.tgt
    # All processes form the same batches.
    budget = processes.from_main(lambda: decoding_budget(model, device, config.beam_size))
    batches = form_batches(dataset.src_lens, dataset.tgt_lens, budget)
    bar = tqdm(total=len(dataset), desc=name, unit="sentence", leave=False, delay=2, disable=None)

    def decode(src: Tensor, src_mask: Tensor) -> list[list[int]]:
        ends = {"sos_id": tokenizer.sos_id, "eos_id": tokenizer.eos_id}
        if config.beam_size == 1:
            return greedy_decode(model, src, src_mask, **ends)
        found = beam_search(model, src, src_mask, **ends, beam_size=config.beam_size)
        return [hypotheses[0].ids for hypotheses in found]

    def translate_share() -> dict[int, tuple[float, list[str]]]:
        """Return the loss and the texts of each batch of this process, by batch number."""
        done = {}
        for number in range(processes.rank(), len(batches), processes.world_size()):
            between_batches()
            batch = dataset.batch(batches[number]).to(device)
            outputs = within_memory(decode, batch.src, batch.src_mask)
            loss = loss_sum(model, batch, tokenizer.pad_id)
            done[number] = loss, [tokenizer.decode(ids) for ids in outputs]
            bar.update(len(outputs) * processes.world_size())
        return done

    with evaluating(model), bar:
        done = {k: v for share in processes.from_all(translate_share) for k, v in share.items()}
    predicted = [""] * len(dataset)
    for number, indices in enumerate(batches):
        for i, text in zip(indices, done[number][1], strict=True):
            predicted[i] = text
    loss = sum(done[number][0] for number in range(len(batches))) / dataset.tgt_lens.sum().item()
    if not math.isfinite(loss):
        raise ArithmeticError(f"the loss is {loss}; a lower --lr may help")
    scores = metrics.score(predicted, dataset.texts("tgt_text"), config.lang_tgt)
    return loss, scores, predicted
