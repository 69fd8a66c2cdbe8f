"""What a training run holds, and how it is stored and found again."""

import itertools
import json
import math
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from torch import Tensor

import checkpoint
from config import (
    Config,
    get_attempt_path,
    get_lock_path,
    get_process_path,
    get_weights_file_path,
    get_weights_folder,
    newer_weights_file_paths,
    obsolete_weights_file_paths,
    weights_file_paths,
)
from curves import Curves
from model import Transformer
from training import processes
from training.data import RunData, tokenizer_paths
from training.progress import Progress
from training.sharding import whole_moments, whole_weights


@dataclass(frozen=True)
class Update:
    """An update whose loss and gradient norm are still on the device."""

    step: int
    loss: Tensor  # summed over its real target tokens
    norm: Tensor  # before clipping
    tokens: int
    pairs: list[int]  # numbers of its pairs among those to train on


@dataclass
class Run:
    """Everything a training run holds, and its state as a checkpoint."""

    config: Config
    model: Transformer
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    data: RunData
    device: torch.device
    precision: torch.dtype
    progress: Progress
    log_dir: str
    run_id: str = ""
    total_updates: float = math.inf  # as planned (of a stream, and before there is a plan: unknown)
    curves: Curves | None = None  # None until training begins
    unread: list[Update] = field(default_factory=list)  # those since the last look at the device
    has_cut_batches: bool = False  # and has said so

    def plan(self, batches: int) -> None:
        """Count the updates of the whole run, if this epoch, and each one to come, has `batches`.

        At every point of an epoch the count is the same; of a stream nobody knows it.
        """
        if self.config.streaming:
            return
        of_update = self.config.accumulate * processes.count()
        done = self.progress.global_step - math.ceil(self.progress.batch / of_update)
        epochs = self.config.num_epochs - self.progress.epoch
        self.total_updates = done + epochs * math.ceil(batches / of_update)

    def path(self) -> Path:
        """Return the checkpoint's path at this point of the run."""
        epoch, step = self.progress.epoch, self.progress.global_step
        if self.progress.batch == 0:
            return get_weights_file_path(self.config, epoch - 1)
        return get_weights_file_path(self.config, epoch, step)

    @property
    def pad_id(self) -> int:
        return self.data.train.tokenizer_tgt.pad_id

    def save(self, path: Path) -> None:
        """Write a checkpoint and delete those that it replaces; curves are on disk before it is.

        Of several processes the main one alone does, but all must ask for it.

        Raises ArithmeticError for weights that are not finite. While updates are left out nothing
        is deleted, as the weights before them may be why.
        """
        weights = whole_weights(self.model)
        moments = whole_moments(self.optimizer)
        for name, weight in weights.items():
            if not weight.isfinite().all():
                raise ArithmeticError(
                    f"the weights of {name} are not finite after update "
                    f"{self.progress.global_step}, and are not saved: go on from the last "
                    "checkpoint, if any, with a lower --lr"
                )
        if not processes.is_main():
            return
        self.curves.flush()
        state = {
            "format": checkpoint.FORMAT,
            "model": weights,
            "optimizer": moments,
            "scaler": self.scaler.state_dict(),
            **asdict(self.progress),
            "config": asdict(self.config),
            "tokenizer_src": self.data.train.tokenizer_src.to_json(),
            "tokenizer_tgt": self.data.train.tokenizer_tgt.to_json(),
            "data": self.data.fingerprint,
            "processes": processes.count(),
            "log_dir": self.log_dir,
            "run_id": self.run_id,
        }
        checkpoint.save(path, state)
        checkpoint.delete(get_attempt_path(self.config))
        if not self.progress.skipped_in_row:
            checkpoint.prune(obsolete_weights_file_paths(self.config))

    def restore(self, path: Path, state: dict) -> None:
        """Take over a training state read from path; ValueError where it does not fit."""
        checkpoint.load_weights(self.model, state, path)
        self._restore_optimizer(path, state["optimizer"])
        if self.scaler.is_enabled() and state["scaler"]:
            if state["scaler"].keys() != self.scaler.state_dict().keys():
                raise ValueError(f"the checkpoint {path} has a gradient scaler of another kind")
            self.scaler.load_state_dict(state["scaler"])
        progress = Progress(**{key: state[key] for key in asdict(self.progress)})
        needed = {"step", "epoch", "val/loss", self.config.monitor}
        rows = [("window", progress.window, self.progress.window.keys())]
        rows += [("history", row, needed) for row in progress.history]
        for name, row, keys in rows:
            missing = sorted(keys - row.keys())
            if missing:
                raise ValueError(f"the checkpoint {path} has no {missing[0]} in its {name}")
        self.progress = progress

    def _restore_optimizer(self, path: Path, moments: dict) -> None:
        # The settings are the config's; only what was learned about each weight is the file's.
        state = self.optimizer.state_dict()
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        expected, found = {}, {}
        for number, weight in enumerate(weights):
            for name in ("step", "exp_avg", "exp_avg_sq"):
                expected[f"{number}.{name}"] = torch.zeros(()) if name == "step" else weight
        for number, row in moments.items():
            found |= {f"{number}.{name}": tensor for name, tensor in row.items()}
        name = f"the optimizer of the checkpoint {path}"
        checkpoint.check_tensors(found, expected, name)
        for key, tensor in found.items():
            if not key.endswith("exp_avg") and (tensor < 0).any():
                raise ValueError(f"{name} holds numbers below 0, in {key}")
        self.optimizer.load_state_dict({**state, "state": moments})


