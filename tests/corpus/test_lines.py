"""Lines of files, pipes and arguments. A bad line is reported, and the others are translated."""

import codecs
import gzip
import io
import json
import os
import subprocess
import sys
import threading

import pytest
from conftest import ROOT, run_script

from corpus.lines import Line, argument_lines, file_lines, stream_lines
from corpus.tokenizer import MAX_CHARS

BOM = codecs.BOM_UTF8


def run(trained, *arguments, stdin=b""):
    command = [sys.executable, str(ROOT / "translate.py"), *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=trained)


def test_a_byte_order_mark_is_removed_only_at_the_start():
    read = list(stream_lines(io.BytesIO(BOM + b"one\n" + BOM + b"two")))
    assert read == [Line("one"), Line("\ufefftwo")]


@pytest.mark.parametrize(
    ("line", "byte"),
    [(b"caf\xe9", "4: 0xe9"), (b"\xed\xa0\x80", "1: 0xed"), (b"ok \xc3", "4: 0xc3")],
)
def test_a_line_that_is_not_utf_8_is_reported_by_line_and_byte(line, byte):
    first, bad, last = stream_lines(io.BytesIO(BOM + b"one\n" + line + b"\ntwo\n"))
    assert (first, last) == (Line("one"), Line("two"))
    assert bad.fault == f"line 2, byte {byte} is not UTF-8"


def test_bytes_are_counted_after_the_byte_order_mark():
    (line,) = stream_lines(io.BytesIO(BOM + b"\xff"))
    assert line.fault == "line 1, byte 1: 0xff is not UTF-8"


def test_a_line_that_is_too_long_has_a_fault_and_is_read_only_in_part():
    class Counted(io.BytesIO):
        most = 0

        def readline(self, size=-1):
            self.most = max(self.most, size)
            return super().readline(size)

    for long in (b"x" * (MAX_CHARS + 1), "漢".encode() * 10**6):
        file = Counted(b"one\n" + long + b"\ntwo")
        first, bad, last = stream_lines(file)
        assert (first, last) == (Line("one"), Line("two"))
        assert bad.fault == f"line 2 has more than {MAX_CHARS:,} characters"
        assert len(bad.text) == MAX_CHARS and 0 < file.most < 10 * MAX_CHARS
    assert next(stream_lines(io.BytesIO("漢".encode() * MAX_CHARS))).fault == ""


def test_plain_files_compressed_files_and_arguments_give_the_same_lines(tmp_path):
    raw = BOM + b"one\r\n\n\xff\nend"
    (tmp_path / "a.txt").write_bytes(raw)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(raw))
    read = file_lines(tmp_path / "a.txt")
    assert read == file_lines(tmp_path / "a.txt.gz") == list(stream_lines(io.BytesIO(raw)))
    assert read[1:] == list(argument_lines("one\n\n\udcff\nend"))[1:]
    (tmp_path / "b.gz").write_bytes(gzip.compress(raw)[:-9])
    with pytest.raises(ValueError, match="b.gz is not a complete gzip file"):
        file_lines(tmp_path / "b.gz")


BAD = BOM + b"one\ntwo \xff\nthree\n" + b"x" * (MAX_CHARS + 1) + b"\nten\n"


def test_bad_lines_get_the_same_output_from_standard_input_and_from_a_file(trained, tmp_path):
    source = tmp_path / "in.txt"
    source.write_bytes(BAD)
    ways = [run(trained, stdin=BAD), run(trained, "--input", source)]
    ways.append(run(trained, "--input", "/dev/stdin", stdin=BAD))
    for process in ways:
        assert process.stdout == b"uno\n\ntre\n\ndieci\n"
        assert process.returncode == 1 and b"Traceback" not in process.stderr
        assert b"line 2, byte 5: 0xff is not UTF-8; its translation is blank" in process.stderr
        assert b"line 4 has more than 20,000 characters; its translation" in process.stderr


