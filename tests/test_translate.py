"""What people do with `translate.py`: a sentence, lines, files, and mistakes."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import ROOT, run_script, translate

import checkpoint
from corpus.lines import read_lines
from translation.loading import find_weights_file_path, load_model

WEIGHTS = "train_weights"


def test_sentence_is_translated_by_the_run_trained_last(trained):
    process = translate(trained, "two nine one")
    assert process.stdout == "due nove uno\n"
    assert "train_weights/tmodel_best.pt: en -> it" in process.stderr


def test_words_without_quotation_marks_are_one_sentence(trained):
    assert translate(trained, "two", "nine", "one").stdout == "due nove uno\n"


@pytest.mark.parametrize("weights", [WEIGHTS, f"{WEIGHTS}/tmodel_29.pt"])
def test_weights_may_be_a_folder_or_a_file_from_anywhere(trained, weights, tmp_path):
    process = run_script("translate.py", "two nine", "--weights", trained / weights, cwd=tmp_path)
    assert process.stdout == "due nove\n"


def test_one_checkpoint_file_is_enough_on_another_machine(trained, tmp_path):
    shutil.copy(trained / WEIGHTS / "tmodel_best.pt", tmp_path / "x.pt")
    process = run_script("translate.py", "ten three", "--weights", "x.pt", cwd=tmp_path)
    assert process.stdout == "dieci tre\n"


def test_each_line_of_a_pipe_gives_one_line_in_order(trained):
    lines = "one\n\ntwo three\n   \nfour\r\nfive six"
    expected = "uno\n\ndue tre\n\nquattro\ncinque sei\n"
    assert translate(trained, "--weights", WEIGHTS, stdin=lines).stdout == expected


def test_lines_of_a_pipe_are_translated_when_they_arrive(trained):
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "translate.py")],
        cwd=trained,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    for line, expected in (("one two", "uno due"), ("three", "tre")):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{expected}\n"
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def test_line_that_is_too_long_is_reported_and_translated_in_parts(trained):
    process = translate(trained, stdin="one\n" + "two " * 50 + "\nthree\n")
    first, long, last = process.stdout.splitlines()
    assert (first, last) == ("uno", "tre") and set(long.split()) == {"due"}
    assert "line 2 has a sentence of 50 tokens, the model takes 14" in process.stderr


def test_reader_that_ends_early_is_no_error(trained):
    command = f"yes one | head -500 | {sys.executable} {ROOT / 'translate.py'} | head -1"
    process = subprocess.run(command, shell=True, cwd=trained, capture_output=True, text=True)
    assert process.stdout == "uno\n"
    assert "Errno" not in process.stderr and "Traceback" not in process.stderr


def test_invalid_utf_8_is_named_and_its_translation_is_blank(trained):
    text = b"two\none \xff two\nten"
    command = [sys.executable.encode(), str(ROOT / "translate.py").encode(), text]
    process = subprocess.run(command, cwd=trained, capture_output=True)
    assert process.returncode == 1 and b"Traceback" not in process.stderr
    assert process.stdout == b"due\n\ndieci\n"
    assert b"line 2, byte 5: 0xff is not UTF-8" in process.stderr


def test_terminal_gets_a_prompt(trained):
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "translate.py")],
        cwd=trained,
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    )
    os.close(terminal)
    shown = b""
    while b"en> " not in shown:
        shown += os.read(control, 1000)
    os.write(control, b"seven two\n")
    while b"en> " not in shown.partition(b"sette due")[2]:
        shown += os.read(control, 1000)
    os.write(control, b"\x04")  # the end of the input
    assert process.wait(timeout=60) == 0
    os.close(control)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_blank_line_has_a_blank_translation(trained, text):
    process = translate(trained, text)
    assert process.stdout.strip() == "" and process.stdout.count("\n") == max(
        1, text.count("\n") + 1
    )


def test_file_keeps_its_lines_and_their_order(trained, tmp_path):
    lines = ["one", "", "two three four", " ", "five"] * 260
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(lines), "utf-8")  # without a newline at the end
    translate(trained, "--input", source, "--output", target)
    expected = ["uno", "", "due tre quattro", "", "cinque"] * 260
    assert target.read_text("utf-8") == "".join(f"{line}\n" for line in expected)
    assert translate(trained, "--input", source).stdout == target.read_text("utf-8")


def test_digits_are_text(trained):
    process = translate(trained, "5")
    assert process.returncode == 0 and "not in the vocabulary: 5" in process.stderr


def test_unknown_words_are_named_on_standard_error(trained):
    process = translate(trained, "one zebra two")
    assert "not in the vocabulary: zebra" in process.stderr and "zebra" not in process.stdout


def test_line_of_a_file_that_is_too_long_does_not_stop_the_others(trained, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\n" + "two, " * 2000 + "\nthree\n" + "ten " * 15 + "\n", "utf-8")
    process = translate(trained, "--input", source, "--output", target)
    lines = target.read_text("utf-8").splitlines()
    assert (len(lines), lines[0], lines[2]) == (4, "uno", "tre")
    assert lines[1].split().count("due") > 1000
    assert set(lines[3].split()) == {"dieci"}
    assert "line 2 has a sentence of 4,000 tokens" in process.stderr
    assert "line 4 has a sentence of 15 tokens" in process.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x", "--weights", "nowhere"], "no checkpoint nowhere"),
        (["--input", "nowhere.txt"], "nowhere.txt"),
        (["x", "--device", "gpu9"], "gpu9"),
        (["x", "--wieghts", "a"], "--weights"),
        (["x", "--input", "a"], "not both"),
        (["--output", "a"], "needs --input"),
        (["--input", "printed", "--output", "no/such/place"], "no/such/place"),
        (["--input", ""], "there is no file ''"),
    ],
)
def test_mistake_is_one_line_without_a_traceback(trained, arguments, words):
    process = translate(trained, *arguments, check=False, stdin="")
    assert process.returncode != 0
    assert words in process.stderr and "Traceback" not in process.stderr
    assert process.stdout == ""


def test_without_any_run_the_message_says_what_to_do(tmp_path):
    process = run_script("translate.py", "x", check=False, cwd=tmp_path)
    assert process.returncode == 1
    assert "no checkpoint in the folders here: train first" in process.stderr


@pytest.mark.parametrize("legacy", [False, True])
def test_newer_checkpoints_of_other_programs_are_skipped(trained, tmp_path, legacy):
    ours = tmp_path / "run" / "tmodel_00.pt"
    (tmp_path / "det").mkdir()
    ours.parent.mkdir()
    shutil.copy(trained / WEIGHTS / "tmodel_29.pt", ours)
    theirs = {"model": torch.zeros(3), "global_step": 3, "epoch": 1}
    for path in (tmp_path / "det" / "best.pt", ours.parent / "yolo_best.pt"):
        torch.save(theirs, path, _use_new_zipfile_serialization=not legacy)
        os.utime(path, (2**31, 2**31))
    (ours.parent / "old_best.pt").mkdir()
    for number, content in enumerate((b"", b"\x01" * 999, b"PK\x03\x04" + b"x" * 99, b"version 1")):
        folder = tmp_path / f"other{number}"
        folder.mkdir()
        (folder / "best.pt").write_bytes(content)
        os.utime(folder / "best.pt", (2**31, 2**31))
    assert find_weights_file_path(None).resolve() == ours
    assert find_weights_file_path(ours.parent) == ours
    process = run_script("translate.py", "two nine", cwd=tmp_path)
    assert process.stdout == "due nove\n"
    ours.unlink()
    for path in tmp_path.glob("other*/*"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match="no checkpoint in the folders here: train first"):
        find_weights_file_path(None)


@pytest.mark.parametrize("content", [b"", b"\0" * 999, "half", "a byte"])
def test_damaged_newest_checkpoint_is_reported_and_not_skipped(trained, tmp_path, content):
    folder = tmp_path / "run"
    folder.mkdir()
    whole = (trained / WEIGHTS / "tmodel_29.pt").read_bytes()
    (folder / "tmodel_00.pt").write_bytes(whole)
    if content == "half":
        content = whole[: len(whole) // 2]
    if content == "a byte":
        middle = len(whole) // 2
        content = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    (folder / "tmodel_best.pt").write_bytes(content)
    with pytest.raises(ValueError, match="tmodel_best.pt is damaged .* --weights takes any other"):
        load_model(None)


def test_file_that_is_not_utf_8_is_named(trained, tmp_path):
    (tmp_path / "in.txt").write_bytes("perché\n".encode("latin-1"))
    process = translate(trained, "--input", tmp_path / "in.txt", check=False)
    assert process.returncode == 1 and "in.txt, line 1, byte 6: 0xe9 is not UTF-8" in process.stderr


def test_start_imports_no_training_library():
    code = (
        "import sys, translate; "
        "print({'datasets', 'torchmetrics', 'tensorboard', 'sacrebleu'} & set(sys.modules))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert process.stdout == "set()\n"


def test_weights_that_do_not_fit_their_config_are_refused(trained, tmp_path):
    state = checkpoint.load(trained / WEIGHTS / "tmodel_best.pt")
    state["config"]["d_model"] = 16
    checkpoint.save(Path("odd.pt"), state)
    process = run_script("translate.py", "x", "--weights", "odd.pt", check=False)
    assert process.returncode == 1
    assert (
        "has shape (14, 32), the model (14, 16)" in process.stderr
        and "Traceback" not in process.stderr
    )


def test_lines_end_at_a_newline_only_and_a_byte_order_mark_is_dropped(tmp_path):
    (tmp_path / "in.txt").write_bytes("\ufeffone\r\ntwo\u2028two\x0ctwo\r\n\r\n".encode())
    lines = list(read_lines(tmp_path / "in.txt"))
    assert [line.strip() for line in lines] == ["one", "two\u2028two\x0ctwo", ""]


def test_bf16_weights_translate_what_was_learned_to_the_same_text(trained):
    lines = "one two three\nten\nfour four nine eight\n"
    results = [
        translate(trained, "--precision", precision, stdin=lines).stdout
        for precision in ("fp32", "bf16")
    ]
    assert results[0] == results[1] == "uno due tre\ndieci\nquattro quattro nove otto\n"


def test_beams_and_formats_work_on_the_command_line(trained):
    lines = "one two three\n\nten nine\n"
    text = translate(trained, stdin=lines).stdout
    assert translate(trained, "--beam_size", 4, "--alpha", 0, stdin=lines).stdout == text
    rows = translate(
        trained, "--beam_size", 3, "--n_best", 2, "--format", "tsv", stdin=lines
    ).stdout
    cells = [row.split("\t") for row in rows.splitlines()]
    assert [len(row) for row in cells] == [5, 3, 5]
    assert [row[0] for row in cells] == ["one two three", "", "ten nine"]
    assert [row[2] for row in cells] == text.splitlines()
    assert float(cells[0][1]) > float(cells[0][3])
    found = translate(trained, "--beam_size", 3, "--n_best", 3, "--format", "jsonl", stdin=lines)
    rows = [json.loads(row) for row in found.stdout.splitlines()]
    assert [row["source"] for row in rows] == lines.splitlines()
    assert [row["hypotheses"][0]["text"] for row in rows] == text.splitlines()
    assert [len(row["hypotheses"]) for row in rows] == [3, 1, 3]


def test_given_translations_have_the_score_that_translating_reports(trained, tmp_path):
    (tmp_path / "in.txt").write_text("one two three\nten\nfour nine eight eight\n", "utf-8")
    arguments = ("--input", tmp_path / "in.txt")
    rows = translate(trained, *arguments, "--format", "tsv", "--alpha", 0).stdout.splitlines()
    texts, scores = ([row.split("\t")[i] for row in rows] for i in (2, 1))
    (tmp_path / "out.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    given = translate(trained, *arguments, "--target", tmp_path / "out.txt").stdout
    assert list(map(float, given.splitlines())) == pytest.approx(list(map(float, scores)), abs=1e-3)
    (tmp_path / "out.txt").write_text("uno due uno\ndue\ndieci\n", "utf-8")
    worse = translate(trained, *arguments, "--target", tmp_path / "out.txt").stdout
    assert all(float(b) < float(a) - 1 for a, b in zip(scores, worse.splitlines(), strict=True))


def test_reference_prints_scores_only(trained, tmp_path):
    (tmp_path / "in.txt").write_text("one two three four\nten nine eight seven\n", "utf-8")
    (tmp_path / "ref.txt").write_text("uno due tre quattro\ndieci nove otto sette\n", "utf-8")
    arguments = ("--input", tmp_path / "in.txt", "--reference", tmp_path / "ref.txt")
    lines = translate(trained, *arguments).stdout.splitlines()
    assert [line.split("|")[0].split(" ")[0] for line in lines] == [
        "BLEU", "chrF2", "TER", "CER", "WER",
    ]  # fmt: skip
    assert "= 100.00" in lines[0] and lines[3:] == ["CER = 0.00", "WER = 0.00"]
    assert all("version:" in line for line in lines[:3])
    with_interval = translate(trained, *arguments, "--bootstrap", "--beam_size", 2).stdout
    assert "±" in with_interval.splitlines()[0]
    output = translate(trained, *arguments, "--output", tmp_path / "out.txt").stdout
    assert output.splitlines() == lines
    assert (tmp_path / "out.txt").read_text("utf-8") == (tmp_path / "ref.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("--target", "uno\n", "in.txt has 2 lines"),
        ("--reference", "uno\n", "in.txt has 2 lines"),
        ("--reference", None, "there is no file"),
        ("--reference", "uno\n\n", "has no text in line 2"),
    ],
)
def test_file_that_does_not_fit_the_input_is_refused(trained, tmp_path, name, text, words):
    (tmp_path / "in.txt").write_text("one\ntwo\n", "utf-8")
    if text is not None:
        (tmp_path / "other.txt").write_text(text, "utf-8")
    flags = ("--input", tmp_path / "in.txt", name, tmp_path / "other.txt")
    process = translate(trained, *flags, check=False)
    assert process.returncode == 1 and words in process.stderr and process.stdout == ""


def test_samples_are_seeded_and_the_same_in_any_file(trained):
    lines = "one two three\nten nine\n"
    flags = ("--sample", "--temperature", 3, "--n_best", 4, "--format", "jsonl")
    first, again = (translate(trained, *flags, stdin=lines).stdout for _ in range(2))
    assert first == again
    rows = [json.loads(row) for row in first.splitlines()]
    texts = [[each["text"] for each in row["hypotheses"]] for row in rows]
    assert [len(each) for each in texts] == [4, 4] and len(set(texts[0] + texts[1])) > 4
    alone = translate(trained, *flags, stdin="ten nine\n").stdout
    assert json.loads(alone) == rows[1]
    assert translate(trained, *flags, "--seed", 1, stdin=lines).stdout != first
