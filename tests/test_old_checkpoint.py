"""A checkpoint that an earlier version wrote still resumes and translates.

`checkpoint_format_2.pt` was written by the version of 2026-12-01, before the modules moved into
packages, by

    python train.py --datasource train --seq_len 12 --d_model 16 --N 1 --h 2 --d_ff 16
        --batch_tokens 160 --lr 1e-2 --warmup 60 --log_every 5 --min_frequency 1 --device cpu
        --num_epochs 40 --precision fp32

on the pairs of `write_number_pairs`, stopped by Ctrl-C in epoch 29 after 581 updates.
"""

import shutil
from pathlib import Path

import pytest
import torch
from conftest import ROOT, flags, run_script, write_number_pairs

OLD = ROOT / "tests" / "checkpoint_format_2.pt"


def test_an_old_checkpoint_translates():
    process = run_script("translate.py", "--weights", OLD, "seven one ten two")
    assert process.stdout == "sette uno dieci due\n"
    assert "en -> it, after 581 updates" in process.stderr


def test_an_old_checkpoint_resumes_inside_its_epoch(tmp_path):
    write_number_pairs(tmp_path)
    Path("train_weights").mkdir()
    shutil.copy(OLD, "train_weights/tmodel_29_581.pt")
    settings = {
        "datasource": "train", "seq_len": 12, "d_model": 16, "N": 1, "h": 2, "d_ff": 16,
        "batch_tokens": 160, "lr": 1e-2, "warmup": 60, "log_every": 5, "min_frequency": 1,
        "device": "cpu", "num_epochs": 30, "precision": "fp32",
    }  # fmt: skip
    process = run_script("train.py", *flags(settings))
    assert "train_weights/tmodel_29_581.pt: epoch 29, update 581" in process.stdout
    state = torch.load("train_weights/tmodel_29.pt", weights_only=True)
    assert state["global_step"] == 600 and len(state["history"]) == 30
    # What the version that wrote it had after the same 19 updates.
    assert state["history"][-1]["val/loss"] == pytest.approx(0.0909965, rel=1e-3)
