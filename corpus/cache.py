"""Results of our functions in the cache of the `datasets` library, which is on the disk.

That library is imported only inside the functions that load, because it takes seconds.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from files import write_file

if TYPE_CHECKING:
    from datasets import Dataset

# The number of pairs in a part. An interruption loses at most the work on one part.
PART = 250_000

# For each cached result, the files whose code decides it. The library compares our functions by
# name only; `code_version` makes it notice that their code has changed.
CODE_OF = {
    "text files": ("corpus/text_files.py", "corpus/lines.py", "corpus/tokenizer.py"),
    "json": ("corpus/records.py", "corpus/lines.py", "corpus/tokenizer.py"),
    "table": ("corpus/tables.py", "corpus/lines.py", "corpus/tokenizer.py"),
    "phrasebook": (
        "phrasebook/sentences.py", "phrasebook/patterns.py", "phrasebook/clauses.py",
        "phrasebook/phrases.py", "phrasebook/morphology.py", "phrasebook/lexicon.py",
    ),
    "cleaning": (
        "corpus/cleaning.py", "corpus/records.py", "corpus/lines.py", "corpus/tokenizer.py"
    ),
    "splitting": ("corpus/splitting.py",),
    "encoding": ("dataset.py", "corpus/tokenizer.py"),
}  # fmt: skip
ROOT = Path(__file__).parent.parent


@cache
def code_version(result: str) -> str:
    """Return a hash of the code that decides a cached result, a key of `CODE_OF`."""
    code = [(ROOT / name).read_bytes() for name in CODE_OF[result]]
    return hashlib.sha256(b"".join(code)).hexdigest()


def map_in_parts(
    pairs: "Dataset",
    function: Callable,
    arguments: dict[str, object],
    name: str,
    remove_columns: list[str] | None = None,
) -> "Dataset":
    """Return pairs mapped batch by batch by a function, cached on the disk.

    Each finished part is cached, so that after an interruption the next call continues there.
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


def flat_column(rows: "Dataset", name: str) -> np.ndarray:
    """Return all numbers of a column of lists in one array of int32, one list after the other.

    It is memory-mapped from a file beside the cached rows, which the first call writes. Rows that
    are only in memory, such as those of a stream, stay there.
    """
    chunks = rows.data.column(name).chunks
    files = [file["filename"] for file in rows.cache_files]
    if not files:
        return np.concatenate([chunk.flatten().to_numpy() for chunk in chunks]).astype(np.int32)
    key = hashlib.sha256("\n".join(map(os.path.basename, files)).encode()).hexdigest()[:16]
    path = Path(files[0]).with_name(f"ids-{key}-{name}.bin")
    size = 4 * sum(len(chunk.flatten()) for chunk in chunks)

    def write(file: BinaryIO) -> None:
        for chunk in chunks:
            file.write(chunk.flatten().to_numpy().astype(np.int32).tobytes())

    if not path.is_file() or path.stat().st_size != size:
        write_file(path, write)
    return np.memmap(path, dtype=np.int32, mode="r").view(np.ndarray)


@contextmanager
def checked_cache() -> Iterator[None]:
    """Turn errors of the `datasets` cache into a ValueError or OSError that says what to do.

    The cache may contain a truncated file, or be a folder that cannot be written.
    """
    from datasets import config
    from pyarrow import ArrowInvalid

    cache = os.path.expanduser(config.HF_DATASETS_CACHE)
    if cache.startswith("~"):  # unknown home: the library would create a folder named ~ here
        raise ValueError(
            f"the cache of the datasets library, {cache}, is in an unknown home folder (HOME is "
            f"{os.environ.get('HOME', 'not set')}); set HF_HOME=PATH to keep it elsewhere"
        )
    try:
        yield
    except (ArrowInvalid, OSError) as error:
        if error.args[:1] in ((errno.ENOSPC,), (errno.EFBIG,), (errno.EDQUOT,)) or _is_about(
            cache, error
        ):
            raise OSError(
                f"the cache of the datasets library, {cache}, cannot be written: "
                f"{error.strerror}; set HF_HOME=PATH to keep it elsewhere"
            ) from None
        if not isinstance(error, ArrowInvalid) and (type(error) is not OSError or error.errno):
            raise  # not an error of Arrow, whose OSErrors have no errno
        raise ValueError(
            f"a file in the cache of the datasets library is damaged ({error}); delete {cache}: "
            "the next run creates it again"
        ) from None


def _is_about(cache: str, error: Exception) -> bool:
    """Return whether an error is about the cache folder or one of its parents."""
    name = getattr(error, "filename", None)
    if not name or not isinstance(name, str):
        return False
    return all(map(str.__eq__, Path(name).parts, Path(cache).parts))
