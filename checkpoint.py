"""The file in which a run is stored, the progress that it contains, and the folder it lies in.

A checkpoint is one file of tensors and plain values. It is enough to resume training, or to
translate on another machine. It is loaded with `weights_only=True`, so it cannot run code.
"""

import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from config import Config
from files import delete, write_file


@dataclass
class Progress:
    """Where a run stands: everything that changes except weights and optimizer, as plain values."""

    epoch: int = 0  # the current one, counted from 0
    batch: int = 0  # batches of this epoch already trained on
    pool: int = 0  # pools of this epoch already trained on (streaming)
    pool_start: int = 0  # batches of this epoch before the current pool
    position: str = ""  # where the current pool begins in the stream
    global_step: int = 0  # updates of the whole run
    skipped: int = 0  # updates skipped because loss or gradient was not finite
    skipped_in_row: int = 0  # those since the last update that was not skipped
    # Sums over the updates since the last point of the training curves.
    window: dict[str, float] = field(
        default_factory=lambda: dict(loss=0.0, norm=0.0, tokens=0, updates=0)
    )
    train_row: dict[str, float] = field(default_factory=dict)  # the last point of these curves
    history: list[dict[str, float]] = field(default_factory=list)  # scores of each validation

    def add_update(self, loss: float, norm: float, tokens: int) -> None:
        """Add an update to the window: its summed loss, gradient norm and target tokens."""
        added = dict(loss=loss, norm=norm, tokens=tokens, updates=1)
        self.window = {key: self.window[key] + value for key, value in added.items()}

    def end_pool(self, next_position: str) -> None:
        """Go to the next pool of the epoch, or if `next_position` is "", to the next epoch."""
        if next_position:
            self.pool, self.pool_start = self.pool + 1, self.batch
        else:
            self.epoch, self.batch, self.pool, self.pool_start = self.epoch + 1, 0, 0, 0
        self.position = next_position


@dataclass(frozen=True)
class WeightsFolder:
    """The folder of a run: names and order of its checkpoints, and the files beside them."""

    path: Path
    basename: str  # how the names of its checkpoints begin

    @classmethod
    def of(cls, config: Config) -> "WeightsFolder":
        """Return the folder of a config, such as `opus_books_weights`.

        Its name depends on the config only, not on which files exist: every comma in `datasource`
        separates two sources.
        """
        path = Path(config.model_folder)
        if path.name == config.model_folder:
            sources = [re.sub(r":\d+$", "", source) for source in config.datasource.split(",")]
            name = "_".join(Path(source).name.split(".")[0] for source in sources)
            path = Path(f"{name}_{config.model_folder}")
        return cls(path, config.model_basename)

    @property
    def best(self) -> Path:
        """The checkpoint of the best validation so far."""
        return self.path / f"{self.basename}best.pt"

    def end_of(self, epoch: int) -> Path:
        """Return the checkpoint of a finished epoch."""
        return self.path / f"{self.basename}{epoch:02d}.pt"

    def inside(self, epoch: int, step: int) -> Path:
        """Return the checkpoint inside an epoch, after `step` updates of the whole run."""
        return self.path / f"{self.basename}{epoch:02d}_{step}.pt"

    @property
    def attempt(self) -> Path:
        """The note of a run without a checkpoint yet: its log folder, run id and new tokenizers."""
        return self.path / f"{self.basename}attempt.json"

    @property
    def lock(self) -> Path:
        """The file that a run keeps locked while it trains."""
        return self.path / "train.lock"

    @property
    def lock_holder(self) -> Path:
        """The file that names the process with the lock; Windows cannot read a locked file."""
        return self.path / "train.process"

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints except the best, oldest first; an epoch's end is its last."""
        return [path for _, path in self._positions()]

    def latest(self) -> Path | None:
        """Return the newest checkpoint by its name, or None if there is none."""
        checkpoints = self.checkpoints()
        return checkpoints[-1] if checkpoints else None

    def replaced(self, keep_last: int) -> list[Path]:
        """Return the checkpoints that newer ones replace.

        That is all except the newest and the last `keep_last` finished epochs (-1: all of them).
        """
        positions = self._positions()
        finished = [path for (_, step), path in positions if step == math.inf]
        first = 0 if keep_last == -1 else max(0, len(finished) - keep_last)
        return [path for _, path in positions[:-1] if path not in finished[first:]]

    def newer_than(self, epoch: int, step: int) -> list[Path]:
        """Return the checkpoints beyond a run that is in `epoch`, after `step` updates in all."""
        return [
            path
            for (number, inside), path in self._positions()
            if (number >= epoch if inside == math.inf else inside > step)
        ]

    def last_epochs(self, count: int) -> list[Path]:
        """Return the checkpoints of the last `count` finished epochs, oldest first.

        Raises FileNotFoundError if there are fewer.
        """
        finished = [path for (_, step), path in self._positions() if step == math.inf]
        if len(finished) < count:
            raise FileNotFoundError(
                f"{self.path} has {len(finished)} checkpoints of finished epochs to average, not "
                f"{count}; train with a higher --keep_last"
            )
        return finished[-count:]

    def _positions(self) -> list[tuple[tuple[float, float], Path]]:
        found = [(position_of(path, self.basename), path) for path in self.path.glob("*.pt")]
        return sorted((place, path) for place, path in found if place and path != self.best)


