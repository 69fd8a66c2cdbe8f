"""A checkpoint is whole or not there, and nothing in it is trusted or run."""

import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from conftest import (
    Bomb,
    make_state,
    run_script,
    train_flags,
    write_number_pairs,
)

import checkpoint
from checkpoint import WeightsFolder
from config import (
    Config,
    get_config,
)
from translation.loading import find_weights_file_path


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


def test_folder_or_missing_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint .*t.pt"):
        checkpoint.load(tmp_path / "t.pt")
    with pytest.raises(ValueError, match="not a checkpoint"):
        checkpoint.load(tmp_path)


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
        (make_state(format=99), "format 99, this version reads 2"),
        (make_state(global_step="7"), "has a global_step that is not int"),
    ],
)
def test_other_contents_are_refused_by_name(tmp_path, state, words):
    torch.save(state, tmp_path / "t.pt")
    with pytest.raises(ValueError, match=words):
        checkpoint.load(tmp_path / "t.pt")


def test_every_truncation_and_changed_byte_is_noticed_or_changes_nothing(tmp_path):
    path = tmp_path / "t.pt"
    state = make_state(model={"w": torch.arange(100.0)}, history=[{"step": 3}], data="abc")
    checkpoint.save(path, state)
    whole = path.read_bytes()
    for end in range(0, len(whole), 11):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="damaged or not a checkpoint"):
            checkpoint.load(path)
    noticed = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            loaded = checkpoint.load(path)
        except ValueError:
            noticed += 1
            continue
        # Names of parts and other notes of the archive are not data.
        assert torch.equal(loaded.pop("model")["w"], state["model"]["w"])
        assert loaded == {key: value for key, value in state.items() if key != "model"}
    assert noticed > len(whole) / 3 / 2


def test_archive_entry_marked_as_a_folder_is_noticed(tmp_path):
    path = tmp_path / "t.pt"
    checkpoint.save(path, make_state())
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    attributes = whole.index(b"data/0", start) - len("archive/") - 8  # of its entry
    whole[attributes] |= 0x10
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="marked as a folder"):
        checkpoint.load(path)


def test_archive_that_claims_more_bytes_than_the_file_is_not_unpacked(tmp_path):
    checkpoint.save(tmp_path / "t.pt", make_state())
    with zipfile.ZipFile(tmp_path / "t.pt") as whole:
        with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
            for entry in whole.infolist():
                bomb.writestr(entry.filename, whole.read(entry))
            bomb.writestr("t/data/9", bytes(10**8))
    assert (tmp_path / "bomb.pt").stat().st_size < 10**6
    with pytest.raises(ValueError, match="its entries are compressed"):
        checkpoint.load(tmp_path / "bomb.pt")
    with zipfile.ZipFile(tmp_path / "twice.pt", "w") as twice:
        twice.writestr("t/data/0", bytes(1000))
        for _ in range(9):  # the same bytes, again and again
            twice.infolist().append(twice.infolist()[0])
            twice.filelist = twice.infolist()
    with pytest.raises(ValueError, match="its entries claim 10,000 bytes"):
        checkpoint.load(tmp_path / "twice.pt")


@pytest.mark.parametrize("script", ["train.py", "translate.py"])
def test_code_in_a_checkpoint_is_refused_by_every_script_without_running_it(tmp_path, script):
    torch.save(make_state(history=[Bomb()]), "archive.pt")
    Path("plain.pt").write_bytes(pickle.dumps(Bomb()))
    source = write_number_pairs(tmp_path)
    for name in ("archive.pt", "plain.pt"):
        arguments = {
            "train.py": train_flags(source, preload=name),
            "translate.py": ["x", "--weights", name],
        }[script]
        process = run_script(script, *arguments, check=False)
        assert process.returncode == 1 and "damaged or not a checkpoint" in process.stderr
        assert "Traceback" not in process.stderr
    assert not Path("exploded").exists()


@pytest.mark.parametrize(
    ("datasource", "model_folder", "expected"),
    [
        ("opus_books", "weights", "opus_books_weights"),
        ("Helsinki-NLP/opus_books", "weights", "opus_books_weights"),
        ("data/train", "weights", "train_weights"),
        ("data/pairs.jsonl", "weights", "pairs_weights"),
        ("opus_books,data/b.jsonl:2", "weights", "opus_books_b_weights"),
        ("data/train", "out/second", "out/second"),
    ],
)
def test_weights_folder_is_named_after_the_data(datasource, model_folder, expected):
    config = Config(datasource=datasource, model_folder=model_folder)
    assert WeightsFolder.of(config).path == Path(expected)


