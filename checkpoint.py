"""Writing and reading the training state, so that nothing is lost or trusted blindly.

A checkpoint is one file of tensors and plain values: enough to go on training, or to translate
on another machine. It is loaded with weights_only, so nothing in it can run.
"""

import math
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, get_args, get_origin

import torch
from torch import Tensor, nn

FORMAT = 2
KEYS = {
    "format": int,
    "model": dict[str, Tensor],  # the plain module's state
    "optimizer": dict[int, dict[str, Tensor]],  # what it holds of each parameter
    "scaler": dict[str, float],  # of the gradient scaler, empty without one
    "epoch": int,  # the one that goes on, counted from 0
    "batch": int,  # batches of that epoch already trained on
    "pool": int,  # of a stream, how many of the epoch are done with
    "pool_start": int,  # batches of the epoch before the pool that goes on
    "position": str,  # where that one begins in the stream
    "global_step": int,  # updates of the whole run
    "skipped": int,  # of those, the ones whose loss or gradient was not finite
    "skipped_in_row": int,  # of those, the last ones without a good one between them
    "window": dict[str, float],  # sums since the last point of the training curves
    "train_row": dict[str, float],  # the last point of the training curves
    "history": list[dict[str, float]],  # the scores of each validation
    "config": dict[str, object],
    "tokenizer_src": str,
    "tokenizer_tgt": str,
    "data": str,  # hash of training and validation texts
    "processes": int,  # that the run had
    "log_dir": str,  # of the run's curves
    "run_id": str,  # the same in all checkpoints of a run and in the folder of its curves
}

# What the checkpoints of earlier versions mean where they have no such key.
BEFORE = {"processes": 1, "pool": 0, "pool_start": 0, "position": "", "run_id": ""}


def save(path: Path, state: dict) -> None:
    """Write a training state (`KEYS`), all or nothing: an existing file stays until it is whole.

    Raises OSError when it cannot be written.
    """
    _check_keys(state, path)
    write_file(path, lambda file: torch.save(state, file))


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a temporary name, flush it to the disk, then give it its own name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with_patience(lambda: os.replace(temporary, path))
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error.__context__, OSError):  # torch.save hides what the disk said
            error = error.__context__
        if isinstance(error, OSError):
            raise OSError(f"{path} cannot be written: {error.strerror}") from None
        raise
    if hasattr(os, "O_DIRECTORY"):  # where folders can be flushed: makes the new name durable
        folder = os.open(path.parent, os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)


def load(path: Path) -> dict:
    """Read a training state, its tensors on the CPU.

    Raises FileNotFoundError, or ValueError when the file is damaged, was not written by `save`,
    or by another version of it.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path.stat().st_size)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # depending on where it is cut, reading raises one of many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"the checkpoint {path} is damaged or not a checkpoint: {reason}"
        ) from None
    if isinstance(state, dict):
        for key, value in BEFORE.items():
            state.setdefault(key, value)
    _check_keys(state, path)
    return state


def is_ours(path: Path) -> bool | None:
    """Tell, without loading tensors, whether this project wrote a file.

    None stands for a damaged file, which may be ours: `load` says what is wrong with it.
    """
    if path.is_dir():
        return False
    try:
        if not zipfile.is_zipfile(path):
            with open(path, "rb") as file:  # a pickle, as torch.save wrote before its archives
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
    """Raise ValueError unless tensors are those expected: names, shapes, dtypes, finite numbers."""
    odd = sorted(map(str, tensors.keys() ^ expected.keys()))
    if odd:
        raise ValueError(f"{name} does not fit the model: {odd[0]} is in one of them only")
    for key, wanted in expected.items():
        tensor = tensors[key]
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name} does not fit the model: {key} is no tensor")
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
    """Give a model the weights of a training state; ValueError unless they fit exactly."""
    check_tensors(state["model"], model.state_dict(), f"the checkpoint {path}")
    model.load_state_dict(state["model"])


def average(paths: Iterable[Path]) -> dict:
    """Return the last of some training states of one run, with the mean of all their weights.

    As the paper did with its last checkpoints (section 6.1). Raises like `load`, and ValueError
    for states of different models.
    """
    first, *others = paths
    state = load(first)
    data = state["data"]
    sums = {name: weight.double() for name, weight in state["model"].items()}
    for path in others:
        before, state = state["model"], load(path)
        check_tensors(state["model"], before, f"the checkpoint {path}")
        if state["data"] != data:
            raise ValueError(f"{path} is of another run than {first}: they have other pairs")
        for name, weight in state["model"].items():
            sums[name] += weight
    count = 1 + len(others)
    mean = {name: (sums[name] / count).to(w.dtype) for name, w in state["model"].items()}
    return {**state, "model": mean}


def with_patience(change: Callable[[], object]) -> None:
    """Rename or delete a file, again for two seconds where that is not permitted.

    On Windows it is not while another program has the file open, such as a virus scanner.
    """
    for pause in (0.1, 0.2, 0.4, 0.8, 0.5):
        try:
            change()
            return
        except PermissionError:
            time.sleep(pause)
    change()


def delete(path: Path) -> None:
    """Delete a file that is not needed any more; says so where it cannot, and keeps it."""
    try:
        with_patience(lambda: path.unlink(missing_ok=True))
    except OSError as error:
        print(f"{path} cannot be deleted ({error.strerror}) and stays")


def prune(paths: Iterable[Path]) -> None:
    """Delete checkpoints that newer ones replace."""
    for path in paths:
        if not path.is_dir():  # under a checkpoint's name, but not ours
            delete(path)


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError for entries that cannot be `save`'s, before any of them is read."""
    entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("its entries are compressed")
    # PyTorch reads nothing of a folder, and leaves in the tensor what was in memory before.
    if any(entry.external_attr & 0x10 for entry in entries):
        raise ValueError("one of its entries is marked as a folder")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > size:
        raise ValueError(f"its entries claim {claimed:,} bytes, the file has {size:,}")
    damaged = archive.testzip()  # torch.load would not notice a changed byte
    if damaged:
        raise ValueError(f"the checksum of {damaged} is wrong")


def _check_keys(state: object, path: Path) -> None:
    if not isinstance(state, dict) or "format" not in state:
        raise ValueError(f"{path} is not a checkpoint of this project")
    if not _fits(state["format"], int) or state["format"] != FORMAT:
        raise ValueError(f"{path} has checkpoint format {state['format']}, this reads {FORMAT}")
    for key, kind in KEYS.items():
        if key not in state:
            raise ValueError(f"the checkpoint {path} has no {key}")
        if not _fits(state[key], kind):
            kind = kind if get_origin(kind) else kind.__name__
            raise ValueError(f"the checkpoint {path} has a {key} that is not {kind}")


def _fits(value: object, kind: type) -> bool:
    """Tell whether a value is of a kind such as `dict[str, float]`; numbers must be finite.

    `object` stands for any single plain value.
    """
    if kind is object:
        return value is None or isinstance(value, (str, bool)) or _fits(value, float)
    if kind is float:
        is_finite = type(value) is float and math.isfinite(value)
        return is_finite or (type(value) is int and abs(value) < 2**63)
    if kind is int:
        return type(value) is int and 0 <= value < 2**63
    if kind is Tensor:  # an ordinary one, with its numbers at hand
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