def position_of(path: Path, basename: str | None = None) -> tuple[float, float] | None:
    """Return (epoch, step) by the name of a checkpoint, or None for any other name.

    The step is infinite at the end of an epoch; the best checkpoint has two infinities. Without a
    basename any is accepted. An epoch has at least two digits and a step no leading zero, so that
    exp2_07.pt is epoch 7 of exp2_.
    """
    start = ".*?" if basename is None else re.escape(basename)
    match = re.fullmatch(rf"{start}(?:best|(\d{{2,}})(?:_([1-9]\d*))?)\.pt", path.name)
    if match is None:
        return None
    epoch, step = match.groups()
    return float(epoch or math.inf), float(step or math.inf)


FORMAT = 2
KEYS = {
    "format": int,
    "model": dict[str, Tensor],  # the model's state_dict
    "optimizer": dict[int, dict[str, Tensor]],  # the state of each parameter
    "scaler": dict[str, float],  # of the gradient scaler, empty without one
    **get_type_hints(Progress),
    "config": dict[str, object],
    "tokenizer_src": str,
    "tokenizer_tgt": str,
    "data": str,  # hash of the training and validation texts
    "batching": int,  # version of the rule that forms batches
    "processes": int,  # world size
    "log_dir": str,  # folder of the TensorBoard events
    "run_id": str,  # the same in all checkpoints of a run and in the folder of its events
}

# Values for the keys that checkpoints of earlier versions lack.
MISSING_KEYS = {
    "batching": 1,
    "processes": 1,
    "pool": 0,
    "pool_start": 0,
    "position": "",
    "run_id": "",
}


def save(path: Path, state: dict) -> None:
    """Write a training state (`KEYS`) as a whole: it replaces an existing file when it is complete.

    Raises OSError if it cannot be written.
    """
    _check_keys(state, path)
    write_file(path, lambda file: torch.save(state, file))