@contextmanager
def only_run(config: Config) -> Iterator[None]:
    """Keep other runs out of a run's files while in the `with` block.

    Makes the weights folder, so that one that cannot be written to is noticed now; deletes what it
    made and what is still empty in the end. Raises ValueError that names the process which has it.
    """
    folder, path, note = (
        get(config) for get in (get_weights_folder, get_lock_path, get_process_path)
    )
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0)
        lock.acquire()
    except Timeout:
        holder = note.read_text(encoding="utf-8") if note.exists() else "another process"
        raise ValueError(
            f"{folder} is in use by {holder}, which trains there; wait for it, or choose another "
            "--model_folder"
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OSError(f"{folder} cannot be written to: {reason}; --model_folder PATH") from None
    try:
        note.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        checkpoint.delete(note)
        try:
            path.unlink(missing_ok=True)  # while it is locked: nobody can have it open and locked
            lock.release()
        except PermissionError:  # on Windows, where a file that is open cannot be deleted
            lock.release()
            with suppress(OSError):  # the next run may have it already
                path.unlink(missing_ok=True)
        for each in made:
            if each.is_dir() and not any(each.iterdir()):
                each.rmdir()


def load_checkpoint(config: Config) -> tuple[Path, dict] | None:
    """Return path and state of the checkpoint that `preload` names, or None for a new run."""
    best = get_weights_file_path(config, "best")
    if config.preload == "none":
        paths = [path for path in (best, *weights_file_paths(config)) if path.exists()]
        if paths:
            raise ValueError(
                f"preload is none, but {paths[-1].parent} holds {paths[-1].name} of an earlier "
                "run; choose another --model_folder, or move that folder away"
            )
        return None
    if config.preload == "latest":
        return load_latest(config)
    if config.preload == "best":
        path = best
    elif config.preload.isdecimal():
        path = get_weights_file_path(config, int(config.preload))
    else:
        path = Path(config.preload)
    if path.is_dir():
        raise ValueError(f"preload names the folder {path}; it takes a checkpoint file in it")
    if not path.exists():
        there = [each.name for each in (*weights_file_paths(config), best) if each.exists()]
        raise FileNotFoundError(
            f"there is no checkpoint {path}; {get_weights_folder(config)} holds "
            f"{', '.join(there) or 'none'}"
        )
    return path, checkpoint.load(path)


def load_latest(config: Config) -> tuple[Path, dict] | None:
    """Return the newest checkpoint that is whole, or None where there is none at all.

    The best is one of them, in case that newer ones are damaged or gone. Raises ValueError when
    all are damaged.
    """
    best = get_weights_file_path(config, "best")
    paths = weights_file_paths(config)[::-1]
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
            f"no checkpoint in {get_weights_folder(config)} can be read; move it away to start anew"
        )
    if damaged or (found and not paths):
        print(f"the newest checkpoint that is whole is {found[0]}")
    return found


def set_newer_aside(config: Config, progress: Progress) -> None:
    """Rename the checkpoints that are newer than where a run goes on, damaged ones among them.

    Left there, they would be taken for the latest, and what the run saves for old.
    """
    newer = newer_weights_file_paths(config, progress.epoch, progress.global_step)
    best = get_weights_file_path(config, "best")
    if config.preload != "latest" and best.exists():
        try:
            is_newer = checkpoint.load(best)["global_step"] > progress.global_step
        except ValueError:
            is_newer = True  # nobody can tell any more
        newer += [best] if is_newer else []
    for path in newer:
        asides = (path.with_name(f"{path.name}.old{number or ''}") for number in itertools.count())
        aside = next(name for name in asides if not name.exists())
        checkpoint.with_patience(lambda path=path, aside=aside: path.rename(aside))
        print(f"{path} is newer than the checkpoint that this goes on from: now {aside.name}")


def read_attempt(config: Config) -> dict:
    """Return the note of a run that was stopped before its first checkpoint, or nothing."""
    try:
        note = json.loads(get_attempt_path(config).read_text(encoding="utf-8"))
        names = ("log_dir", "run_id")
        return {name: str(note[name]) for name in names} | {"tokenizers": list(note["tokenizers"])}
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {"log_dir": "", "run_id": "", "tokenizers": []}


def write_attempt(run: Run, tokenizers: list[Path]) -> None:
    """Note what a new run makes, so that if it is stopped early the next can take its place."""
    names = [path.name for path in tokenizers]
    note = json.dumps({"log_dir": run.log_dir, "run_id": run.run_id, "tokenizers": names})
    checkpoint.write_file(get_attempt_path(run.config), lambda file: file.write(note.encode()))


def delete_leftovers(config: Config) -> None:
    """Delete the unfinished files of a run that was killed while it wrote them."""
    folder = get_weights_folder(config)
    tokenizers = [path.with_name(f"{path.name}.tmp") for path in tokenizer_paths(config)]
    for path in (*folder.glob(f"{config.model_basename}*.tmp"), *tokenizers):
        if path.parent == folder:  # tokenizers elsewhere are the user's
            checkpoint.delete(path)
