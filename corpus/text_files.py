"""Pairs of two text files that are translations of each other, line by line."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from corpus.lines import read_lines


def read_text_files(src_path: str, tgt_path: str, version: str) -> Iterator[dict[str, str]]:
    """Yield the pairs of two text files, line by line, as `src_text` and `tgt_text`.

    `version` is not used: it makes the cache of the `datasets` library notice changes.
    Raises ValueError like `read_lines`, and for files with different numbers of lines.
    """
    src_lines, tgt_lines = read_lines(Path(src_path)), read_lines(Path(tgt_path))
    number = 0
    for number, (src_text, tgt_text) in enumerate(zip_longest(src_lines, tgt_lines), start=1):
        if src_text is None or tgt_text is None:
            more = 1 + sum(1 for _ in (tgt_lines if src_text is None else src_lines))
            counts = [number - 1 + more * (text is not None) for text in (src_text, tgt_text)]
            raise ValueError(
                f"{src_path} has {counts[0]:,} lines and {tgt_path} has {counts[1]:,}: "
                "line by line they must be translations of each other"
            )
        yield {"src_text": src_text, "tgt_text": tgt_text}
    if not number:
        raise ValueError(f"{src_path} and {tgt_path} are empty")
