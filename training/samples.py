"""What a validation shows: the translations of a few sentences, and where attention goes."""

from typing import TYPE_CHECKING

import numpy as np

from dataset import BilingualDataset
from model import Transformer
from training.run import Run
from training.validation import evaluating
from translation.attention import cross_attention, draw, tokens_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = 5  # sentences, always the same ones


def sample_indices(dataset: BilingualDataset) -> list[int]:
    return np.unique(np.linspace(0, len(dataset) - 1, SAMPLES, dtype=int)).tolist()


def sample_translations(dataset: BilingualDataset, predicted: list[str]) -> list[list[str]]:
    """Return source, target and prediction of a few items, always the same ones."""
    chosen = sample_indices(dataset)
    columns = (dataset.texts("src_text"), dataset.texts("tgt_text"), predicted)
    return [[column[i] for column in columns] for i in chosen]


def sample_attention(model: Transformer, run: Run, predicted: list[str]) -> "Figure":
    """Return a picture of the last layer's cross-attention for the longest sample's prediction."""
    data = run.data.valid
    longest = max(sample_indices(data), key=lambda i: data.src_lens[i])
    item = data[longest]
    batch = data.collate([item]).to(run.device)
    ids = data.tokenizer_tgt.encode(predicted[longest])
    tgt = batch.tgt_in.new_tensor([[data.tokenizer_tgt.sos_id, *ids]])[:, : run.config.seq_len]
    with evaluating(model):
        weights = cross_attention(model, batch.src, batch.src_mask, tgt)[-1, 0]
    tgt_tokens = tokens_of(data.tokenizer_tgt, [*ids, data.tokenizer_tgt.eos_id])[: tgt.size(1)]
    return draw(
        weights.mean(dim=0, keepdim=True), tokens_of(data.tokenizer_src, item["src"]), tgt_tokens
    )