def test_jsonl_rows_of_bad_lines_show_their_valid_part(trained):
    process = run(trained, "--format", "jsonl", stdin=b"two \xff\ntwo\n")
    rows = [json.loads(row) for row in process.stdout.decode().splitlines()]
    assert [row["source"] for row in rows] == ["two \ufffd", "two"]
    assert [row["hypotheses"][0]["text"] for row in rows] == ["", "due"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", ["--reference", "--target", "--attention"])
def test_a_pipe_is_read_only_once_with_any_other_option(trained, tmp_path, name):
    pipe, other = tmp_path / "pipe", tmp_path / "other.txt"
    os.mkfifo(pipe)
    other.write_text("uno due tre quattro\ndieci nove otto sei\n", "utf-8")
    value = tmp_path / "pictures" if name == "--attention" else other
    text = "one two three four\nten nine eight six\n"
    writer = threading.Thread(target=pipe.write_text, args=(text, "utf-8"), daemon=True)
    writer.start()
    process = run_script("translate.py", "--input", pipe, name, value, cwd=trained, timeout=120)
    lines = process.stdout.splitlines()
    assert len(lines) == (5 if name == "--reference" else 2)
    if name == "--reference":
        assert "= 100.00" in lines[0]
    if name == "--attention":
        assert sorted(path.name for path in value.iterdir()) == ["0001.png", "0002.png"]


def test_the_output_of_a_command_can_be_the_input(trained):
    command = f"{sys.executable} {ROOT / 'translate.py'} --input <(echo one; echo two)"
    process = subprocess.run(["bash", "-c", command], cwd=trained, capture_output=True, text=True)
    assert process.stdout == "uno\ndue\n" and process.returncode == 0


@pytest.mark.parametrize("name", ["--input", "--target", "--reference"])
def test_a_folder_as_input_is_refused(trained, tmp_path, name):
    (tmp_path / "in.txt").write_text("one\n", "utf-8")
    others = [] if name == "--input" else ["--input", tmp_path / "in.txt"]
    process = run(trained, *others, name, tmp_path)
    assert process.returncode == 1 and b"Traceback" not in process.stderr
    assert b"is a folder" in process.stderr


def test_pairs_without_a_score_have_a_blank_line(trained, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"one\n\ntwo\n" + b"two " * 20 + b"\n\xff\nten\n")
    target.write_text("uno\n\n\n" + "due\n" + "due\n" + "dieci\n", "utf-8")
    process = run(trained, "--input", source, "--target", target)
    lines = process.stdout.decode().split("\n")
    assert len(lines) == 7 and lines[1] == "0.0000" and lines[2:5] == ["", "", ""]
    assert -1 < float(lines[0]) <= 0 and -1 < float(lines[5]) <= 0
    assert process.returncode == 1
    for told in ("line 3 has 1 and 0 tokens", "line 4 has 20 and 1 tokens", "line 5, byte 1: 0xff"):
        assert told in process.stderr.decode()


def test_pairs_that_all_have_no_score_have_blank_lines(trained, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"\xff\none\n")
    (tmp_path / "out.txt").write_bytes(b"uno\n\n")
    process = run(trained, "--input", tmp_path / "in.txt", "--target", tmp_path / "out.txt")
    assert process.stdout == b"\n\n" and process.returncode == 1
    assert b"Traceback" not in process.stderr


def test_references_that_are_not_utf_8_are_refused(trained, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"one\n")
    (tmp_path / "other.txt").write_bytes(b"\xff\n")
    for name in ("--reference", "--target"):
        process = run(trained, "--input", tmp_path / "in.txt", name, tmp_path / "other.txt")
        assert process.returncode == 1 and process.stdout == b""
        assert b"other.txt, line 1, byte 1: 0xff is not UTF-8" in process.stderr


def test_a_bad_line_counts_as_an_empty_translation_in_scores(trained, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"one two three four\n\xff\n")
    (tmp_path / "other.txt").write_bytes(b"uno due tre quattro\nuno due tre quattro\n")
    process = run(trained, "--input", tmp_path / "in.txt", "--reference", tmp_path / "other.txt")
    assert process.returncode == 1 and b"CER = 50.00" in process.stdout
