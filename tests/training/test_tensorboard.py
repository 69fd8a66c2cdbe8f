"""The TensorBoard events of a run: their folder, their points, and a full disk."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import (
    curves,
    do_update,
    first_batch,
    make_run,
    small_config,
    write_number_pairs,
)

import checkpoint
import train
from checkpoint import Progress, WeightsFolder
from train import log_training, train_model
from training import tensorboard as tensorboard_room
from training.tensorboard import Curves


def test_new_run_beside_an_old_one_has_its_own_curves(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    train_model(replace(config, model_basename="other_"))
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tmodel", "tmodel_2"]
    assert len(curves("runs/tmodel")["val/bleu"]) == 1


def test_short_run_has_a_point_of_the_training_curves_and_a_warning(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, log_every=1000)
    train_model(config)
    assert len(curves("runs/tmodel")["train/loss"]) == 1
    assert "fewer than warmup (60)" in capsys.readouterr().out


def test_two_runs_have_two_folders_and_a_resumed_run_keeps_its_folder(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=60)
    first, second = (small_config(source, num_epochs=1, model_folder=f"./{m}") for m in "ab")
    train_model(first)
    train_model(second)
    train_model(replace(first, num_epochs=2))
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tmodel", "tmodel_2"]
    assert len(curves("runs/tmodel")["val/bleu"]) == 2
    assert len(curves("runs/tmodel_2")["val/bleu"]) == 1
    assert "config/text_summary" in curves("runs/tmodel")


def test_training_without_tensorboard_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("training.tensorboard.SummaryWriter", None)
    monkeypatch.setattr(
        "training.tensorboard.why_not", "No module named 'tensorboard'", raising=False
    )
    train_model(small_config(write_number_pairs(tmp_path, count=60), num_epochs=1))
    assert "TensorBoard cannot be imported (No module named" in capsys.readouterr().out
    assert Path("train_weights/tmodel_00.pt").exists()


def test_point_of_the_curves_is_the_mean_over_tokens_and_updates(tmp_path):
    run = make_run(tmp_path, dropout=0.0, lr=1e-30)
    run.curves = Curves("runs/x", 0)
    batches = [first_batch(run, [0]), first_batch(run, range(1, 9))]
    windows = []
    for batch in batches:
        run.progress.window = Progress().window
        do_update(run, [batch])
        windows.append(run.progress.window)
    run.progress.window = Progress().window
    for batch in batches:
        do_update(run, [batch])
    log_training(run, 1.0)
    run.curves.close()
    row = run.progress.train_row
    total = sum(float(window["loss"]) for window in windows)
    assert row["train/loss"] == pytest.approx(total / sum(batch.tokens for batch in batches))
    norms = [float(window["norm"]) for window in windows]
    assert row["train/grad_norm"] == pytest.approx(sum(norms) / 2)
    assert run.progress.window == Progress().window


def steps_of(log_dir):
    return [step for step, _ in curves(log_dir)["train/loss"]]


@pytest.fixture
def a_run(tmp_path):
    """A run of an epoch in ./a_weights, whose curves are in runs/tmodel, and its config."""
    source = write_number_pairs(tmp_path, count=120)
    config = small_config(source, num_epochs=1, model_folder="./a_weights")
    train_model(config)
    time.sleep(1.1 - time.time() % 1)
    return config


def test_copied_weights_folder_starts_new_curves(a_run, capsys):
    shutil.copytree("a_weights", "b_weights")
    before = steps_of("runs/tmodel")
    train_model(replace(a_run, num_epochs=2, model_folder="./b_weights"))
    assert steps_of("runs/tmodel") == before
    assert min(steps_of("runs/tmodel_2")) > max(before)
    assert "of which b_weights is a copy: this run starts new curves" in (capsys.readouterr().out)
    time.sleep(1.1 - time.time() % 1)
    for folder in ("a", "b"):  # each goes on in its own
        train_model(replace(a_run, num_epochs=3, model_folder=f"./{folder}_weights"))
    assert [path.name for path in sorted(Path("runs").iterdir())] == ["tmodel", "tmodel_2"]


def test_moved_weights_folder_continues_its_curves(a_run):
    Path("a_weights").rename("moved")
    for epochs in (2, 3):
        train_model(replace(a_run, num_epochs=epochs, model_folder="./moved"))
        time.sleep(1.1 - time.time() % 1)
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    assert steps_of("runs/tmodel") == sorted(set(steps_of("runs/tmodel")))


def test_copied_project_continues_its_own_curves(a_run, monkeypatch):
    Path("copy").mkdir()
    for name in ("a_weights", "runs"):
        shutil.copytree(name, f"copy/{name}")
    before = steps_of("runs/tmodel")
    monkeypatch.chdir("copy")
    train_model(replace(a_run, num_epochs=2))
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    assert steps_of("runs/tmodel")[: len(before)] == before


def test_weights_folder_from_elsewhere_does_not_continue_curves_of_another_run(
    a_run, tmp_path, capsys
):
    other = small_config(
        write_number_pairs(tmp_path, "other", count=90, seed=1), num_epochs=1, model_folder="./o"
    )
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")
    train_model(other)
    os.chdir(tmp_path)
    Path("elsewhere/o").rename("o")
    before = steps_of("runs/tmodel")
    train_model(replace(other, num_epochs=2))
    assert steps_of("runs/tmodel") == before
    assert "runs/tmodel holds the curves of another run" in capsys.readouterr().out


def test_checkpoint_without_run_id_continues_its_curves(a_run):
    for path in Path("a_weights").glob("*.pt"):
        state = torch.load(path, weights_only=True)
        del state["run_id"]
        torch.save(state, path)
    train_model(replace(a_run, num_epochs=2))
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    assert checkpoint.load(WeightsFolder.of(a_run).end_of(1))["run_id"]


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"run_id": 1, "weights": 2}', "[" * 99_999])
def test_curves_with_a_damaged_note_belong_to_another_run(a_run, note):
    Path("runs/tmodel/run.json").write_text(note)
    train_model(replace(a_run, num_epochs=2))
    assert Path("runs/tmodel_2").is_dir()


def test_run_killed_before_its_first_event_continues_in_its_folder(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=120), num_epochs=1)
    with monkeypatch.context() as patch:

        def die(run, interrupt, pace):
            raise SystemExit

        patch.setattr(train, "train_epoch", die)
        with pytest.raises(SystemExit):
            train_model(config)
    assert list(Path("runs/tmodel").glob("events.*"))
    time.sleep(1.1 - time.time() % 1)
    train_model(config)
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]


def test_full_disk_stops_curve_logging_and_not_the_training(tmp_path, monkeypatch, capfd):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    writer, room = tensorboard_room.SummaryWriter, tensorboard_room

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
    assert len(checkpoint.load(WeightsFolder.of(config).end_of(1))["history"]) == 2


def test_picture_that_cannot_be_drawn_keeps_the_run_and_the_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train, "sample_attention", lambda *_: 1 / 0)
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert "val/attention cannot be drawn: ZeroDivisionError" in capsys.readouterr().out
    assert len(checkpoint.load(WeightsFolder.of(config).end_of(0))["history"]) == 1


def test_disk_that_is_full_at_the_start_stops_curve_logging_only(tmp_path, monkeypatch, capsys):
    def on_a_full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensorboard_room, "SummaryWriter", on_a_full_disk)
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert "the curves cannot be written" in capsys.readouterr().out
    assert WeightsFolder.of(config).end_of(0).exists()


def test_runs_that_start_together_have_separate_log_folders(tmp_path):
    names = [tensorboard_room.new_log_dir("runs/x") for _ in range(3)]
    assert names == ["runs/x", "runs/x_2", "runs/x_3"]


def test_process_started_in_the_same_second_writes_after_the_last(tmp_path):
    first = tensorboard_room.Curves("runs/x", 0)
    first.add_row({"step": 1, "train/loss": 1.0})
    first.close()
    second = tensorboard_room.Curves("runs/x", 1)
    second.add_row({"step": 1, "train/loss": 2.0})
    second.close()
    seconds = [path.name.split(".")[3] for path in sorted(Path("runs/x").iterdir())]
    assert seconds == sorted(set(seconds)) and len(seconds) == 2
    assert curves("runs/x")["train/loss"] == [(1, 2.0)]
