"""The lines of a file, a pipe or a command line, decoded from bytes."""

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from corpus.tokenizer import MAX_CHARS

MAX_BYTES = 4 * MAX_CHARS + 4  # more than MAX_CHARS characters have in UTF-8
MAX_ROW_BYTES = 2**20  # of a line that holds a row, which may have more fields than the two texts


@dataclass(frozen=True)
class Line:
    """A line to translate. With a `fault` it cannot be translated."""

    text: str  # of a faulty line, the part that can be shown
    fault: str = ""  # such as "line 3, byte 6: 0xe9 is not UTF-8"


def raw_lines(file: BinaryIO, most: int) -> Iterator[tuple[bytes, int | None]]:
    """Yield each line, cut after `most` bytes, and how many quotation marks (") the cut removed.

    That number is None for a line that is not cut. Only "\\n" ends a line, and it stays at its end.
    A byte order mark at the start of the file is removed.
    """
    is_first = True
    while line := file.readline(most):
        rest, quotes = line, None
        while len(rest) == most and not rest.endswith(b"\n"):
            rest = file.readline(most)
            quotes = (quotes or 0) + rest.count(b'"')
        yield line.removeprefix(codecs.BOM_UTF8) if is_first else line, quotes
        is_first = False


# --- Strict reading: a bad line raises an error ---


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, which may be a .gz, without their ends.

    Only "\\n" ends a line: other separators occur inside real sentences. A very long line is cut to
    bound the memory, but stays longer than MAX_CHARS. Raises ValueError with file, line and byte
    for text that is not UTF-8, and for a damaged .gz.
    """
    for text, _ in read_long_lines(path, MAX_BYTES):
        yield text


def read_long_lines(path: Path, most: int = MAX_ROW_BYTES) -> Iterator[tuple[str, int | None]]:
    """Yield lines like `read_lines`, cut after `most` bytes, each with the count of `raw_lines`."""
    number = 0
    try:
        with _opened(path) as file:
            for line, quotes in raw_lines(file, most):
                number += 1
                text = line.decode("utf-8", "strict" if quotes is None else "ignore")
                yield text.removesuffix("\n"), quotes
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, {_not_utf8(number, error)}") from None


# --- Lenient reading: a bad line has a fault, and the other lines are read ---


def file_lines(path: Path) -> list[Line]:
    """Return the lines of a file or pipe. A file whose name ends in .gz is decompressed.

    The file is read only once, since a pipe cannot be read again. Raises OSError, or ValueError for
    a damaged .gz.
    """
    with _opened(path) as file:
        return list(stream_lines(file))


def stream_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of an open file or pipe as they arrive, in bounded memory."""
    return _checked((line, quotes is not None) for line, quotes in raw_lines(file, MAX_BYTES))


def argument_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a command-line argument, where lone surrogates stand for invalid bytes."""
    raw = text.encode("utf-8", "surrogatepass" if sys.platform == "win32" else "surrogateescape")
    return _checked((line, False) for line in raw.split(b"\n"))


def _checked(lines: Iterable[tuple[bytes, bool]]) -> Iterator[Line]:
    """Yield each line as text, with a fault if it is too long or not UTF-8."""
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
        raise ValueError(f"{path} is not a complete gzip file: {error}") from None
