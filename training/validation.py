"""Translating a whole dataset and scoring it; the loss."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from config import Config
from dataset import BilingualDataset, form_batches
from model import Transformer
from training import processes
from translation import metrics
from translation.decode import beam_search, greedy_decode


def target_loss(logits: Tensor, tgt_out: Tensor, pad_id: int, label_smoothing: float = 0) -> Tensor:
    """Return the summed cross-entropy of logits (..., V) over the real tokens of tgt_out (...).

    pad_id is the target's. With smoothing, that share of the probability is spread evenly over
    the vocabulary (section 5.4).
    """
    return F.cross_entropy(
        logits.flatten(0, -2),
        tgt_out.flatten(),
        ignore_index=pad_id,
        label_smoothing=label_smoothing,
        reduction="sum",
    )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off, and the model's mode back afterwards."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)


def run_validation(
    model: Transformer,
    dataset: BilingualDataset,
    config: Config,
    device: torch.device,
    name: str = "validation",
    between_batches: Callable[[], None] = lambda: None,
) -> tuple[float, metrics.Scores, list[str]]:
    """Translate a whole dataset by free-running decode.

    Returns the loss (nats per real target token, without smoothing), the scores, and the
    predicted text of each item. Always in fp32, as `translate.py`, so that both print the same.
    Raises ArithmeticError for a loss that is not finite.
    """
    tokenizer = dataset.tokenizer_tgt
    batches = form_batches(dataset.src_lens, dataset.tgt_lens, config.batch_tokens)
    bar = tqdm(total=len(dataset), desc=name, unit="sentence", leave=False, delay=2, disable=None)

    def translate_share() -> dict[int, tuple[float, list[str]]]:
        """Return loss and texts of those batches, by number, that are this process's."""
        done = {}
        for number in range(processes.rank(), len(batches), processes.count()):
            between_batches()
            batch = dataset.collate(dataset.__getitems__(batches[number])).to(device)
            logits = model(batch.src, batch.src_mask, batch.tgt_in)
            loss = target_loss(logits, batch.tgt_out, tokenizer.pad_id).item()
            sources = (model, batch.src, batch.src_mask)
            ends = {"sos_id": tokenizer.sos_id, "eos_id": tokenizer.eos_id}
            if config.beam_size == 1:
                outputs = greedy_decode(*sources, **ends)
            else:
                found = beam_search(*sources, **ends, beam_size=config.beam_size)
                outputs = [hypotheses[0].ids for hypotheses in found]
            done[number] = loss, [tokenizer.decode(ids) for ids in outputs]
            bar.update(len(outputs) * processes.count())
        return done

    with evaluating(model), bar:
        done = {k: v for share in processes.from_all(translate_share) for k, v in share.items()}
    predicted = [""] * len(dataset)
    for number, indices in enumerate(batches):
        for i, text in zip(indices, done[number][1], strict=True):
            predicted[i] = text
    loss = sum(done[number][0] for number in range(len(batches))) / dataset.tgt_lens.sum().item()
    if not math.isfinite(loss):
        raise ArithmeticError(f"the loss on the {name} set is {loss}")
    scores = metrics.score(predicted, dataset.texts("tgt_text"), config.lang_tgt)
    return loss, scores, predicted
