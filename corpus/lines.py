"""The lines of a text that comes in as bytes: from a file, a pipe or a command line."""

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# No sentence is longer. A longer text, in characters, is dropped before it can take all memory.
MAX_CHARS = 20_000
MAX_BYTES = 4 * MAX_CHARS + 4  # of as many characters in UTF-8, and a little more
# Of a line that holds a whole row, which may have more fields than its two texts.
MAX_ROW_BYTES = 2**20


@dataclass(frozen=True)
class Line:
    """A line to translate, or with its `fault` one that cannot be translated."""

    text: str  # of a faulty line what can be shown
    fault: str = ""  # such as "line 3, byte 6: 0xe9 is not UTF-8"


def raw_lines(file: BinaryIO, most: int) -> Iterator[tuple[bytes, int | None]]:
    """Yield lines, cut after `most` bytes, and how many quotation marks (") that took away.

    That number is None for a line that is whole. A line ends at "\\n" alone, which comes with it.
    A byte order mark at the start goes.
    """
    is_first = True
    while line := file.readline(most):
        rest, quotes = line, None
        while len(rest) == most and not rest.endswith(b"\n"):
            rest = file.readline(most)
            quotes = (quotes or 0) + rest.count(b'"')
        yield line.removeprefix(codecs.BOM_UTF8) if is_first else line, quotes
        is_first = False


# --- Text that is used as a whole: one bad line is an error ---


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, also a .gz, without their ends.

    A line ends at "\\n" alone: other separators occur inside real sentences. A line longer than
    MAX_CHARS is shortened to a part that is longer than MAX_CHARS, too, so that memory stays
    bounded. Raises ValueError with file, line and byte.
    """
    for text, _ in read_long_lines(path, MAX_BYTES):
        yield text


def read_long_lines(path: Path, most: int = MAX_ROW_BYTES) -> Iterator[tuple[str, int | None]]:
    """Yield lines like `read_lines`, cut after `most` bytes, with what `raw_lines` says of them."""
    number = 0
    try:
        with _opened(path) as file:
            for line, quotes in raw_lines(file, most):
                number += 1
                text = line.decode("utf-8", "strict" if quotes is None else "ignore")
                yield text.removesuffix("\n"), quotes
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, {_not_utf8(number, error)}") from None


# --- Text to translate: one bad line stops no other ---


def file_lines(path: Path) -> list[Line]:
    """Return the lines of a file or pipe, which is read once; a name that ends in .gz is gunzipped.

    Raises OSError, or ValueError for a damaged .gz.
    """
    with _opened(path) as file:
        return list(stream_lines(file))


def stream_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of an open file or pipe as they come; memory stays bounded."""
    return _checked((line, quotes is not None) for line, quotes in raw_lines(file, MAX_BYTES))


def argument_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a text from the command line, where odd bytes come as lone surrogates."""
    raw = text.encode("utf-8", "surrogatepass" if sys.platform == "win32" else "surrogateescape")
    return _checked((line, False) for line in raw.split(b"\n"))


def _checked(lines: Iterable[tuple[bytes, bool]]) -> Iterator[Line]:
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
                fault = _not_utf8(number, error)
        yield Line(text, fault)


def _not_utf8(number: int, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    return f"line {number}, byte {error.start + 1}: 0x{byte:02x} is not UTF-8"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from None
