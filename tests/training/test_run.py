"""What a run saves and keeps, and which checkpoints it refuses."""

import math
import resource
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import run_script, small_config, spoil, write_number_pairs

import checkpoint
from checkpoint import WeightsFolder
from train import train_model

WRONG = {
    "shape": "projection.linear.weight has shape",
    "dtype": "projection.linear.weight has dtype float64",
    "missing": "only one of them has projection.linear.weight",
    "more": "only one of them has more",
    "nan": "numbers that are not finite, in projection.linear.weight",
    "tokenizer": "has no [EOS] token",
    "knob": "fields unknown to this version, ['colour']: use the version that wrote it",
}


def test_old_checkpoints_are_deleted_after_the_new_one_is_saved(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=3, keep_last=1)
    there, prune = [], checkpoint.prune

    def note(paths):
        newest = max(WeightsFolder.of(config).path.glob("tmodel_0?.pt"))
        there.append(checkpoint.load(newest)["epoch"] > 0)
        prune(paths)

    monkeypatch.setattr(checkpoint, "prune", note)
    train_model(config)
    assert len(there) >= 6 and all(there)
    names = sorted(path.name for path in WeightsFolder.of(config).path.glob("*.pt"))
    assert names == ["tmodel_02.pt", "tmodel_best.pt"]


@pytest.mark.parametrize(
    ("keep_last", "kept"), [(0, [3]), (1, [3]), (3, [1, 2, 3]), (-1, [0, 1, 2, 3])]
)
def test_run_keeps_the_last_checkpoints(tmp_path, keep_last, kept):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=4, keep_last=keep_last, monitor="val/loss", lr=1e-12)
    train_model(config)
    names = sorted(path.name for path in WeightsFolder.of(config).path.glob("*.pt"))
    assert names == [f"tmodel_0{i}.pt" for i in kept] + ["tmodel_best.pt"]
    best = checkpoint.load(WeightsFolder.of(config).best)
    assert best["global_step"] == min(best["history"], key=lambda row: row["val/loss"])["step"]


def test_folder_with_the_name_of_an_old_checkpoint_stays(one_epoch):
    path = WeightsFolder.of(one_epoch).end_of(0)
    path.rename("other.pt")
    path.mkdir()
    train_model(replace(one_epoch, num_epochs=3, keep_last=1, preload="other.pt"))
    assert path.is_dir() and WeightsFolder.of(one_epoch).end_of(2).is_file()


def test_nothing_is_deleted_while_updates_are_skipped(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=2, save_every=1, keep_last=0, max_bad_updates=4)
    spoil(monkeypatch, range(6, 99))
    with pytest.raises(ArithmeticError, match="4 updates in a row"):
        train_model(config)
    names = sorted(path.name for path in WeightsFolder.of(config).path.glob("*.pt"))
    assert names == ["tmodel_00_5.pt", "tmodel_00_6.pt", "tmodel_00_7.pt", "tmodel_00_8.pt"]


def test_nonfinite_weights_are_not_saved(one_epoch):
    before = {path.name: path.read_bytes() for path in Path("train_weights").iterdir()}
    config = replace(one_epoch, num_epochs=2, lr=1e41, save_every=1, keep_last=0)
    with pytest.raises(ArithmeticError, match="are not finite after update .*a lower --lr"):
        train_model(config)
    assert {path.name: path.read_bytes() for path in Path("train_weights").iterdir()} == before


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


@pytest.mark.parametrize("how", [*WRONG, "layers", "width"])
def test_translating_refuses_a_checkpoint_that_contradicts_itself(trained, how):
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
    path = WeightsFolder.of(one_epoch).end_of(0)
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
def test_training_refuses_an_impossible_position(one_epoch, changes, words):
    path = WeightsFolder.of(one_epoch).end_of(0)
    torch.save({**checkpoint.load(path), **changes}, path)
    for best in WeightsFolder.of(one_epoch).path.glob("*best.pt"):
        best.unlink()
    with pytest.raises(ValueError, match=words):
        train_model(replace(one_epoch, num_epochs=2, preload="00"))


@pytest.mark.parametrize("name", ["step", "exp_avg_sq"])
def test_training_refuses_an_impossible_optimizer_state(one_epoch, name):
    path = WeightsFolder.of(one_epoch).end_of(0)
    state = checkpoint.load(path)
    state["optimizer"][0][name].fill_(-1.0)
    checkpoint.save(path, state)
    with pytest.raises(ValueError, match=f"holds numbers below 0, in 0.{name}"):
        train_model(replace(one_epoch, num_epochs=2))
