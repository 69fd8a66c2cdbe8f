"""Full disks, damaged and hostile files, two runs at once, signals, bad numbers, no memory."""

import builtins
import errno
import io
import json
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT, SMALL, flags, run_script, small_config, write_number_pairs
from filelock import Timeout
from test_checkpoint import Bomb, make_state
from test_train import assert_same_run, curves, do_update, first_batch, make_run, train_with_stops

import checkpoint
import curves as curves_room
import train
from config import (
    get_attempt_path,
    get_lock_path,
    get_process_path,
    get_weights_file_path,
    get_weights_folder,
)
from corpus.tokenizer import build_tokenizer, load_tokenizer, tokenizer_from_json
from train import train_model
from training import processes, update
from training import run as run_room
from training.run import delete_leftovers, load_checkpoint, only_run
from training.start import start_run
from training.update import accumulate_gradient, settle_updates, train_update
from translation.trained import load_trained


def python(code, *arguments, **kwargs):
    """Run code with the project on its path; returns the finished process."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, **kwargs
    )


def train_flags(source, **changes):
    return flags({**SMALL, "datasource": source, **changes})


@pytest.fixture
def one_epoch(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    return config


# --- Files ---


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_all_goes_on(
    tmp_path, monkeypatch
):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def note(*args, name=name, real=real):
            calls.append(name)
            return real(*args)

        monkeypatch.setattr(os, name, note)
    checkpoint.write_file(tmp_path / "x", lambda file: file.write(b"abc"))
    assert calls == ["fsync", "replace", "fsync"]
    assert (tmp_path / "x").read_bytes() == b"abc"


def test_old_checkpoints_are_deleted_only_when_the_new_one_is_there(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=3, keep_last=1)
    there, prune = [], checkpoint.prune

    def note(paths):
        newest = max(get_weights_folder(config).glob("tmodel_0?.pt"))
        there.append(checkpoint.load(newest)["epoch"] > 0)
        prune(paths)

    monkeypatch.setattr(checkpoint, "prune", note)
    train_model(config)
    assert len(there) >= 6 and all(there)
    names = sorted(path.name for path in get_weights_folder(config).glob("*.pt"))
    assert names == ["tmodel_02.pt", "tmodel_best.pt"]


@pytest.mark.parametrize(
    ("keep_last", "kept"), [(0, [3]), (1, [3]), (3, [1, 2, 3]), (-1, [0, 1, 2, 3])]
)
def test_a_run_keeps_as_many_checkpoints_as_it_was_told(tmp_path, keep_last, kept):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=4, keep_last=keep_last, monitor="val/loss", lr=1e-12)
    train_model(config)
    names = sorted(path.name for path in get_weights_folder(config).glob("*.pt"))
    assert names == [f"tmodel_0{i}.pt" for i in kept] + ["tmodel_best.pt"]
    best = checkpoint.load(get_weights_file_path(config, "best"))
    assert best["global_step"] == min(best["history"], key=lambda row: row["val/loss"])["step"]


def test_every_cut_and_every_changed_byte_is_noticed_or_changes_nothing(tmp_path):
    path = tmp_path / "t.pt"
    state = make_state(model={"w": torch.arange(100.0)}, history=[{"step": 3}], data="abc")
    checkpoint.save(path, state)
    whole = path.read_bytes()
    for end in range(0, len(whole), 11):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="damaged or not a checkpoint"):
            checkpoint.load(path)
    noticed = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            loaded = checkpoint.load(path)
        except ValueError:
            noticed += 1
            continue
        # Names of parts and other notes of the archive are not data.
        assert torch.equal(loaded.pop("model")["w"], state["model"]["w"])
        assert loaded == {key: value for key, value in state.items() if key != "model"}
    assert noticed > len(whole) / 3 / 2


def test_a_part_marked_as_a_folder_is_noticed(tmp_path):
    path = tmp_path / "t.pt"
    checkpoint.save(path, make_state())
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    attributes = whole.index(b"data/0", start) - len("archive/") - 8  # of its entry
    whole[attributes] |= 0x10
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="marked as a folder"):
        checkpoint.load(path)


def test_an_archive_that_claims_more_than_the_file_holds_is_not_unpacked(tmp_path):
    checkpoint.save(tmp_path / "t.pt", make_state())
    with zipfile.ZipFile(tmp_path / "t.pt") as whole:
        with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
            for entry in whole.infolist():
                bomb.writestr(entry.filename, whole.read(entry))
            bomb.writestr("t/data/9", bytes(10**8))
    assert (tmp_path / "bomb.pt").stat().st_size < 10**6
    with pytest.raises(ValueError, match="its entries are compressed"):
        checkpoint.load(tmp_path / "bomb.pt")
    with zipfile.ZipFile(tmp_path / "twice.pt", "w") as twice:
        twice.writestr("t/data/0", bytes(1000))
        for _ in range(9):  # the same bytes, again and again
            twice.infolist().append(twice.infolist()[0])
            twice.filelist = twice.infolist()
    with pytest.raises(ValueError, match="its entries claim 10,000 bytes"):
        checkpoint.load(tmp_path / "twice.pt")


def disk_of(size):
    """Return what makes each file of a process end at `size` bytes, as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_ends_the_run_with_a_message_and_spares_what_is_there(one_epoch):
    before = {path.name: path.read_bytes() for path in Path("train_weights").iterdir()}
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    full = run_script("train.py", *arguments, check=False, preexec_fn=disk_of(200_000))
    assert full.returncode == 1
    assert full.stderr.splitlines()[-1] == (
        "train.py: train_weights/tmodel_01.pt cannot be written: File too large"
    )
    assert {path.name: path.read_bytes() for path in Path("train_weights").iterdir()} == before
    assert "done" in run_script("train.py", *arguments).stdout


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX here")
@pytest.mark.parametrize("folder", ["./file/weights", "/proc/weights"])
def test_an_unwritable_folder_is_noticed_before_training(tmp_path, folder):
    Path("file").touch()
    arguments = train_flags(write_number_pairs(tmp_path), model_folder=folder)
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode == 1 and "cannot be written to" in process.stderr
    assert len(process.stderr.splitlines()) == 1 and "epoch" not in process.stderr
    assert not Path("runs").exists()


