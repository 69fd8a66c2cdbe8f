"""Sentence pairs from named sources: found, cleaned, split.

The `datasets` library is imported only inside the functions that load, because it takes seconds.
"""

import gzip
import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

import phrasebook
from tokenizer import clean_text

if TYPE_CHECKING:
    from datasets import Dataset

HUB_OWNERS = {"opus_books": "Helsinki-NLP", "opus-100": "Helsinki-NLP", "wmt14": "wmt"}
FILE_BUILDERS = {
    ".jsonl": "json", ".json": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet",
}  # fmt: skip
WAYS_ON = (
    "train on the built-in phrasebook (python train.py demo), "
    "or on your own files (--datasource data/train for data/train.en and data/train.it)"
)
# The library's cache knows our functions by name only; with this it also sees them change.
CODE_VERSION = hashlib.sha256(
    b"".join(
        Path(__file__).with_name(room).read_bytes()
        for room in ("corpus.py", "tokenizer.py", "phrasebook.py", "morphology.py", "lexicon.py")
    )
).hexdigest()


def load_pairs(source: str, lang_src: str, lang_tgt: str, split: str = "train") -> "Dataset":
    """Return the cleaned pairs of a source, columns `src_text` and `tgt_text`, on disk.

    A source is `phrasebook`, the prefix of two text files (also .gz), a .jsonl, .json, .csv, .tsv
    or .parquet file, a folder laid out like a hub set, or a hub name. `split` is for the
    phrasebook, which has "train" and "validation". Prints what was found and dropped.
    Raises ValueError or FileNotFoundError, in one line, for what a user can mend.
    """
    from datasets.exceptions import DatasetGenerationError

    try:
        rows, note = _find_pairs(source, lang_src, lang_tgt, split)
        pairs = rows.map(
            _clean,
            batched=True,
            fn_kwargs={"lang_src": lang_src, "lang_tgt": lang_tgt, "version": CODE_VERSION},
            remove_columns=rows.column_names,
            desc="cleaning",
        )
    except DatasetGenerationError as error:
        raise ValueError(f"{source} cannot be read: {_last_line(error)}") from None
    dropped = len(rows) - len(pairs)
    if not len(pairs):
        first = f"; its first row is {str(rows[0])[:200]}" if len(rows) else ""
        raise ValueError(
            f"{source} has no pair with text on both sides, {lang_src} and {lang_tgt}{first}"
        )
    with_drops = f", {dropped:,} with an empty side dropped" if dropped else ""
    print(f"{source}: {len(rows):,} pairs{note}, {lang_src} -> {lang_tgt}{with_drops}")
    return pairs


def _find_pairs(source: str, lang_src: str, lang_tgt: str, split: str) -> "tuple[Dataset, str]":
    path = Path(source)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if source == "phrasebook":
        return _phrasebook_pairs(lang_src, lang_tgt, split), ""
    if path.is_file():
        if suffix not in FILE_BUILDERS:
            known = " ".join(FILE_BUILDERS)
            raise ValueError(
                f"{source} is not one of {known}; for two text files name their common "
                f"prefix: {path.with_suffix('')} for {path.with_suffix('')}.{lang_src} and "
                f"{path.with_suffix('')}.{lang_tgt}"
            )
        return _file_pairs(path, suffix), ""
    texts = [_text_file(source, lang) for lang in (lang_src, lang_tgt)]
    if all(texts):
        return _text_pairs(*texts), ""
    if any(texts):
        there = texts[0] or texts[1]
        missing = lang_tgt if texts[0] else lang_src
        raise FileNotFoundError(f"{there} is there, but {source}.{missing} is not")
    if path.is_dir() or suffix in FILE_BUILDERS or source.startswith((".", "/", "~")):
        if not path.is_dir():
            raise FileNotFoundError(f"{source} is not there, nor {source}.{lang_src}")
        return _hub_pairs(source, lang_src, lang_tgt)
    if source.count("/") > 1 or (path.parent.is_dir() and path.parent != Path(".")):
        raise FileNotFoundError(
            f"neither {source} nor {source}.{lang_src} and {source}.{lang_tgt} are there"
        )
    owner = HUB_OWNERS.get(source)
    return _hub_pairs(f"{owner}/{source}" if owner else source, lang_src, lang_tgt)


