"""What a training run holds, where it stands, and how it is stored and found again."""

import itertools
import json
import signal
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

import checkpoint
from config import (
    Config,
    get_attempt_path,
    get_weights_file_path,
    get_weights_folder,
    newer_weights_file_paths,
    obsolete_weights_file_paths,
    weights_file_paths,
)
from curves import Curves
from dataset import RunData
from model import Transformer


@dataclass
class Progress:
    """Where a run stands: all that changes beside weights and optimizer, as plain values."""

    epoch: int = 0  # the one that goes on, counted from 0
    batch: int = 0  # batches of it already trained on
    global_step: int = 0  # updates of the whole run
    # Sums since the last point of the training curves; losses and norms may be on the device.
    window: dict = field(default_factory=lambda: dict(loss=0.0, norm=0.0, tokens=0, updates=0))
    train_row: dict = field(default_factory=dict)  # the last point of the training curves
    history: list[dict] = field(default_factory=list)  # scores of each validation

    def count_update(self, loss: Tensor, norm: Tensor, tokens: int) -> None:
        """Count an update and add it to the window, without waiting for the device."""
        self.global_step += 1
        added = dict(loss=loss, norm=norm, tokens=tokens, updates=1)
        self.window = {key: self.window[key] + value for key, value in added.items()}

    def best(self, monitor: str) -> int | None:
        """Return the index of the best validation, the first of equals."""
        sign = -1 if monitor == "val/loss" else 1
        rows = range(len(self.history))
        return max(rows, key=lambda i: sign * self.history[i][monitor], default=None)

    def is_finished(self, config: Config) -> bool:
        since_best = len(self.history) - 1 - (self.best(config.monitor) or 0)
        out_of_patience = config.patience > 0 and since_best >= config.patience
        return self.epoch >= config.num_epochs or out_of_patience

    def validation_is_due(self, config: Config) -> bool:
        """Tell whether the last update calls for a validation that has not been done."""
        done = self.history[-1]["step"] if self.history else 0
        every = config.validate_every
        return self.global_step > done and (
            self.batch == 0 or (every is not None and self.global_step % every == 0)
        )


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
    curves: Curves | None = None  # None until training begins

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
        """Write a checkpoint and delete those that it replaces; curves are on disk before it is."""
        self.curves.flush()
        state = {
            "format": checkpoint.FORMAT,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            **asdict(self.progress),
            "window": {key: float(value) for key, value in self.progress.window.items()},
            "config": asdict(self.config),
            "tokenizer_src": self.data.train.tokenizer_src.to_json(),
            "tokenizer_tgt": self.data.train.tokenizer_tgt.to_json(),
            "data": self.data.fingerprint,
            "log_dir": self.log_dir,
        }
        checkpoint.save(path, state)
        get_attempt_path(self.config).unlink(missing_ok=True)
        checkpoint.prune(obsolete_weights_file_paths(self.config))

    def restore(self, state: dict) -> None:
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError as error:
            first = str(error).splitlines()[1].strip()  # after a heading
            raise ValueError(f"the checkpoint's weights do not fit: {first}") from None
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler.is_enabled() and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])
        self.progress = Progress(**{key: state[key] for key in asdict(self.progress)})


class Interrupted(Exception):
    """A signal asked the run to stop; all that was done is saved."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Interrupt:
    """Notes the first SIGINT or SIGTERM while in a `with` block; a second ends the process."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def __enter__(self) -> "Interrupt":
        self.before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_) -> None:
        for signum, handler in self.before.items():
            signal.signal(signum, handler)

    def _note(self, signum: int, frame: object) -> None:
        self.signum = signum
        for each in self.before:
            signal.signal(each, signal.SIG_DFL)
        tqdm.write("stopping after this step; once more stops at once")

    def check(self) -> None:
        if self.signum is not None:
            raise Interrupted(self.signum)


def load_checkpoint(config: Config) -> tuple[Path, dict] | None:
    """Return path and state of the checkpoint that `preload` names, or None for a new run."""
    paths = weights_file_paths(config)
    folder = get_weights_folder(config)
    if config.preload == "none":
        if paths:
            raise ValueError(
                f"preload is none, but {folder} holds {paths[-1].name} of an earlier run; choose "
                "another --model_folder, or move that folder away"
            )
        return None
    if config.preload == "latest":
        for path in reversed(paths):
            try:
                return path, checkpoint.load(path)
            except ValueError as error:
                print(f"{error}; trying the one before")
        if paths:
            raise ValueError(f"no checkpoint in {folder} can be read; move it away to start anew")
        return None
    if config.preload == "best":
        path = get_weights_file_path(config, "best")
    elif config.preload.isdecimal():
        path = get_weights_file_path(config, int(config.preload))
    else:
        path = Path(config.preload)
    if path.is_dir():
        raise ValueError(f"preload names the folder {path}; it takes a checkpoint file in it")
    return path, checkpoint.load(path)


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
        path.rename(aside)
        print(f"{path} is newer than the checkpoint that this goes on from: now {aside.name}")


def read_attempt(config: Config) -> dict:
    """Return the note of a run that was stopped before its first checkpoint, or nothing."""
    path = get_attempt_path(config)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def write_attempt(config: Config, log_dir: str, tokenizers: list[Path]) -> None:
    """Note what a new run makes, so that if it is stopped early the next can take its place."""
    note = {"log_dir": log_dir, "tokenizers": [path.name for path in tokenizers]}
    path = get_attempt_path(config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(note), encoding="utf-8")
