"""Sentence pairs from named sources.

The `datasets` library is imported only inside the functions that load, because it takes seconds.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from corpus.cleaning import clean_source
from corpus.hub import last_line
from corpus.sources import find_rows

if TYPE_CHECKING:
    from datasets import Dataset


def load_pairs(sources: str, lang_src: str, lang_tgt: str, split: str = "train") -> "Dataset":
    """Return the cleaned pairs of one source, or of several, such as `a,b` or `a:2,b:1`.

    The columns are `src_text` and `tgt_text`. Pairs of several sources also have a `weight`: how
    often an epoch uses the pair. Raises like `load_source`, and ValueError for an invalid weight.
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
    """Return the names in `a,b` or `a:2,b:1`, each with the weight after its colon or None.

    An existing path is one name even with commas and colons in it. It may be a file, a folder, or
    the prefix of a text file.
    """

    def is_there(name: str) -> bool:
        endings = ("", *(f".{lang}{gz}" for lang in (lang_src, lang_tgt) for gz in ("", ".gz")))
        return bool(name) and any(os.path.exists(name + ending) for ending in endings)

    parts, named = sources.split(","), []
    while parts:
        for count in range(len(parts), 0, -1):
            text = ",".join(parts[:count])
            # A weight follows a colon, except in C:\data.
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
    .txt or .parquet file, a folder laid out like a hub set, or a hub name. `split` is
    train, validation or test, for sources that have several. Prints how many pairs it found and
    dropped. Raises ValueError or FileNotFoundError with a message of one line for a user's mistake.
    """
    from datasets.exceptions import DatasetGenerationError

    try:
        rows, note = find_rows(source, lang_src, lang_tgt, split)
        pairs, drops = clean_source(rows, lang_src, lang_tgt)
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        reason = last_line(error)
        if source not in reason:
            reason = f"{source} cannot be read: {reason}"
        raise ValueError(reason) from None
    if not len(pairs):
        first = f"; its first row is {str(rows[0])[:200]}" if len(rows) else ""
        raise ValueError(
            f"{source} has no pair with text on both sides, {lang_src} and {lang_tgt}{first}"
        )
    print(f"{source}: {len(rows):,} pairs{note}, {lang_src} -> {lang_tgt}{drops}")
    return pairs


def iterate(pairs: "Dataset", column: str) -> Iterator[str]:
    """Yield the texts of a column, ten times as fast as iterating over the column itself."""
    for rows in pairs.select_columns([column]).iter(10000):
        yield from rows[column]


def fingerprint(pairs: "Dataset") -> str:
    """Return a hash of all texts and weights. It is the same on all machines and with any cache."""
    digest = hashlib.sha256()
    for rows in pairs.select_columns(["src_text", "tgt_text"]).iter(10000):
        digest.update(json.dumps(rows).encode())
    if "weight" in pairs.column_names:
        digest.update(pairs.with_format("arrow")["weight"][:].to_numpy().tobytes())
    return digest.hexdigest()


def without_weights(pairs: "Dataset") -> "Dataset":
    """Return pairs without their weights, to validate or test on."""
    return pairs.remove_columns(["weight"]) if "weight" in pairs.column_names else pairs