def test_a_folder_where_nothing_came_of_it_is_not_left(tmp_path):
    with pytest.raises(FileNotFoundError):
        train_model(small_config(str(tmp_path / "nowhere"), model_folder="./new/folder"))
    assert not Path("new").exists()


def test_a_folder_under_an_old_checkpoints_name_stays_and_stops_nothing(one_epoch):
    path = get_weights_file_path(one_epoch, 0)
    path.rename("other.pt")
    path.mkdir()
    train_model(replace(one_epoch, num_epochs=3, keep_last=1, preload="other.pt"))
    assert path.is_dir() and get_weights_file_path(one_epoch, 2).is_file()


# --- Which checkpoint ---


@pytest.mark.parametrize("how", ["cut", "empty", "text", "folder"])
def test_the_newest_whole_checkpoint_is_found_behind_damaged_ones(tmp_path, how, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=3)
    train_model(config)
    best = get_weights_file_path(config, "best")
    best.write_bytes(get_weights_file_path(config, 0).read_bytes())
    for epoch in (1, 2):
        path = get_weights_file_path(config, epoch)
        whole = path.read_bytes()
        path.unlink()
        if how == "folder":
            path.mkdir()
        else:
            path.write_bytes({"cut": whole[:-100], "empty": b"", "text": b"hello\n"}[how])
    found = load_checkpoint(config)
    assert found[0].name == "tmodel_00.pt"
    out = capsys.readouterr().out
    assert out.count("damaged or not a checkpoint") == 2 and "tmodel_02.pt" in out
    assert "the newest checkpoint that is whole is train_weights/tmodel_00.pt" in out


def test_the_best_is_the_newest_whole_one_when_no_other_is(one_epoch, capsys):
    newest = get_weights_file_path(one_epoch, 0)
    newest.write_bytes(b"")
    train_model(replace(one_epoch, num_epochs=2))
    out = capsys.readouterr().out
    assert "going on from train_weights/tmodel_best.pt: epoch 1" in out
    for path in get_weights_folder(one_epoch).glob("tmodel_0*.pt"):
        path.unlink()
    train_model(replace(one_epoch, num_epochs=2))
    assert "going on from train_weights/tmodel_best.pt" in capsys.readouterr().out


def test_a_damaged_best_names_the_folder_whose_other_files_translate(one_epoch):
    best = get_weights_file_path(one_epoch, "best")
    best.write_bytes(best.read_bytes()[:1000])
    for place in (None, best.parent):
        with pytest.raises(
            ValueError, match="best.pt is damaged .* --weights takes any other file"
        ):
            load_trained(place)
    with pytest.raises(ValueError, match="best.pt is damaged") as caught:
        load_trained(best)
    assert "--weights" not in str(caught.value)
    assert load_trained(best.with_name("tmodel_00.pt")).global_step > 0


def test_a_checkpoint_that_is_not_there_lists_those_that_are(one_epoch):
    for asked, name in (("07", "train_weights/tmodel_07.pt"), ("7x", "7x")):
        with pytest.raises(FileNotFoundError, match=f"no checkpoint {name}; train_weights holds"):
            start_run(replace(one_epoch, preload=asked))
    with pytest.raises(FileNotFoundError, match="holds tmodel_00.pt, tmodel_best.pt"):
        start_run(replace(one_epoch, preload="07"))


