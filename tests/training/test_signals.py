"""Signals stop a run in order."""

import signal
from pathlib import Path

import pytest
from conftest import (
    assert_same_run,
    python,
    run_script,
    small_config,
    train_flags,
    train_with_stops,
    write_number_pairs,
)

import checkpoint
import train
from checkpoint import WeightsFolder
from train import train_model
from training.signals import StoppedBySignal, StopSignals

STOP = """
    import os, signal, sys, train
    stop = getattr(signal, sys.argv.pop(1))
    {patch}
    sys.exit(train.main())
"""


def test_first_signal_is_noted_and_the_second_ends_the_process():
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    for signum in (signal.SIGINT, signal.SIGTERM):
        name = signal.Signals(signum).name
        with StopSignals() as interrupt:
            with pytest.raises(StoppedBySignal, match=name), interrupt.postponed():
                interrupt.check()
                assert signal.getsignal(signum) not in (signal.SIG_DFL, *before)
                signal.raise_signal(signum)
                with pytest.raises(StoppedBySignal, match=name):
                    interrupt.check()
            for each in (signal.SIGINT, signal.SIGTERM):
                assert signal.getsignal(each) is signal.SIG_DFL
        assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before
        with pytest.raises(StoppedBySignal, match=name), StopSignals():
            signal.raise_signal(signum)  # nothing is under way that could be lost


def test_signal_that_arrives_after_the_check_stops_the_next_update(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1)

    # It comes while the end of an update is looked at, when nothing has been saved.
    class Late(StopSignals):
        looks = 0

        @property
        def signum(self):
            Late.looks += 1
            return signal.SIGINT if Late.looks > 1 else None

        @signum.setter
        def signum(self, value):
            pass

    actions, asked = train.actions_after_update, []

    def note(progress, config, stop):
        asked.append(progress.global_step)
        return actions(progress, config, stop)

    monkeypatch.setattr(train, "StopSignals", Late)
    monkeypatch.setattr(train, "actions_after_update", note)
    with pytest.raises(StoppedBySignal):
        train_model(config)
    saved = checkpoint.load(WeightsFolder.of(config).latest())
    assert saved["global_step"] == asked[-1]


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize(
    "place", ["training.data.load_pairs", "training.data.build_tokenizer", "torch.save"]
)
def test_signal_in_any_phase_stops_the_run_in_order(tmp_path, name, code, place):
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
    assert last == f"stopped by {name}; the same command resumes from here"
    assert "Traceback" not in process.stderr
    saved = sorted(path.name for path in Path().glob("train_weights/*"))
    if place == "torch.save":
        assert "tmodel_00.pt" in saved and not any(each.endswith(".tmp") for each in saved)
    else:
        assert saved == []
    assert "done" in run_script("train.py", *train_flags(source, num_epochs=1)).stdout


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("place", ["train.train_update", "checkpoint.torch.save"])
def test_second_signal_ends_the_run_at_once_and_damages_nothing(one_epoch, name, place):
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
    assert "a second signal stops at once" in process.stderr
    again = run_script("train.py", *arguments).stdout
    assert "resuming from train_weights/tmodel_00.pt: epoch 1" in again and "done" in again


def test_run_stopped_just_before_patience_ends_as_one_never_stopped(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=200)
    settings = dict(num_epochs=9, patience=1, lr=1e-12, dropout=0.3, precision="fp32")
    never, often = (
        small_config(source, model_folder=f"./{name}", experiment_name=f"runs/{name}", **settings)
        for name in ("never", "often")
    )
    train_model(never)
    steps = checkpoint.load(WeightsFolder.of(never).end_of(1))["global_step"]
    assert not WeightsFolder.of(never).end_of(2).exists() and steps % 2 == 0 and steps > 8
    # Three inside one epoch; the first of the next; the one before the end; the end.
    train_with_stops(often, {2, 3, 4, steps // 2 + 1, steps - 1, steps}, monkeypatch)
    assert_same_run(never, often, epoch=1)
