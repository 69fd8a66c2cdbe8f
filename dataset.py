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

# The version of the rule by which `form_batches` groups pairs: a position inside an epoch counts
# its batches.
BATCHING = 2

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
        from corpus.cache import code_version, flat_column, map_in_parts  # for training only

        self.tokenizers = tokenizers
        arguments = {
            "tokenizer_src": tokenizers.src.to_json(),
            "tokenizer_tgt": tokenizers.tgt.to_json(),
            "version": code_version("encoding"),
        }
        self.rows = map_in_parts(pairs, _encode, arguments, f"tokenising {name}")
        self.seq_len = seq_len
        self.src_ids, self.tgt_ids = (flat_column(self.rows, name) for name in ("src", "tgt"))
        # For a large corpus only lengths and places are in memory.
        src_lens, tgt_lens = (
            self.rows.data.column(name).to_numpy().astype(np.int32)
            for name in ("src_len", "tgt_len")
        )
        self.src_starts, self.tgt_starts = starts_of(src_lens), starts_of(tgt_lens + 1)
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

    def __getitem__(self, index: int) -> dict[str, int | list[int]]:
        row = self.kept[index]
        src = self.src_ids[self.src_starts[row] : self.src_starts[row + 1]].tolist()
        tgt = self.tgt_ids[self.tgt_starts[row] : self.tgt_starts[row + 1]].tolist()
        return {"index": int(index), "src": src, "tgt_in": tgt[:-1], "tgt_out": tgt[1:]}

    def collate(self, items: Sequence[dict[str, int | list[int]]]) -> "Batch":
        """Return the batch of some items of this dataset, for a data loader."""
        return self.batch([item["index"] for item in items])

    def batch(self, indices: Sequence[int]) -> "Batch":
        """Return the items of some indices, padded on each side to a length of `padded_length`."""
        indices = np.asarray(indices)
        rows, src_pad_id, tgt_pad_id = self.kept[indices], *self.pad_ids
        src_lens, tgt_lens = self.src_lens[indices], self.tgt_lens[indices]
        src_columns, tgt_columns = (
            min(int(padded_length(lens.max())), self.seq_len) for lens in (src_lens, tgt_lens)
        )
        starts = self.tgt_starts[rows]
        src = gather(self.src_ids, self.src_starts[rows], src_lens, src_columns, src_pad_id)
        src = torch.from_numpy(src)
        tgt_out = gather(self.tgt_ids, starts + 1, tgt_lens, tgt_columns, tgt_pad_id)
        target_positions = np.flatnonzero(np.arange(tgt_columns) < tgt_lens[:, None])
        return Batch(
            indices=indices.tolist(),
            src=src,
            src_mask=padding_mask(src, src_pad_id),
            tgt_in=torch.from_numpy(
                gather(self.tgt_ids, starts, tgt_lens, tgt_columns, tgt_pad_id)
            ),
            tgt_out=torch.from_numpy(tgt_out),
            target_positions=torch.from_numpy(target_positions),
            tokens=len(target_positions),
        )

    @property
    def pad_ids(self) -> tuple[int, int]:
        """The id of [PAD] on each side."""
        return self.tokenizers.src.pad_id, self.tokenizers.tgt.pad_id

    def empty_batch(self) -> "Batch":
        """Return a batch without target tokens: it takes part in an update with no gradient."""
        batch = self.batch([0])
        none = batch.target_positions[:0]
        return replace(batch, indices=[], target_positions=none, tokens=0)

    def split(self, batch: "Batch") -> list["Batch"]:
        """Return the first and the second half of a batch as two batches, on the CPU."""
        return [self.batch(half) for half in np.array_split(batch.indices, 2)]

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


def starts_of(lens: np.ndarray) -> np.ndarray:
    """Return where each of some sequences begins in one flat array, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lens, dtype=np.int64)])


def gather(
    ids: np.ndarray, starts: np.ndarray, lens: np.ndarray, columns: int, pad_id: int
) -> np.ndarray:
    """Return sequences (B,) of a flat array of ids, padded on the right: (B, columns) in int64."""
    offsets = np.arange(columns)
    is_real = offsets < lens[:, None]
    places = np.where(is_real, starts[:, None] + offsets, 0)
    return np.where(is_real, ids[places], pad_id).astype(np.int64)


def step_of(number: np.ndarray) -> np.ndarray:
    """Return the largest power of two that is at most 1/8 of each number, but at least 1."""
    exponents = np.frexp(number)[1] - 1  # 2 ** exponent <= number
    return 2 ** np.maximum(exponents - 3, 0).astype(np.int64)


def padded_length(length: np.ndarray | int) -> np.ndarray:
    """Return the length to which a sequence of a training batch is padded, at most 1/8 longer.

    Lengths up to 16 stay, up to 32 they are even, up to 64 multiples of 4, and so on. So an epoch
    has few shapes: on a CPU in bf16 oneDNN makes kernels for each of them and keeps them, up to
    1 MB for each matrix product.
    """
    step = step_of(np.asarray(length))
    return -(-np.asarray(length, dtype=np.int64) // step) * step


def form_batches(
    src_lens: np.ndarray,
    tgt_lens: np.ndarray,
    batch_tokens: int,
    batch_size: int | None = None,
    seed: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Group pairs of similar lengths into batches within a token budget; return their indices.

    A batch of n pairs whose longest side is padded to L tokens (`padded_length`) uses n * L of
    `batch_tokens`. So that an epoch has few shapes, n is rounded down by at most 1/8, as lengths
    are rounded up. A batch has at most `batch_size` pairs. With a seed (any numbers, such as (seed,
    epoch)) pairs of equal lengths are mixed and batches are shuffled. Without one, the shortest
    come first.
    """
    if not len(src_lens):
        return []
    rng = None if seed is None else np.random.default_rng(list(seed))
    mixed = np.arange(len(src_lens)) if rng is None else rng.permutation(len(src_lens))
    src, tgt = padded_length(src_lens)[mixed], padded_length(tgt_lens)[mixed]
    longest = np.maximum(src, tgt)
    # Sort by the longer side, then by the shorter one, alternately up and down: a batch with two
    # lengths then needs little padding on the shorter side.
    _, rank = np.unique(longest, return_inverse=True)
    order = np.lexsort((np.where(rank % 2, src - tgt, tgt - src), longest))[::-1]
    # From the longest pairs to the shortest, so that the longest length alone decides how many
    # pairs a batch has, except for the last one.
    batches, start = [], 0
    while start < len(order):
        pairs = max(batch_tokens // int(longest[order[start]]), 1)
        pairs -= pairs % int(step_of(pairs))
        pairs = min(pairs, batch_size or pairs)
        batches.append(mixed[order[start : start + pairs]].astype(np.int32))
        start += pairs
    if rng is None:
        return batches[::-1]
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
