"""The lines of a text as bytes come in: from a file, a pipe or a command line."""

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# No sentence is longer; what is, in characters, is dropped before it can take all memory.
MAX_CHARS = 20_000
MAX_BYTES = 4 * MAX_CHARS + 4  # of so many characters in UTF-8, and a little more


@dataclass(frozen=True)
class Line:
    """A line to translate, or with its `fault` one that cannot be."""

    text: str  # of a faulty line what can be shown
    fault: str = ""  # such as "line 3, byte 6: 0xe9 is not UTF-8"


def raw_lines(file: BinaryIO, most: int) -> Iterator[tuple[bytes, bool]]:
    """Yield lines without a byte order mark, cut after `most` bytes, and whether they were cut.

    A line ends at "\\n" alone, which comes with it.
    """
    is_first = True
    while line := file.readline(most):
        rest = line
        while len(rest) == most and not rest.endswith(b"\n"):
            rest = file.readline(most)
        yield line.removeprefix(codecs.BOM_UTF8) if is_first else line, rest is not line
        is_first = False


def not_utf8(number: int, error: UnicodeDecodeError) -> str:
    """Return where and why a line is not UTF-8."""
    byte = error.object[error.start]
    return f"line {number}, byte {error.start + 1}: 0x{byte:02x} is not UTF-8"


def checked_lines(lines: Iterable[tuple[bytes, bool]]) -> Iterator[Line]:
    """Yield each line of bytes as text, or with what is wrong with it."""
    for number, (line, is_cut) in enumerate(lines, start=1):
        line = line.removesuffix(b"\n")
        text = line.decode("utf-8", "replace")
        fault = ""
        if is_cut or len(text) > MAX_CHARS:
            text = text[:MAX_CHARS]
            fault = f"line {number} has more than {MAX_CHARS:,} characters"
        else:
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                fault = not_utf8(number, error)
        yield Line(text, fault)


def stream_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of an open file or pipe as they come; memory stays bounded."""
    return checked_lines(raw_lines(file, MAX_BYTES))


def file_lines(path: Path) -> list[Line]:
    """Return the lines of a file or pipe, which is read once; a name that ends in .gz is gunzipped.

    Raises OSError, or ValueError for a damaged .gz.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            return list(stream_lines(file))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from None


def argument_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a text from the command line, where odd bytes come as lone surrogates."""
    raw = text.encode("utf-8", "surrogatepass" if sys.platform == "win32" else "surrogateescape")
    return checked_lines((line, False) for line in raw.split(b"\n"))
