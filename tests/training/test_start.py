"""The start of a run refuses what does not fit its checkpoint."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import make_run, small_config, write_number_pairs

import checkpoint
import train
from checkpoint import WeightsFolder
from train import train_model
from training.signals import StoppedBySignal
from training.start import start_run


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_model": 64}, "d_model: the checkpoint says 32, you say 64"),
        ({"N": 2}, "N: the checkpoint says 1, you say 2"),
        ({"seq_len": 20}, "seq_len: the checkpoint says 16, you say 20"),
        ({"norm": "post"}, "norm: the checkpoint says pre, you say post"),
        ({"tokenizer": "bpe"}, "tokenizer: the checkpoint says word, you say bpe"),
        ({"lang_src": "it", "lang_tgt": "en"}, "lang_src: the checkpoint says en, you say it"),
        ({"seed": 1}, "seed: the checkpoint says 0, you say 1"),
    ],
)
def test_settings_that_the_checkpoint_fixes_are_refused_by_name(two_epochs, changes, words):
    with pytest.raises(ValueError, match=words):
        train_model(replace(two_epochs, **changes))


def test_changed_training_pairs_are_refused(two_epochs, tmp_path):
    write_number_pairs(tmp_path, count=60, seed=9)
    with pytest.raises(
        ValueError, match="training pairs: the checkpoint says .*you say .*--model_folder"
    ):
        train_model(replace(two_epochs, num_epochs=3))


def test_changed_validation_pairs_are_refused(tmp_path):
    source, valid = (write_number_pairs(tmp_path, name, count=40) for name in ("train", "valid"))
    config = small_config(source, validsource=valid, num_epochs=1)
    train_model(config)
    write_number_pairs(tmp_path, "valid", count=40, seed=9)
    with pytest.raises(ValueError, match="validation pairs: the checkpoint says .*valid with hash"):
        train_model(replace(config, num_epochs=2))


def test_refused_checkpoint_leaves_no_folder_of_curves(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    path = WeightsFolder.of(config).end_of(0)
    checkpoint.save(path, {**checkpoint.load(path), "batch": 10**6})
    state = {**checkpoint.load(path), "batch": 1, "pool": 1, "pool_start": 1, "position": "x"}
    checkpoint.save(path.with_name("other.pt"), state)
    with pytest.raises(ValueError, match="its pool .1. and its position in the stream"):
        train_model(replace(config, num_epochs=3, preload=str(path.with_name("other.pt"))))
    with pytest.raises(ValueError, match="is after batch 1000000 of "):
        train_model(replace(config, num_epochs=3, experiment_name="runs/other"))
    assert not Path("runs/other").exists()


def test_initial_weights_follow_the_seed(tmp_path):
    runs = [make_run(tmp_path, seed=seed) for seed in (0, 0, 1)]
    first, again, other = (run.model.projection.linear.weight for run in runs)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_batch_size_must_not_change_inside_an_epoch(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1)
    update = train.train_update

    def update_and_stop(run, batches):
        done = update(run, batches)
        if run.progress.global_step == 1:
            signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(train, "train_update", update_and_stop)
    with pytest.raises(StoppedBySignal):
        train_model(config)
    with pytest.raises(ValueError, match="batch_tokens: the checkpoint says 160, you say 80"):
        start_run(replace(config, batch_tokens=80))
