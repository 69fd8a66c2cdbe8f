"""The config refuses what cannot work, and finds a run's files by number."""

import os
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path

import pytest
from conftest import run_script

from config import (
    PRESETS,
    Config,
    check_same_run,
    config_from_dict,
    get_config,
    get_weights_file_path,
    get_weights_folder,
    latest_weights_file_path,
    obsolete_weights_file_paths,
)
from translation.trained import find_weights_file_path


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_valid(preset):
    assert get_config(preset).lang_src == "en"


def test_base_is_the_papers_model_on_opus_books():
    config = get_config()
    assert (config.d_model, config.N, config.h, config.d_ff, config.dropout) == (
        512,
        6,
        8,
        2048,
        0.1,
    )
    assert (config.datasource, config.lang_src, config.lang_tgt) == ("opus_books", "en", "it")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"h": 7}, ["7", "512"]),
        ({"d_model": 15, "h": 5}, ["d_model (15)", "even"]),
        ({"dropout": 1.0}, ["dropout (1.0)", "[0, 1)"]),
        ({"dropout": -0.1}, ["dropout (-0.1)"]),
        ({"inner_dropout": 1.0}, ["inner_dropout (1.0)", "[0, 1)"]),
        ({"dropout": float("nan")}, ["dropout (nan)"]),
        ({"label_smoothing": 1.5}, ["label_smoothing (1.5)"]),
        ({"seq_len": 3}, ["seq_len (3)", "4"]),
        ({"lang_tgt": "en"}, ["lang_src (en)", "lang_tgt (en)"]),
        ({"lang_src": "../../x"}, ["lang_src ('../../x')"]),
        ({"lr": 0.0}, ["lr (0.0)"]),
        ({"lr": float("nan")}, ["lr (nan)"]),
        ({"warmup": 0}, ["warmup (0)", "1"]),
        ({"num_epochs": 0}, ["num_epochs (0)"]),
        ({"N": 0}, ["N (0)"]),
        ({"batch_tokens": 100}, ["batch_tokens (100)", "seq_len (350)"]),
        ({"batch_size": 0}, ["batch_size (0)"]),
        ({"vocab_size": 10**21}, ["vocab_size", "at most 2147483647"]),
        ({"N": 10**9}, ["N (1000000000)", "at most 1000"]),
        ({"keep_last": -2}, ["keep_last (-2)"]),
        ({"norm": "both"}, ["norm ('both')", "pre, post"]),
        ({"tokenizer": "unigram"}, ["tokenizer ('unigram')", "word, bpe"]),
        ({"tie_embeddings": "all"}, ["tie_embeddings (all)", "shared_vocab"]),
        ({"device": "gpu"}, ["device ('gpu')"]),
        ({"N": "6"}, ["N ('6')", "int"]),
        ({"N": True}, ["N (True)", "int"]),
        ({"model_basename": "../x"}, ["model_basename ('../x')"]),
        ({"lang_src": "it", "lang_tgt": "IT"}, ["lang_src (it)", "lang_tgt (IT)"]),
        ({"datasource": ""}, ["datasource is empty"]),
        ({"seed": 2**63}, ["seed"]),
        ({"tokenizer_file": "a{0}{1}.json"}, ["a{0}{1}.json"]),
        ({"tokenizer_file": "tokenizer.json"}, ["tokenizer_file ('tokenizer.json')", "{0}"]),
        ({"streaming": True}, ["streaming", "--validsource"]),
        (
            {"streaming": True, "validsource": "v", "schedule": "linear"},
            ["streaming", "schedule (linear)", "inverse_sqrt"],
        ),
        ({"pool_size": 0}, ["pool_size (0)", "1"]),
    ],
)
def test_a_bad_value_is_refused_with_the_values_in_conflict(values, words):
    with pytest.raises(ValueError) as error:
        Config(**values)
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


