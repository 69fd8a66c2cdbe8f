"""What leaves the translator is one line, whatever the way of decoding."""

import json
import unicodedata
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from datasets import Dataset

from config import Config
from corpus.tokenizer import TokenizerPair
from corpus.vocabulary import build_tokenizer
from dataset import BilingualDataset
from model import build_transformer
from training.validation import run_validation
from translate import in_format
from translation.options import Options
from translation.translator import Translation, Translator

SEPARATORS = ["\n", "\r\n", "\t", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]


@pytest.fixture(scope="module")
def rambling():
    """A translator that has learned nothing: its samples hold bytes of all kinds."""
    torch.manual_seed(0)
    texts = ["one two", *(f"a{mark}b" for mark in SEPARATORS)]
    tokenizer = build_tokenizer(texts, "bpe", 400, 1)
    config = Config(seq_len=60, d_model=16, N=1, h=2, d_ff=16, dropout=0.0, tokenizer="bpe")
    sizes = (tokenizer.size, tokenizer.size)
    model = build_transformer(*sizes, **config.model_arguments()).eval()
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    return Translator(model, tokenizers, config, torch.device("cpu"), Options())


@contextmanager
def writing(translator, token):
    """Make the model write one token again and again."""
    bias = translator.model.projection.linear.bias
    before = bias.detach().clone()
    with torch.no_grad():
        bias[translator.tokenizers.tgt.backend.token_to_id(token)] = 1e4
    try:
        yield
    finally:
        with torch.no_grad():
            bias.copy_(before)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_decoded_text_is_one_line(separator):
    tokenizer = build_tokenizer([f"a{separator}b"], "bpe", 400, 1)
    ids = tokenizer.backend.encode(f"a{separator}b").ids
    assert tokenizer.backend.decode(ids).count(separator) == 1
    assert tokenizer.decode(ids) == "a b"


def test_samples_of_any_bytes_are_one_line_each(rambling):
    options = Options(sample=True, n_best=40, temperature=3.0, format="tsv")
    told = replace(rambling, options=options)
    [found] = told.translate([told.split("one two", 1)])
    raw = []
    for hypothesis in told.decode(*told.as_batch(told.split("one two", 1)[0]))[0]:
        raw.append(told.tokenizers.tgt.backend.decode(hypothesis.ids))
    assert any(len(text.splitlines()) > 1 or "\t" in text for text in raw)
    assert len(found) == 40
    for translation in found:
        assert len(translation.text.splitlines()) <= 1
        assert not any(unicodedata.category(mark) == "Cc" for mark in translation.text)
    row = in_format("one two", found, "tsv")
    assert len(row.splitlines()) == 1 and row.count("\t") == 80


@pytest.mark.parametrize("search", [{}, {"beam_size": 3}, {"beam_size": 2, "min_length": 4}])
def test_searches_that_find_line_feeds_write_one_line(rambling, search):
    told = replace(rambling, options=Options(**search))
    with writing(told, "Ċ"):  # the line feed's byte
        [[found]] = told.translate([told.split("one", 1)])
    assert "\n" not in found.text


def test_validation_and_translator_agree_on_line_feeds_and_control_tokens(rambling):
    pairs = Dataset.from_dict({"src_text": ["one", "two one"], "tgt_text": ["a b", "b"]})
    dataset = BilingualDataset(pairs, rambling.tokenizers, rambling.config.seq_len)
    arguments = (rambling.model, dataset, rambling.config, torch.device("cpu"))
    with writing(rambling, "Ċ"):
        predicted = run_validation(*arguments)[2]
        lines = [rambling.split(text, 1) for text in ("one", "two one")]
        assert predicted == [found[0].text for found in rambling.translate(lines)]
    assert not any("\n" in text for text in predicted)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_rows_of_any_source_are_one_line(separator):
    row = in_format(f"one{separator}two", [Translation("uno due", -1.0, -1.0)], "tsv")
    assert row == "one two\t-1.0000\tuno due"


@pytest.mark.parametrize("separator", SEPARATORS)
def test_json_of_any_source_is_one_line_and_gives_the_source_back(separator):
    source = f"one{separator}two"
    row = in_format(source, [Translation("uno due", -1.0, -1.0)], "jsonl")
    assert len(row.splitlines()) == 1
    assert json.loads(row)["source"] == source
