"""A checkpoint that an earlier version wrote still translates, and resumes where it can.

`checkpoint_format_2.pt` was written by the version of 2026-12-01, before the modules moved into
packages, by

    python train.py --datasource train --seq_len 12 --d_model 16 --N 1 --h 2 --d_ff 16
        --batch_tokens 160 --lr 1e-2 --warmup 60 --log_every 5 --min_frequency 1 --device cpu
        --num_epochs 40 --precision fp32

on the pairs of `write_number_pairs`, stopped by Ctrl-C in epoch 29 after 581 updates.
"""

import os
import shutil
from pathlib import Path

import torch
from conftest import ROOT, flags, run_script, write_number_pairs

OLD = ROOT / "tests" / "checkpoint_format_2.pt"


def test_an_old_checkpoint_translates():
    process = run_script("translate.py", "--weights", OLD, "seven one ten two")
    assert process.stdout == "sette uno dieci due\n"
    assert "en -> it, after 581 updates" in process.stderr


SETTINGS = {
    "datasource": "train", "seq_len": 12, "d_model": 16, "N": 1, "h": 2, "d_ff": 16,
    "batch_tokens": 160, "lr": 1e-2, "warmup": 60, "log_every": 5, "min_frequency": 1,
    "device": "cpu", "num_epochs": 30, "precision": "fp32",
}  # fmt: skip


def test_an_old_checkpoint_inside_an_epoch_is_refused_with_the_way_on(tmp_path):
    write_number_pairs(tmp_path)
    Path("train_weights").mkdir()
    shutil.copy(OLD, "train_weights/tmodel_29_581.pt")
    process = run_script("train.py", *flags(SETTINGS), check=False)
    assert process.returncode == 1
    last = process.stderr.splitlines()[-1]
    assert "tmodel_29_581.pt is inside an epoch" in last and last.endswith(
        "--preload 28 goes back to its start"
    )
    assert os.listdir("train_weights") == ["tmodel_29_581.pt"]


def test_an_old_checkpoint_between_epochs_resumes(tmp_path):
    write_number_pairs(tmp_path)
    Path("train_weights").mkdir()
    state = torch.load(OLD, weights_only=True)
    torch.save({**state, "batch": 0}, "train_weights/tmodel_28.pt")
    process = run_script("train.py", *flags(SETTINGS))
    assert "train_weights/tmodel_28.pt: epoch 29, update 581" in process.stdout
    state = torch.load("train_weights/tmodel_29.pt", weights_only=True)
    assert state["epoch"] == 30
    # The version that wrote it had 0.091, with other batches; a new run has 2.4 after an epoch.
    assert state["history"][-1]["val/loss"] < 0.2
