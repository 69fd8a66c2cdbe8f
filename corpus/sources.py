"""The sources of raw pairs: text files, JSON, tables, the phrasebook, and the hub.

The `datasets` library is imported only inside the functions that load, because it takes seconds.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.cache import code_version
from corpus.hub import hub_pairs, last_line
from corpus.lines import read_long_lines
from corpus.records import read_json, read_json_lines
from corpus.tables import find_columns, read_table
from corpus.text_files import read_text_files
from phrasebook.sentences import LANGUAGES, SIZES, phrasebook_rows

if TYPE_CHECKING:
    from corpus.hub import Rows

HUB_OWNERS = {"opus_books": "Helsinki-NLP", "opus-100": "Helsinki-NLP", "wmt14": "wmt"}
KINDS = (".jsonl", ".json", ".csv", ".tsv", ".txt", ".parquet")


def find_rows(
    source: str, lang_src: str, lang_tgt: str, split: str, streaming: bool = False
) -> "tuple[Rows, str]":
    """Return the rows of a source, not cleaned, and a note on where they were found.

    To add a source, add a branch here. With `streaming` the rows are an IterableDataset. Raises
    ValueError or FileNotFoundError for a user's mistake, or DatasetGenerationError.
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
        raise FileNotFoundError(f"{there} exists, but {source}.{missing} does not")
    if path.is_dir() or suffix in KINDS or source.startswith((".", "/", "~")):
        if not path.is_dir():
            raise FileNotFoundError(f"{source} does not exist, and {source}.{lang_src} does not")
        return hub_pairs(source, lang_src, lang_tgt, split, streaming)
    if source.count("/") > 1 or (path.parent.is_dir() and path.parent != Path(".")):
        raise FileNotFoundError(
            f"{source} does not exist, and {source}.{lang_src} and {source}.{lang_tgt} do not"
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
    if {lang_src, lang_tgt} != set(LANGUAGES):
        raise ValueError(f"the phrasebook has en and it, not {lang_src} and {lang_tgt}")
    if split not in SIZES:
        raise ValueError(f"the phrasebook has no {split} split; it has {', '.join(SIZES)}")
    return _generate(
        phrasebook_rows, {"split": split, "version": code_version("phrasebook")}, streaming
    )


def _text_file(prefix: str, lang: str) -> Path | None:
    for path in (Path(f"{prefix}.{lang}"), Path(f"{prefix}.{lang}.gz")):
        if path.is_file():
            return path
    return None


def _text_pairs(src_path: Path, tgt_path: Path, streaming: bool) -> "Rows":
    arguments = {
        "src_path": str(src_path.resolve()),
        "tgt_path": str(tgt_path.resolve()),
        "version": _version("text files", src_path, tgt_path),
    }
    return _generate(read_text_files, arguments, streaming)


def _version(reader: str, *paths: Path) -> str:
    # The library reuses the result of the same arguments, so they contain the state of the files.
    return code_version(reader) + str([(p.stat().st_mtime_ns, p.stat().st_size) for p in paths])


@cache
def _print_once(line: str) -> None:
    """Print a line only once per process. A stream would repeat it in each epoch."""
    print(line)


def _file_pairs(path: Path, suffix: str, langs: tuple[str, str], streaming: bool) -> "Rows":
    if suffix not in KINDS:
        raise ValueError(f"{path} is not one of {' '.join(KINDS)}; {_advise_prefix(path, *langs)}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    if suffix == ".parquet":
        return _parquet_rows(path, streaming)
    arguments = {"path": str(path.resolve())}
    if suffix in (".jsonl", ".json"):
        reader = read_json if suffix == ".json" else read_json_lines
        arguments |= {"version": _version("json", path), "langs": langs}
        return _generate(reader, arguments, streaming)
    if suffix == ".txt" and not _first_line_has_a_tab(path):
        raise ValueError(f"{path} has no TAB in its first line; {_advise_prefix(path, *langs)}")
    columns = find_columns(path, suffix, langs)
    if columns.guess:
        _print_once(columns.guess)
    arguments |= {"version": _version("table", path), "suffix": suffix, "columns": columns}
    return _generate(read_table, arguments, streaming)


def _first_line_has_a_tab(path: Path) -> bool:
    lines = (line for line, _ in read_long_lines(path))
    return "\t" in next((line for line in lines if line.strip()), "")


def _advise_prefix(path: Path, lang_src: str, lang_tgt: str) -> str:
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
