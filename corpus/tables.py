"""Tables (.csv, .tsv and .txt): which columns hold the pairs, and the rows as text."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from corpus.lines import MAX_ROW_BYTES, read_long_lines

# The columns of the texts in a table without a header, by its number of columns: plain pairs, pairs
# of manythings.org with a licence, and pairs of Tatoeba with a number before each text.
_TEXTS_BY_COUNT = {2: (0, 1), 3: (0, 1), 4: (1, 3)}
_NAMES_OF_SIDES = ({"source", "src", "src_text"}, {"target", "tgt", "trg", "tgt_text"})


@dataclass(frozen=True)
class Columns:
    """The columns of the source text and the target text in a table."""

    src: int
    tgt: int
    has_header: bool  # the first row names the columns
    guess: str = ""  # a message on what the file does not say and how it was guessed


def read_table(path: str, suffix: str, columns: Columns, version: str) -> Iterator[dict[str, str]]:
    """Yield the pairs of a table, as `src_text` and `tgt_text`.

    `version` is not used: it makes the cache of the `datasets` library notice changes.
    Raises ValueError with file and line.
    """
    rows = _read_rows(Path(path), suffix)
    if columns.has_header:
        next(rows)
    for _, cells in rows:
        yield {"src_text": cells[columns.src], "tgt_text": cells[columns.tgt]}


def find_columns(path: Path, suffix: str, langs: tuple[str, str]) -> Columns:
    """Return which columns hold the pairs: by their names in the first row, or by their number.

    The first row of a .csv must name the columns. A table with TABs may begin with a pair. Raises
    ValueError with file and line.
    """
    rows = _read_rows(path, suffix)
    number, cells = next(rows, (0, []))
    if not number:
        raise ValueError(f"{path} has no row, only blank lines")
    place = f"{path}, line {number}"
    columns = _named_columns(cells, langs, place)
    if columns is None and suffix == ".csv":
        raise ValueError(
            f"{place}, must name the columns, {langs[0]} and {langs[1]} among them; it names "
            f"{_listed(cells)}"
        )
    columns = columns or _columns_of_pairs(cells, langs, place)
    if columns.has_header:
        _, cells = next(rows, (0, []))
        if not cells:
            raise ValueError(f"{place}, names the columns, and no row follows it")
    if not columns.guess:
        return columns
    src_text, tgt_text = cells[columns.src][:80], cells[columns.tgt][:80]
    first = f"the first pair is {src_text!r} -> {tgt_text!r}"
    return replace(columns, guess=f"{columns.guess}; {first}")


def _named_columns(cells: list[str], langs: tuple[str, str], place: str) -> Columns | None:
    """Return the columns that the first row names, or None if it is not a header."""
    names = [cell.strip().casefold() for cell in cells]
    counts = [names.count(lang.casefold()) for lang in langs]
    if counts == [1, 1]:
        return Columns(*(names.index(lang.casefold()) for lang in langs), has_header=True)
    if any(counts):
        lang, count = next(pair for pair in zip(langs, counts, strict=True) if pair[1] != 1)
        raise ValueError(
            f"{place}, must name {langs[0]} and {langs[1]} once each, and names {lang} {count} "
            f"times: {_listed(cells)}; if this row is a pair, add a header above it"
        )
    if "translation" in names and set(names) <= {"id", "translation"}:
        raise ValueError(
            f"{place}: translation must contain one text per language, which a cell cannot; "
            f"name one column {langs[0]} and one {langs[1]}"
        )
    sides = [[i for i, name in enumerate(names) if name in words] for words in _NAMES_OF_SIDES]
    if [len(places) for places in sides] != [1, 1]:
        return None
    (src,), (tgt,) = sides
    guess = f"{place}, names {names[src]} and {names[tgt]}, taken as {langs[0]} and {langs[1]}"
    return Columns(src, tgt, has_header=True, guess=guess)


def _columns_of_pairs(cells: list[str], langs: tuple[str, str], place: str) -> Columns:
    """Return the columns of a table without a header, by the number of columns."""
    kinds = ["n" if re.fullmatch(r"\d+", cell.strip(), re.ASCII) else "t" for cell in cells]
    if not re.fullmatch("..|t..|n.n.", "".join(kinds)):  # n: only a number, t: any other text
        raise ValueError(
            f"{place}, names no columns, and is not two texts, two texts and a licence, or twice a "
            f"number and a text, separated by TABs; name the columns in a first line, {langs[0]} "
            f"and {langs[1]} among them; the line has {_listed(cells)}"
        )
    src, tgt = _TEXTS_BY_COUNT[len(cells)]
    guess = (
        f"{place}, names no columns, so column {src + 1} of {len(cells)} is taken as {langs[0]} "
        f"and column {tgt + 1} as {langs[1]}"
    )
    return Columns(src, tgt, has_header=False, guess=guess)


def _listed(cells: list[str]) -> str:
    return " ".join(", ".join(cells)[:200].split())


def _read_rows(path: Path, suffix: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each row, and the cells of the row.

    Blank lines are skipped. Raises ValueError with file and line if a row does not have as many
    cells as the first one.
    """
    first, count = 0, 0
    for number, cells in (_split_csv if suffix == ".csv" else _split_tsv)(path):
        if isinstance(cells, str):
            if not first:
                raise ValueError(f"{path}, line {number}, has more than {MAX_ROW_BYTES:,} bytes")
            cells = [cells] * count  # cleaning drops and counts texts of that length
        if not first:
            first, count = number, len(cells)
        if len(cells) != count:
            quoting = " (a cell with a comma in it needs quotation marks)"
            raise ValueError(
                f"{path}, line {number}: {len(cells)} fields, and line {first} has {count}: give "
                f"both the same number{quoting if suffix == '.csv' else ''}, or delete one line"
            )
        yield number, cells


def _split_tsv(path: Path) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the number and the cells of each line that is not blank.

    For a line that is too long, yield its beginning as one text instead of the cells.
    """
    for number, (line, quotes_cut_off) in enumerate(read_long_lines(path), start=1):
        if quotes_cut_off is not None:
            yield number, line
        elif line.strip(" \r"):
            yield number, line.rstrip("\r").split("\t")


def _split_csv(path: Path) -> Iterator[tuple[int, list[str] | str]]:
    """Yield like `_split_tsv`, but by the rules of Python's csv module.

    Raises ValueError for a quotation that does not end or is too long.
    """
    too_long: list[str] = []

    def lines() -> Iterator[str]:
        for line, quotes_cut_off in read_long_lines(path):
            if quotes_cut_off is not None:
                if (line.count('"') + quotes_cut_off) % 2:
                    raise csv.Error("a quotation does not end")
                too_long.append(line)
                line = ""
            # The module would end a row at a lone CR, which cleaning takes for a blank.
            yield line.rstrip("\r").replace("\r", " ") + "\n"

    csv.field_size_limit(MAX_ROW_BYTES)
    rows, first = csv.reader(lines(), strict=True), 1
    try:
        for cells in rows:
            if too_long and cells:  # that line is inside a quotation
                raise csv.Error("a quotation is too long")
            is_blank = len(cells) < 2 and not "".join(cells).strip(" ")
            if too_long or not is_blank:
                yield first, too_long.pop() if too_long else cells
            first = rows.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f'{path}, line {first}: a quotation mark (") that opens a cell needs one at its end, '
            f"within {MAX_ROW_BYTES:,} characters ({error})"
        ) from None
