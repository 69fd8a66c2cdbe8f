"""For any input at all: the right result or one line of message, never a traceback."""

import io
import json
import sys
import unicodedata
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import translate
from config import PRESETS, Config, config_from_dict
from corpus.pairs import load_pairs
from corpus.tokenizer import clean_text, one_line
from corpus.vocabulary import build_tokenizer
from dataset import form_batches
from train import parse_arguments

# Reproducible, without a time limit on the busy machines of a continuous integration.
settings.register_profile(
    "here",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("here")

TEXT = st.text(max_size=40)
STRANGE = st.sampled_from(
    ["", " ", "\x00", "\ufeff", "a\u2028b", "a\x0cb", "[EOS]", "e\u0301", "🤗", "\x85", "\ud7ff"]
)
SENTENCE = TEXT | STRANGE


def load_or_message(source, langs=("en", "it")):
    """Return the pairs of a source, or None when it is refused, in one line."""
    try:
        pairs = load_pairs(str(source), *langs)
    except (ValueError, FileNotFoundError) as error:
        assert str(error) and "\n" not in str(error)
        return None
    return list(zip(pairs["src_text"], pairs["tgt_text"], strict=True))


# --- The loader ---


@settings(max_examples=25)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), max_size=6))
def test_text_files_give_each_pair_that_has_text_on_both_sides(tmp_path, pairs):
    for lang, side in (("en", 0), ("it", 1)):
        lines = [pair[side].replace("\n", " ") for pair in pairs]
        if lines:
            lines[0] = lines[0].removeprefix("\ufeff")  # which begins a file
        Path(f"train.{lang}").write_bytes("".join(f"{line}\n" for line in lines).encode())
        pairs = [
            tuple(line if i == side else text for i, text in enumerate(pair))
            for line, pair in zip(lines, pairs, strict=True)
        ]
    cleaned = [tuple(map(clean_text, pair)) for pair in pairs]
    assert load_or_message(Path("train").absolute()) == ([p for p in cleaned if all(p)] or None)


@settings(max_examples=25)
@given(st.binary(max_size=60), st.binary(max_size=60))
@example(b"\xff\xfea\x00\n\x00", b"x\n")
@example(b"caf\xe9\n", b"x\n")
def test_any_bytes_in_text_files_give_pairs_or_a_message(tmp_path, src, tgt):
    Path("train.en").write_bytes(src)
    Path("train.it").write_bytes(tgt)
    pairs = load_or_message(Path("train").absolute())
    assert pairs is None or all(src and tgt for src, tgt in pairs)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SENTENCE,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
ROW = (
    st.fixed_dictionaries({"translation": st.fixed_dictionaries({"en": SENTENCE, "it": SENTENCE})})
    | st.fixed_dictionaries({"translation": st.fixed_dictionaries({}, optional={"en": JSON})})
    | st.fixed_dictionaries({}, optional={"en": JSON, "it": JSON, "translation": JSON})
    | JSON
)


@settings(max_examples=40)
@given(st.lists(ROW, max_size=4), st.integers(0, 30))
@example([{"translation": {"en": "\ud800", "it": "x"}}], 0)
@example([{"translation": {"en": 5, "it": 0.5}}], 0)
@example([{"en": "a", "it": None}, {"en": "b"}, {"en": "c", "it": "x"}], 0)
def test_any_json_lines_give_pairs_or_a_message(tmp_path, rows, cut):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    Path("train.jsonl").write_text(text[: len(text) - cut], "utf-8")
    pairs = load_or_message(Path("train.jsonl").absolute())
    assert pairs is None or all(src and tgt for src, tgt in pairs)


WRITTEN = st.sampled_from(
    [
        "0012",
        "1.50",
        "NA",
        "null",
        "nan",
        "True",
        "2024-01-31",
        "12:30",
        "1e5",
        "9" * 5000,
        '"',
        "-0",
    ]
)
CELL = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=40)
@given(st.lists(st.tuples(CELL | WRITTEN, CELL | WRITTEN), min_size=1, max_size=6))
@example([("2024-01-31", "0012")])
@example([("1.50", "nan"), ("", "x"), ('"a', 'b"')])
def test_the_same_pairs_in_a_file_of_any_kind_are_the_same_pairs(tmp_path, pairs):
    import csv

    from datasets import Dataset

    rows = [{"en": en, "it": it} for en, it in pairs]
    lines = [json.dumps({"translation": row}) + "\n" for row in rows]
    Path("train.jsonl").write_text("".join(lines), "utf-8")
    Path("train.json").write_text(json.dumps(rows, indent=2), "utf-8")
    with open("train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("en", "it"), *pairs])
    text = "".join("\t".join(pair) + "\n" for pair in [("en", "it"), *pairs])
    Path("train.tsv").write_bytes(text.encode())
    Dataset.from_list(rows).to_parquet("train.parquet")
    cleaned = [tuple(map(clean_text, pair)) for pair in pairs]
    for kind in ("jsonl", "json", "csv", "tsv", "parquet"):
        path = Path(f"train.{kind}").absolute()
        assert load_or_message(path) == ([p for p in cleaned if all(p)] or None), kind


@settings(max_examples=15)
@given(
    st.binary(max_size=80), st.sampled_from(["json", "csv", "tsv", "txt", "parquet", "jsonl.gz"])
)
def test_any_bytes_in_a_table_give_pairs_or_a_message(tmp_path, data, kind):
    Path(f"train.{kind}").write_bytes(data)
    load_or_message(Path(f"train.{kind}").absolute())


# --- Tokenizers ---


@given(st.text(max_size=80) | STRANGE)
def test_bpe_decodes_any_clean_text_unchanged_without_control_tokens(bpe, text):
    text = clean_text(text)
    ids = bpe.encode(text)
    assert bpe.decode(ids) == one_line(text)
    assert {bpe.pad_id, bpe.sos_id, bpe.eos_id, bpe.unk_id}.isdisjoint(ids)


@pytest.fixture(scope="module")
def bpe():
    return build_tokenizer(["the house", "l'amico è qui"] * 3, "bpe", 400, 2)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["house", "è", "7", "'", ",", "-", "(", "[EOS]", "…", " "])))
