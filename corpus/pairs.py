"""Sentence pairs from named sources: cleaned and split.

The `datasets` library is imported only inside the functions that load, because it takes seconds.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpus.hub import last_line
from corpus.lines import MAX_CHARS
from corpus.records import pair_of
from corpus.sources import find_rows
from corpus.tokenizer import clean_text

if TYPE_CHECKING:
    from datasets import Dataset

# The library's cache knows our functions by name only; with this it also sees them change.
CODE_VERSION = hashlib.sha256(
    b"".join(
        Path(__file__).with_name(room).read_bytes()
        for room in ("pairs.py", "lines.py", "records.py", "tokenizer.py")
    )
).hexdigest()

# Pairs that are worked on at a time: what an interruption costs at most.
PART = 250_000


def load_pairs(sources: str, lang_src: str, lang_tgt: str, split: str = "train") -> "Dataset":
    """Return the cleaned pairs of one source, or of several as in `a,b` or `a:2,b:1`.

    Their columns are `src_text` and `tgt_text`, and with several sources `weight`: how often an
    epoch takes the pair. Raises like `load_source`, and ValueError for a weight that is none.
    """
    from datasets import concatenate_datasets

    named = named_sources(sources, lang_src, lang_tgt)
    if not all(name for name, _ in named):
        raise ValueError(f"datasource ({sources}) has an empty name between its commas")
    for _, weight in named:
        if weight is not None and not re.fullmatch(r"0*([1-9]\d?|100)", weight, re.ASCII):
            raise ValueError(
                f"datasource ({sources}): the weight after the colon must be a whole number, 1 to "
                f"100, not {weight!r}"
            )
    weights = [1 if weight is None else int(weight) for _, weight in named]
    loaded = [load_source(name, lang_src, lang_tgt, split) for name, _ in named]
    if weights == [1]:
        return loaded[0]
    column = np.repeat(np.array(weights, np.int8), [len(pairs) for pairs in loaded])
    return concatenate_datasets(loaded).add_column("weight", column)


def named_sources(sources: str, lang_src: str, lang_tgt: str) -> list[tuple[str, str | None]]:
    """Return the names in `a,b` or `a:2,b:1`, and what stands behind their colons.

    A path that is there is one name, whatever commas and colons it has: a file, a folder, or the
    prefix of a text file.
    """

    def is_there(name: str) -> bool:
        endings = ("", *(f".{lang}{gz}" for lang in (lang_src, lang_tgt) for gz in ("", ".gz")))
        return bool(name) and any(os.path.exists(name + ending) for ending in endings)

    parts, named = sources.split(","), []
    while parts:
        for count in range(len(parts), 0, -1):
            text = ",".join(parts[:count])
            # What follows a colon is a weight, but for C:\data.
            name, weight = re.fullmatch(r"(.*?)(?::([^:/\\]*))?", text, re.DOTALL).groups()
            if is_there(text):
                name, weight = text, None
            if count == 1 or is_there(name):
                named.append((name, weight))
                del parts[:count]
                break
    return named


def load_source(source: str, lang_src: str, lang_tgt: str, split: str) -> "Dataset":
    """Return the cleaned pairs of a source, columns `src_text` and `tgt_text`, on disk.

    A source is `phrasebook`, the prefix of two text files (also .gz), a .jsonl, .json, .csv, .tsv,
    .txt or .parquet file, a folder laid out like a hub set, or a hub name. `split` is for sources
    that have several: train, validation, test. Prints what was found and dropped.
    Raises ValueError or FileNotFoundError, in one line, for what a user can mend.
    """
    from datasets.exceptions import DatasetGenerationError

    try:
        rows, note = find_rows(source, lang_src, lang_tgt, split)
        languages = {"lang_src": lang_src, "lang_tgt": lang_tgt, "version": CODE_VERSION}
        pairs = map_in_parts(rows, _clean, languages, "cleaning", rows.column_names)
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        reason = last_line(error)
        if source not in reason:
            reason = f"{source} cannot be read: {reason}"
        raise ValueError(reason) from None
    dropped = len(rows) - len(pairs)
    too_long = _count_long(rows, lang_src, lang_tgt) if dropped else 0
    if not len(pairs):
        first = f"; its first row is {str(rows[0])[:200]}" if len(rows) else ""
        raise ValueError(
            f"{source} has no pair with text on both sides, {lang_src} and {lang_tgt}{first}"
        )
    print(
        f"{source}: {len(rows):,} pairs{note}, {lang_src} -> {lang_tgt}"
        f"{_drops_in_words(dropped, too_long)}"
    )
    return pairs


def clean_rows(rows: dict[str, list], lang_src: str, lang_tgt: str) -> "tuple[Dataset, str]":
    """Return the cleaned pairs of some rows, in memory, and in words what was dropped."""
    from datasets import Dataset

    arguments = (lang_src, lang_tgt, CODE_VERSION)
    pairs = Dataset.from_dict(_clean(rows, *arguments))
    dropped = len(next(iter(rows.values()))) - len(pairs)
    (too_long,) = _count_long_of_batch(rows, *arguments)["count"]
    return pairs, _drops_in_words(dropped, too_long)


def _drops_in_words(dropped: int, too_long: int) -> str:
    drops = (
        (dropped - too_long, "with an empty side"),
        (too_long, f"over {MAX_CHARS:,} characters"),
    )
    return "".join(f", {count:,} {why} dropped" for count, why in drops if count)


def map_in_parts(
    pairs: "Dataset",
    function: Callable,
    arguments: dict[str, object],
    name: str,
    remove_columns: list[str] | None = None,
) -> "Dataset":
    """Return what a function makes of the columns of some rows at a time, kept on the disk.

    Each part is kept when it is done: where this is interrupted, the next time goes on from there.
    """
    from datasets import concatenate_datasets

    parts, names = [pairs], [name]
    if len(pairs) > PART:
        ranges = [range(i, min(i + PART, len(pairs))) for i in range(0, len(pairs), PART)]
        parts = [pairs.select(rows) for rows in ranges]
        names = [f"{name}, part {i} of {len(parts)}" for i in range(1, len(parts) + 1)]
    settings = {"batched": True, "fn_kwargs": arguments, "remove_columns": remove_columns}
    return concatenate_datasets(
        [part.map(function, desc=desc, **settings) for part, desc in zip(parts, names, strict=True)]
    )


def _clean(
    batch: dict[str, list], lang_src: str, lang_tgt: str, version: str
) -> dict[str, list[str]]:
    kept = {"src_text": [], "tgt_text": []}
    for pair in _raw_pairs(batch, lang_src, lang_tgt):
        if max(map(len, pair)) <= MAX_CHARS:
            src_text, tgt_text = map(clean_text, pair)
            if src_text and tgt_text:
                kept["src_text"].append(src_text)
                kept["tgt_text"].append(tgt_text)
    return kept


def _count_long(rows: "Dataset", lang_src: str, lang_tgt: str) -> int:
    """Return how many pairs have a side that is too long to be looked at."""
    languages = {"lang_src": lang_src, "lang_tgt": lang_tgt, "version": CODE_VERSION}
    counts = map_in_parts(rows, _count_long_of_batch, languages, "counting", rows.column_names)
    return sum(counts["count"])


def _count_long_of_batch(
    batch: dict[str, list], lang_src: str, lang_tgt: str, version: str
) -> dict[str, list[int]]:
    pairs = _raw_pairs(batch, lang_src, lang_tgt)
    return {"count": [sum(max(map(len, pair)) > MAX_CHARS for pair in pairs)]}


def _raw_pairs(batch: dict[str, list], lang_src: str, lang_tgt: str) -> Iterator[tuple[str, str]]:
    """Yield each row's two texts as they are; what a row lacks is empty text."""
    langs = (lang_src, lang_tgt)
    if set(batch) == {"src_text", "tgt_text"}:  # of our own readers, which yield texts alone
        yield from zip(batch["src_text"], batch["tgt_text"], strict=True)
        return
    for lang, side in zip(langs, ("src_text", "tgt_text"), strict=True):
        if batch.keys().isdisjoint(("translation", lang, side)):
            raise ValueError(f"no column translation or {lang}; the columns are {', '.join(batch)}")
    for values in zip(*batch.values(), strict=True):
        src_text, tgt_text = pair_of(dict(zip(batch, values, strict=True)), langs)
        yield src_text or "", tgt_text or ""


