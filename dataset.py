"""Encoded sentence pairs, their masks, and batches of pairs of similar lengths."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from corpus.tokenizer import Tokenizer, TokenizerPair, tokenizer_from_json

if TYPE_CHECKING:
    from datasets import Dataset

# Masks are boolean, True = may attend. No other module makes a mask.


def causal_mask(size: int, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, size, size) in which each position attends to itself and before.

    The model needs no such mask, as a `tgt_mask` of None means causal; it is for experiments.
    """
    return torch.ones(1, 1, size, size, dtype=torch.bool, device=device).tril()


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return the mask (B, 1, 1, S) that hides the padding of ids (B, S)."""
    return (ids != pad_id)[:, None, None, :]


class NoPairFits(ValueError):
    """All pairs of a dataset are longer than `seq_len`."""


class BilingualDataset(torch.utils.data.Dataset):
    """Encoded sentence pairs, memory-mapped from disk (those of a stream: in memory).

    An item is a dict of its `index` and three lists of ids: `src` is [SOS] source [EOS] (S),
    `tgt_in` the decoder's input, [SOS] target (T), and `tgt_out` its labels, target [EOS] (T).
    Pairs with S or T over `seq_len` are dropped, and their number is printed. A pair of a source
    with weight n is n items.
    `src_lens` and `tgt_lens` are S and T of each item. Raises NoPairFits if no pair is left.
    """

    def __init__(
        self,
        pairs: "Dataset",
        tokenizers: TokenizerPair,
        seq_len: int,
        name: str = "training",
    ) -> None:
        from corpus.cache import code_version, map_in_parts  # translating does not need it

        self.tokenizers = tokenizers
        arguments = {
            "tokenizer_src": tokenizers.src.to_json(),
            "tokenizer_tgt": tokenizers.tgt.to_json(),
            "version": code_version("encoding"),
        }
        self.rows = map_in_parts(pairs, _encode, arguments, f"tokenising {name}")
        self.ids = self.rows.select_columns(["src", "tgt"])
        # For a large corpus only these numbers are in memory, four bytes each.
        src_lens, tgt_lens = (
            self.rows.data.column(name).to_numpy().astype(np.int32)
            for name in ("src_len", "tgt_len")
        )
        longest = np.maximum(src_lens, tgt_lens)
        self.kept = np.flatnonzero(longest <= seq_len).astype(np.int32)
        dropped = len(longest) - len(self.kept)
        if self.repetitions is not None:
            self.kept = np.repeat(self.kept, self.repetitions[self.kept])
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
        """Return the items of several indices, read together, which is faster."""
        rows = self.ids[self.kept[indices]]
        return [
            {"index": int(index), "src": src, "tgt_in": tgt[:-1], "tgt_out": tgt[1:]}
            for index, src, tgt in zip(indices, rows["src"], rows["tgt"], strict=True)
        ]

    def collate(self, items: list[dict[str, list[int]]]) -> "Batch":
        """Pad items to the longest of each side, with that side's pad id, and mask the source."""
        src_pad_id, tgt_pad_id = self.tokenizers.src.pad_id, self.tokenizers.tgt.pad_id
        src = pad([item["src"] for item in items], src_pad_id)
        tgt_out = pad([item["tgt_out"] for item in items], tgt_pad_id)
        target_positions = (tgt_out != tgt_pad_id).flatten().nonzero().flatten()
        return Batch(
            indices=[item["index"] for item in items],
            src=src,
            src_mask=padding_mask(src, src_pad_id),
            tgt_in=pad([item["tgt_in"] for item in items], tgt_pad_id),
            tgt_out=tgt_out,
            target_positions=target_positions,
            tokens=len(target_positions),
        )

    def empty_batch(self) -> "Batch":
        """Return a batch without target tokens: it takes part in an update with no gradient."""
        batch = self.collate([self[0]])
        none = batch.target_positions[:0]
        return replace(batch, indices=[], target_positions=none, tokens=0)

    def split(self, batch: "Batch") -> list["Batch"]:
        """Return the first and the second half of a batch as two batches, on the CPU."""
        halves = np.array_split(batch.indices, 2)
        return [self.collate(self.__getitems__(half)) for half in halves]

    def texts(self, column: str) -> list[str]:
        """Return the cleaned texts of all items; `column` is `src_text` or `tgt_text`."""
        return self.rows.select_columns([column])[self.kept][column]

    def unknown_shares(self) -> tuple[float, float]:
        """Return the shares (0 to 1) of [UNK] among source tokens and among target tokens."""
        shares = []
        for side, lens, added in (("src", self.src_lens, 2), ("tgt", self.tgt_lens, 1)):
            unknown = self.rows.data.column(f"{side}_unknown").to_numpy()[self.kept]
            shares.append(float(unknown.sum() / (lens - added).sum(dtype=np.int64).clip(1)))
        return shares[0], shares[1]

    @property
    def repetitions(self) -> np.ndarray | None:
        """How often an epoch takes each row: (rows,), or None if once."""
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
    """Group pairs of similar lengths into batches within a token budget; return their indices.

    A batch of n pairs whose longest side has L tokens uses n * L of `batch_tokens`. It has at most
    `batch_size` pairs. With a seed (any numbers, such as (seed, epoch)) pairs of equal lengths are
    mixed and batches are shuffled. Without one, the shortest come first.
    """
    rng = None if seed is None else np.random.default_rng(list(seed))
    mixed = np.arange(len(src_lens)) if rng is None else rng.permutation(len(src_lens))
    mixed = mixed.astype(np.int32)
    src_lens, tgt_lens = src_lens[mixed].astype(np.int32), tgt_lens[mixed].astype(np.int32)
    longest = np.maximum(src_lens, tgt_lens)
    # Sort by the longer side, then by the shorter one, alternately up and down: a batch with two
    # lengths then needs little padding on the shorter side.
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

    `target_positions` (tokens,) are the indices of non-padding in the flattened tgt_out.
    """

    indices: list[int]  # of the pairs in their dataset
    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    target_positions: Tensor
    tokens: int  # target tokens without padding, [EOS] included

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device.

        Only a copy from pinned memory to CUDA is asynchronous. On MPS an asynchronous copy may read
        memory that has been reused.
        """
        return self._with(
            lambda tensor: tensor.to(
                device, non_blocking=device.type == "cuda" and tensor.is_pinned()
            )
        )

    def pin_memory(self) -> "Batch":
        """Return the batch in pinned memory; the data loader calls this."""
        return self._with(Tensor.pin_memory)

    def _with(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        names = ("src", "src_mask", "tgt_in", "tgt_out", "target_positions")
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
    """Yield batches of encoded sources to translate, shortest first.

    Each is (indices into `sources`, src (B, S), src_mask (B, 1, 1, S)).
    """
    lens = np.array([len(ids) + 2 for ids in sources])
    for indices in form_batches(lens, lens, batch_tokens):
        src = pad(
            [[tokenizer.sos_id, *sources[i], tokenizer.eos_id] for i in indices], tokenizer.pad_id
        )
        yield indices, src, padding_mask(src, tokenizer.pad_id)
