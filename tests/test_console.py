"""What scripts write: any encoding, readers that go away, terminals and logs."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from conftest import ROOT, SMALL, flags, run_script, write_number_pairs

import checkpoint
from training import pace as pace_room

SCRIPTS = ["train.py", "translate.py", "export.py", "curves.py", "benchmark.py"]
LOG_LINE = re.compile(
    r"epoch \d\d, update ([\d,]+) of ([\d,]+), [\d:]+ left, loss [\d.]+, lr .* tokens/s"
)


def command(script, *arguments):
    return [sys.executable, str(ROOT / script), *map(str, arguments)]


def training(tmp_path, **changes):
    """Return the command of a training on number words."""
    source = write_number_pairs(tmp_path, count=600)
    return command("train.py", *flags({**SMALL, "datasource": source, **changes}))


def wait_until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def assert_saved_at_the_end(log):
    """Compare the newest checkpoint with the last update in a log, of which there is one each."""
    last = int(
        re.findall(r"^epoch \d+, update ([\d,]+) of", log, re.MULTILINE)[-1].replace(",", "")
    )
    paths = Path("train_weights").glob("tmodel_[0-9]*.pt")
    assert max(checkpoint.load(path)["global_step"] for path in paths) >= last > 0


@pytest.fixture
def closed_pipe():
    """The writing end of a pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


# --- Readers that go away ---


def test_ctrl_c_that_also_ends_tee_saves_and_exits_with_130(tmp_path):
    words = " ".join(f"'{word}'" for word in training(tmp_path, num_epochs=10_000, log_every=1))
    # A terminal sends Ctrl-C to the whole process group. The shell here waits to write the code.
    line = f"trap : INT; {words} 2>&1 | tee log; echo ${{PIPESTATUS[0]}} > code"
    shell = subprocess.Popen(["bash", "-c", line], start_new_session=True)
    wait_until(Path("train_weights/tmodel_01.pt").exists)
    os.killpg(shell.pid, signal.SIGINT)
    shell.wait(timeout=120)
    assert Path("code").read_text() == "130\n"
    assert_saved_at_the_end(Path("log").read_text("utf-8"))


@pytest.mark.parametrize("stream", ["stdout", "stderr", "both"])
def test_training_continues_without_readers_of_its_output(tmp_path, closed_pipe, stream):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams |= {name: closed_pipe for name in streams if stream in (name, "both")}
    process = subprocess.Popen(training(tmp_path, num_epochs=2), **streams)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert Path("train_weights/tmodel_01.pt").exists()
    assert stream != "stderr" or b"done: the best checkpoint is" in out


def test_log_on_a_full_disk_does_not_end_a_training(tmp_path):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            training(tmp_path, num_epochs=1), stdout=full, stderr=subprocess.PIPE
        )
    assert process.returncode == 0 and b"standard output failed" in process.stderr
    assert Path("train_weights/tmodel_00.pt").exists()


def test_closed_streams_do_not_end_a_training(tmp_path):
    words = " ".join(f"'{word}'" for word in training(tmp_path, num_epochs=1))
    assert subprocess.run(["bash", "-c", f"{words} >&- 2>&- <&-"]).returncode == 0
    assert Path("train_weights/tmodel_00.pt").exists()


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_without_a_reader_exits_with_141(closed_pipe, script):
    process = subprocess.run(command(script, "--help"), stdout=closed_pipe, stderr=subprocess.PIPE)
    assert process.returncode == 141 and process.stderr == b""


def test_output_to_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            command("export.py", "--help"), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert process.returncode == 1
    assert process.stderr.startswith("export.py: the output cannot be written: [Errno 28]")
    assert process.stderr.count("\n") == 1


def test_translating_without_a_reader_exits_with_141(trained, closed_pipe):
    Path("lines").write_text("one two\n" * 5, "utf-8")
    weights = ["--weights", trained / "train_weights"]
    for arguments, given in ((["--input", "lines"], None), ([], b"one\ntwo\n")):
        process = subprocess.run(
            command("translate.py", *weights, *arguments),
            input=given,
            stdout=closed_pipe,
            stderr=subprocess.PIPE,
        )
        assert process.returncode == 141 and process.stderr.count(b"\n") == 1  # the run's name


# --- A closed terminal ---


def test_closed_terminal_saves_and_exits_with_129(tmp_path):
    words = training(tmp_path, num_epochs=10_000, log_every=1)
    with open("log", "wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    wait_until(Path("train_weights/tmodel_01.pt").exists)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=300) == 129
    log = Path("log").read_text("utf-8")
    assert "stopped by SIGHUP" in log
    assert_saved_at_the_end(log)


def test_nohup_keeps_a_training_alive_after_its_terminal_closes(tmp_path):
    process = subprocess.Popen(["nohup", *training(tmp_path, num_epochs=6)])
    wait_until(Path("train_weights/tmodel_01.pt").exists)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=300) == 0
    assert Path("train_weights/tmodel_05.pt").exists()


# --- Encodings ---

LOCALES = [
    ({"PYTHONIOENCODING": "cp1252"}, "żółw"),
    ({"PYTHONIOENCODING": "ascii"}, "żółw"),
    # Here the names of files cannot be read as text, either.
    ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "turtle"),
]