def test_a_damaged_checkpoint_that_was_asked_for_is_an_error(one_epoch):
    get_weights_file_path(one_epoch, 0).write_bytes(b"text")
    for preload in ("00", "train_weights/tmodel_00.pt"):
        with pytest.raises(ValueError, match="tmodel_00.pt is damaged or not a checkpoint"):
            train_model(replace(one_epoch, preload=preload))


# --- Two runs at once ---


def test_a_second_run_in_a_folder_is_refused_with_the_firsts_process(one_epoch):
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    with only_run(one_epoch):
        second = run_script("train.py", *arguments, check=False)
        assert second.returncode == 1
        assert f"train_weights is in use by process {os.getpid()} on" in second.stderr
        assert get_lock_path(one_epoch).exists()
    assert not get_lock_path(one_epoch).exists()
    assert run_script("train.py", *arguments).returncode == 0


def test_the_lock_of_a_killed_process_is_no_obstacle(one_epoch):
    code = """
        import os, signal
        from config import Config
        from training.run import only_run
        with only_run(Config(datasource="train")):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert python(code).returncode == -signal.SIGKILL
    assert get_lock_path(one_epoch).exists()
    train_model(replace(one_epoch, num_epochs=2))
    assert not get_lock_path(one_epoch).exists()


def test_what_a_killed_save_left_is_deleted_and_other_files_are_not(one_epoch):
    folder = get_weights_folder(one_epoch)
    left = ["tmodel_00_7.pt.tmp", "tokenizer_en.json.tmp"]
    for name in [*left, "notes.tmp"]:
        (folder / name).write_text("half")
    train_model(replace(one_epoch, num_epochs=2))
    assert not any((folder / name).exists() for name in left)
    assert (folder / "notes.tmp").exists()


def test_files_beside_the_users_own_tokenizers_are_left(tmp_path):
    config = small_config("x", tokenizer_file=str(tmp_path / "own_{0}.json"))
    (tmp_path / "own_en.json.tmp").write_text("mine")
    delete_leftovers(config)
    assert (tmp_path / "own_en.json.tmp").read_text() == "mine"


# --- Tokenizer files ---


def test_a_cut_off_tokenizer_is_built_anew_where_no_checkpoint_needs_it(one_epoch, capsys):
    path = get_weights_folder(one_epoch) / "tokenizer_en.json"
    whole = path.read_text("utf-8")
    path.write_text(whole[:300], "utf-8")
    train_model(replace(one_epoch, num_epochs=2))  # has it from the checkpoint
    state = checkpoint.load(get_weights_file_path(one_epoch, 1))
    assert state["tokenizer_src"] == whole and path.read_text("utf-8") == whole[:300]
    for checkpoint_path in get_weights_folder(one_epoch).glob("*.pt"):
        checkpoint_path.unlink()
    train_model(one_epoch)
    assert path.read_text("utf-8") == whole
    assert path.with_name("tokenizer_en.json.old").read_text("utf-8") == whole[:300]
    assert "tokenizer_en.json is cut off or damaged" in capsys.readouterr().out


def test_a_cut_file_in_the_cache_is_told_with_the_way_out(one_epoch, monkeypatch, tmp_path):
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    own = {"env": {**os.environ, "HF_HOME": str(tmp_path / "cache")}}
    run_script("train.py", *train_flags(one_epoch.datasource, num_epochs=1), **own)
    for path in (tmp_path / "cache").rglob("*.arrow"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-100])
        process = run_script("train.py", *arguments, check=False, **own)
        assert process.returncode == 1
        last = process.stderr.splitlines()[-1]
        assert f"delete {tmp_path / 'cache' / 'datasets'}, and it is made again" in last
        path.write_bytes(whole)
    assert "done" in run_script("train.py", *arguments, **own).stdout


# --- Signals ---

STOP = """
    import os, signal, sys, train
    stop = getattr(signal, sys.argv.pop(1))
    {patch}
    sys.exit(train.main())
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize(
    "place", ["training.data.load_pairs", "training.data.build_tokenizer", "torch.save"]
)
def test_a_signal_in_any_phase_ends_the_run_in_order(tmp_path, name, code, place):
    patch = f"""
    import {place.rpartition(".")[0]}
    real = {place}
    def stopping(*args, **kwargs):
        os.kill(os.getpid(), stop)
        return real(*args, **kwargs)
    {place} = stopping
    """
    source = write_number_pairs(tmp_path, count=60)
    process = python(STOP.format(patch=patch), name, *train_flags(source, num_epochs=1))
    assert process.returncode == code, process.stderr
    last = process.stderr.splitlines()[-1]
    assert last == f"stopped by {name}; the same command goes on from here"
    assert "Traceback" not in process.stderr
    saved = sorted(path.name for path in Path().glob("train_weights/*"))
    if place == "torch.save":
        assert "tmodel_00.pt" in saved and not any(each.endswith(".tmp") for each in saved)
    else:
        assert saved == []
    assert "done" in run_script("train.py", *train_flags(source, num_epochs=1)).stdout


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("place", ["train.train_update", "checkpoint.torch.save"])
def test_a_second_signal_ends_it_at_once_and_damages_nothing(one_epoch, name, place):
    patch = f"""
    import checkpoint
    real = {place}
    def stopping(*args, **kwargs):
        real(*args, **kwargs)
        os.kill(os.getpid(), stop)
        os.kill(os.getpid(), stop)
    {place} = stopping
    """
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    process = python(STOP.format(patch=patch), name, *arguments)
    assert process.returncode == -getattr(signal, name), process.stderr
    assert "once more stops at once" in process.stderr
    again = run_script("train.py", *arguments).stdout
    assert "going on from train_weights/tmodel_00.pt: epoch 1" in again and "done" in again


