"""What a validation shows: translations of sample sentences, their attention, and hints."""

from typing import TYPE_CHECKING

import numpy as np

from dataset import BilingualDataset
from model import Transformer
from training.run import Run
from training.validation import evaluating
from translation.attention import cross_attention, draw, tokens_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = 5  # sentences, the same ones in each validation


def sample_indices(dataset: BilingualDataset) -> list[int]:
    """Return the indices of the sample sentences."""
    return np.unique(np.linspace(0, len(dataset) - 1, SAMPLES, dtype=int)).tolist()


def sample_translations(dataset: BilingualDataset, predicted: list[str]) -> list[list[str]]:
    """Return source, target and prediction of each sample sentence."""
    chosen = sample_indices(dataset)
    columns = (dataset.texts("src_text"), dataset.texts("tgt_text"), predicted)
    return [[column[i] for column in columns] for i in chosen]


def format_samples(samples: list[list[str]]) -> list[str]:
    """Return three lines to print for each sample; long texts are cut."""
    names = ("SOURCE", "TARGET", "PREDICTED")
    return [
        f"{name:>10}: {text if len(text) < 200 else f'{text[:200]}…'}"
        for sample in samples
        for name, text in zip(names, sample, strict=True)
    ]


def sample_attention(model: Transformer, run: Run, predicted: list[str]) -> "Figure":
    """Return a heat map of the last layer's cross-attention for the longest sample sentence."""
    data = run.data.valid
    longest = max(sample_indices(data), key=lambda i: data.src_lens[i])
    item = data[longest]
    batch = data.collate([item]).to(run.device)
    ids = data.tokenizers.tgt.encode(predicted[longest])
    tgt = batch.tgt_in.new_tensor([[data.tokenizers.tgt.sos_id, *ids]])[:, : run.config.seq_len]
    with evaluating(model):
        weights = cross_attention(model, batch.src, batch.src_mask, tgt)[-1, 0]
    tgt_tokens = tokens_of(data.tokenizers.tgt, [*ids, data.tokenizers.tgt.eos_id])[: tgt.size(1)]
    return draw(
        weights.mean(dim=0, keepdim=True), tokens_of(data.tokenizers.src, item["src"]), tgt_tokens
    )


def hints_on(predicted: list[str]) -> list[str]:
    """Return a line on what to try if all predictions are unknown words, or equal, else no line."""
    known = "".join(text.replace("[UNK]", "") for text in predicted)
    if "[UNK]" in "".join(predicted) and not any(map(str.isalnum, known)):
        return [
            "every prediction consists of [UNK] and punctuation: the vocabulary lacks the words of "
            "the target language; a new run with --tokenizer bpe has no unknown words"
        ]
    if len(predicted) > 1 and len(set(predicted)) == 1:
        return [
            "every prediction is the same sentence: this is normal early in training; later the "
            "learning rate is often too high: lower --lr, or raise --warmup"
        ]
    return []
