"""Tokenizer files from elsewhere are checked."""

import json
from pathlib import Path

import pytest
from conftest import run_script, train_flags, write_number_pairs

from corpus.tokenizer import load_tokenizer, tokenizer_from_json
from corpus.vocabulary import build_tokenizer


@pytest.mark.parametrize(
    ("name", "words"),
    [("no_specials", "has no [UNK] token"), ("pad0_typo_ESO", "has no [EOS] token")],
)
def test_tokenizer_without_special_tokens_is_refused_by_name(shared_data, tmp_path, name, words):
    file = str(shared_data / "tokenizers" / name / "tokenizer_{0}.json")
    arguments = train_flags(write_number_pairs(tmp_path), tokenizer_file=file)
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode == 1 and words in process.stderr.splitlines()[-1]
    assert name in process.stderr and not Path("train_weights").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "cannot encode|not a tokenizer"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "x.json"),
    ],
)
def test_tokenizer_that_makes_the_library_panic_is_refused(changes, words):
    tokenizer = build_tokenizer(["one two"], "word", 100, 1)
    text = json.dumps({**json.loads(tokenizer.to_json()), **changes})
    with pytest.raises(ValueError, match=words):
        tokenizer_from_json(text, "x.json").encode("one two")


def test_tokenizer_with_dropout_encodes_deterministically():
    tokenizer = build_tokenizer(["one two three four five"] * 9, "bpe", 400, 1)
    text = json.loads(tokenizer.to_json())
    text["model"]["dropout"] = 0.5
    odd = tokenizer_from_json(json.dumps(text), "x.json")
    assert all(odd.encode("three four") == tokenizer.encode("three four") for _ in range(20))


def test_tokenizer_file_in_another_encoding_is_named(tmp_path):
    (tmp_path / "x.json").write_text("{}", "utf-16")
    with pytest.raises(ValueError, match="x.json is not a tokenizer file: it is not UTF-8"):
        load_tokenizer(tmp_path / "x.json")
