"""Writing, renaming and deleting files so that a crash or another program loses nothing."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a temporary name, flush it to the disk, then rename it.

    Raises OSError if it cannot be written; a file that exists already then stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        retry_while_open(lambda: os.replace(temporary, path))
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error.__context__, OSError):  # torch.save replaces the system's error
            error = error.__context__
        if isinstance(error, OSError):
            raise OSError(f"{path} cannot be written: {error.strerror}") from None
        raise
    if hasattr(os, "O_DIRECTORY"):  # where folders can be flushed: makes the new name durable
        folder = os.open(path.parent, os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)


def retry_while_open(change: Callable[[], object]) -> None:
    """Rename or delete a file; try again for two seconds if permission is denied.

    Windows denies it while another program, such as a virus scanner, has the file open.
    """
    for pause in (0.1, 0.2, 0.4, 0.8, 0.5):
        try:
            change()
            return
        except PermissionError:
            time.sleep(pause)
    change()


def delete(path: Path) -> None:
    """Delete a file that is no longer needed; if that fails, report it and keep the file."""
    try:
        retry_while_open(lambda: path.unlink(missing_ok=True))
    except OSError as error:
        print(f"{path} cannot be deleted ({error.strerror}) and stays")
