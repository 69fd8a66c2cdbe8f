"""Shared by all tests: the project on the path, a cache of its own, and small pieces to test on."""

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_origin

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

import torch  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

import checkpoint  # noqa: E402
import export  # noqa: E402
import train  # noqa: E402
from checkpoint import WeightsFolder  # noqa: E402
from config import Config  # noqa: E402
from corpus.pairs import load_pairs  # noqa: E402
from corpus.vocabulary import build_tokenizer  # noqa: E402
from train import train_model  # noqa: E402
from training import update  # noqa: E402
from training.signals import StoppedBySignal  # noqa: E402
from training.start import start_run  # noqa: E402
from training.update import collect_updates, train_update  # noqa: E402
from translate import load_translator  # noqa: E402
from translation.options import Options  # noqa: E402


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


# Some texts look like special values of tables.
PAIRS = [("The house.", "La casa."), ("It rains.", "Piove."), ("NA", "null"), ('"Yes"', '"Sì"')]


def texts(pairs):
    """Return pairs of a data set as a list of (source, target)."""
    return list(zip(pairs["src_text"], pairs["tgt_text"], strict=True))


def write_text_pair(folder, pairs, name="train", langs=("en", "it")):
    """Write pairs as two text files, and return their prefix."""
    for lang, side in zip(langs, zip(*pairs, strict=True), strict=True):
        (folder / f"{name}.{lang}").write_text("".join(f"{text}\n" for text in side), "utf-8")
    return str(folder / name)


def write_file(folder, kind):
    """Write PAIRS as a file of a kind, and return its path."""
    path = folder / f"pairs.{kind}"
    rows = [{"en": en, "it": it} for en, it in PAIRS]
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"translation": row}) + "\n" for row in rows), "utf-8")
    elif kind == "json":
        path.write_text(json.dumps(rows), "utf-8")
    elif kind == "csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["it", "en"])
            writer.writeheader()
            writer.writerows(rows)
    elif kind == "tsv":
        lines = ["en\tit", *("\t".join(pair) for pair in PAIRS)]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    elif kind == "parquet":
        from datasets import Dataset

        Dataset.from_list([{"id": "0", "translation": row} for row in rows]).to_parquet(str(path))
    return str(path)


def refused(source, *words, langs=("en", "it")):
    """Check that loading fails with one line that contains all of some words."""
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        load_pairs(str(source), *langs)
    message = str(error.value)
    assert "\n" not in message and all(str(word) in message for word in words), message


def load_elsewhere(source, folder, **environment):
    """Load a source in another process, in `folder`. Return the last line that it prints."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from corpus.pairs import load_pairs
from corpus.cache import checked_cache
try:
    with checked_cache():
        load_pairs({source!r}, "en", "it")
except (OSError, ValueError) as error:
    print(error)
"""
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "XDG_")) and "proxy" not in key.lower()
    }
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "HF_HOME": str(folder / "home"), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()[-1]


TEXTS = [
    "don't stop, ten-year-old!",
    'She said: "The house is big." Then she left.',
    "l'amico dell'uomo è là, no?",
    "press [EOS] to stop [PAD] now [SOS] or [UNK].",
]


def load_measured(source):
    """Load a source of which two pairs are kept, in another process.

    Return the line that it prints, and how many megabytes its memory grows.
    """
    code = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
import datasets
from corpus.pairs import load_pairs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(load_pairs({str(source)!r}, "en", "it")) == 2
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    printed, megabytes = process.stdout.splitlines()
    return printed, float(megabytes)


def small_tokenizer(kind, texts=TEXTS, vocab_size=400, min_frequency=1):
    """Return a tokenizer that is built from a few texts."""
    return build_tokenizer(texts, kind, vocab_size, min_frequency)


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


# --- Runs ---


def make_run(folder, **changes):
    source = write_number_pairs(folder, count=60)
    settings = {"precision": "fp32", "lr": 1.0, "warmup": 1, **changes}
    return start_run(small_config(source, **settings))


def do_update(run, batches):
    """Do an update and add its numbers to the window at once."""
    train_update(run, batches)
    collect_updates(run)