def test_an_unknown_preset_lists_the_presets():
    with pytest.raises(ValueError, match="'tny'.*base, demo, small, tiny"):
        get_config("tny")


def test_the_config_is_frozen():
    with pytest.raises(FrozenInstanceError):
        get_config().lr = 1.0


def test_a_stored_config_comes_back_equal():
    config = replace(get_config("tiny"), validsource="data/val")
    assert config_from_dict(asdict(config)) == config


def test_a_stored_config_of_another_version_is_refused_by_name():
    with pytest.raises(ValueError, match="n_gpu"):
        config_from_dict({"n_gpu": 3})


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
def test_the_weights_folder_is_named_after_the_data(datasource, model_folder, expected):
    config = Config(datasource=datasource, model_folder=model_folder)
    assert get_weights_folder(config) == Path(expected)


def make_files(config, names):
    folder = get_weights_folder(config)
    folder.mkdir()
    for name in names:
        (folder / name).touch()


def test_the_latest_checkpoint_is_the_one_with_the_highest_number():
    config = get_config()
    assert latest_weights_file_path(config) is None
    names = ["tmodel_9.pt", "tmodel_10.pt", "tmodel_99.pt", "tmodel_100.pt", "tmodel_best.pt"]
    make_files(config, [*names, "tmodel_101.pt.tmp", ".DS_Store", "other_200.pt", "tmodel_x1.pt"])
    assert latest_weights_file_path(config).name == "tmodel_100.pt"


def test_the_end_of_an_epoch_is_later_than_any_update_inside_it():
    config = get_config()
    make_files(config, ["tmodel_07.pt", "tmodel_08_900.pt", "tmodel_08_1000.pt"])
    assert latest_weights_file_path(config).name == "tmodel_08_1000.pt"
    get_weights_file_path(config, 8).touch()
    assert latest_weights_file_path(config).name == "tmodel_08.pt"


@pytest.mark.parametrize(
    ("keep_last", "kept"),
    [(0, [3]), (1, [3]), (3, [1, 2, 3]), (9, [0, 1, 2, 3]), (-1, [0, 1, 2, 3])],
)
def test_keep_last_counts_finished_epochs_and_never_the_best(keep_last, kept):
    config = Config(keep_last=keep_last)
    make_files(config, [f"tmodel_0{i}.pt" for i in range(4)] + ["tmodel_best.pt", "tmodel_03_7.pt"])
    for path in obsolete_weights_file_paths(config):
        path.unlink()
    left = sorted(path.name for path in get_weights_folder(config).iterdir())
    assert left == sorted([f"tmodel_0{i}.pt" for i in kept] + ["tmodel_best.pt"])


def test_the_newest_checkpoint_inside_an_epoch_is_kept():
    config = Config(keep_last=1)
    make_files(config, ["tmodel_00.pt", "tmodel_01_5.pt", "tmodel_01_9.pt"])
    assert [path.name for path in obsolete_weights_file_paths(config)] == ["tmodel_01_5.pt"]


def test_keep_last_0_keeps_the_newest_alone():
    config = Config(keep_last=0)
    make_files(config, ["tmodel_00.pt", "tmodel_best.pt", "tmodel_01_5.pt"])
    assert [path.name for path in obsolete_weights_file_paths(config)] == ["tmodel_00.pt"]


def test_translating_takes_the_best_checkpoint_else_the_newest():
    config = get_config()
    make_files(config, ["tmodel_99.pt", "tmodel_100.pt"])
    folder = get_weights_folder(config)
    assert find_weights_file_path(folder).name == "tmodel_100.pt"
    assert find_weights_file_path(None).name == "tmodel_100.pt"
    get_weights_file_path(config, "best").touch()
    assert find_weights_file_path(None).name == "tmodel_best.pt"
    with pytest.raises(FileNotFoundError, match="no checkpoint in elsewhere"):
        Path("elsewhere").mkdir()
        find_weights_file_path(Path("elsewhere"))


