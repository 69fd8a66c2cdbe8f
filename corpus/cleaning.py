"""Cleaning pairs: Unicode NFC, one line, no empty side, no text that is too long."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corpus.cache import code_version, map_in_parts
from corpus.records import pair_of
from corpus.tokenizer import MAX_CHARS, clean_text

if TYPE_CHECKING:
    from datasets import Dataset


def clean_source(rows: "Dataset", lang_src: str, lang_tgt: str) -> "tuple[Dataset, str]":
    """Return the cleaned pairs of a source, on disk, and a text on how many were dropped.

    Their columns are `src_text` and `tgt_text`. Raises ValueError for rows without such columns.
    """
    arguments = {"lang_src": lang_src, "lang_tgt": lang_tgt, "version": code_version("cleaning")}
    pairs = map_in_parts(rows, _clean, arguments, "cleaning", rows.column_names)
    dropped, too_long = len(rows) - len(pairs), 0
    if dropped:
        counts = map_in_parts(rows, _count_long, arguments, "counting", rows.column_names)
        too_long = sum(counts["count"])
    return pairs, _describe_drops(dropped, too_long)


def clean_rows(rows: dict[str, list], lang_src: str, lang_tgt: str) -> "tuple[Dataset, str]":
    """Return the cleaned pairs of some rows, in memory, and a text on how many were dropped."""
    from datasets import Dataset

    arguments = (lang_src, lang_tgt, code_version("cleaning"))
    pairs = Dataset.from_dict(_clean(rows, *arguments))
    dropped = len(next(iter(rows.values()))) - len(pairs)
    (too_long,) = _count_long(rows, *arguments)["count"]
    return pairs, _describe_drops(dropped, too_long)


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


def _count_long(
    batch: dict[str, list], lang_src: str, lang_tgt: str, version: str
) -> dict[str, list[int]]:
    pairs = _raw_pairs(batch, lang_src, lang_tgt)
    return {"count": [sum(max(map(len, pair)) > MAX_CHARS for pair in pairs)]}


def _raw_pairs(batch: dict[str, list], lang_src: str, lang_tgt: str) -> Iterator[tuple[str, str]]:
    """Yield the two texts of each row unchanged; a missing text is empty."""
    langs = (lang_src, lang_tgt)
    if set(batch) == {"src_text", "tgt_text"}:  # from our own readers
        yield from zip(batch["src_text"], batch["tgt_text"], strict=True)
        return
    for lang, side in zip(langs, ("src_text", "tgt_text"), strict=True):
        if batch.keys().isdisjoint(("translation", lang, side)):
            raise ValueError(f"no column translation or {lang}; the columns are {', '.join(batch)}")
    for values in zip(*batch.values(), strict=True):
        src_text, tgt_text = pair_of(dict(zip(batch, values, strict=True)), langs)
        yield src_text or "", tgt_text or ""


def _describe_drops(dropped: int, too_long: int) -> str:
    drops = (
        (dropped - too_long, "with an empty side"),
        (too_long, f"over {MAX_CHARS:,} characters"),
    )
    return "".join(f", {count:,} {why} dropped" for count, why in drops if count)