def _phrasebook_pairs(lang_src: str, lang_tgt: str, split: str) -> "Dataset":
    from datasets import Dataset

    if {lang_src, lang_tgt} != set(phrasebook.LANGUAGES):
        raise ValueError(f"the phrasebook has en and it, not {lang_src} and {lang_tgt}")
    return Dataset.from_generator(
        _yield_phrasebook, gen_kwargs={"split": split, "version": CODE_VERSION}
    )


def _yield_phrasebook(split: str, version: str) -> Iterator[dict[str, str]]:
    for en, it in phrasebook.write_pairs(split):
        yield {"en": en, "it": it}


def _text_file(prefix: str, lang: str) -> Path | None:
    for path in (Path(f"{prefix}.{lang}"), Path(f"{prefix}.{lang}.gz")):
        if path.is_file():
            return path
    return None


def _text_pairs(src_path: Path, tgt_path: Path) -> "Dataset":
    from datasets import Dataset

    lines = []
    for path in (src_path, tgt_path):
        try:
            with _open_text(path) as file:
                lines.append(sum(1 for _ in file))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}") from None
        except (EOFError, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} is not a whole gzip file: {error}") from None
    if lines[0] != lines[1]:
        raise ValueError(
            f"{src_path} has {lines[0]:,} lines and {tgt_path} has {lines[1]:,}: "
            "line by line they must be translations of each other"
        )
    if not lines[0]:
        raise ValueError(f"{src_path} and {tgt_path} are empty")
    # The library reuses what it made for the same arguments, so they tell the files' state.
    state = str([(path.stat().st_mtime_ns, path.stat().st_size) for path in (src_path, tgt_path)])
    return Dataset.from_generator(
        _yield_lines,
        gen_kwargs={
            "src_path": str(src_path.resolve()),
            "tgt_path": str(tgt_path.resolve()),
            "version": CODE_VERSION + state,
        },
    )


def _yield_lines(src_path: str, tgt_path: str, version: str) -> Iterator[dict[str, str]]:
    with _open_text(Path(src_path)) as src_file, _open_text(Path(tgt_path)) as tgt_file:
        for src_text, tgt_text in zip(src_file, tgt_file, strict=True):
            yield {"src_text": src_text, "tgt_text": tgt_text}


def _open_text(path: Path):
    # A line ends at "\n" alone: other separators occur inside real sentences.
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="\n")


def _file_pairs(path: Path, suffix: str) -> "Dataset":
    from datasets import load_dataset

    if not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    options = {}
    if suffix in (".csv", ".tsv"):
        # "NA" and "null" are words here; and quotation marks in .tsv are part of the sentence.
        options = {"keep_default_na": False}
        if suffix == ".tsv":
            options |= {"sep": "\t", "quoting": 3}
    try:
        return load_dataset(
            FILE_BUILDERS[suffix], data_files=str(path.resolve()), split="train", **options
        )
    except Exception as error:  # the builders raise whatever their parsers raise
        if suffix == ".jsonl":
            _check_json_lines(path)
        raise ValueError(f"{path} cannot be read: {_last_line(error)}") from None


def _check_json_lines(path: Path) -> None:
    with _open_text(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}, is not JSON: {error}") from None


def _hub_pairs(name: str, lang_src: str, lang_tgt: str) -> "tuple[Dataset, str]":
    """Load a hub set, or a folder laid out like one, under either order of the languages."""
    from datasets import get_dataset_config_names, load_dataset
    from datasets.exceptions import DataFilesNotFoundError, DatasetNotFoundError
    from huggingface_hub import constants

    offline = not Path(name).is_dir() and not _hub_answers()
    if offline:
        # Straight to the cache: the library would try again for half a minute.
        constants.HF_HUB_OFFLINE = True
    try:
        wanted = [f"{lang_src}-{lang_tgt}", f"{lang_tgt}-{lang_src}", "default"]
        if offline:
            return _cached_hub_pairs(name, wanted[:2])
        configs = get_dataset_config_names(name)
        config = next((c for c in wanted if c in configs), None)
        if config is None:
            raise ValueError(
                f"{name} has no pair {lang_src}-{lang_tgt} nor {lang_tgt}-{lang_src}; "
                f"it has {', '.join(configs)}"
            )
        return load_dataset(name, config, split="train"), f" of {config}"
    except DatasetNotFoundError:
        raise ValueError(
            f"{name} is neither a file, a folder nor a set on the hub; {WAYS_ON}"
        ) from None
    except DataFilesNotFoundError:
        raise ValueError(
            f"the folder {name} is not laid out like a hub set; for text files name their "
            f"prefix: {name}/train for {name}/train.{lang_src} and {name}/train.{lang_tgt}"
        ) from None
    except ConnectionError:
        raise ValueError(
            f"{name} is not on this disk, nor in the cache of the dataset hub, and the hub cannot "
            f"be reached; {WAYS_ON}"
        ) from None
    except RuntimeError as error:
        if "script" not in str(error):
            raise
        raise ValueError(
            f"{name} needs a loading script, which the datasets library no longer runs; {WAYS_ON}"
        ) from None