def test_a_basename_that_ends_in_a_number_is_not_taken_for_an_epoch():
    config = Config(model_basename="exp2_")
    make_files(config, ["exp2_07.pt", "exp2_10.pt", "exp2_09_2300.pt"])
    assert find_weights_file_path(get_weights_folder(config)).name == "exp2_10.pt"


def test_what_a_checkpoint_fixes_is_refused_and_the_rest_is_told():
    saved = get_config()
    with pytest.raises(ValueError, match="d_model: the checkpoint says 512, you say 256"):
        check_same_run(saved, replace(saved, d_model=256), in_epoch=False)
    changes = check_same_run(saved, replace(saved, lr=1e-4, num_epochs=30), in_epoch=True)
    assert changes == [
        "num_epochs: the checkpoint says 20, you say 30: using 30",
        "lr: the checkpoint says 0.0007, you say 0.0001: using 0.0001",
    ]


def test_the_way_batches_are_formed_may_change_between_epochs_only():
    saved, asked = get_config(), Config(batch_tokens=4096)
    assert check_same_run(saved, asked, in_epoch=False)
    with pytest.raises(ValueError, match="batch_tokens: the checkpoint says 2048, you say 4096"):
        check_same_run(saved, asked, in_epoch=True)


def test_help_shows_every_field_with_its_text():
    text = run_script("train.py", "tiny", "--help", env=wide_terminal()).stdout
    for name in asdict(Config()):
        assert f"--{name} " in text or f"--{name}, --no_" in text
    assert "attention heads (default: 4)" in text


def test_a_mistyped_flag_names_the_right_one():
    process = run_script("train.py", "--bach_tokens", 9, check=False, env=wide_terminal())
    assert process.returncode != 0
    assert "--batch_tokens" in process.stderr and "Traceback" not in process.stderr


@pytest.mark.parametrize("arguments", [("tny",), ("--h", "7"), ("--lang_src", "it")])
def test_a_bad_command_line_is_told_in_words(arguments):
    process = run_script("train.py", *arguments, check=False, env=wide_terminal())
    assert process.returncode != 0
    assert arguments[-1] in process.stderr and "Traceback" not in process.stderr


def wide_terminal():
    return {**os.environ, "COLUMNS": "200", "TERMINAL_WIDTH": "200"}


@pytest.mark.parametrize(
    "changes",
    [
        {"seq_len": 20}, {"d_model": 256}, {"N": 2}, {"h": 4}, {"d_ff": 4}, {"norm": "post"},
        {"tie_embeddings": "target"}, {"tokenizer": "bpe"}, {"vocab_size": 9}, {"seed": 1},
        {"min_frequency": 1}, {"shared_vocab": True}, {"lang_src": "de"}, {"lang_tgt": "de"},
    ],
)  # fmt: skip
def test_what_would_make_another_model_or_other_data_is_fixed(changes):
    with pytest.raises(ValueError, match=f"{next(iter(changes))}: the checkpoint says"):
        check_same_run(get_config(), replace(get_config(), **changes), in_epoch=False)


def test_of_several_folders_the_one_trained_last_is_taken():
    for name, seconds in (("a_weights", 100), ("b_weights", 300), ("c_weights", 200)):
        Path(name).mkdir()
        for path in (Path(name, "tmodel_00.pt"), Path(name, "tmodel_best.pt")):
            path.touch()
            os.utime(path, (seconds, seconds))
    assert find_weights_file_path(None) == Path("b_weights/tmodel_best.pt")


def test_each_choice_of_the_model_reaches_it():
    choices = dict(
        seq_len=20, d_model=24, N=3, h=4, d_ff=12, dropout=0.3, norm="post",
        tie_embeddings="target", inner_dropout=0.2,
    )  # fmt: skip
    arguments = Config(**choices).model_arguments()
    seq_len = choices.pop("seq_len")
    assert arguments == {"src_seq_len": seq_len, "tgt_seq_len": seq_len, **choices}
