"""Inputs of the benchmarks: random ids in sentences of real lengths."""

import numpy as np
import torch
from torch import Tensor

from dataset import Batch, form_batches, pad, padding_mask
from phrasebook.sentences import write_pairs

PAD, SOS, EOS = 1, 2, 3
VOCABULARY = 8000  # entries of the benchmarked models, about as many as Multi30k's words
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def phrasebook_batches(batch_tokens: int, count: int) -> list[Batch]:
    """Return `count` training batches with the sentence lengths of the phrasebook.

    Their words are random ids, so that the vocabulary can have any size.
    """
    pairs = write_pairs("train")
    lens = np.array([(len(src.split()) + 3, len(tgt.split()) + 2) for src, tgt in pairs])
    rng = np.random.default_rng(0)

    def words(length: int) -> list[int]:
        return rng.integers(4, VOCABULARY, length).tolist()

    batches = []
    for indices in form_batches(*lens.T, batch_tokens, seed=(0, 0))[:count]:
        src = pad([[SOS, *words(length - 2), EOS] for length in lens[indices, 0]], PAD)
        targets = [words(length - 1) for length in lens[indices, 1]]
        tgt_out = pad([[*ids, EOS] for ids in targets], PAD)
        batches.append(
            Batch(
                indices=indices.tolist(),
                src=src,
                src_mask=padding_mask(src, PAD),
                tgt_in=pad([[SOS, *ids] for ids in targets], PAD),
                tgt_out=tgt_out,
                target_positions=(tgt_out != PAD).flatten().nonzero().flatten(),
                tokens=int(lens[indices, 1].sum()),
            )
        )
    return batches


def random_sources(count: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return src (count, length) of random ids, without padding, and its mask."""
    src = torch.randint(4, VOCABULARY, (count, length), generator=torch.Generator().manual_seed(0))
    src[:, 0], src[:, -1] = SOS, EOS
    return src.to(device), padding_mask(src, PAD).to(device)
