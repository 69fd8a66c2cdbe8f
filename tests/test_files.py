"""Files are whole or missing, even on a full disk or if other programs use them."""

import errno
import os
import resource
from pathlib import Path

import pytest
from conftest import run_script, small_config, train_flags, write_number_pairs

import checkpoint
import files
from checkpoint import WeightsFolder
from files import write_file
from train import train_model


def test_file_is_flushed_before_it_is_renamed_and_its_folder_afterwards(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def note(*args, name=name, real=real):
            calls.append(name)
            return real(*args)

        monkeypatch.setattr(os, name, note)
    write_file(tmp_path / "x", lambda file: file.write(b"abc"))
    assert calls == ["fsync", "replace", "fsync"]
    assert (tmp_path / "x").read_bytes() == b"abc"


def disk_of(size):
    """Return what makes each file of a process end at `size` bytes, as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_full_disk_ends_the_run_with_a_message_and_keeps_the_checkpoint(one_epoch):
    before = {path.name: path.read_bytes() for path in Path("train_weights").iterdir()}
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    full = run_script("train.py", *arguments, check=False, preexec_fn=disk_of(200_000))
    assert full.returncode == 1
    assert full.stderr.splitlines()[-1] == (
        "train.py: train_weights/tmodel_01.pt cannot be written: File too large"
    )
    assert {path.name: path.read_bytes() for path in Path("train_weights").iterdir()} == before
    assert "done" in run_script("train.py", *arguments).stdout


def held(monkeypatch, name, times, matches):
    """Have os.NAME fail so many times for a path, as while another program has the file open."""
    real, left = getattr(os, name), [times]

    def call(path, *arguments, **keywords):
        target = str(arguments[0] if arguments and name == "replace" else path)
        if matches in target and left[0]:
            left[0] -= 1
            raise PermissionError(errno.EACCES, "The process cannot access the file", target)
        return real(path, *arguments, **keywords)

    monkeypatch.setattr(os, name, call)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    return left


@pytest.mark.parametrize("times", [1, 2, 5])
def test_checkpoint_that_another_program_reads_is_replaced_afterwards(
    one_epoch, monkeypatch, times
):
    left = held(monkeypatch, "replace", times, "tmodel_best.pt")
    state = checkpoint.load(WeightsFolder.of(one_epoch).best)
    checkpoint.save(WeightsFolder.of(one_epoch).best, {**state, "global_step": 77})
    assert left == [0]
    assert checkpoint.load(WeightsFolder.of(one_epoch).best)["global_step"] == 77


def test_checkpoint_that_stays_open_elsewhere_is_an_error_that_damages_nothing(
    one_epoch, monkeypatch
):
    path = WeightsFolder.of(one_epoch).best
    before = path.read_bytes()
    held(monkeypatch, "replace", 99, "tmodel_best.pt")
    with pytest.raises(OSError, match="tmodel_best.pt cannot be written: The process cannot"):
        checkpoint.save(path, checkpoint.load(path))
    assert path.read_bytes() == before and not list(path.parent.glob("*.tmp"))


@pytest.mark.parametrize(("times", "is_left"), [(2, False), (99, True)])
def test_old_checkpoint_that_is_open_elsewhere_does_not_end_the_run(
    tmp_path, monkeypatch, capsys, times, is_left
):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=3, keep_last=1)
    held(monkeypatch, "unlink", times, "tmodel_00.pt")
    train_model(config)
    assert WeightsFolder.of(config).end_of(2).exists()
    assert WeightsFolder.of(config).end_of(0).exists() == is_left
    assert ("tmodel_00.pt cannot be deleted" in capsys.readouterr().out) == is_left
