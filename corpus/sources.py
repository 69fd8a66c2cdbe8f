"""Where raw pairs come from: text files, JSON, tables, the phrasebook, else the hub.

The `datasets` library is imported only inside the functions that load, because it takes seconds.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import lines, records, tables
from corpus.hub import hub_pairs, last_line
from corpus.lines import read_lines, read_long_lines
from corpus.records import read_json, read_json_lines
from corpus.tables import find_columns, read_table
from phrasebook import lexicon, morphology
from phrasebook import sentences as phrasebook

if TYPE_CHECKING:
    from corpus.hub import Rows

HUB_OWNERS = {"opus_books": "Helsinki-NLP", "opus-100": "Helsinki-NLP", "wmt14": "wmt"}
KINDS = (".jsonl", ".json", ".csv", ".tsv", ".txt", ".parquet")
# The library's cache knows our functions by name only; with this it also sees them change.
CODE_VERSION = hashlib.sha256(
    b"".join(
        Path(room).read_bytes()
        for room in (
            __file__, lines.__file__, records.__file__, tables.__file__,
            phrasebook.__file__, morphology.__file__, lexicon.__file__,
        )
    )
).hexdigest()  # fmt: skip


def find_rows(
    source: str, lang_src: str, lang_tgt: str, split: str, streaming: bool = False
) -> "tuple[Rows, str]":
    """Return the rows of a source as they are, and a note on where they were found.

    With `streaming` they are an IterableDataset. Raises ValueError or FileNotFoundError for what a
    user can mend, or DatasetGenerationError.
    """
    path = Path(source)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if source == "phrasebook":
        return _phrasebook_pairs(lang_src, lang_tgt, split, streaming), ""
    if path.is_file():
        return _file_pairs(path, suffix, (lang_src, lang_tgt), streaming), ""
    texts = [_text_file(source, lang) for lang in (lang_src, lang_tgt)]
    if all(texts):
        return _text_pairs(*texts, streaming), ""
    if any(texts):
        there = texts[0] or texts[1]
        missing = lang_tgt if texts[0] else lang_src
        raise FileNotFoundError(f"{there} is there, but {source}.{missing} is not")
    if path.is_dir() or suffix in KINDS or source.startswith((".", "/", "~")):
        if not path.is_dir():
            raise FileNotFoundError(f"{source} is not there, nor {source}.{lang_src}")
        return hub_pairs(source, lang_src, lang_tgt, split, streaming)
    if source.count("/") > 1 or (path.parent.is_dir() and path.parent != Path(".")):
        raise FileNotFoundError(
            f"neither {source} nor {source}.{lang_src} and {source}.{lang_tgt} are there"
        )
    owner = HUB_OWNERS.get(source)
    name = f"{owner}/{source}" if owner else source
    return hub_pairs(name, lang_src, lang_tgt, split, streaming)


def _generate(
    function: Callable[..., Iterator[dict]], arguments: dict[str, object], streaming: bool
) -> "Rows":
    from datasets import Dataset, IterableDataset

    kind = IterableDataset if streaming else Dataset
    return kind.from_generator(function, gen_kwargs=arguments)


def _phrasebook_pairs(lang_src: str, lang_tgt: str, split: str, streaming: bool) -> "Rows":
    if {lang_src, lang_tgt} != set(phrasebook.LANGUAGES):
        raise ValueError(f"the phrasebook has en and it, not {lang_src} and {lang_tgt}")
    if split not in phrasebook.SIZES:
        raise ValueError(f"the phrasebook has no {split} pairs, but {', '.join(phrasebook.SIZES)}")
    return _generate(_yield_phrasebook, {"split": split, "version": CODE_VERSION}, streaming)


def _yield_phrasebook(split: str, version: str) -> Iterator[dict[str, str]]:
    for en, it in phrasebook.write_pairs(split):
        yield {"en": en, "it": it}


def _text_file(prefix: str, lang: str) -> Path | None:
    for path in (Path(f"{prefix}.{lang}"), Path(f"{prefix}.{lang}.gz")):
        if path.is_file():
            return path
    return None


def _text_pairs(src_path: Path, tgt_path: Path, streaming: bool) -> "Rows":
    arguments = {
        "src_path": str(src_path.resolve()),
        "tgt_path": str(tgt_path.resolve()),
        "version": _version(src_path, tgt_path),
    }
    return _generate(_yield_lines, arguments, streaming)


def _yield_lines(src_path: str, tgt_path: str, version: str) -> Iterator[dict[str, str]]:
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


def _version(*paths: Path) -> str:
    # The library reuses what it made for the same arguments, so they tell the files' state.
    return CODE_VERSION + str([(p.stat().st_mtime_ns, p.stat().st_size) for p in paths])


@cache
def _say_once(words: str) -> None:
    """Print what a stream would repeat in each epoch."""
    print(words)


def _file_pairs(path: Path, suffix: str, langs: tuple[str, str], streaming: bool) -> "Rows":
    if suffix not in KINDS:
        raise ValueError(f"{path} is not one of {' '.join(KINDS)}; {_about_prefixes(path, *langs)}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    if suffix == ".parquet":
        return _parquet_rows(path, streaming)
    arguments = {"path": str(path.resolve()), "version": _version(path)}
    if suffix in (".jsonl", ".json"):
        reader = read_json if suffix == ".json" else read_json_lines
        return _generate(reader, arguments | {"langs": langs}, streaming)
    if suffix == ".txt" and not _begins_with_a_tab(path):
        raise ValueError(f"{path} has no TAB in its first line; {_about_prefixes(path, *langs)}")
    columns = find_columns(path, suffix, langs)
    if columns.guess:
        _say_once(columns.guess)
    return _generate(read_table, arguments | {"suffix": suffix, "columns": columns}, streaming)


def _begins_with_a_tab(path: Path) -> bool:
    lines = (line for line, _ in read_long_lines(path))
    return "\t" in next((line for line in lines if line.strip()), "")


def _about_prefixes(path: Path, lang_src: str, lang_tgt: str) -> str:
    prefix = path.with_suffix("")
    return (
        f"for two text files name their common prefix: {prefix} for {prefix}.{lang_src} and "
        f"{prefix}.{lang_tgt}"
    )


def _parquet_rows(path: Path, streaming: bool) -> "Rows":
    from datasets import load_dataset

    try:
        return load_dataset(
            "parquet", data_files=str(path.resolve()), split="train", streaming=streaming
        )
    except Exception as error:  # the builder raises whatever its parser raises
        raise ValueError(f"{path} cannot be read: {last_line(error)}") from None
