"""A checkpoint is whole or not there, and nothing in it is trusted or run."""

import os
import pickle
from typing import get_origin

import pytest
import torch

import checkpoint


def make_state(**changes):
    state = {key: (get_origin(kind) or kind)() for key, kind in checkpoint.KEYS.items()}
    state["format"] = checkpoint.FORMAT
    state["model"] = {"w": torch.arange(5000.0)}
    return {**state, **changes}


def test_what_was_saved_is_loaded(tmp_path):
    state = make_state(global_step=7, history=[{"step": 7, "val/bleu": 1.5}], data="abc")
    checkpoint.save(tmp_path / "new" / "t.pt", state)
    loaded = checkpoint.load(tmp_path / "new" / "t.pt")
    assert torch.equal(loaded.pop("model")["w"], state.pop("model")["w"])
    assert loaded == state
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["t.pt"]


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "t.pt"
    checkpoint.save(path, make_state(global_step=1))

    def full_disk(state, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(path, make_state(global_step=2))
    assert checkpoint.load(path)["global_step"] == 1
    assert [file.name for file in tmp_path.iterdir()] == ["t.pt"]


def test_a_damaged_file_is_noticed_wherever_it_is_damaged(tmp_path):
    path = tmp_path / "t.pt"
    checkpoint.save(path, make_state())
    whole = path.read_bytes()
    middle = whole.index(torch.arange(5000.0).numpy().tobytes()) + 10000
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (flipped, whole[: len(whole) // 2], whole[:-10], whole[:10], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="t.pt is damaged or not a checkpoint") as error:
            checkpoint.load(path)
        assert "\n" not in str(error.value)


def test_a_folder_or_nothing_under_the_name_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint .*t.pt"):
        checkpoint.load(tmp_path / "t.pt")
    with pytest.raises(ValueError, match="not a checkpoint"):
        checkpoint.load(tmp_path)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_code_inside_a_checkpoint_is_not_run(tmp_path):
    torch.save(make_state(history=[Bomb()]), tmp_path / "t.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Bomb()))
    for name in ("t.pt", "plain.pt"):
        with pytest.raises(ValueError):
            checkpoint.load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ([1, 2], "not a checkpoint of this project"),
        ({"model_state_dict": {}}, "not a checkpoint of this project"),
        (make_state(format=99), "format 99, this reads 2"),
        (make_state(global_step="7"), "has a global_step that is not int"),
    ],
)
def test_other_contents_are_refused_by_name(tmp_path, state, words):
    torch.save(state, tmp_path / "t.pt")
    with pytest.raises(ValueError, match=words):
        checkpoint.load(tmp_path / "t.pt")


def test_pruning_deletes_and_forgives_what_is_gone(tmp_path):
    paths = [tmp_path / "a.pt", tmp_path / "b.pt"]
    paths[0].touch()
    checkpoint.prune(paths)
    assert not any(path.exists() for path in paths)