def make_files(config, names):
    folder = WeightsFolder.of(config).path
    folder.mkdir()
    for name in names:
        (folder / name).touch()


def test_latest_checkpoint_has_the_highest_number():
    config = get_config()
    assert WeightsFolder.of(config).latest() is None
    names = ["tmodel_9.pt", "tmodel_10.pt", "tmodel_99.pt", "tmodel_100.pt", "tmodel_best.pt"]
    make_files(config, [*names, "tmodel_101.pt.tmp", ".DS_Store", "other_200.pt", "tmodel_x1.pt"])
    assert WeightsFolder.of(config).latest().name == "tmodel_100.pt"


def test_end_of_an_epoch_is_later_than_any_update_inside_it():
    config = get_config()
    make_files(config, ["tmodel_07.pt", "tmodel_08_900.pt", "tmodel_08_1000.pt"])
    assert WeightsFolder.of(config).latest().name == "tmodel_08_1000.pt"
    WeightsFolder.of(config).end_of(8).touch()
    assert WeightsFolder.of(config).latest().name == "tmodel_08.pt"


@pytest.mark.parametrize(
    ("keep_last", "kept"),
    [(0, [3]), (1, [3]), (3, [1, 2, 3]), (9, [0, 1, 2, 3]), (-1, [0, 1, 2, 3])],
)
def test_keep_last_counts_finished_epochs_and_never_the_best(keep_last, kept):
    config = Config(keep_last=keep_last)
    make_files(config, [f"tmodel_0{i}.pt" for i in range(4)] + ["tmodel_best.pt", "tmodel_03_7.pt"])
    for path in WeightsFolder.of(config).replaced(config.keep_last):
        path.unlink()
    left = sorted(path.name for path in WeightsFolder.of(config).path.iterdir())
    assert left == sorted([f"tmodel_0{i}.pt" for i in kept] + ["tmodel_best.pt"])


def test_newest_checkpoint_inside_an_epoch_is_kept():
    config = Config(keep_last=1)
    make_files(config, ["tmodel_00.pt", "tmodel_01_5.pt", "tmodel_01_9.pt"])
    assert [path.name for path in WeightsFolder.of(config).replaced(config.keep_last)] == [
        "tmodel_01_5.pt"
    ]


def test_keep_last_0_keeps_the_newest_only():
    config = Config(keep_last=0)
    make_files(config, ["tmodel_00.pt", "tmodel_best.pt", "tmodel_01_5.pt"])
    assert [path.name for path in WeightsFolder.of(config).replaced(config.keep_last)] == [
        "tmodel_00.pt"
    ]


def test_translating_takes_the_best_checkpoint_else_the_newest():
    config = get_config()
    make_files(config, ["tmodel_99.pt", "tmodel_100.pt"])
    folder = WeightsFolder.of(config).path
    assert find_weights_file_path(folder).name == "tmodel_100.pt"
    assert find_weights_file_path(None).name == "tmodel_100.pt"
    WeightsFolder.of(config).best.touch()
    assert find_weights_file_path(None).name == "tmodel_best.pt"
    with pytest.raises(FileNotFoundError, match="no checkpoint in elsewhere"):
        Path("elsewhere").mkdir()
        find_weights_file_path(Path("elsewhere"))


def test_basename_that_ends_in_a_number_is_not_an_epoch():
    config = Config(model_basename="exp2_")
    make_files(config, ["exp2_07.pt", "exp2_10.pt", "exp2_09_2300.pt"])
    assert find_weights_file_path(WeightsFolder.of(config).path).name == "exp2_10.pt"


def test_folder_trained_last_is_taken():
    for name, seconds in (("a_weights", 100), ("b_weights", 300), ("c_weights", 200)):
        Path(name).mkdir()
        for path in (Path(name, "tmodel_00.pt"), Path(name, "tmodel_best.pt")):
            path.touch()
            os.utime(path, (seconds, seconds))
    assert find_weights_file_path(None) == Path("b_weights/tmodel_best.pt")
