"""The config refuses what cannot work, and finds a run's files by number."""

import os
from dataclasses import FrozenInstanceError, asdict, replace

import pytest
from conftest import run_script

from config import (
    PRESETS,
    Config,
    check_same_run,
    config_from_dict,
    get_config,
)


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


def test_settings_fixed_by_a_checkpoint_are_refused_and_others_are_reported():
    saved = get_config()
    with pytest.raises(ValueError, match="d_model: the checkpoint says 512, you say 256"):
        check_same_run(saved, replace(saved, d_model=256), in_epoch=False)
    changes = check_same_run(saved, replace(saved, lr=1e-4, num_epochs=30), in_epoch=True)
    assert changes == [
        "num_epochs: the checkpoint says 20, you say 30: using 30",
        "lr: the checkpoint says 0.0007, you say 0.0001: using 0.0001",
    ]


def test_batch_settings_may_change_between_epochs_only():
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
def test_invalid_command_line_is_explained(arguments):
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
def test_settings_of_model_and_data_are_fixed_by_a_checkpoint(changes):
    with pytest.raises(ValueError, match=f"{next(iter(changes))}: the checkpoint says"):
        check_same_run(get_config(), replace(get_config(), **changes), in_epoch=False)


def test_each_choice_of_the_model_reaches_it():
    choices = dict(
        seq_len=20, d_model=24, N=3, h=4, d_ff=12, dropout=0.3, norm="post",
        tie_embeddings="target", inner_dropout=0.2,
    )  # fmt: skip
    arguments = Config(**choices).model_arguments()
    seq_len = choices.pop("seq_len")
    assert arguments == {"src_seq_len": seq_len, "tgt_seq_len": seq_len, **choices}
