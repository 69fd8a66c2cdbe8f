"""Loading a checkpoint to translate."""

import math

import pytest
import torch
from conftest import run_script

import checkpoint
from checkpoint import WeightsFolder
from translation.loading import average_checkpoints, load_model


def test_damaged_best_checkpoint_names_the_folder_with_others(one_epoch):
    best = WeightsFolder.of(one_epoch).best
    best.write_bytes(best.read_bytes()[:1000])
    for place in (None, best.parent):
        with pytest.raises(
            ValueError, match="best.pt is damaged .* --weights takes any other file"
        ):
            load_model(place)
    with pytest.raises(ValueError, match="best.pt is damaged") as caught:
        load_model(best)
    assert "--weights" not in str(caught.value)
    assert load_model(best.with_name("tmodel_00.pt")).global_step > 0


def test_checkpoints_of_two_runs_are_not_averaged(trained, tmp_path):
    path = trained / "train_weights" / "tmodel_28.pt"
    other = checkpoint.load(trained / "train_weights" / "tmodel_29.pt")
    checkpoint.save(tmp_path / "other.pt", {**other, "data": "abc"})
    with pytest.raises(ValueError, match="other.pt and .*tmodel_28.pt cannot be averaged"):
        average_checkpoints([path, tmp_path / "other.pt"])


def test_average_is_the_mean_of_the_weights(trained):
    paths = [trained / "train_weights" / f"tmodel_{i}.pt" for i in (27, 28, 29)]
    states = [checkpoint.load(path)["model"] for path in paths]
    average = average_checkpoints(paths)
    for name, weight in average["model"].items():
        expected = sum(state[name].double() for state in states) / 3
        torch.testing.assert_close(weight, expected.float())
    assert average["epoch"] == 30 and math.isfinite(average["global_step"])
    checkpoint.save(trained / "average.pt", average)
    process = run_script("translate.py", "--weights", trained / "average.pt", "one two")
    by_flag = run_script("translate.py", "--average", 3, "one two", cwd=trained)
    assert process.stdout == by_flag.stdout == "uno due\n"
    assert "tmodel_27.pt, tmodel_28.pt" in by_flag.stderr
    few = run_script("translate.py", "--average", 4, "one", cwd=trained, check=False)
    assert few.returncode == 1 and "has 3 checkpoints of finished epochs" in few.stderr
