"""Sets of the dataset hub, also from its cache on the disk, and errors of the `datasets` library.

That library is imported only inside the functions that load, because it takes seconds.
"""

import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    Rows = Dataset | IterableDataset  # all rows on the disk, or rows that are read on demand

REMEDIES = (
    "train on the built-in phrasebook (python train.py demo), "
    "or on your own files (--datasource data/train for data/train.en and data/train.it)"
)


def hub_pairs(
    name: str, lang_src: str, lang_tgt: str, split: str, streaming: bool
) -> "tuple[Rows, str]":
    """Return the rows of a hub set, or of a folder laid out like one, and a note on its parts.

    A set may name the two languages in either order. If it does not have the requested split, the
    rows are those of `train`. Raises ValueError or OSError if it cannot be loaded.
    """
    from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset
    from datasets.exceptions import DataFilesNotFoundError, DatasetNotFoundError
    from huggingface_hub import constants

    offline = not Path(name).is_dir() and not _hub_answers()
    if offline:
        # Use the cache at once: the library would repeat its requests for half a minute.
        constants.HF_HUB_OFFLINE = True
    try:
        wanted = [f"{lang_src}-{lang_tgt}", f"{lang_tgt}-{lang_src}", "default"]
        if offline:
            return _cached_hub_pairs(name, wanted[:2], split, streaming)
        configs = get_dataset_config_names(name)
        config = next((c for c in wanted if c in configs), None)
        if config is None:
            raise ValueError(
                f"{name} has no pair {lang_src}-{lang_tgt} nor {lang_tgt}-{lang_src}; "
                f"it has {', '.join(configs)}"
            )
        asked = split
        if split != "train" and split not in get_dataset_split_names(name, config):
            split = "train"
        rows = load_dataset(name, config, split=split, streaming=streaming)
        return rows, _note(config, split, asked)
    except DatasetNotFoundError as error:
        # The library does not attach the hub's error, so only the text tells a gated set.
        if "gated" in str(error).replace(name, ""):
            raise ValueError(
                f"{name} is a gated set: accept its terms on {constants.ENDPOINT}/datasets/{name}, "
                "and log in by `hf auth login` or HF_TOKEN=..., with an account that has access"
            ) from None
        raise ValueError(
            f"{name} is neither a file, a folder nor a set on the hub that you may read (for a "
            f"private one log in by `hf auth login` or HF_TOKEN=...); {REMEDIES}"
        ) from None
    except DataFilesNotFoundError:
        raise ValueError(
            f"the folder {name} is not laid out like a hub set; for text files name their "
            f"prefix: {name}/train for {name}/train.{lang_src} and {name}/train.{lang_tgt}"
        ) from None
    except ConnectionError:
        raise ValueError(
            f"{name} is not on this disk, nor in the cache of the dataset hub, and the hub cannot "
            f"be reached; {REMEDIES}"
        ) from None
    except (ValueError, OSError):
        raise
    except Exception as error:  # the library raises whatever its parsers raise
        if not (isinstance(error, RuntimeError) and "script" in str(error)):
            raise ValueError(f"{name} cannot be loaded: {last_line(error)}") from None
        raise ValueError(
            f"{name} needs a loading script, which the datasets library no longer runs; {REMEDIES}"
        ) from None


def _cached_hub_pairs(
    name: str, configs: list[str], split: str, streaming: bool
) -> "tuple[Rows, str]":
    """Return the rows of a hub set from the cache, and a note as `hub_pairs` does.

    Raises ValueError with the language pairs that the cache has of the set, if there are others,
    and ConnectionError if there are none.
    """
    from datasets import load_dataset

    for config in sorted(configs):  # the hub's names have the languages in alphabetical order
        try:
            splits = load_dataset(name, config)
        except ValueError:  # another pair of this set is cached
            continue
        found = split if split in splits else "train"
        rows = splits[found]
        return rows.to_iterable_dataset() if streaming else rows, _note(config, found, split)
    cached = _cached_configs(name)
    if not cached:
        raise ConnectionError
    raise ValueError(
        f"{name} is in the cache of the dataset hub with {', '.join(cached)}, not with "
        f"{' or '.join(configs)}, and the hub cannot be reached; connect to it once, or {REMEDIES}"
    )


def _cached_configs(name: str) -> list[str]:
    from datasets import config
    from datasets.naming import camelcase_to_snakecase

    *owner, last = name.split("/")
    folder = config.HF_DATASETS_CACHE / "___".join([*owner, camelcase_to_snakecase(last)])
    return sorted({path.relative_to(folder).parts[0] for path in folder.rglob("*.arrow")})


def _note(config: str, split: str, asked: str) -> str:
    return f" of {config}" + (f", its {split} split" if asked != "train" else "")


def _hub_answers() -> bool:
    from datasets import config
    from huggingface_hub import constants

    # The libraries have read HF_HUB_OFFLINE and HF_DATASETS_OFFLINE, where 0 and false mean no.
    if constants.HF_HUB_OFFLINE or config.HF_HUB_OFFLINE:
        return False
    try:
        urllib.request.urlopen(constants.ENDPOINT, timeout=5)
    except urllib.error.HTTPError:
        return True  # an error status is an answer, too
    except OSError:
        return False
    return True


def in_one_line(error: BaseException) -> str:
    """Return the message of an error, or of the error that caused it, on one line."""
    cause = error.__cause__ or error
    return " ".join(str(cause).split())[:400] or type(cause).__name__


def last_line(error: BaseException) -> str:
    """Return the last line of the message of an error, or of the error that caused it."""
    cause = error.__cause__ or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[-1]
