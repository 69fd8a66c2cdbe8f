"""Updates follow the definition, and a run that is stopped ends as one that is not."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import (
    SMALL,
    assert_same_run,
    flags,
    make_run,
    run_script,
    small_config,
    train_with_stops,
    write_number_pairs,
)

import checkpoint
import train
from checkpoint import WeightsFolder
from config import (
    Config,
)
from corpus.tokenizer import tokenizer_from_json
from train import train_model


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "bf16", "accumulate": 2},
        {"precision": "fp32", "tokenizer": "bpe", "validate_every": 7, "save_every": 3},
    ],
)
def test_run_stopped_anywhere_ends_as_one_never_stopped(tmp_path, monkeypatch, changes, capsys):
    source = write_number_pairs(tmp_path, count=200)
    settings = dict(num_epochs=3, dropout=0.3, **changes)
    never, often = (
        small_config(source, model_folder=f"./{name}", experiment_name=f"runs/{name}", **settings)
        for name in ("never", "often")
    )
    train_model(never)
    steps = checkpoint.load(WeightsFolder.of(never).end_of(2))["global_step"]
    per_epoch = steps // 3
    assert steps == 3 * per_epoch and per_epoch > 2
    # The first update of all; the last of an epoch; the first and two more of the next; the end.
    stops = {1, per_epoch, per_epoch + 1, per_epoch + 2, 2 * per_epoch - 1, steps}
    train_with_stops(often, stops, monkeypatch)
    assert_same_run(never, often, epoch=2)
    assert sorted(path.name for path in Path("often").glob("*.pt")) == [
        "tmodel_00.pt", "tmodel_01.pt", "tmodel_02.pt", "tmodel_best.pt",
    ]  # fmt: skip


def test_killed_run_resumes_from_its_last_checkpoint(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    never, killed = (
        small_config(source, num_epochs=2, model_folder=f"./{name}", experiment_name=f"runs/{name}")
        for name in ("never", "killed")
    )
    train_model(never)
    per_epoch = checkpoint.load(WeightsFolder.of(never).end_of(0))["global_step"]
    update = train.train_update

    def die(run, batches):
        if run.progress.global_step == per_epoch + 2:
            raise RuntimeError("power cut")
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", die)
    with pytest.raises(RuntimeError, match="power cut"):
        train_model(killed)
    monkeypatch.setattr(train, "train_update", update)
    time.sleep(1.1 - time.time() % 1)
    train_model(killed)
    assert_same_run(never, killed, epoch=1)


def test_finished_run_says_so_and_changes_nothing(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    train_model(config)
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    for num_epochs in (2, 1):
        train_model(replace(config, num_epochs=num_epochs))
        assert "nothing left to train: 2 epochs are done" in capsys.readouterr().out
    after = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    assert {k: v for k, v in after.items() if "cache" not in str(k)} == before


def test_more_epochs_continue_a_finished_run(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    train_model(replace(config, num_epochs=2, lr=1e-3))
    out = capsys.readouterr().out
    assert "lr: the checkpoint says 0.01, you say 0.001: using 0.001" in out
    assert "resuming from train_weights/tmodel_00.pt: epoch 1" in out
    assert checkpoint.load(WeightsFolder.of(config).end_of(1))["epoch"] == 2


def test_run_without_its_best_checkpoint_is_tested_with_its_newest(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=1, testsource=source)
    train_model(config)
    WeightsFolder.of(config).best.unlink()
    train_model(config)
    assert "test of train_weights/tmodel_00.pt" in capsys.readouterr().out


def test_last_line_of_a_training_is_the_command_that_translates(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=60)
    for folder, words in (
        ("weights", 'python translate.py "a sentence" uses it'),
        ("out/second", 'python translate.py --weights out/second "a sentence" uses it'),
    ):
        train_model(small_config(source, num_epochs=1, model_folder=folder))
        assert words in capsys.readouterr().out.splitlines()[-1]


def test_saved_names_have_no_prefix_of_a_compiled_model(tmp_path):
    run = make_run(tmp_path, compile=True)
    assert not any(name.startswith("_orig_mod") for name in run.model.state_dict())


def test_training_learns_to_translate_and_reports_it(trained):
    printed = (trained / "printed").read_text("utf-8")
    best = checkpoint.load(trained / "train_weights" / "tmodel_best.pt")
    assert max(row["val/bleu"] for row in best["history"]) > 95
    assert "600 pairs, en -> it" in printed
    for word in ("SOURCE:", "TARGET:", "PREDICTED:", "tok:13a", "version:", "CER", "WER", "chrF"):
        assert word in printed


def test_checkpoint_contains_plain_values_only(trained):
    state = checkpoint.load(trained / "train_weights" / "tmodel_29.pt")
    assert state["config"]["num_epochs"] == 30 and len(state["history"]) == 30
    assert json.dumps({key: state[key] for key in ("history", "config", "window", "train_row")})


def test_last_epochs_and_the_best_are_kept(trained):
    names = sorted(path.name for path in (trained / "train_weights").iterdir())
    assert names == [
        "tmodel_27.pt", "tmodel_28.pt", "tmodel_29.pt", "tmodel_best.pt",
        "tokenizer_en.json", "tokenizer_it.json",
    ]  # fmt: skip


def test_ctrl_c_saves_inside_the_epoch_and_says_how_to_resume(tmp_path):
    settings = {**SMALL, "datasource": write_number_pairs(tmp_path, count=600), "num_epochs": 500}
    process = subprocess.Popen(
        [sys.executable, train.__file__, *flags(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not Path("train_weights/tmodel_01.pt").exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"the same command resumes from here" in errors and b"Traceback" not in errors
    state = checkpoint.load(WeightsFolder.of(Config(datasource="train")).latest())
    assert state["global_step"] > 0 and not Path("train_weights/tmodel_attempt.json").exists()


@pytest.mark.parametrize("arguments", [(), ("--lang_tgt", "zh"), ("small",)])
def test_training_without_the_hub_stops_with_one_message_and_writes_nothing(arguments):
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode == 1
    assert "python train.py demo" in process.stderr and "Traceback" not in process.stderr
    assert len(process.stderr.strip().splitlines()) == 1
    assert list(Path().iterdir()) == []


def test_mistake_in_the_data_writes_nothing(tmp_path):
    source = write_number_pairs(tmp_path)
    with open(f"{source}.it", "a") as file:
        file.write("dieci\n")
    before = sorted(Path().iterdir())
    process = run_script("train.py", "--datasource", source, check=False)
    assert process.returncode == 1 and "600" in process.stderr and "601" in process.stderr
    assert sorted(Path().iterdir()) == before


def test_training_raises_no_warning(tmp_path):
    source = write_number_pairs(tmp_path, count=20)
    settings = flags({**SMALL, "datasource": source, "num_epochs": 1})
    process = subprocess.run(
        [sys.executable, "-W", "error", train.__file__, *settings], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr


def test_hub_layout_trains_in_the_chosen_direction(shared_data):
    printed = run_script(
        "train.py",
        *flags(
            {**SMALL, "datasource": shared_data / "hub_layout", "lang_tgt": "de", "seq_len": 40}
        ),
        *flags({"num_epochs": 1, "val_size": 20, "batch_tokens": 2000}),
    ).stdout
    assert "of de-en, en -> de" in printed
    source = next(line for line in printed.splitlines() if "SOURCE" in line)
    target = next(line for line in printed.splitlines() if "TARGET" in line)
    assert {"a", "the", "A", "of", "is", "and"} & set(source.split())
    assert {"ein", "eine", "Ein", "Eine", "der", "die", "und"} & set(target.split())


def test_test_set_is_scored_with_the_best_checkpoint(tmp_path):
    source = write_number_pairs(tmp_path, count=60)
    test = write_number_pairs(tmp_path, "test", count=10, seed=5)
    settings = flags({**SMALL, "datasource": source, "num_epochs": 1, "testsource": test})
    printed = run_script("train.py", *settings).stdout
    assert "test of train_weights/tmodel_best.pt: BLEU" in printed
    again = run_script("train.py", *settings).stdout
    assert printed.splitlines()[-1] == again.splitlines()[-1]


def test_test_set_is_scored_with_the_best_weights(tmp_path, capsys, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    test = write_number_pairs(tmp_path, "test", count=10, seed=5)
    config = small_config(source, num_epochs=1, testsource=test)
    train_model(config)
    best = checkpoint.load(WeightsFolder.of(config).best)
    eos_id = tokenizer_from_json(best["tokenizer_tgt"], "target").eos_id
    best["model"]["projection.linear.bias"][eos_id] = 1e4  # says nothing at all
    checkpoint.save(WeightsFolder.of(config).best, best)
    capsys.readouterr()
    scored, run_validation = [], train.run_validation

    def note(model, ds, *arguments):
        scored.append(len(ds))
        return run_validation(model, ds, *arguments)

    monkeypatch.setattr(train, "run_validation", note)
    train_model(config)
    assert scored == [10]
    assert "WER 100.00" in capsys.readouterr().out.splitlines()[-1]


def test_best_checkpoint_in_another_folder_is_not_named(two_epochs, tmp_path, capsys):
    path = WeightsFolder.of(two_epochs).end_of(1)
    # A rate of nearly 0: what comes is not better.
    config = replace(two_epochs, preload=str(path), model_folder="./new", num_epochs=3, lr=1e-12)
    train_model(config)
    out = capsys.readouterr().out
    assert not Path("new/tmodel_best.pt").exists()
    assert "its checkpoint is not in new; python translate.py" in out
    assert out.strip().endswith("uses new/tmodel_02.pt")
