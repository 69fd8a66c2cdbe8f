"""Cleaning makes the texts uniform, and drops and counts pairs that cannot be used."""

import unicodedata

import pytest
from conftest import load_measured, texts, write_text_pair

from corpus.pairs import load_pairs


def test_text_is_composed_and_trimmed(tmp_path):
    pairs = [("  caf\N{LATIN SMALL LETTER E}\u0301\u00a0", "\u00a0bar ")]
    ((src, tgt),) = texts(load_pairs(write_text_pair(tmp_path, pairs), "en", "it"))
    assert (src, tgt) == ("café", "bar") and unicodedata.is_normalized("NFC", src)


def test_control_characters_become_blanks(tmp_path):
    prefix = write_text_pair(tmp_path, [("a\x00b", "\x1b[0mx\x07"), ("\x00", "y"), ("c", "z")])
    assert texts(load_pairs(prefix, "en", "it")) == [("a b", "[0mx"), ("c", "z")]


def test_a_pair_with_an_empty_side_is_dropped_and_counted(tmp_path, capsys):
    pairs = [("a", "x"), ("", "y"), ("c", "z"), ("d", " \u00a0"), ("", "")]
    prefix = write_text_pair(tmp_path, pairs)
    assert texts(load_pairs(prefix, "en", "it")) == [("a", "x"), ("c", "z")]
    assert "5 pairs, en -> it, 3 with an empty side dropped" in capsys.readouterr().out


def test_a_pair_with_a_side_of_invisible_characters_is_dropped_and_counted(tmp_path, capsys):
    pairs = [("a", "\u200b"), ("\u00ad \ufeff", "x"), ("\u2060", "\u3164"), ("b\u200bc", "y")]
    prefix = write_text_pair(tmp_path, pairs)
    assert texts(load_pairs(prefix, "en", "it")) == [("b\u200bc", "y")]
    assert "4 pairs, en -> it, 3 with an empty side dropped" in capsys.readouterr().out


def test_the_count_of_dropped_pairs_is_printed_again_when_cached(tmp_path, capsys):
    prefix = write_text_pair(tmp_path, [("a", "x"), ("", "y")])
    for _ in range(2):
        load_pairs(prefix, "en", "it")
        assert "1 with an empty side dropped" in capsys.readouterr().out


def test_real_corpora_with_empty_sides_load_and_count_the_drops(shared_data, capsys):
    load_pairs(str(shared_data / "debian_mo_en_it" / "all.jsonl"), "en", "it")
    load_pairs(str(shared_data / "opennmt_demo_en_de" / "train"), "en", "de")
    out = capsys.readouterr().out
    assert "62,141 pairs" in out and "10,000 pairs" in out and out.count("empty side dropped") == 2


@pytest.mark.parametrize("kind", ["text", "jsonl"])
def test_a_line_of_100_mb_is_dropped_in_bounded_memory(tmp_path, kind):
    line = b"word " * (20 * 2**20)
    if kind == "text":
        (tmp_path / "train.en").write_bytes(b"one\n" + line + b"\nthree\n")
        (tmp_path / "train.it").write_bytes(b"uno\ndue\ntre\n")
        source = tmp_path / "train"
    else:
        source = tmp_path / "train.jsonl"
        small = b'{"en": "one", "it": "uno"}\n'
        source.write_bytes(small + b'{"en": "' + line + b'", "it": "x"}\n' + small)
    printed, megabytes = load_measured(source)
    assert "3 pairs, en -> it, 1 over 20,000 characters dropped" in printed
    assert megabytes < 80
