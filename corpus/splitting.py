"""Splitting pairs into training and validation, and drawing a random part of them."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from corpus.cache import code_version, map_in_parts

if TYPE_CHECKING:
    from datasets import Dataset


def split_pairs(pairs: "Dataset", seed: int) -> "tuple[Dataset, Dataset]":
    """Return pairs for training and for validation: 90 % and 10 % of the distinct source sentences.

    No source sentence is in both parts. The split depends on the seed and the texts, not on the
    order of the pairs. Raises ValueError for fewer than two distinct sources.
    """
    arguments = {"seed": seed, "version": code_version("splitting")}
    digests = map_in_parts(pairs, _digest, arguments, "splitting", pairs.column_names)
    keys = digests.data.column("digest").to_numpy()
    ordered = np.sort(keys)  # np.unique takes ten times as long
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(distinct) < 2:
        raise ValueError(
            "one distinct source sentence cannot be split into training and validation; "
            "add pairs, or name some with --validsource"
        )
    validation = keys < distinct[max(1, round(len(distinct) / 10))]
    return pairs.select(np.flatnonzero(~validation)), pairs.select(np.flatnonzero(validation))


def _digest(batch: dict[str, list[str]], seed: int, version: str) -> dict[str, np.ndarray]:
    digests = [
        hashlib.blake2b(f"{seed}:{text}".encode(), digest_size=8).digest()
        for text in batch["src_text"]
    ]
    return {"digest": np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)}


def cap_pairs(pairs: "Dataset", size: int | None, seed: int) -> "Dataset":
    """Return `size` random pairs, drawn by the seed, in their order, or all if there are fewer."""
    if size is None or size >= len(pairs):
        return pairs
    drawn = np.random.default_rng(seed).choice(len(pairs), size, replace=False)
    return pairs.select(np.sort(drawn))
