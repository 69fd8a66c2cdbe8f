"""Encoded sentence pairs, their masks, and batches of similar lengths."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from corpus import tokenizer as tokenizer_room
from corpus.pairs import map_in_parts
from corpus.tokenizer import Tokenizer, tokenizer_from_json

if TYPE_CHECKING:
    from datasets import Dataset

# The library's cache knows our functions by name only; with this it also sees them change.
CODE_VERSION = hashlib.sha256(
    b"".join(Path(room).read_bytes() for room in (__file__, tokenizer_room.__file__))
).hexdigest()


# Masks are boolean, True = may attend; no other room makes one.


def causal_mask(size: int, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, size, size) that lets each position see itself and those before."""
    return torch.ones(1, 1, size, size, dtype=torch.bool, device=device).tril()


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return the mask (B, 1, 1, S) that hides the padding of ids (B, S)."""
    return (ids != pad_id)[:, None, None, :]


class NoPairFits(ValueError):
    """All pairs are longer than the model."""


class BilingualDataset(torch.utils.data.Dataset):
    """Encoded sentence pairs, memory-mapped from disk (of a stream: in memory).

    An item is a dict of lists of ids: `src` is [SOS] source [EOS] (S), `tgt_in` the decoder's
    input [SOS] target (T), `tgt_out` what it should say, target [EOS] (T). Pairs with S or T over
    seq_len are left out, counted aloud; one of a source with a weight is as many items.
    `src_lens` and `tgt_lens` are S and T of every item. Raises NoPairFits when none is left.
    """

    def __init__(
        self,
        pairs: "Dataset",
        tokenizer_src: Tokenizer,
        tokenizer_tgt: Tokenizer,
        seq_len: int,
        name: str = "training",
    ) -> None:
        self.tokenizer_src, self.tokenizer_tgt = tokenizer_src, tokenizer_tgt
        arguments = {
            "tokenizer_src": tokenizer_src.to_json(),
            "tokenizer_tgt": tokenizer_tgt.to_json(),
            "version": CODE_VERSION,
        }
        self.rows = map_in_parts(pairs, _encode, arguments, f"tokenising {name}")
        self.ids = self.rows.select_columns(["src", "tgt"])
        # Of a large corpus nothing but such numbers is in memory: four bytes each suffice.
        src_lens, tgt_lens = (
            self.rows.data.column(name).to_numpy().astype(np.int32)
            for name in ("src_len", "tgt_len")
        )
        longest = np.maximum(src_lens, tgt_lens)
        self.kept = np.flatnonzero(longest <= seq_len).astype(np.int32)
        dropped = len(longest) - len(self.kept)
        if self.weights is not None:
            self.kept = np.repeat(self.kept, self.weights[self.kept])
        self.src_lens, self.tgt_lens = src_lens[self.kept], tgt_lens[self.kept]
        if not len(self.kept):
            raise NoPairFits(
                f"all {len(longest):,} {name} pairs are longer than seq_len ({seq_len}); "
                f"--seq_len {longest.max()} keeps them all"
            )
        if dropped:
            print(
                f"{name}: {dropped:,} of {len(longest):,} pairs are longer than seq_len "
                f"({seq_len}) and dropped; --seq_len {longest.max()} keeps them all"
            )

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, list[int]]]:
        rows = self.ids[self.kept[indices]]
        return [
            {"index": int(index), "src": src, "tgt_in": tgt[:-1], "tgt_out": tgt[1:]}
            for index, src, tgt in zip(indices, rows["src"], rows["tgt"], strict=True)
        ]

    def collate(self, items: list[dict[str, list[int]]]) -> "Batch":
        """Pad items to their own longest, each side by its own pad id, and mask the source's."""
        src_pad_id, tgt_pad_id = self.tokenizer_src.pad_id, self.tokenizer_tgt.pad_id
        src = pad([item["src"] for item in items], src_pad_id)
        tgt_out = pad([item["tgt_out"] for item in items], tgt_pad_id)
        real = (tgt_out != tgt_pad_id).flatten().nonzero().flatten()
        return Batch(
            indices=[item["index"] for item in items],
            src=src,
            src_mask=padding_mask(src, src_pad_id),
            tgt_in=pad([item["tgt_in"] for item in items], tgt_pad_id),
            tgt_out=tgt_out,
            real=real,
            tokens=len(real),
        )

    def empty_batch(self) -> "Batch":
        """Return a batch that is computed like any other, but has no real token to learn from."""
        batch = self.collate([self[0]])
        return replace(batch, indices=[], real=batch.real[:0], tokens=0)

    def cut(self, batch: "Batch") -> list["Batch"]:
        """Return a batch's first and second half as batches of their own, on the CPU."""
        halves = np.array_split(batch.indices, 2)
        return [self.collate(self.__getitems__(half)) for half in halves]

    def texts(self, column: str) -> list[str]:
        """Return the cleaned texts of all items, of `src_text` or `tgt_text`."""
        return self.rows.select_columns([column])[self.kept][column]

    def unknown_shares(self) -> tuple[float, float]:
        """Return which share of the sources' tokens is [UNK], and of the targets'."""
        shares = []
        for side, lens, added in (("src", self.src_lens, 2), ("tgt", self.tgt_lens, 1)):
            unknown = self.rows.data.column(f"{side}_unknown").to_numpy()[self.kept]
            shares.append(float(unknown.sum() / (lens - added).sum(dtype=np.int64).clip(1)))
        return shares[0], shares[1]

    @property
    def weights(self) -> np.ndarray | None:
        """How often an epoch takes each row, or None for once."""
        if "weight" not in self.rows.column_names:
            return None
        return self.rows.data.column("weight").to_numpy()