def _cached_hub_pairs(name: str, configs: list[str]) -> "tuple[Dataset, str]":
    """Load a hub set from the cache, which cannot list the pairs that it holds."""
    from datasets import load_dataset

    for config in sorted(configs):  # the hub's names have the languages in alphabetical order
        try:
            return load_dataset(name, config, split="train"), f" of {config}"
        except ValueError:  # another pair of this set is cached
            continue
    raise ConnectionError


def _hub_answers() -> bool:
    if os.environ.get("HF_HUB_OFFLINE") or os.environ.get("HF_DATASETS_OFFLINE"):
        return False
    try:
        urllib.request.urlopen(os.environ.get("HF_ENDPOINT", "https://huggingface.co"), timeout=5)
    except urllib.error.HTTPError:
        return True  # it answered
    except OSError:
        return False
    return True


def _last_line(error: BaseException) -> str:
    cause = error.__cause__ or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[-1]


def _clean(
    batch: dict[str, list], lang_src: str, lang_tgt: str, version: str
) -> dict[str, list[str]]:
    kept = {"src_text": [], "tgt_text": []}
    columns = [
        _column(batch, name, lang) for name, lang in zip(kept, (lang_src, lang_tgt), strict=True)
    ]
    for pair in zip(*columns, strict=True):
        src_text, tgt_text = (clean_text("" if text is None else str(text)) for text in pair)
        if src_text and tgt_text:
            kept["src_text"].append(src_text)
            kept["tgt_text"].append(tgt_text)
    return kept


def _column(batch: dict[str, list], name: str, lang: str) -> list:
    """Pick one side's texts: by our own column name, by language, or inside `translation`."""
    for key in (name, lang):
        if key in batch:
            return batch[key]
    if "translation" in batch:
        if any(isinstance(row, str) for row in batch["translation"]):
            raise ValueError("the column translation holds text; it must hold a text a language")
        return [(row or {}).get(lang) for row in batch["translation"]]
    raise ValueError(f"no column translation or {lang}; the columns are {', '.join(batch)}")


def split_pairs(pairs: "Dataset", seed: int) -> "tuple[Dataset, Dataset]":
    """Return 90 % of the pairs for training and 10 % for validation, by distinct sources.

    A function of seed and texts alone: no source sentence is in both parts, and neither the
    machine nor the order of the pairs matters. Raises ValueError for fewer than two sources.
    """
    texts = tqdm(iterate(pairs, "src_text"), "splitting", len(pairs), unit="pair", delay=2)
    digests = (hashlib.blake2b(f"{seed}:{text}".encode(), digest_size=8).digest() for text in texts)
    keys = np.frombuffer(b"".join(digests), dtype=">u8")
    distinct = np.unique(keys)
    if len(distinct) < 2:
        raise ValueError(
            "one distinct source sentence cannot be split into training and validation; "
            "add pairs, or name some with --validsource"
        )
    validation = keys < distinct[max(1, round(len(distinct) / 10))]
    return pairs.select(np.flatnonzero(~validation)), pairs.select(np.flatnonzero(validation))


def iterate(pairs: "Dataset", column: str) -> Iterator[str]:
    """Yield the texts of a column, ten times as fast as the column itself does."""
    for rows in pairs.select_columns([column]).iter(10000):
        yield from rows[column]


def cap_pairs(pairs: "Dataset", size: int | None, seed: int) -> "Dataset":
    """Return `size` pairs drawn by seed, in their order, or all when there are no more."""
    if size is None or size >= len(pairs):
        return pairs
    drawn = np.random.default_rng(seed).choice(len(pairs), size, replace=False)
    return pairs.select(np.sort(drawn))
