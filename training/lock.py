"""The lock that keeps a second run out of a weights folder."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout

from checkpoint import WeightsFolder
from files import delete


@contextmanager
def lock_weights_folder(folder: WeightsFolder) -> Iterator[None]:
    """Lock a weights folder against other runs inside the `with` block.

    Makes the folder, and deletes at the end whatever it made that is still empty. Raises OSError if
    the folder cannot be written to, and ValueError that names the process which holds the lock.
    """
    path, holder = folder.path, folder.lock_holder
    made = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.lock, timeout=0)
        lock.acquire()
    except Timeout:
        name = holder.read_text(encoding="utf-8") if holder.exists() else "another process"
        raise ValueError(
            f"{path} is in use by {name}, which trains there; wait for it, or choose another "
            "--model_folder"
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OSError(
            f"{path} cannot be written to: {reason}; choose another folder with --model_folder PATH"
        ) from None
    try:
        holder.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        delete(holder)
        try:
            # While it is locked, no other run can have it open and locked.
            folder.lock.unlink(missing_ok=True)
            lock.release()
        except PermissionError:  # Windows cannot delete an open file
            lock.release()
            with suppress(OSError):  # the next run may hold it already
                folder.lock.unlink(missing_ok=True)
        for each in made:
            if each.is_dir() and not any(each.iterdir()):
                each.rmdir()