def load(path: Path) -> dict:
    """Read a training state, with its tensors on the CPU.

    Raises FileNotFoundError, or ValueError if the file is damaged, was not written by `save`, or
    has another format.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path.stat().st_size)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # reading a damaged file raises errors of many classes
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"the checkpoint {path} is damaged or not a checkpoint: {reason}"
        ) from None
    if isinstance(state, dict):
        for key, value in MISSING_KEYS.items():
            state.setdefault(key, value)
    _check_keys(state, path)
    return state


def is_ours(path: Path) -> bool | None:
    """Return, without loading tensors, whether this project wrote a file.

    Returns None for a damaged file, which may be ours: `load` reports what is wrong with it.
    """
    if path.is_dir():
        return False
    try:
        if not zipfile.is_zipfile(path):
            with open(path, "rb") as file:  # a pickle, the old format of torch.save
                return False if file.read(1) == b"\x80" else None
        with zipfile.ZipFile(path) as archive:
            name = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
            if name is None:
                return False
            with archive.open(name) as file:
                plain_values = file.read(2**24)
    except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    return all(key in plain_values for key in (b"global_step", b"tokenizer_src"))


def check_tensors(tensors: Mapping[str, object], expected: Mapping[str, Tensor], name: str) -> None:
    """Raise ValueError unless names, shapes and dtypes are as expected and all numbers finite."""
    odd = sorted(map(str, tensors.keys() ^ expected.keys()))
    if odd:
        raise ValueError(f"{name} does not fit the model: only one of them has {odd[0]}")
    for key, wanted in expected.items():
        tensor = tensors[key]
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name} does not fit the model: {key} is not a tensor")
        for what in ("shape", "dtype"):
            found, needed = getattr(tensor, what), getattr(wanted, what)
            if found != needed:
                raise ValueError(
                    f"{name} does not fit the model: {key} has {what} {_plain(found)}, "
                    f"the model {_plain(needed)}"
                )
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite, in {key}")


def load_weights(model: nn.Module, state: dict, path: Path) -> None:
    """Load the weights of a training state into a model.

    Raises ValueError unless they fit exactly.
    """
    check_tensors(state["model"], model.state_dict(), f"the checkpoint {path}")
    model.load_state_dict(state["model"])


def prune(paths: Iterable[Path]) -> None:
    """Delete checkpoints that newer ones replace."""
    for path in paths:
        if not path.is_dir():  # a folder with the name of a checkpoint is not ours
            delete(path)


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError for entries that `save` cannot have written, before reading any."""
    entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("its entries are compressed")
    # PyTorch does not read an entry marked as a folder: the tensor keeps what was in memory.
    if any(entry.external_attr & 0x10 for entry in entries):
        raise ValueError("one of its entries is marked as a folder")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > size:
        raise ValueError(f"its entries claim {claimed:,} bytes, the file has {size:,}")
    damaged = archive.testzip()  # torch.load does not compare checksums
    if damaged:
        raise ValueError(f"the checksum of {damaged} is wrong")


def _check_keys(state: object, path: Path) -> None:
    if not isinstance(state, dict) or "format" not in state:
        raise ValueError(f"{path} is not a checkpoint of this project")
    if not _fits(state["format"], int) or state["format"] != FORMAT:
        raise ValueError(
            f"{path} has checkpoint format {state['format']}, this version reads {FORMAT}: use the "
            "version that wrote it"
        )
    for key, kind in KEYS.items():
        if key not in state:
            raise ValueError(f"the checkpoint {path} has no {key}")
        if not _fits(state[key], kind):
            kind = kind if get_origin(kind) else kind.__name__
            raise ValueError(f"the checkpoint {path} has a {key} that is not {kind}")


def _fits(value: object, kind: type) -> bool:
    """Return whether a value is of a type such as `dict[str, float]`, with finite numbers.

    The type `object` stands for any single plain value.
    """
    if kind is object:
        return value is None or isinstance(value, (str, bool)) or _fits(value, float)
    if kind is float:
        is_finite = type(value) is float and math.isfinite(value)
        return is_finite or (type(value) is int and abs(value) < 2**63)
    if kind is int:
        return type(value) is int and 0 <= value < 2**63
    if kind is Tensor:  # dense, and in memory
        is_plain = isinstance(value, Tensor) and not value.is_nested
        return is_plain and value.layout == torch.strided and value.device.type == "cpu"
    if not isinstance(value, get_origin(kind) or kind):
        return False
    if isinstance(value, dict) and get_args(kind):
        key_kind, value_kind = get_args(kind)
        return all(_fits(k, key_kind) and _fits(v, value_kind) for k, v in value.items())
    if isinstance(value, list):
        return all(_fits(each, get_args(kind)[0]) for each in value)
    return True


def _plain(value: object) -> str:
    return str(tuple(value) if isinstance(value, torch.Size) else value).removeprefix("torch.")
