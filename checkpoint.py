"""Writing and reading the training state, so that nothing is lost or trusted blindly.

A checkpoint is one file of tensors and plain values: enough to go on training, or to translate
on another machine. It is loaded with weights_only, so nothing in it can run.
"""

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import torch

FORMAT = 1
KEYS = {
    "format": int,
    "model": dict,  # the plain module's state
    "optimizer": dict,
    "scaler": dict,  # of the gradient scaler, empty without one
    "epoch": int,  # the one that goes on, counted from 0
    "batch": int,  # batches of that epoch already trained on
    "global_step": int,  # updates of the whole run
    "window": dict,  # sums since the last point of the training curves
    "train_row": dict,  # the last point of the training curves
    "history": list,  # one dict of scores a validation
    "config": dict,
    "tokenizer_src": str,
    "tokenizer_tgt": str,
    "data": str,  # hash of training and validation texts
    "log_dir": str,  # of the run's curves
}


def save(path: Path, state: dict) -> None:
    """Write a training state (`KEYS`), all or nothing: an existing file stays until it is whole."""
    _check_keys(state, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
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
            damaged = archive.testzip()  # torch.load would not notice a changed byte
        if damaged:
            raise ValueError(f"checksum of {damaged} is wrong")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # depending on where it is cut, reading raises one of many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"the checkpoint {path} is damaged or not a checkpoint: {reason}"
        ) from None
    _check_keys(state, path)
    return state


def prune(paths: Iterable[Path]) -> None:
    """Delete checkpoints that newer ones replace."""
    for path in paths:
        path.unlink(missing_ok=True)


def _check_keys(state: object, path: Path) -> None:
    if not isinstance(state, dict) or "format" not in state:
        raise ValueError(f"{path} is not a checkpoint of this project")
    if state["format"] != FORMAT:
        raise ValueError(f"{path} has checkpoint format {state['format']}, this reads {FORMAT}")
    for key, kind in KEYS.items():
        if not isinstance(state.get(key), kind):
            raise ValueError(f"the checkpoint {path} has no {key} of type {kind.__name__}")
