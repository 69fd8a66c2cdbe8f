"""The lines of a UTF-8 file, also of a .gz, in bounded memory."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

# No sentence is longer; a longer text, in characters, is dropped before it can take all memory.
MAX_CHARS = 20_000
# Of a line that holds a whole row, which may have more fields than its two texts.
MAX_ROW_BYTES = 2**20


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, also a .gz, without their ends.

    A line ends at "\\n" alone: other separators occur inside real sentences. A line longer than
    MAX_CHARS is shortened to a part that is longer than MAX_CHARS, too, so that memory stays
    bounded. Raises ValueError with file, line and byte.
    """
    for text, _ in read_long_lines(path, 4 * MAX_CHARS + 4):  # bytes of as many characters in UTF-8
        yield text


def read_long_lines(path: Path, most: int = MAX_ROW_BYTES) -> Iterator[tuple[str, int | None]]:
    """Yield lines, shortened to `most` bytes, and how many quotation marks (") that took away.

    That number is None for a line that is whole.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rb") as file:
            while line := file.readline(most):
                number += 1
                rest, quotes = line, None
                while len(rest) == most and not rest.endswith(b"\n"):
                    rest = file.readline(most)
                    quotes = (quotes or 0) + rest.count(b'"')
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                text = line.decode("utf-8", "strict" if quotes is None else "ignore")
                yield text.removesuffix("\n"), quotes
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(
            f"{path}, line {number}, byte {error.start + 1}: 0x{byte:02x} is not UTF-8"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from None
