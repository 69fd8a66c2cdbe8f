"""Where raw pairs come from: text files, JSON lines, tables, the phrasebook, else the hub.

The `datasets` library is imported only inside the functions that load, because it takes seconds.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import phrasebook
from hub import hub_pairs, last_line
from lines import MAX_BYTES, not_utf8, raw_lines

if TYPE_CHECKING:
    from hub import Rows

HUB_OWNERS = {"opus_books": "Helsinki-NLP", "opus-100": "Helsinki-NLP", "wmt14": "wmt"}
FILE_BUILDERS = {
    ".jsonl": "json", ".json": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet",
}  # fmt: skip
MAX_JSON_BYTES = 2**20  # of a line, which may hold more than a pair
# The library's cache knows our functions by name only; with this it also sees them change.
CODE_VERSION = hashlib.sha256(
    b"".join(
        Path(__file__).with_name(room).read_bytes()
        for room in ("sources.py", "lines.py", "phrasebook.py", "morphology.py", "lexicon.py")
    )
).hexdigest()


def find_rows(
    source: str, lang_src: str, lang_tgt: str, split: str, streaming: bool = False
) -> "tuple[Rows, str]":
    """Return the rows of a source as they are, and a note on where they were found.

    With `streaming` they are an IterableDataset. Raises ValueError or FileNotFoundError for what a
    user can mend, or DatasetGenerationError.
    """
    path = Path(source)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if source == "phrasebook":
        return _phrasebook_pairs(lang_src, lang_tgt, split, streaming), ""
    if path.is_file():
        if suffix not in FILE_BUILDERS:
            known = " ".join(FILE_BUILDERS)
            raise ValueError(
                f"{source} is not one of {known}; for two text files name their common "
                f"prefix: {path.with_suffix('')} for {path.with_suffix('')}.{lang_src} and "
                f"{path.with_suffix('')}.{lang_tgt}"
            )
        return _file_pairs(path, suffix, lang_src, lang_tgt, streaming), ""
    texts = [_text_file(source, lang) for lang in (lang_src, lang_tgt)]
    if all(texts):
        return _text_pairs(*texts, streaming), ""
    if any(texts):
        there = texts[0] or texts[1]
        missing = lang_tgt if texts[0] else lang_src
        raise FileNotFoundError(f"{there} is there, but {source}.{missing} is not")
    if path.is_dir() or suffix in FILE_BUILDERS or source.startswith((".", "/", "~")):
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


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, also a .gz, without their ends.

    A line ends at "\\n" alone: other separators occur inside real sentences. Of one longer than
    MAX_CHARS comes a part that is longer, too, so that memory stays bounded. Raises ValueError with
    file, line and byte.
    """
    for text, _ in _read_lines(path, MAX_BYTES):
        yield text


def _read_lines(path: Path, most: int) -> Iterator[tuple[str, bool]]:
    """Yield lines, cut after `most` bytes, and whether they were cut."""
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rb") as file:
            for line, is_cut in raw_lines(file, most):
                number += 1
                text = line.decode("utf-8", "ignore" if is_cut else "strict")
                yield text.removesuffix("\n"), is_cut
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, {not_utf8(number, error)}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from None


def _file_pairs(path: Path, suffix: str, lang_src: str, lang_tgt: str, streaming: bool) -> "Rows":
    from datasets import load_dataset

    if not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    if suffix == ".jsonl":
        arguments = {
            "path": str(path.resolve()),
            "langs": (lang_src, lang_tgt),
            "version": _version(path),
        }
        return _generate(_yield_json_lines, arguments, streaming)
    options = {"data_files": str(path.resolve()), "split": "train", "streaming": streaming}
    if suffix in (".csv", ".tsv"):
        # "NA" and "null" are words here; and quotation marks in .tsv are part of the sentence.
        options |= {"keep_default_na": False}
        if suffix == ".tsv":
            options |= {"sep": "\t", "quoting": 3}
    try:
        return load_dataset(FILE_BUILDERS[suffix], **options)
    except Exception as error:  # the builders raise whatever their parsers raise
        hint = ""
        if suffix in (".csv", ".tsv"):
            hint = f"; its first line must name the columns, {lang_src} and {lang_tgt} among them"
        raise ValueError(f"{path} cannot be read: {last_line(error)}{hint}") from None


def _yield_json_lines(path: str, langs: tuple[str, str], version: str) -> Iterator[dict[str, str]]:
    first, seen = "", set()
    lines = enumerate(_read_lines(Path(path), MAX_JSON_BYTES), start=1)
    for number, (line, is_cut) in lines:
        if is_cut:  # dropped and counted with texts of that length
            yield {"src_text": line, "tgt_text": line}
        elif line.strip():
            first = first or line
            texts = _texts_of_json(line, f"{path}, line {number}")
            seen.update(texts)
            yield {"src_text": texts.get(langs[0], ""), "tgt_text": texts.get(langs[1], "")}
    missing = [lang for lang in langs if lang not in seen]
    if missing and first:
        raise ValueError(
            f"no line of {path} has a {missing[0]}, in translation or beside it; the first is "
            f"{first[:200]}"
        )


def _texts_of_json(line: str, place: str) -> dict[str, str]:
    """Return the texts of a line by language; other fields come along where they are text."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}, is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{place}, is a JSON {type(row).__name__}, not an object")
    translation = row.pop("translation", None)
    if not isinstance(translation, (dict, type(None))):
        raise ValueError(f"{place}: translation must hold a text a language, not {translation!r}")
    # JSON can hold halves of characters, which no text can.
    return {
        lang: str(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for lang, text in (row | (translation or {})).items()
        if isinstance(text, (str, int, float)) and not isinstance(text, bool)
    }
