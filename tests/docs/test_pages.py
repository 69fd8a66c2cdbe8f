"""Names in the documentation are names in the code, and the example of training.md is true."""

import importlib
import inspect
import re

import pytest
from conftest import ROOT

from checkpoint import KEYS
from config import get_config
from corpus.tokenizer import TokenizerPair
from corpus.vocabulary import build_tokenizer
from phrasebook.sentences import write_pairs

PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
TRAINING = (ROOT / "docs" / "training.md").read_text("utf-8")


def named_in(text):
    """Return each name that a page says is in a module, with that module."""
    found = re.findall(r"`([A-Za-z_][\w.]*)`\s+in\s+`([\w/]+)\.py`", text)
    return [(name, module.replace("/", ".")) for name, module in found]


@pytest.mark.parametrize("page", PAGES)
def test_each_name_is_in_the_module_that_the_page_says(page):
    for name, module in named_in((ROOT / "docs" / page).read_text("utf-8")):
        place = importlib.import_module(module)
        for part in name.split("."):
            is_field = part in getattr(place, "__dataclass_fields__", {})
            assert is_field or hasattr(place, part), f"{name} in {module}"
            place = getattr(place, part, None)
        if inspect.isroutine(place) or inspect.isclass(place):
            assert place.__module__ == module, f"{name} is only imported in {module}"


def test_the_names_were_found():
    assert len(named_in(TRAINING)) > 40


def test_the_way_of_a_pair_has_its_true_tokens_and_ids():
    pairs = write_pairs("train")
    config = get_config("demo")
    settings = (config.tokenizer, config.vocab_size, config.min_frequency)
    tokenizers = TokenizerPair(
        *(build_tokenizer(side, *settings) for side in zip(*pairs, strict=True))
    )
    pair = re.search(r'the pair "(.*?)" / "(.*?)"', TRAINING).groups()
    assert pair in pairs
    src, tgt = (t.encode(text) for t, text in zip(tokenizers, pair, strict=True))
    for row in (
        ("src", [2, *src, 3], "source"),
        ("tgt_in", [2, *tgt], "target"),
        ("tgt_out", [*tgt, 3], "target"),
    ):
        ids = " ".join(map(str, row[1]))
        assert re.search(rf"\| `{row[0]}` \(. = {len(row[1])}\) \| .* \| {ids} \|", TRAINING)
    assert f"{len(pairs):,} training pairs" in TRAINING
    assert "{:,} English and {:,} Italian entries".format(*tokenizers.sizes) in TRAINING
    assert f"V = {tokenizers.tgt.size:,}" in TRAINING and f"D = {config.d_model}" in TRAINING


def test_the_table_has_every_key_of_a_checkpoint():
    table = TRAINING.partition("## The checkpoint")[2]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == set(KEYS)
