"""Pairs of two text files, and the errors of such files."""

import gzip

from conftest import PAIRS, refused, texts, write_text_pair

from corpus.pairs import load_pairs


def test_two_text_files_give_their_pairs(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    assert texts(load_pairs(prefix, "en", "it")) == PAIRS
    assert texts(load_pairs(prefix, "it", "en")) == [(it, en) for en, it in PAIRS]


def test_text_files_may_be_compressed(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    (tmp_path / "train.it.gz").write_bytes(gzip.compress((tmp_path / "train.it").read_bytes()))
    (tmp_path / "train.it").unlink()
    assert texts(load_pairs(prefix, "en", "it")) == PAIRS


def test_only_a_newline_ends_a_line(tmp_path):
    pairs = [("one\u2028still one\x0cone", "uno\x85uno"), ("two\rtwo", "due")]
    prefix = write_text_pair(tmp_path, pairs)
    # Control characters become blanks.
    cleaned = [("one\u2028still one one", "uno uno"), ("two two", "due")]
    assert texts(load_pairs(prefix, "en", "it")) == cleaned


def test_windows_line_ends_and_a_byte_order_mark_are_removed(tmp_path):
    (tmp_path / "train.en").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "train.it").write_bytes(b"uno\r\ndue\r\n")
    assert texts(load_pairs(str(tmp_path / "train"), "en", "it")) == [
        ("one", "uno"),
        ("two", "due"),
    ]


def test_a_changed_file_is_noticed(tmp_path):
    prefix = write_text_pair(tmp_path, [("a", "x")])
    assert texts(load_pairs(prefix, "en", "it")) == [("a", "x")]
    write_text_pair(tmp_path, [("a", "y")])
    assert texts(load_pairs(prefix, "en", "it")) == [("a", "y")]


def test_unequal_line_counts_are_reported_with_both_numbers(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    with open(f"{prefix}.it", "a", encoding="utf-8") as file:
        file.write("one more\n")
    refused(prefix, "4 lines", "has 5")


def test_a_text_file_that_is_not_utf_8_is_reported_by_line_and_byte(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    (tmp_path / "train.it").write_bytes("perché\n".encode("latin-1") * 4)
    refused(prefix, "train.it, line 1, byte 6: 0xe9 is not UTF-8")


def test_a_truncated_gzip_file_is_named(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS * 100)
    packed = gzip.compress((tmp_path / "train.it").read_bytes())
    (tmp_path / "train.it").unlink()
    for content in (packed[: len(packed) // 2], b"no gzip"):
        (tmp_path / "train.it.gz").write_bytes(content)
        refused(prefix, "train.it.gz is not a complete gzip file")
