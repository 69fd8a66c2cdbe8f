"""The lock of a weights folder."""

import builtins
import errno
import io
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import (
    python,
    run_script,
    small_config,
    train_flags,
    write_number_pairs,
)
from filelock import Timeout

from checkpoint import WeightsFolder
from train import train_model
from training import lock as lock_room
from training.lock import lock_weights_folder


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX here")
@pytest.mark.parametrize("folder", ["./file/weights", "/proc/weights"])
def test_unwritable_folder_is_noticed_before_training(tmp_path, folder):
    Path("file").touch()
    arguments = train_flags(write_number_pairs(tmp_path), model_folder=folder)
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode == 1 and "cannot be written to" in process.stderr
    assert len(process.stderr.splitlines()) == 1 and "epoch" not in process.stderr
    assert not Path("runs").exists()


def test_empty_weights_folder_is_removed(tmp_path):
    with pytest.raises(FileNotFoundError):
        train_model(small_config(str(tmp_path / "nowhere"), model_folder="./new/folder"))
    assert not Path("new").exists()


def test_second_run_in_a_folder_is_refused_with_the_process_of_the_first(one_epoch):
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    with lock_weights_folder(WeightsFolder.of(one_epoch)):
        second = run_script("train.py", *arguments, check=False)
        assert second.returncode == 1
        assert f"train_weights is in use by process {os.getpid()} on" in second.stderr
        assert WeightsFolder.of(one_epoch).lock.exists()
    assert not WeightsFolder.of(one_epoch).lock.exists()
    assert run_script("train.py", *arguments).returncode == 0


def test_lock_of_a_killed_process_is_no_obstacle(one_epoch):
    code = """
        import os, signal
        from checkpoint import WeightsFolder
        from config import Config
        from training.lock import lock_weights_folder
        with lock_weights_folder(WeightsFolder.of(Config(datasource="train"))):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert python(code).returncode == -signal.SIGKILL
    assert WeightsFolder.of(one_epoch).lock.exists()
    train_model(replace(one_epoch, num_epochs=2))
    assert not WeightsFolder.of(one_epoch).lock.exists()


class WindowsLock:
    """A lock as filelock makes it on Windows: no other handle reads, writes or deletes the file."""

    locked: set[Path] = set()

    def __init__(self, path, timeout):
        self.path = Path(path).absolute()

    def acquire(self):
        if self.path in self.locked:
            raise Timeout(str(self.path))
        self.path.touch()
        self.locked.add(self.path)

    def release(self):
        self.locked.discard(self.path)


@pytest.fixture
def windows(monkeypatch):
    def refusing(real):
        def call(path, *arguments, **keywords):
            is_path = isinstance(path, (str, Path))
            if is_path and Path(path).absolute() in WindowsLock.locked:
                raise PermissionError(errno.EACCES, "The process cannot access the file", str(path))
            return real(path, *arguments, **keywords)

        return call

    monkeypatch.setattr(lock_room, "FileLock", WindowsLock)
    monkeypatch.setattr(io, "open", refusing(io.open))
    monkeypatch.setattr(builtins, "open", refusing(builtins.open))
    for name in ("open", "unlink", "remove", "rename", "replace"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    yield
    WindowsLock.locked.clear()


def test_training_works_if_a_lock_excludes_every_other_handle(tmp_path, windows):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert WeightsFolder.of(config).end_of(0).exists()
    assert (
        not WeightsFolder.of(config).lock.exists()
        and not WeightsFolder.of(config).lock_holder.exists()
    )


def test_second_run_is_refused_if_the_lock_cannot_be_read(tmp_path, windows):
    config = small_config(write_number_pairs(tmp_path, count=60))
    with lock_weights_folder(WeightsFolder.of(config)):
        with pytest.raises(ValueError, match=f"is in use by process {os.getpid()} on"):
            with lock_weights_folder(WeightsFolder.of(config)):
                pass
        assert WeightsFolder.of(config).lock_holder.exists()