def test_a_run_stopped_just_before_it_loses_patience_ends_as_one_never_stopped(
    tmp_path, monkeypatch
):
    source = write_number_pairs(tmp_path, count=200)
    settings = dict(num_epochs=9, patience=1, lr=1e-12, dropout=0.3, precision="fp32")
    never, often = (
        small_config(source, model_folder=f"./{name}", experiment_name=f"runs/{name}", **settings)
        for name in ("never", "often")
    )
    train_model(never)
    steps = checkpoint.load(get_weights_file_path(never, 1))["global_step"]
    assert not get_weights_file_path(never, 2).exists() and steps % 2 == 0 and steps > 8
    # Three inside one epoch; the first of the next; the one before the end; the end.
    train_with_stops(often, {2, 3, 4, steps // 2 + 1, steps - 1, steps}, monkeypatch)
    assert_same_run(never, often, epoch=1)


# --- Numbers ---


def spoil(monkeypatch, updates, value=math.nan):
    """Make the loss of these updates no number, counted from 1."""
    real, count = update.accumulate_gradient, iter(range(1, 10**6))

    def accumulate(run, batches, tokens):
        loss = real(run, batches, tokens)
        if next(count) in updates:
            for parameter in run.model.parameters():
                parameter.grad.mul_(value)
            loss = loss * value
        return loss

    monkeypatch.setattr(update, "accumulate_gradient", accumulate)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_update_that_is_no_number_is_left_out_and_told(tmp_path, monkeypatch, capsys, value):
    run = make_run(tmp_path, lr=1e-2)
    batch = first_batch(run)
    spoil(monkeypatch, {2}, value)
    do_update(run, [batch])
    state = {name: weight.clone() for name, weight in run.model.state_dict().items()}
    moments = [
        {key: moment.clone() for key, moment in row.items()} for row in run.optimizer.state.values()
    ]
    window = dict(run.progress.window)
    do_update(run, [batch])
    assert all(torch.equal(state[name], weight) for name, weight in run.model.state_dict().items())
    for before, after in zip(moments, run.optimizer.state.values(), strict=True):
        assert all(torch.equal(before[key], after[key]) for key in before)
    assert run.progress.window == window and run.progress.skipped == 1
    told = capsys.readouterr().out.splitlines()[-1]
    pairs = " ".join(map(str, batch.indices))
    assert told.startswith("update 2 is left out (1 so far): loss ") and f"{value}" in told
    assert "lr 0.0071" in told and told.endswith(f"pairs {pairs}")
    do_update(run, [batch])
    assert run.progress.global_step == 3 and run.progress.skipped_in_row == 0
    assert not torch.equal(state["projection.linear.weight"], run.model.projection.linear.weight)


def test_a_run_with_bad_updates_writes_finite_numbers_and_resumes_exactly(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=200)
    never, often = (
        small_config(source, num_epochs=2, model_folder=f"./{n}", experiment_name=f"runs/{n}")
        for n in ("never", "often")
    )
    bad = {1, 4, 5, 6}
    with monkeypatch.context() as patch:
        spoil(patch, bad)
        train_model(never)
    spoil(monkeypatch, bad)
    train_with_stops(often, {2, 5}, monkeypatch)
    assert_same_run(never, often, epoch=1)
    state = checkpoint.load(get_weights_file_path(often, 1))
    assert state["skipped"] == 4 and state["skipped_in_row"] == 0
    points = [
        value for tag in curves("runs/often").values() for _, value in tag if value is not None
    ]
    assert len(points) > 10 and all(map(math.isfinite, points))


def test_too_many_bad_updates_in_a_row_stop_the_run(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=2, max_bad_updates=3)
    steps, real = [], train.train_update

    def note(run, batches):
        steps.append(run.progress.global_step + 1)
        return real(run, batches)

    monkeypatch.setattr(train, "train_update", note)
    spoil(monkeypatch, {1, 2, 4, 5, 7, 8, 9})
    with pytest.raises(ArithmeticError, match="3 updates in a row, up to update 9 "):
        train_model(config)
    assert 9 <= steps[-1] < 9 + 3  # the device is asked every third update
    assert not list(get_weights_folder(config).glob("*.pt"))


def test_nothing_is_pruned_while_updates_are_left_out(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=2, save_every=1, keep_last=0, max_bad_updates=4)
    spoil(monkeypatch, range(6, 99))
    with pytest.raises(ArithmeticError, match="4 updates in a row"):
        train_model(config)
    names = sorted(path.name for path in get_weights_folder(config).glob("*.pt"))
    assert names == ["tmodel_00_5.pt", "tmodel_00_6.pt", "tmodel_00_7.pt", "tmodel_00_8.pt"]


def test_weights_that_are_no_numbers_are_not_saved(one_epoch):
    before = {path.name: path.read_bytes() for path in Path("train_weights").iterdir()}
    config = replace(one_epoch, num_epochs=2, lr=1e41, save_every=1, keep_last=0)
    with pytest.raises(ArithmeticError, match="are not finite after update .*a lower --lr"):
        train_model(config)
    assert {path.name: path.read_bytes() for path in Path("train_weights").iterdir()} == before


def test_a_validation_loss_that_is_no_number_is_a_failed_validation(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "training.validation.target_loss", lambda logits, *_: logits.sum() * math.nan
    )
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert "validation 00 failed" in capsys.readouterr().out
    assert not any(tag.startswith("val/") for tag in curves("runs/tmodel"))
    assert checkpoint.load(get_weights_file_path(config, 0))["history"] == []


# --- Memory ---


def forget_memory_over(monkeypatch, run, pairs):
    """Make the model run out of memory for batches of more pairs, half way through."""
    vectors, sizes = run.model.vectors, []

    def limited(src, *args):
        sizes.append(len(src))
        x = vectors(src, *args)
        if len(src) > pairs:
            x.sum().backward()  # gradients that must not count
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return x

    monkeypatch.setattr(run.model, "vectors", limited)
    return sizes


def test_a_batch_that_does_not_fit_is_cut_and_has_the_same_gradient(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path, dropout=0.0)
    ds = run.data.train
    batches = [ds.collate(ds.__getitems__(part)) for part in (range(13), range(13, 16))]
    whole = accumulate_gradient(run, batches, sum(batch.tokens for batch in batches))
    expected = [parameter.grad.clone() for parameter in run.model.parameters()]
    run.optimizer.zero_grad()
    sizes = forget_memory_over(monkeypatch, run, pairs=4)
    cut = accumulate_gradient(run, batches, sum(batch.tokens for batch in batches))
    assert cut.item() == pytest.approx(whole.item(), rel=1e-5)
    for gradient, parameter in zip(expected, run.model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)
    assert sorted(sizes[-5:]) == [3, 3, 3, 3, 4]
    out = capsys.readouterr().out
    assert out.count("it is cut in two") == 1 and "batch of 13 pairs" in out


def test_a_single_pair_that_does_not_fit_is_an_error_with_the_way_out(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    forget_memory_over(monkeypatch, run, pairs=0)
    with pytest.raises(
        MemoryError, match=r"single pair .*--seq_len \(16\).*--batch_tokens \(160\)"
    ):
        accumulate_gradient(run, [first_batch(run)], 10)


def test_a_batch_that_does_not_fit_beside_sharded_weights_is_an_error(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    forget_memory_over(monkeypatch, run, pairs=4)
    run.config = replace(run.config, shard=True)
    batch = run.data.train.collate(run.data.train.__getitems__(range(5)))
    monkeypatch.setattr(update, "after_backward", lambda *_, **__: None)
    with pytest.raises(MemoryError, match=r"cannot be cut .*lower --batch_tokens \(160\)"):
        accumulate_gradient(run, [batch], 10)


def test_other_errors_of_a_step_are_not_taken_for_lack_of_memory(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    monkeypatch.setattr(run.model, "vectors", lambda *_: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="inconsistent|size"):
        accumulate_gradient(run, [first_batch(run)], 10)


# --- Curves ---


def test_a_full_disk_for_curves_ends_them_and_not_the_training(tmp_path, monkeypatch, capfd):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    writer, room = curves_room.SummaryWriter, curves_room

    def on_a_full_disk(*args, **kwargs):
        events = writer(*args, **kwargs)
        record_writer = events.file_writer.event_writer._async_writer._writer

        def write(data):
            raise OSError(28, "No space left on device")

        record_writer.write = write
        return events

    monkeypatch.setattr(room, "SummaryWriter", on_a_full_disk)
    train_model(config)
    out, err = capfd.readouterr()
    assert out.count("the curves cannot be written ([Errno 28] No space left on device)") == 1
    assert "Traceback" not in err
    assert len(checkpoint.load(get_weights_file_path(config, 1))["history"]) == 2


def test_a_picture_that_cannot_be_drawn_costs_neither_the_run_nor_the_scores(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(train, "sample_attention", lambda *_: 1 / 0)
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert "val/attention cannot be drawn: ZeroDivisionError" in capsys.readouterr().out
    assert len(checkpoint.load(get_weights_file_path(config, 0))["history"]) == 1


def test_a_disk_that_is_full_at_the_start_ends_the_curves_alone(tmp_path, monkeypatch, capsys):
    def on_a_full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(curves_room, "SummaryWriter", on_a_full_disk)
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert "the curves cannot be written" in capsys.readouterr().out
    assert get_weights_file_path(config, 0).exists()


def test_an_attempt_note_cannot_send_the_curves_elsewhere(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    note = get_attempt_path(config)
    note.parent.mkdir()
    for text in ('{"log_dir": "../x", "tokenizers": []}', "[" * 100_000, "{}", "cut"):
        note.write_text(text)
        assert start_run(config).log_dir.startswith("runs/tmodel")


def test_two_runs_that_start_together_have_a_log_folder_each(tmp_path):
    names = [curves_room.new_log_dir("runs/x") for _ in range(3)]
    assert names == ["runs/x", "runs/x_2", "runs/x_3"]


def test_a_process_started_in_the_second_of_the_last_writes_after_it(tmp_path):
    first = curves_room.Curves("runs/x", 0)
    first.add_row({"step": 1, "train/loss": 1.0})
    first.close()
    second = curves_room.Curves("runs/x", 1)
    second.add_row({"step": 1, "train/loss": 2.0})
    second.close()
    seconds = [path.name.split(".")[3] for path in sorted(Path("runs/x").iterdir())]
    assert seconds == sorted(set(seconds)) and len(seconds) == 2
    assert curves("runs/x")["train/loss"] == [(1, 2.0)]


# --- Hostile checkpoints ---


def spoiled(state, how):
    weights = dict(state["model"])
    name = "projection.linear.weight"
    if how == "shape":
        weights[name] = weights[name].T.contiguous()
    elif how == "dtype":
        weights[name] = weights[name].double()
    elif how == "missing":
        del weights[name]
    elif how == "more":
        weights["more"] = weights[name]
    elif how == "nan":
        weights[name] = weights[name] * math.nan
    elif how == "layers":
        return {**state, "config": {**state["config"], "N": 1000}}
    elif how == "width":
        return {**state, "config": {**state["config"], "d_model": 65536, "h": 1}}
    elif how == "knob":
        return {**state, "config": {**state["config"], "colour": "red"}}
    elif how == "tokenizer":
        return {**state, "tokenizer_src": state["tokenizer_src"].replace("[EOS]", "[END]")}
    return {**state, "model": weights}


WRONG = {
    "shape": "projection.linear.weight has shape",
    "dtype": "projection.linear.weight has dtype float64",
    "missing": "projection.linear.weight is in one of them only",
    "more": "more is in one of them only",
    "nan": "numbers that are not finite, in projection.linear.weight",
    "tokenizer": "has no [EOS] token",
    "knob": "fields unknown to this version: ['colour']",
}


@pytest.mark.parametrize("how", [*WRONG, "layers", "width"])
def test_translating_refuses_a_checkpoint_that_does_not_fit_itself(trained, how):
    state = checkpoint.load(trained / "train_weights" / "tmodel_best.pt")
    checkpoint.save(Path("odd.pt"), spoiled(state, how))
    limit = 6 * 2**30

    def limit_memory():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    process = run_script(
        "translate.py", "x", "--weights", "odd.pt", check=False, preexec_fn=limit_memory
    )
    assert process.returncode == 1 and process.stdout == ""
    assert len(process.stderr.splitlines()) == 1 and WRONG.get(how, "odd.pt") in process.stderr


@pytest.mark.parametrize("how", WRONG)
def test_training_refuses_a_checkpoint_that_does_not_fit(one_epoch, how):
    path = get_weights_file_path(one_epoch, 0)
    checkpoint.save(path, spoiled(checkpoint.load(path), how))
    with pytest.raises(ValueError) as error:
        train_model(replace(one_epoch, num_epochs=2))
    assert WRONG[how] in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"optimizer": {0: {"step": torch.zeros(())}}}, "the optimizer of"),
        ({"window": {"loss": 1.0}}, "has no norm in its window"),
        ({"config": {"lang_src": ["en"]}}, "has a config that is not"),
        ({"config": {"nested": {"a": {}}}}, "has a config that is not"),
        ({"history": [{"step": 10**400}]}, "has a history that is not"),
        ({"history": [{"step": math.inf}]}, "has a history that is not"),
        ({"model": {"w": torch.zeros(2, device="meta")}}, "has a model that is not"),
        ({"model": {"w": torch.zeros(2).to_sparse()}}, "has a model that is not"),
        ({"history": [{"step": 1}]}, "in its history"),
        ({"batch": 10**6}, "is after batch 1000000 of"),
        ({"data": "abc"}, "training pairs: the checkpoint says .*train with hash abc, you say"),
    ],
)
def test_training_refuses_a_position_that_cannot_be(one_epoch, changes, words):
    path = get_weights_file_path(one_epoch, 0)
    torch.save({**checkpoint.load(path), **changes}, path)
    for best in get_weights_folder(one_epoch).glob("*best.pt"):
        best.unlink()
    with pytest.raises(ValueError, match=words):
        train_model(replace(one_epoch, num_epochs=2, preload="00"))


@pytest.mark.parametrize("name", ["step", "exp_avg_sq"])
def test_training_refuses_what_no_optimizer_holds(one_epoch, name):
    path = get_weights_file_path(one_epoch, 0)
    state = checkpoint.load(path)
    state["optimizer"][0][name].fill_(-1.0)
    checkpoint.save(path, state)
    with pytest.raises(ValueError, match=f"holds numbers below 0, in 0.{name}"):
        train_model(replace(one_epoch, num_epochs=2))


def test_a_checkpoint_cannot_send_the_curves_elsewhere(one_epoch, tmp_path):
    path = get_weights_file_path(one_epoch, 0)
    checkpoint.save(path, {**checkpoint.load(path), "log_dir": "../elsewhere"})
    assert start_run(replace(one_epoch, num_epochs=2)).log_dir == "runs/tmodel_2"


@pytest.mark.parametrize("script", ["train.py", "translate.py"])
def test_code_in_a_checkpoint_is_refused_by_every_script_without_running_it(tmp_path, script):
    torch.save(make_state(history=[Bomb()]), "archive.pt")
    Path("plain.pt").write_bytes(pickle.dumps(Bomb()))
    source = write_number_pairs(tmp_path)
    for name in ("archive.pt", "plain.pt"):
        arguments = {
            "train.py": train_flags(source, preload=name),
            "translate.py": ["x", "--weights", name],
        }[script]
        process = run_script(script, *arguments, check=False)
        assert process.returncode == 1 and "damaged or not a checkpoint" in process.stderr
        assert "Traceback" not in process.stderr
    assert not Path("exploded").exists()


# --- Hostile tokenizers ---


@pytest.mark.parametrize(
    ("name", "words"),
    [("no_specials", "has no [UNK] token"), ("pad0_typo_ESO", "has no [EOS] token")],
)
def test_a_real_tokenizer_without_its_special_tokens_is_refused_by_name(
    shared_data, tmp_path, name, words
):
    file = str(shared_data / "tokenizers" / name / "tokenizer_{0}.json")
    arguments = train_flags(write_number_pairs(tmp_path), tokenizer_file=file)
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode == 1 and words in process.stderr.splitlines()[-1]
    assert name in process.stderr and not Path("train_weights").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "cannot encode|not a tokenizer"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "x.json"),
    ],
)
def test_a_tokenizer_that_makes_the_library_panic_is_refused(changes, words):
    tokenizer = build_tokenizer(["one two"], "word", 100, 1)
    text = json.dumps({**json.loads(tokenizer.to_json()), **changes})
    with pytest.raises(ValueError, match=words):
        tokenizer_from_json(text, "x.json").encode("one two")


