"""Which checkpoint a run resumes, and what it clears away."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import curves, small_config, write_number_pairs

import checkpoint
import train
from checkpoint import Progress, WeightsFolder
from train import train_model
from training.resume import delete_leftovers, load_checkpoint, rename_newer_checkpoints
from training.signals import StoppedBySignal
from training.start import start_run


def test_checkpoint_without_pools_resumes(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    path = WeightsFolder.of(config).end_of(0)
    state = checkpoint.load(path)
    for key in ("pool", "pool_start", "position", "processes"):
        del state[key]
    for key in ("streaming", "pool_size"):
        del state["config"][key]
    torch.save(state, path)
    train_model(replace(config, num_epochs=2, pool_size=7))
    assert checkpoint.load(WeightsFolder.of(config).end_of(1))["pool"] == 0


def test_run_killed_before_its_first_checkpoint_starts_again_in_the_same_curves(
    tmp_path, monkeypatch
):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1, log_every=1)
    update, updates = train.train_update, iter(range(3))

    def die(run, batches):
        next(updates)  # StopIteration at the fourth
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", die)
    with pytest.raises(StopIteration):
        train_model(config)
    monkeypatch.setattr(train, "train_update", update)
    time.sleep(1.1 - time.time() % 1)
    train_model(config)
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    shown = curves("runs/tmodel")
    steps = [step for step, _ in shown["train/loss"]]
    assert steps == list(range(1, len(steps) + 1)) and len(steps) > 3
    assert shown["config/text_summary"] == [(0, None)]


def test_preload_names_a_checkpoint_or_is_refused(two_epochs, tmp_path, capsys):
    for preload in ("07", "nowhere.pt"):
        with pytest.raises(FileNotFoundError, match=preload.lstrip("0")):
            train_model(replace(two_epochs, preload=preload))
    with pytest.raises(ValueError, match="preload is none, but train_weights holds tmodel_01.pt"):
        train_model(replace(two_epochs, preload="none"))
    with pytest.raises(FileNotFoundError):
        train_model(replace(two_epochs, preload="best", model_folder="./new"))
    assert not Path("new").exists()
    train_model(replace(two_epochs, preload="none", model_folder="./new", num_epochs=1))
    assert Path("new/tmodel_00.pt").exists()


def test_going_back_renames_newer_checkpoints(two_epochs, capsys):
    newer = WeightsFolder.of(two_epochs).end_of(1)
    weights = checkpoint.load(newer)["model"]
    train_model(replace(two_epochs, preload="00"))
    assert newer.with_name(newer.name + ".old").exists()
    assert "tmodel_01.pt is newer" in capsys.readouterr().out
    best = WeightsFolder.of(two_epochs).best
    assert checkpoint.load(best)["global_step"] <= checkpoint.load(newer)["global_step"]
    train_model(replace(two_epochs, preload="00"))
    assert newer.with_name(newer.name + ".old1").exists()
    again = checkpoint.load(newer)["model"]
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_resume_skips_a_damaged_newest_checkpoint(two_epochs, capsys):
    newest = WeightsFolder.of(two_epochs).end_of(1)
    weights = checkpoint.load(newest)["model"]
    newest.write_bytes(newest.read_bytes()[:1000])
    WeightsFolder.of(two_epochs).best.unlink()  # it is of the second epoch, too
    train_model(two_epochs)
    out = capsys.readouterr().out
    assert "tmodel_01.pt is damaged" in out and "resuming from train_weights/tmodel_00.pt" in out
    again = checkpoint.load(newest)["model"]
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    for path in WeightsFolder.of(two_epochs).path.glob("tmodel_*.pt"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="no checkpoint in train_weights can be read"):
        train_model(two_epochs)


@pytest.mark.parametrize("preload", ["best", "00", "train_weights/tmodel_00.pt"])
def test_run_resumes_from_the_chosen_checkpoint(two_epochs, preload):
    best = WeightsFolder.of(two_epochs).best
    best.write_bytes(WeightsFolder.of(two_epochs).end_of(0).read_bytes())
    progress = start_run(replace(two_epochs, preload=preload)).progress
    assert progress.epoch == 1 and len(progress.history) == 1


def test_going_back_inside_an_epoch_renames_its_newer_checkpoints(two_epochs):
    state = checkpoint.load(WeightsFolder.of(two_epochs).end_of(1))
    step = state["global_step"]
    for batch in (1, 2):
        inside = {"epoch": 2, "batch": batch, "global_step": step + batch}
        checkpoint.save(WeightsFolder.of(two_epochs).inside(2, step + batch), {**state, **inside})
    progress = Progress(epoch=2, batch=1, global_step=step + 1)
    rename_newer_checkpoints(two_epochs, progress)
    names = {path.name for path in WeightsFolder.of(two_epochs).path.glob("tmodel_0*")}
    assert names == {
        "tmodel_00.pt", "tmodel_01.pt", f"tmodel_02_{step + 1}.pt", f"tmodel_02_{step + 2}.pt.old",
    }  # fmt: skip


def test_going_back_renames_a_damaged_checkpoint(two_epochs):
    newest = WeightsFolder.of(two_epochs).end_of(1)
    newest.write_bytes(b"cut off")
    train_model(replace(two_epochs, preload="00"))
    assert checkpoint.load(newest)["epoch"] == 2


def test_checkpoint_saved_after_a_damaged_one_inside_an_epoch_is_found(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1)
    train_model(config)
    step = checkpoint.load(WeightsFolder.of(config).end_of(0))["global_step"] + 1
    WeightsFolder.of(config).inside(1, step + 1).write_bytes(b"cut off")
    update = train.train_update

    def update_and_stop(run, batches):
        os.kill(os.getpid(), signal.SIGINT)
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", update_and_stop)
    with pytest.raises(StoppedBySignal):
        train_model(replace(config, num_epochs=2))
    assert start_run(replace(config, num_epochs=2)).progress.global_step == step


@pytest.mark.parametrize(("preload", "stays"), [("00", False), ("latest", True)])
def test_only_going_back_renames_a_newer_best(two_epochs, preload, stays):
    best = WeightsFolder.of(two_epochs).best
    best.write_bytes(WeightsFolder.of(two_epochs).end_of(1).read_bytes())
    step = checkpoint.load(WeightsFolder.of(two_epochs).end_of(0))["global_step"]
    rename_newer_checkpoints(
        replace(two_epochs, preload=preload), Progress(epoch=1, global_step=step)
    )
    assert best.exists() is stays and best.with_name(f"{best.name}.old").exists() is not stays


@pytest.mark.parametrize("how", ["cut", "empty", "text", "folder"])
def test_newest_whole_checkpoint_is_found_behind_damaged_ones(tmp_path, how, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=3)
    train_model(config)
    best = WeightsFolder.of(config).best
    best.write_bytes(WeightsFolder.of(config).end_of(0).read_bytes())
    for epoch in (1, 2):
        path = WeightsFolder.of(config).end_of(epoch)
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
    assert "the newest whole checkpoint is train_weights/tmodel_00.pt" in out


def test_best_checkpoint_is_resumed_if_no_other_is_whole(one_epoch, capsys):
    newest = WeightsFolder.of(one_epoch).end_of(0)
    newest.write_bytes(b"")
    train_model(replace(one_epoch, num_epochs=2))
    out = capsys.readouterr().out
    assert "resuming from train_weights/tmodel_best.pt: epoch 1" in out
    for path in WeightsFolder.of(one_epoch).path.glob("tmodel_0*.pt"):
        path.unlink()
    train_model(replace(one_epoch, num_epochs=2))
    assert "resuming from train_weights/tmodel_best.pt" in capsys.readouterr().out


def test_missing_checkpoint_lists_the_existing_ones(one_epoch):
    for asked, name in (("07", "train_weights/tmodel_07.pt"), ("7x", "7x")):
        with pytest.raises(FileNotFoundError, match=f"no checkpoint {name}; train_weights holds"):
            start_run(replace(one_epoch, preload=asked))
    with pytest.raises(FileNotFoundError, match="holds tmodel_00.pt, tmodel_best.pt"):
        start_run(replace(one_epoch, preload="07"))


def test_chosen_checkpoint_that_is_damaged_is_an_error(one_epoch):
    WeightsFolder.of(one_epoch).end_of(0).write_bytes(b"text")
    for preload in ("00", "train_weights/tmodel_00.pt"):
        with pytest.raises(ValueError, match="tmodel_00.pt is damaged or not a checkpoint"):
            train_model(replace(one_epoch, preload=preload))


def test_temporary_files_of_a_killed_save_are_deleted_and_others_are_not(one_epoch):
    folder = WeightsFolder.of(one_epoch).path
    left = ["tmodel_00_7.pt.tmp", "tokenizer_en.json.tmp"]
    for name in [*left, "notes.tmp"]:
        (folder / name).write_text("half")
    train_model(replace(one_epoch, num_epochs=2))
    assert not any((folder / name).exists() for name in left)
    assert (folder / "notes.tmp").exists()


def test_files_beside_the_tokenizers_of_the_user_are_kept(tmp_path):
    config = small_config("x", tokenizer_file=str(tmp_path / "own_{0}.json"))
    (tmp_path / "own_en.json.tmp").write_text("mine")
    delete_leftovers(config)
    assert (tmp_path / "own_en.json.tmp").read_text() == "mine"


def test_attempt_note_cannot_redirect_the_curves(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    note = WeightsFolder.of(config).attempt
    note.parent.mkdir()
    for text in ('{"log_dir": "../x", "tokenizers": []}', "[" * 100_000, "{}", "cut"):
        note.write_text(text)
        assert start_run(config).log_dir.startswith("runs/tmodel")


def test_checkpoint_cannot_redirect_the_curves(one_epoch, tmp_path):
    path = WeightsFolder.of(one_epoch).end_of(0)
    checkpoint.save(path, {**checkpoint.load(path), "log_dir": "../elsewhere"})
    assert start_run(replace(one_epoch, num_epochs=2)).log_dir == "runs/tmodel_2"
