"""The two texts of a row, for all kinds of files, and the rows of JSON files."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path

from corpus.lines import read_long_lines

# Numbers stay as they are written: 1.50 does not become 1.5, and a number may have 5,000 digits.
# NaN counts as a missing text.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda name: None)
_BLANKS = re.compile(r"[ \t\r\n]*")


def pair_of(row: Mapping[str, object], langs: tuple[str, str], place: str = "") -> list[str | None]:
    """Return the source text and the target text of a row, None for a missing one.

    A text is looked up by its language inside `translation`, then in the column of its language,
    then in `src_text` or `tgt_text`. Raises ValueError for a `translation` that is not a mapping.
    The message begins with `place`.
    """
    translation = row.get("translation")
    if not isinstance(translation, (Mapping, type(None))):
        raise ValueError(
            f"{place}translation must contain one text per language, not {str(translation)[:80]!r}"
        )
    texts = []
    for side, lang in zip(("src_text", "tgt_text"), langs, strict=True):
        places = ((translation or {}).get(lang), row.get(lang), row.get(side))
        texts.append(next((text for text in map(_as_text, places) if text is not None), None))
    return texts


def _as_text(value: object) -> str | None:
    if isinstance(value, bool) or value != value:  # NaN stands for an empty field
        return None
    if not isinstance(value, (str, int, float, date, time, Decimal)):
        return None
    # JSON may contain lone surrogates, which UTF-8 cannot encode.
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_json_lines(path: str, langs: tuple[str, str], version: str) -> Iterator[dict[str, str]]:
    """Yield the pairs of a file with one JSON object per line, as `src_text` and `tgt_text`.

    `version` is not used: it makes the cache of the `datasets` library notice changes.
    Raises ValueError with file and line.
    """
    yield from _pairs(_objects_of_lines(Path(path)), path, langs)


def read_json(path: str, langs: tuple[str, str], version: str) -> Iterator[dict[str, str]]:
    """Yield like `read_json_lines`, but also accept an array, or objects of several lines.

    Such a file is loaded into memory as a whole.
    """
    lines = (line for line, _ in read_long_lines(Path(path)) if line.strip())
    first = next(lines, "").strip()
    lines.close()
    try:
        is_row = first[:1] != "[" and isinstance(_DECODER.decode(first), dict)
    except (ValueError, RecursionError):
        is_row = False
    objects = _objects_of_lines if is_row else _objects_of_text
    yield from _pairs(objects(Path(path)), path, langs)


def _pairs(
    objects: Iterator[tuple[int, object]], path: str, langs: tuple[str, str]
) -> Iterator[dict[str, str]]:
    first, found = "", [False, False]
    for number, row in objects:
        place = f"{path}, line {number}"
        if not isinstance(row, dict):
            raise ValueError(f"{place}, is a JSON {type(row).__name__}, not an object")
        first = first or json.dumps(row, ensure_ascii=False)[:200]
        texts = pair_of(row, langs, f"{place}: ")
        found = [seen or text is not None for seen, text in zip(found, texts, strict=True)]
        yield {"src_text": texts[0] or "", "tgt_text": texts[1] or ""}
    if not first:
        raise ValueError(f"{path} has no JSON object, only blank lines")
    for lang, seen in zip(langs, found, strict=True):
        if not seen:
            raise ValueError(
                f"no row of {path} has a text for {lang}, neither in translation nor in a column; "
                f"the first row is {first}"
            )


def _objects_of_lines(path: Path) -> Iterator[tuple[int, object]]:
    """Yield the number and the JSON value of each line that is not blank."""
    for number, (line, cut_off) in enumerate(read_long_lines(path), start=1):
        if cut_off is not None:  # cleaning drops and counts texts of that length
            yield number, {"src_text": line, "tgt_text": line}
        elif line.strip():
            try:
                row = _DECODER.decode(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(_not_json(path, number, error)) from None
            yield number, row


def _objects_of_text(path: Path) -> Iterator[tuple[int, object]]:
    """Yield the line number and the value of each item of an array, or of consecutive values."""
    text = "\n".join(line for line, _ in read_long_lines(path, sys.maxsize))
    at = _skip_blanks(text, 0)
    is_array = text.startswith("[", at)
    if is_array:
        at = _skip_blanks(text, at + 1)
    number, counted = 1, 0
    try:
        while at < len(text) or is_array:
            if is_array and text.startswith("]", at):
                at, is_array = _skip_blanks(text, at + 1), False
                if at < len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                break
            row, after = _DECODER.raw_decode(text, at)
            number, counted = number + text.count("\n", counted, at), at
            yield number, row
            at = _skip_blanks(text, after)
            if is_array and text.startswith(",", at):
                at = _skip_blanks(text, at + 1)
            elif is_array and not text.startswith("]", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
    except (ValueError, RecursionError) as error:
        raise ValueError(_not_json(path, 1, error)) from None


def _skip_blanks(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()


def _not_json(path: Path, number: int, error: Exception) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return f"{path}, line {number}, is not JSON: {error}"
    place = f"{path}, line {number + error.lineno - 1}"
    return f"{place}, is not JSON: {error.msg} at character {error.colno}"