def curves(log_dir):
    """Return {tag: [(step, value), ...]} as TensorBoard shows them."""
    events = EventAccumulator(str(log_dir), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    shown = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in tags["scalars"]}
    return shown | {tag: [(e.step, None) for e in events.Tensors(tag)] for tag in tags["tensors"]}


def train_with_stops(config, stops, monkeypatch):
    """Train; after each update whose number is in stops send SIGINT, then start again."""
    stops = set(stops)
    update = train.train_update

    def update_and_stop(run, batches):
        done = update(run, batches)
        if run.progress.global_step in stops:
            stops.remove(run.progress.global_step)
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(train, "train_update", update_and_stop)
    for _ in range(len(stops)):
        with pytest.raises(StoppedBySignal):
            train_model(config)
        # TensorBoard reads event files by the second of their name, then by process: two runs of
        # one process within a second would be out of order.
        time.sleep(1.1 - time.time() % 1)
    train_model(config)


def assert_same_run(one, other, epoch):
    """Compare two runs bit for bit: weights, optimizer, progress and curves."""
    a, b = (checkpoint.load(WeightsFolder.of(config).end_of(epoch)) for config in (one, other))
    for name, weight in a["model"].items():
        assert torch.equal(weight, b["model"][name]), name
    for key, state in a["optimizer"].items():
        assert all(map(torch.equal, state.values(), b["optimizer"][key].values()))
    for key in ("epoch", "batch", "global_step", "window", "history"):
        assert a[key] == b[key], key
    shown = [curves(config.experiment_name) for config in (one, other)]
    assert (
        shown[0].keys() == shown[1].keys() > {"train/loss", "val/bleu", "val/samples/text_summary"}
    )
    for tag, points in shown[0].items():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps)), tag
        assert [step for step, _ in shown[1][tag]] == steps, tag
        if tag != "train/tokens_per_second":
            assert shown[1][tag] == points, tag


@pytest.fixture
def two_epochs(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    train_model(config)
    return config


def first_batch(run, indices=(0, 1, 2)):
    return run.data.train.batch(list(indices))


def python(code, *arguments, **kwargs):
    """Run code with the project on its path; returns the finished process."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, **kwargs
    )


def train_flags(source, **changes):
    return flags({**SMALL, "datasource": source, **changes})


@pytest.fixture
def one_epoch(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    return config


def spoil(monkeypatch, updates, value=math.nan):
    """Make the loss of these updates no number, counted from 1."""
    real, count = update.accumulate_gradient, iter(range(1, 10**6))

    def accumulate(run, batches, tokens):
        loss = real(run, batches, tokens)
        if next(count) in updates:
            for parameter in run.model.parameters():
                parameter.grad.mul_(value)
            loss = loss * value
        return loss

    monkeypatch.setattr(update, "accumulate_gradient", accumulate)


def make_state(**changes):
    state = {key: (get_origin(kind) or kind)() for key, kind in checkpoint.KEYS.items()}
    state["format"] = checkpoint.FORMAT
    state["model"] = {"w": torch.arange(5000.0)}
    return {**state, **changes}


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


# --- Translators ---


WEIGHTS = "train_weights"
LINES = ["one two three", "ten", "four four nine eight", "", "seven six five four three two"]


def translate(trained, *arguments, stdin=None, check=True):
    return run_script("translate.py", *arguments, stdin=stdin, check=check, cwd=trained)


@pytest.fixture(scope="session")
def translator(trained):
    return load_translator(Options(weights=str(trained / WEIGHTS), device="cpu"))


def say(translator, *texts):
    lines = [translator.split(text, number) for number, text in enumerate(texts, start=1)]
    return [translations[0].text for translations in translator.translate(lines)]


def answers(trained, weights, *flags):
    lines = "".join(f"{line}\n" for line in LINES)
    return run_script("translate.py", "--weights", weights, *flags, stdin=lines, cwd=trained).stdout


@pytest.fixture(scope="session")
def exported(trained, tmp_path_factory):
    pytest.importorskip("ctranslate2")
    folder = tmp_path_factory.mktemp("exported") / "model"
    export.export(export.Options(str(folder), weights=str(trained / "train_weights")))
    return folder
