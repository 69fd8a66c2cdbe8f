"""The picture that `curves.py` makes of a run."""

from dataclasses import replace

import pytest
from conftest import run_script, small_config, write_number_pairs

import checkpoint
from checkpoint import WeightsFolder
from curves import draw_curves
from train import train_model
from training.tensorboard import read_curves


def test_the_curves_of_a_resumed_run_are_drawn_whole(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=100), num_epochs=1)
    train_model(config)
    train_model(replace(config, num_epochs=3))
    history = checkpoint.load(WeightsFolder.of(config).end_of(2))["history"]
    curves = read_curves(tmp_path / "runs" / "tmodel")
    for tag in ("val/loss", "val/bleu"):
        steps, values = curves[tag]
        assert steps == [row["step"] for row in history]
        assert values == pytest.approx([row[tag] for row in history])
    panels = draw_curves({"first": curves, "second": curves}).axes
    drawn = [[line.get_label() for line in panel.lines] for panel in panels]
    assert drawn[1] == ["first", "second"] and len(drawn[0]) == 4
    assert panels[1].lines[0].get_ydata().tolist() == pytest.approx(curves["val/bleu"][1])


def test_the_command_makes_a_picture_or_says_what_is_missing(trained, tmp_path):
    picture = tmp_path / "curve.png"
    run_script("curves.py", "runs/tmodel", "--output", picture, cwd=trained)
    assert picture.read_bytes().startswith(b"\x89PNG")
    process = run_script("curves.py", "runs", "--output", picture, cwd=trained, check=False)
    assert process.returncode == 1
    assert process.stderr.splitlines() == [
        "curves.py: runs has no events; name a run's own folder, below runs"
    ]
