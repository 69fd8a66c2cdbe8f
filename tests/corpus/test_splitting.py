"""The split into training and validation, and drawing a part of the pairs."""

import pytest
from conftest import texts, write_text_pair

from corpus.pairs import load_pairs
from corpus.splitting import cap_pairs, split_pairs


def numbered(tmp_path, n=500):
    pairs = [(f"source {i % (n // 2)}", f"target {i}") for i in range(n)]
    return load_pairs(write_text_pair(tmp_path, pairs), "en", "it")


def test_no_source_sentence_is_in_both_training_and_validation(tmp_path):
    train, valid = split_pairs(numbered(tmp_path), seed=0)
    assert not set(train["src_text"]) & set(valid["src_text"])
    assert len(valid) == 50 and len(train) == 450


def test_the_split_depends_only_on_seed_and_texts(tmp_path):
    pairs = numbered(tmp_path)
    first, again, other = (set(split_pairs(pairs, seed)[1]["tgt_text"]) for seed in (0, 0, 1))
    assert first == again != other
    shuffled = pairs.shuffle(seed=7)
    assert set(split_pairs(shuffled, 0)[1]["tgt_text"]) == first


def test_one_distinct_source_sentence_cannot_be_split(tmp_path):
    pairs = load_pairs(write_text_pair(tmp_path, [("a", "x"), ("a", "y")]), "en", "it")
    with pytest.raises(ValueError, match="one distinct source"):
        split_pairs(pairs, 0)


def test_two_distinct_source_sentences_go_one_to_each_part(tmp_path):
    pairs = load_pairs(write_text_pair(tmp_path, [("a", "x"), ("b", "y")]), "en", "it")
    assert [len(side) for side in split_pairs(pairs, 0)] == [1, 1]


def test_capping_draws_the_same_pairs_each_time(tmp_path):
    pairs = numbered(tmp_path)
    capped = texts(cap_pairs(pairs, 20, seed=0))
    assert len(capped) == 20 and capped == texts(cap_pairs(pairs, 20, seed=0))
    assert capped != texts(pairs)[:20] and len(cap_pairs(pairs, 1000, seed=0)) == 500


def test_capping_draws_each_pair_once_in_order_by_the_seed(tmp_path):
    pairs = numbered(tmp_path)
    places = [texts(pairs).index(pair) for pair in texts(cap_pairs(pairs, 400, seed=0))]
    assert len(places) == 400 and places == sorted(set(places))
    assert texts(cap_pairs(pairs, 20, seed=0)) != texts(cap_pairs(pairs, 20, seed=1))
