"""Finding the checkpoint that a run resumes, and clearing what a stopped run left behind."""

import itertools
import json
from pathlib import Path

import checkpoint
from checkpoint import Progress, WeightsFolder
from config import Config
from files import delete, retry_while_open, write_file
from training.data import tokenizer_paths


def load_checkpoint(config: Config) -> tuple[Path, dict] | None:
    """Return path and state of the checkpoint that `preload` names, or None for a new run.

    Raises FileNotFoundError if that checkpoint is missing, and ValueError if it is damaged, or if
    `preload` is none and the folder has checkpoints.
    """
    folder = WeightsFolder.of(config)
    best = folder.best
    if config.preload == "none":
        paths = [path for path in (best, *folder.checkpoints()) if path.exists()]
        if paths:
            raise ValueError(
                f"preload is none, but {paths[-1].parent} holds {paths[-1].name} of an earlier "
                "run; choose another --model_folder, or move that folder away"
            )
        return None
    if config.preload == "latest":
        return load_latest(folder)
    if config.preload == "best":
        path = best
    elif config.preload.isdecimal():
        path = folder.end_of(int(config.preload))
    else:
        path = Path(config.preload)
    if path.is_dir():
        raise ValueError(f"preload names the folder {path}; it takes a checkpoint file in it")
    if not path.exists():
        there = [each.name for each in (*folder.checkpoints(), best) if each.exists()]
        raise FileNotFoundError(
            f"there is no checkpoint {path}; {folder.path} holds {', '.join(there) or 'none'}"
        )
    return path, checkpoint.load(path)


def load_latest(folder: WeightsFolder) -> tuple[Path, dict] | None:
    """Return path and state of the newest whole checkpoint, or None if there are none.

    The best checkpoint counts too if newer ones are damaged or missing. Reports damaged ones.
    Raises ValueError if all are damaged.
    """
    best = folder.best
    paths = folder.checkpoints()[::-1]
    found, damaged = None, []
    for path in paths:
        try:
            found = path, checkpoint.load(path)
            break
        except ValueError as error:
            damaged.append(str(error))
    if best.exists() and (damaged or not paths):
        try:
            state = checkpoint.load(best)
            if found is None or state["global_step"] > found[1]["global_step"]:
                found = best, state
        except ValueError as error:
            damaged.append(str(error))
    print(*damaged, sep="\n", end="\n" if damaged else "")
    if damaged and found is None:
        raise ValueError(
            f"no checkpoint in {folder.path} can be read; move the folder away to start a new run"
        )
    if damaged or (found and not paths):
        print(f"the newest whole checkpoint is {found[0]}")
    return found


def rename_newer_checkpoints(config: Config, progress: Progress) -> None:
    """Rename the checkpoints that are newer than where a run resumes, even damaged ones.

    Otherwise the next start would take one of them for the latest.
    """
    folder = WeightsFolder.of(config)
    newer = folder.newer_than(progress.epoch, progress.global_step)
    best = folder.best
    if config.preload != "latest" and best.exists():
        try:
            is_newer = checkpoint.load(best)["global_step"] > progress.global_step
        except ValueError:
            is_newer = True  # a damaged file does not say
        newer += [best] if is_newer else []
    for path in newer:
        asides = (path.with_name(f"{path.name}.old{number or ''}") for number in itertools.count())
        aside = next(name for name in asides if not name.exists())
        retry_while_open(lambda path=path, aside=aside: path.rename(aside))
        print(f"{path} is newer than the checkpoint that this run resumes: renamed to {aside.name}")


def read_attempt(config: Config) -> dict:
    """Return what `write_attempt` noted for a run that stopped before its first checkpoint.

    Its values are empty if there is no such note.
    """
    try:
        note = json.loads(WeightsFolder.of(config).attempt.read_text(encoding="utf-8"))
        names = ("log_dir", "run_id")
        return {name: str(note[name]) for name in names} | {"tokenizers": list(note["tokenizers"])}
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {"log_dir": "", "run_id": "", "tokenizers": []}


def write_attempt(config: Config, log_dir: str, run_id: str, tokenizers: list[Path]) -> None:
    """Note what a new run makes, so that the next start can take its place if it stops early."""
    names = [path.name for path in tokenizers]
    note = json.dumps({"log_dir": log_dir, "run_id": run_id, "tokenizers": names})
    write_file(WeightsFolder.of(config).attempt, lambda file: file.write(note.encode()))


def delete_leftovers(config: Config) -> None:
    """Delete the temporary files of a run that was killed while it wrote them."""
    folder = WeightsFolder.of(config).path
    tokenizers = [path.with_name(f"{path.name}.tmp") for path in tokenizer_paths(config)]
    for path in (*folder.glob(f"{config.model_basename}*.tmp"), *tokenizers):
        if path.parent == folder:  # tokenizers in other folders are the user's
            delete(path)