def test_word_tokenizer_decodes_known_words_with_their_blanks(pieces):
    text = " ".join("".join(pieces).split())
    tokenizer = build_tokenizer([text], "word", 1000, 1)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    control = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.unk_id}
    assert control.isdisjoint(ids)


@given(st.text(max_size=200))
def test_clean_text_is_one_line_composed_trimmed_and_stable(text):
    clean = clean_text(text)
    assert clean_text(clean) == clean == clean.strip()
    assert unicodedata.is_normalized("NFC", clean)
    assert not any(unicodedata.category(letter) == "Cc" for letter in clean)


# --- Batches ---


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=80),
    st.integers(30, 200),
    st.none() | st.integers(1, 9),
    st.none() | st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 10**6)),
)
def test_each_pair_is_once_in_an_epoch_within_the_budget(lens, batch_tokens, batch_size, seed):
    src_lens, tgt_lens = (np.array([pair[i] for pair in lens], dtype=np.int64) for i in (0, 1))
    batches = form_batches(src_lens, tgt_lens, batch_tokens, batch_size, seed)
    indices = [i for batch in batches for i in batch.tolist()]
    assert sorted(indices) == list(range(len(lens)))
    for batch in batches:
        longest = max(src_lens[batch].max(), tgt_lens[batch].max())
        assert len(batch) * longest <= batch_tokens and len(batch) <= (batch_size or len(lens))
    again = form_batches(src_lens, tgt_lens, batch_tokens, batch_size, seed)
    assert all(map(np.array_equal, batches, again))


# --- Settings and command lines ---

NAMES = [field.name for field in fields(Config)]
VALUE = st.none() | st.booleans() | st.integers() | st.floats() | SENTENCE | st.just(["x"])


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(NAMES) | TEXT, VALUE, max_size=3))
def test_any_settings_are_a_config_or_refused_by_name(values):
    try:
        config = config_from_dict(values)
    except ValueError as error:
        assert any(repr(name)[1:-1] in str(error) for name in values)
        assert "\n" not in str(error)
    else:
        assert all(getattr(config, name) == value for name, value in values.items())


FLAG = st.sampled_from([f"--{name}" for name in NAMES] + ["--shared-vocab", "--help", "-h", "--"])
WORD = FLAG | st.sampled_from([*PRESETS, "7", "-1", "1e3", "None", "True", "word"]) | TEXT


@settings(max_examples=60)
@given(st.lists(WORD, max_size=4))
def test_any_command_line_of_training_is_a_config_or_refused(capsys, words):
    try:
        assert isinstance(parse_arguments(words), Config)
    except ValueError as error:
        assert str(error)
    except SystemExit as stop:
        assert stop.code in (0, 2) and capsys.readouterr() != ("", "")


OPTION = st.sampled_from(
    ["--weights", "--input", "--batch_tokens", "--device", "in.txt", "cpu", "0", "64"]
)


@settings(max_examples=60)
@given(st.lists(OPTION | SENTENCE, max_size=4), st.binary(max_size=80))
@example([], b"one two\n\n\xff\xfe\nthree\x00\n")
@example(["--input", "in.txt"], b"")
@example(["one", "two [EOS] [PAD]"], b"")
def test_any_command_line_of_translating_ends_with_lines_or_a_message(
    trained, tmp_path, monkeypatch, capfd, words, stdin
):
    monkeypatch.chdir(trained)
    Path("in.txt").write_bytes(b"one two\n\nthree\n")
    monkeypatch.setattr(sys, "argv", ["translate.py", *words])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), write_through=True))
    try:
        code = translate.main()
    except SystemExit as stop:
        code = stop.code
    output = sys.stdout.buffer.getvalue()
    assert code in (0, 1, 2)
    _, err = capfd.readouterr()
    assert "Traceback" not in err and (code == 0 or err)
    if code == 0 and not words:
        text = stdin.removesuffix(b"\n")
        assert output.count(b"\n") == (text.count(b"\n") + 1 if stdin else 0)
