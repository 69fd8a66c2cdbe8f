"""Loading the pairs of one source or of several with weights."""

import pytest
from conftest import PAIRS, refused, texts, write_text_pair

from corpus.pairs import fingerprint, load_pairs


def test_the_fingerprint_depends_on_the_texts(tmp_path):
    one, again, other = (
        fingerprint(load_pairs(write_text_pair(tmp_path, pairs, name), "en", "it"))
        for name, pairs in (("a", PAIRS), ("b", PAIRS), ("c", [*PAIRS[:-1], ('"Yes"', "Sì")]))
    )
    assert one == again != other


def test_a_source_without_a_complete_pair_is_refused(tmp_path):
    refused(write_text_pair(tmp_path, [("", "x")]), "no pair with text on both sides")


# --- Several sources ---


def test_several_sources_are_one_corpus_with_weights(tmp_path, capsys):
    first = write_text_pair(tmp_path, [("a", "x"), ("", "y"), ("b", "y")], "first")
    second = write_text_pair(tmp_path, [("c", "z")], "second")
    pairs = load_pairs(f"{first},{second}:3", "en", "it")
    assert texts(pairs) == [("a", "x"), ("b", "y"), ("c", "z")]
    assert pairs["weight"][:] == [1, 1, 3]
    printed = capsys.readouterr().out
    assert "first: 3 pairs, en -> it, 1 with an empty side dropped" in printed
    assert "second: 1 pairs" in printed
    assert texts(load_pairs(f"{first}:1", "en", "it")) == texts(load_pairs(first, "en", "it"))
    for wrong in (f"{first},,{second}", ","):
        with pytest.raises(ValueError, match="datasource .* has an empty name"):
            load_pairs(wrong, "en", "it")
    for weight in ("0", "101", "1.5", "", "two"):
        with pytest.raises(ValueError, match=f"a whole number, 1 to 100, not '{weight}'"):
            load_pairs(f"{first},{second}:{weight}", "en", "it")


def test_an_existing_path_with_commas_and_colons_is_one_source(tmp_path):
    pairs = [(f"one {i}", f"uno {i}") for i in range(4)]
    (tmp_path / "a, b:3").mkdir()
    (tmp_path / "x,y").mkdir()
    one = write_text_pair(tmp_path / "a, b:3", pairs[:1], "v1,2")
    two = write_text_pair(tmp_path / "x,y", pairs[1:2], "train:2")
    plain = write_text_pair(tmp_path, pairs[2:3], "train")
    table = tmp_path / "x,y" / "c,d:9.csv"
    table.write_text(f"en,it\n{pairs[3][0]},{pairs[3][1]}\n", "utf-8")
    for source, pair in zip((one, two, plain, str(table)), pairs, strict=True):
        loaded = load_pairs(source, "en", "it")
        assert texts(loaded) == [pair] and "weight" not in loaded.column_names
    loaded = load_pairs(f"{one}:3,{plain},{two},{two}:5,{table}:2", "en", "it")
    assert texts(loaded) == [pairs[0], pairs[2], pairs[1], pairs[1], pairs[3]]
    assert loaded["weight"][:] == [3, 1, 1, 5, 2]


def test_a_hundred_sources_load_as_one_corpus(tmp_path):
    prefix = write_text_pair(tmp_path, [("a", "x")])
    assert len(load_pairs(",".join([prefix] * 100), "en", "it")) == 100