@lru_cache(maxsize=2)
def _cached_tokenizer(text: str) -> Tokenizer:
    return tokenizer_from_json(text, "the tokenizer")


def _encode(
    batch: dict[str, list[str]], tokenizer_src: str, tokenizer_tgt: str, version: str
) -> dict[str, list]:
    columns = {}
    for side, text in (("src", tokenizer_src), ("tgt", tokenizer_tgt)):
        tokenizer = _cached_tokenizer(text)
        encoded = tokenizer.encode_batch(batch[f"{side}_text"])
        columns[side] = [[tokenizer.sos_id, *ids, tokenizer.eos_id] for ids in encoded]
        columns[f"{side}_unknown"] = [ids.count(tokenizer.unk_id) for ids in encoded]
    columns["src_len"] = [len(ids) for ids in columns["src"]]
    columns["tgt_len"] = [len(ids) - 1 for ids in columns["tgt"]]
    return columns


def form_batches(
    src_lens: np.ndarray,
    tgt_lens: np.ndarray,
    batch_tokens: int,
    batch_size: int | None = None,
    seed: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Group pairs of similar lengths, each pair once, as many as the budget allows.

    A batch of n pairs whose longest side has L tokens takes n * L of `batch_tokens`, and at most
    `batch_size` pairs. With a seed (any numbers, as (seed, epoch)) equal lengths are mixed and the
    batches shuffled; without one they come shortest first.
    """
    rng = None if seed is None else np.random.default_rng(list(seed))
    mixed = np.arange(len(src_lens)) if rng is None else rng.permutation(len(src_lens))
    mixed = mixed.astype(np.int32)
    src_lens, tgt_lens = src_lens[mixed].astype(np.int32), tgt_lens[mixed].astype(np.int32)
    longest = np.maximum(src_lens, tgt_lens)
    # By the longer side first. Within one length the difference runs up, in the next down, so
    # that a batch over the border between two lengths has no jump in its shorter side.
    difference = np.where(longest % 2, src_lens - tgt_lens, tgt_lens - src_lens)
    order = np.lexsort((difference, longest))
    batches, start = [], 0
    most_pairs = batch_size or len(order)
    for end, length in enumerate(longest[order].tolist()):
        pairs = end - start + 1
        if end > start and (pairs * length > batch_tokens or pairs > most_pairs):
            batches.append(mixed[order[start:end]])
            start = end
    if len(order):
        batches.append(mixed[order[start:]])
    if rng is not None:
        rng.shuffle(batches)
    return batches


@dataclass(frozen=True)
class Batch:
    """Padded pairs: src (B, S), src_mask (B, 1, 1, S), tgt_in and tgt_out (B, T).

    `real` holds the places of the real target tokens in tgt_out, read row by row: (tokens,).
    """

    indices: list[int]  # of the pairs in their dataset
    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    real: Tensor
    tokens: int  # real target tokens, [EOS] included

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device.

        Only a copy from pinned memory to CUDA may go on in the background. On MPS such a copy reads
        memory that may hold something else by then.
        """
        return self._with(
            lambda tensor: tensor.to(
                device, non_blocking=device.type == "cuda" and tensor.is_pinned()
            )
        )

    def pin_memory(self) -> "Batch":
        return self._with(Tensor.pin_memory)

    def _with(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        names = ("src", "src_mask", "tgt_in", "tgt_out", "real")
        return replace(self, **{name: change(getattr(self, name)) for name in names})


def pad(sequences: Sequence[list[int]], pad_id: int) -> Tensor:
    """Return ids padded on the right to the longest: (B, longest)."""
    padded = np.full((len(sequences), max(map(len, sequences))), pad_id, dtype=np.int64)
    for row, ids in zip(padded, sequences, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)


def source_batches(
    sources: Sequence[list[int]], tokenizer: Tokenizer, batch_tokens: int
) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Yield indices, src (B, S) and src_mask of encoded sources to translate, shortest first."""
    lens = np.array([len(ids) + 2 for ids in sources])
    for indices in form_batches(lens, lens, batch_tokens):
        src = pad(
            [[tokenizer.sos_id, *sources[i], tokenizer.eos_id] for i in indices], tokenizer.pad_id
        )
        yield indices, src, padding_mask(src, tokenizer.pad_id)