def test_a_tokenizer_with_dropout_of_its_own_encodes_a_text_always_the_same():
    tokenizer = build_tokenizer(["one two three four five"] * 9, "bpe", 400, 1)
    text = json.loads(tokenizer.to_json())
    text["model"]["dropout"] = 0.5
    odd = tokenizer_from_json(json.dumps(text), "x.json")
    assert all(odd.encode("three four") == tokenizer.encode("three four") for _ in range(20))


def test_a_tokenizer_file_in_another_encoding_is_named(tmp_path):
    (tmp_path / "x.json").write_text("{}", "utf-16")
    with pytest.raises(ValueError, match="x.json is not a tokenizer file: it is not UTF-8"):
        load_tokenizer(tmp_path / "x.json")


def test_other_tokenizers_of_the_users_than_the_checkpoints_are_refused(tmp_path):
    own = tmp_path / "own_en.json", tmp_path / "own_it.json"
    for path, text in zip(own, ("one two three", "uno due"), strict=True):
        path.write_text(build_tokenizer([text], "word", 50, 1).to_json(), "utf-8")
    config = small_config(
        write_number_pairs(tmp_path, count=60),
        num_epochs=1,
        tokenizer_file=str(tmp_path / "own_{0}.json"),
    )
    train_model(config)
    own[0].write_bytes(own[1].read_bytes())
    with pytest.raises(ValueError, match="tokenizer_file: .* of 7 entries, than .*, of 6"):
        train_model(replace(config, num_epochs=2))
    own[0].unlink()
    train_model(replace(config, num_epochs=2))  # the checkpoint has all


