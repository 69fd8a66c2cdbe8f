"""Shared by all tests: the project on the path, a cache of its own, and small pieces to test on."""

import os
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

# The models of the tests are too small to share out, and threads that wait for each other crawl on
# a busy machine. Set before torch is imported, and inherited by the scripts that tests start.
os.environ["OMP_NUM_THREADS"] = "1"
# With it, output that the scripts forget to flush would come all the same.
os.environ.pop("PYTHONUNBUFFERED", None)

# Keeps the user's dataset cache out of the tests, and theirs out of it. The library asks
# when it is imported, which some tests do at their top.
HF_HOME = TemporaryDirectory(prefix="hf_home_")
os.environ["HF_HOME"] = HF_HOME.name
os.environ["HF_HUB_OFFLINE"] = "1"

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from config import Config  # noqa: E402


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def shared_data():
    """Real parallel text, where the project lies beside some."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real parallel text beside the project")
    return folder


def run_script(name, *arguments, stdin=None, check=True, **kwargs):
    """Run a script of the project as a user does; returns the finished process."""
    process = subprocess.run(
        [sys.executable, str(ROOT / name), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        **kwargs,
    )
    if check:
        assert process.returncode == 0, process.stdout + process.stderr
    return process


NUMBERS = {
    "one": "uno", "two": "due", "three": "tre", "four": "quattro", "five": "cinque",
    "six": "sei", "seven": "sette", "eight": "otto", "nine": "nove", "ten": "dieci",
}  # fmt: skip


def write_number_pairs(folder, name="train", count=600, seed=0):
    """Write sentences of number words and their translations; returns the files' prefix."""
    rng = random.Random(seed)
    sentences = [rng.choices(list(NUMBERS), k=rng.randint(1, 6)) for _ in range(count)]
    for lang, words in (("en", {word: word for word in NUMBERS}), ("it", NUMBERS)):
        lines = (" ".join(words[word] for word in sentence) for sentence in sentences)
        (folder / f"{name}.{lang}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(folder / name)


# Small enough to train in seconds, with everything switched on.
SMALL = {
    "seq_len": 16, "d_model": 32, "N": 1, "h": 2, "d_ff": 64, "batch_tokens": 160, "lr": 1e-2,
    "warmup": 60, "log_every": 5, "min_frequency": 1, "device": "cpu",
}  # fmt: skip


def small_config(source, **changes):
    return Config(**{"datasource": source, **SMALL, **changes})


def flags(values):
    words = []
    for name, value in values.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder in which `train.py` has learned to translate number words, through its flags."""
    folder = tmp_path_factory.mktemp("trained")
    source = write_number_pairs(folder)
    settings = {**SMALL, "datasource": source, "num_epochs": 30}
    folder_of_run = folder / "run"
    folder_of_run.mkdir()
    process = run_script("train.py", *flags(settings), cwd=folder_of_run)
    (folder_of_run / "printed").write_text(process.stdout, "utf-8")
    return folder_of_run