@pytest.mark.parametrize(("locale", "name"), LOCALES)
def test_training_and_translating_write_utf_8_whatever_the_locale(tmp_path, locale, name):
    words = {"one": "jeden żółw", "two": "两个", "three": "τρία", "four": "चार"}
    for lang in ("en", "pl"):
        lines = [f"{each if lang == 'en' else words[each]}\n" for each in words]
        Path(f"{name}.{lang}").write_text("".join(lines) * 10, "utf-8")
    settings = {
        **SMALL, "lang_tgt": "pl", "datasource": name, "validsource": name, "num_epochs": 1,
    }  # fmt: skip
    environment = {**os.environ, **locale}
    out = run_script("train.py", *flags(settings), env=environment).stdout
    assert "TARGET: jeden żółw" in out and f"{name}_weights" in out
    process = run_script("translate.py", "--weights", f"{name}_weights", "一", env=environment)
    assert f"{name}_weights" in process.stderr


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("translate.py", ["--weights", "żółw", "a"]),
        ("export.py", ["--weights", "żółw", "--output", "x"]),
        ("curves.py", ["runs/żółw", "--output", "x.png"]),
    ],
)
def test_messages_of_all_scripts_are_utf_8_whatever_the_locale(script, arguments):
    environment = {**os.environ, **LOCALES[0][0]}
    process = run_script(script, *arguments, env=environment, check=False)
    assert process.returncode == 1 and "Traceback" not in process.stderr
    assert "żółw" in process.stderr


def test_lone_surrogate_is_written_as_a_question_mark():
    code = "import sys, console; console.set_up_streams(); print('a\\ud800b')"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT)
    assert process.stdout == b"a?b\n"


# --- Terminals and logs ---


def test_log_has_lines_with_the_time_left_and_no_bars(tmp_path):
    process = subprocess.run(
        training(tmp_path, num_epochs=2, log_every=4), capture_output=True, encoding="utf-8"
    )
    lines = [line for line in process.stderr.splitlines() if line.startswith("epoch ")]
    assert len(lines) > 4 and all(map(LOG_LINE.fullmatch, lines))
    steps = [int(LOG_LINE.fullmatch(line)[1].replace(",", "")) for line in lines]
    assert steps == sorted(set(steps)) and [step % 4 for step in steps].count(0) >= len(steps) - 2
    assert lines[-1].startswith(f"epoch 01, update {steps[-1]} of {steps[-1]}, 00:00 left")
    assert "\r" not in process.stdout + process.stderr and "|" not in process.stderr


def test_a_log_can_be_read_while_it_is_written(tmp_path):
    process = subprocess.Popen(
        training(tmp_path, num_epochs=10_000), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for line in process.stderr:
        if line.startswith(b"epoch 00, update "):
            break
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=120)


def test_terminal_has_bars_and_no_log_lines(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(
        training(tmp_path, num_epochs=1), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 2**16)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        shown += part
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    assert b"epoch 00:" in shown and b"loss" in shown
    assert b" left, " not in shown + out


def test_time_left_follows_the_speed_of_this_process(monkeypatch):
    now = 100.0
    monkeypatch.setattr(pace_room.time, "perf_counter", lambda: now)
    pace = pace_room.Pace(first_step=1000)
    now = 160.0
    assert pace.where(1020, 1100) == "update 1,020 of 1,100, 04:00 left"
    assert pace.where(1100, 1100) == "update 1,100 of 1,100, 00:00 left"
    assert pace.where(1020, float("inf")) == "update 1,020"


def test_name_that_the_locale_cannot_decode_is_refused_before_files_are_written(tmp_path):
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = run_script("train.py", "--datasource", "żółw", env=environment, check=False)
    assert process.returncode != 0 and "PYTHONUTF8=1" in process.stdout + process.stderr
    assert "Traceback" not in process.stderr and not list(Path().iterdir())


def test_opened_file_does_not_get_the_descriptor_of_a_closed_stream(tmp_path):
    code = "import sys, console; console.set_up_streams(); sys.exit(open('x', 'w').fileno())"
    line = f"PYTHONPATH={ROOT} exec '{sys.executable}' -c \"{code}\""
    for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
        assert subprocess.run(["bash", "-c", f"{line} {closed}"]).returncode > 2


@pytest.mark.parametrize("dead", ["stdout", "stderr", "both"])
def test_ctrl_c_exits_with_130_without_readers(trained, closed_pipe, dead):
    code = (
        f"import os, signal, sys; sys.path.insert(0, {str(ROOT)!r}); import translate\n"
        "def interrupted(*_): print('a line'); os.kill(os.getpid(), signal.SIGINT)\n"
        "translate.answer = interrupted; sys.exit(translate.main())"
    )
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams |= {name: closed_pipe for name in streams if dead in (name, "both")}
    words = [sys.executable, "-c", code, "--weights", str(trained / "train_weights"), "one"]
    if dead != "stdout":  # the name of the run is the first line there
        words[2] = words[2].replace("translate.answer", "translate.load_translator")
    process = subprocess.Popen(words, **streams)
    process.communicate(timeout=120)
    assert process.returncode == 130