def test_languages_cannot_leave_the_folder(tmp_path):
    arguments = train_flags(write_number_pairs(tmp_path), lang_src="../../x")
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode != 0 and "'../../x'" in process.stderr
    assert "Traceback" not in process.stderr


def test_numbers_are_read_in_the_order_of_the_updates(tmp_path):
    run = make_run(tmp_path)
    for _ in range(3):
        train_update(run, [first_batch(run)])
    assert [each.step for each in run.unread] == [1, 2, 3] and run.progress.window["updates"] == 0
    losses = [each.loss.item() for each in run.unread]
    settle_updates(run)
    assert run.unread == [] and run.progress.window["updates"] == 3
    assert run.progress.window["loss"] == pytest.approx(np.sum(losses))
    assert json.dumps(run.progress.window)


# --- Windows, by its rules: a file that is locked or open shuts everybody else out ---


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

    monkeypatch.setattr(run_room, "FileLock", WindowsLock)
    monkeypatch.setattr(io, "open", refusing(io.open))
    monkeypatch.setattr(builtins, "open", refusing(builtins.open))
    for name in ("open", "unlink", "remove", "rename", "replace"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    yield
    WindowsLock.locked.clear()


def test_training_begins_and_ends_where_a_lock_shuts_out_every_other_handle(tmp_path, windows):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert get_weights_file_path(config, 0).exists()
    assert not get_lock_path(config).exists() and not get_process_path(config).exists()


def test_a_second_run_is_refused_where_nobody_can_read_the_lock(tmp_path, windows):
    config = small_config(write_number_pairs(tmp_path, count=60))
    with only_run(config):
        with pytest.raises(ValueError, match=f"is in use by process {os.getpid()} on"):
            with only_run(config):
                pass
        assert get_process_path(config).exists()


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
    monkeypatch.setattr(checkpoint.time, "sleep", lambda seconds: None)
    return left


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_checkpoint_that_another_program_reads_is_replaced_when_it_is_done(
    one_epoch, monkeypatch, times
):
    left = held(monkeypatch, "replace", times, "tmodel_best.pt")
    state = checkpoint.load(get_weights_file_path(one_epoch, "best"))
    checkpoint.save(get_weights_file_path(one_epoch, "best"), {**state, "global_step": 77})
    assert left == [0]
    assert checkpoint.load(get_weights_file_path(one_epoch, "best"))["global_step"] == 77


def test_a_checkpoint_that_stays_open_elsewhere_is_an_error_that_damages_nothing(
    one_epoch, monkeypatch
):
    path = get_weights_file_path(one_epoch, "best")
    before = path.read_bytes()
    held(monkeypatch, "replace", 99, "tmodel_best.pt")
    with pytest.raises(OSError, match="tmodel_best.pt cannot be written: The process cannot"):
        checkpoint.save(path, checkpoint.load(path))
    assert path.read_bytes() == before and not list(path.parent.glob("*.tmp"))


@pytest.mark.parametrize(("times", "is_left"), [(2, False), (99, True)])
def test_an_old_checkpoint_that_is_open_elsewhere_does_not_end_the_run(
    tmp_path, monkeypatch, capsys, times, is_left
):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=3, keep_last=1)
    held(monkeypatch, "unlink", times, "tmodel_00.pt")
    train_model(config)
    assert get_weights_file_path(config, 2).exists()
    assert get_weights_file_path(config, 0).exists() == is_left
    assert ("tmodel_00.pt cannot be deleted" in capsys.readouterr().out) == is_left


# --- GPUs ---


@pytest.mark.parametrize(
    ("device", "number", "outcome"),
    [("cuda", "1", 1), ("cpu", "3", None), ("cuda", "2", ValueError), ("mps", "3", None)],
)
def test_each_process_takes_a_gpu_of_its_own_only_where_the_run_computes_on_gpus(
    monkeypatch, device, number, outcome
):
    taken = []
    monkeypatch.setattr(processes, "_are_joined", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setenv("LOCAL_RANK", number)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    if outcome is ValueError:
        words = "started 4 processes on a machine with 2 GPUs: --nproc_per_node=2, or --device cpu"
        with pytest.raises(ValueError, match=words):
            processes.take_own_gpu(torch.device(device))
    else:
        processes.take_own_gpu(torch.device(device))
    assert taken == ([outcome] if outcome == 1 else [])