def split_pairs(pairs: "Dataset", seed: int) -> "tuple[Dataset, Dataset]":
    """Return 90 % of the pairs for training and 10 % for validation, by distinct sources.

    A function of seed and texts alone: no source sentence is in both parts, and neither the
    machine nor the order of the pairs matters. Raises ValueError for fewer than two sources.
    """
    arguments = {"seed": seed, "version": CODE_VERSION}
    digests = map_in_parts(pairs, _digest, arguments, "splitting", pairs.column_names)
    keys = digests.data.column("digest").to_numpy()
    ordered = np.sort(keys)  # np.unique takes ten times as long, by a table of hashes
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


def iterate(pairs: "Dataset", column: str) -> Iterator[str]:
    """Yield the texts of a column, ten times as fast as the column itself does."""
    for rows in pairs.select_columns([column]).iter(10000):
        yield from rows[column]


def fingerprint(pairs: "Dataset") -> str:
    """Return a hash of all texts and weights, the same wherever and how often they are loaded."""
    digest = hashlib.sha256()
    for rows in pairs.select_columns(["src_text", "tgt_text"]).iter(10000):
        digest.update(json.dumps(rows).encode())
    if "weight" in pairs.column_names:
        digest.update(pairs.with_format("arrow")["weight"][:].to_numpy().tobytes())
    return digest.hexdigest()


def cap_pairs(pairs: "Dataset", size: int | None, seed: int) -> "Dataset":
    """Return `size` pairs drawn by seed, in their order, or all when there are no more."""
    if size is None or size >= len(pairs):
        return pairs
    drawn = np.random.default_rng(seed).choice(len(pairs), size, replace=False)
    return pairs.select(np.sort(drawn))


def without_weights(pairs: "Dataset") -> "Dataset":
    """Return pairs of which each counts once, as those to validate and to test on."""
    return pairs.remove_columns(["weight"]) if "weight" in pairs.column_names else pairs
