"""The cost of preparing pairs, of starting, and of a second process."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.measuring import ratio, seconds, table
from config import get_config
from corpus.pairs import load_pairs
from corpus.tokenizer import TokenizerPair
from corpus.vocabulary import build_tokenizer
from dataset import BilingualDataset, form_batches, padded_length
from phrasebook.sentences import write_pairs
from training.tensorboard import read_curves

ROOT = Path(__file__).parent.parent
CORPUS_SIZES = (10_000, 100_000, 1_000_000)  # pairs to prepare, and to form batches of


def benchmark_data(repeats: int, device: torch.device) -> dict:
    """Measure the preparation of text files, and the forming of batches."""
    results, rows = {}, []
    texts = list(write_pairs("train"))
    with tempfile.TemporaryDirectory() as folder:
        for count in CORPUS_SIZES:
            results[f"{count} pairs"] = prepare(texts, count, Path(folder))
            rows.append([f"{count:,}", *results[f"{count} pairs"].values()])
    header = ["pairs", "pairs/s", "tokenising, share of the library's speed", "bytes a pair"]
    header += ["target tokens/s from there to batches"]
    table("From two text files to ids on the disk", header, rows)

    rows = []
    lens = np.array([(len(src.split()) + 3, len(tgt.split()) + 2) for src, tgt in texts])
    for count in CORPUS_SIZES:
        many = np.resize(lens, (count, 2))
        times = [seconds(lambda m=many: form_batches(*m.T, 2048, seed=(0, 0))) for _ in range(3)]
        batches = form_batches(*many.T, 2048, seed=(0, 0))
        room = sum(len(b) * padded_length(many[b].max(axis=0)).sum() for b in batches)
        padding = 1 - many.sum() / room
        rows.append([f"{count:,}", f"{statistics.median(times):.2f}", f"{100 * padding:.1f} %"])
        results[f"batches of {count}"] = {"seconds": statistics.median(times), "padding": padding}
    table("Forming an epoch's batches", ["pairs", "seconds", "padding"], rows)
    return results


def prepare(texts: list[tuple[str, str]], count: int, folder: Path) -> dict:
    """Measure what becomes of `count` pairs until they are batches, and the tokenizers alone."""
    prefix = folder / f"pairs_{count}"
    for lang, side in (("en", 0), ("it", 1)):
        lines = (f"{texts[i % len(texts)][side]} {i}\n" for i in range(count))
        prefix.with_suffix(f".{lang}").write_text("".join(lines), "utf-8")
    sides = [[pair[side] for pair in texts] for side in (0, 1)]
    tokenizers = TokenizerPair(*(build_tokenizer(side, "bpe", 8000, 2) for side in sides))

    started = time.perf_counter()
    pairs = load_pairs(str(prefix), "en", "it")
    loaded = time.perf_counter()
    data = BilingualDataset(pairs, tokenizers, seq_len=100)
    done = time.perf_counter()
    alone = seconds(lambda: encode_alone(tokenizers, prefix))
    size = sum(Path(file["filename"]).stat().st_size for file in data.rows.cache_files)
    batches = form_batches(data.src_lens, data.tgt_lens, 2048, seed=(0, 0))[:500]
    feeding = seconds(lambda: [data.batch(indices) for indices in batches])
    return {
        "pairs/s": round(count / (done - started)),
        "share": round(alone / (done - loaded), 2),
        "bytes": round(size / count),
        "fed tokens/s": round(data.tgt_lens[np.concatenate(batches)].sum() / feeding),
    }


def encode_alone(tokenizers: TokenizerPair, prefix: Path) -> None:
    """Encode the lines of two text files with the `tokenizers` library only."""
    for lang, tokenizer in zip(("en", "it"), tokenizers, strict=True):
        lines = prefix.with_suffix(f".{lang}").read_text("utf-8").splitlines()
        for start in range(0, len(lines), 1000):
            encoded = tokenizer.backend.encode_batch_fast(lines[start : start + 1000])
            [each.ids for each in encoded]


def benchmark_start(repeats: int, device: torch.device) -> dict:
    """Measure the time to the first update and to a translation, against `import torch`."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HF_HOME": str(Path(folder, "cache"))}
        train = [str(ROOT / "train.py"), "demo", "--save_every", "1", "--num_epochs", "1"]
        translate = [str(ROOT / "translate.py"), "the house is big", "--device", "cpu"]

        def run(*command: str) -> float:
            process = [sys.executable, *command]
            return seconds(
                lambda: subprocess.run(
                    process, cwd=folder, env=environment, check=True, capture_output=True
                )
            )

        def first_update(name: str) -> float:
            command = [sys.executable, *train, "--model_folder", f"./{name}"]
            started = time.perf_counter()
            with subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                while not any(Path(folder, name).glob("*.pt")):
                    assert process.poll() is None, "training ended before its first update"
                    time.sleep(0.02)
                taken = time.perf_counter() - started
                process.kill()
            return taken

        cold = first_update("cold")
        times: dict[str, list[float]] = {"import": [], "warm": [], "translation": []}
        for number in tqdm(range(repeats), "  starting", leave=False):
            times["import"].append(run("-c", "import torch"))
            times["warm"].append(first_update(f"warm_{number}"))
            times["translation"].append(run(*translate))
    rows = {
        "import torch": [statistics.median(times["import"]), 1],
        "first update, cold cache": [cold, round(cold / statistics.median(times["import"]), 1)],
        "first update, warm cache": [
            statistics.median(times["warm"]),
            ratio(times["warm"], times["import"]),
        ],
        "a translation": [
            statistics.median(times["translation"]),
            ratio(times["translation"], times["import"]),
        ],
    }
    table(
        "From the command to its result",
        ["what", "seconds", "times import torch"],
        [[name, f"{taken:.1f}", share] for name, (taken, share) in rows.items()],
    )
    return {
        name: {"seconds": taken, "times import": share} for name, (taken, share) in rows.items()
    }


def benchmark_processes(repeats: int, device: torch.device) -> dict:
    """Measure an epoch of the demo in one process and in two, with the same batches per update."""
    speeds: dict[int, list[float]] = {1: [], 2: []}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    train = [str(ROOT / "train.py"), "demo", "--num_epochs", "1", "--val_size", "1"]
    train += ["--device", device.type, "--log_every", "10"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HF_HOME": str(Path(folder, "cache")), "OMP_NUM_THREADS": "1"}
        for number in tqdm(range(repeats), "  processes", leave=False):
            for count in speeds:
                name = f"of_{count}_{number}"
                command = [
                    *launcher, f"--nproc_per_node={count}", *train, "--model_folder", f"./{name}",
                    "--accumulate", str(2 // count), "--experiment_name", f"runs/{name}",
                ]  # fmt: skip
                subprocess.run(
                    command, cwd=folder, env=environment, check=True, capture_output=True
                )
                curves = read_curves(Path(folder, "runs", name))
                _, values = curves["train/tokens_per_second"]
                speeds[count].append(statistics.median(values))
    tokens = get_config("demo").batch_tokens
    row = {
        "one process, tokens/s": round(statistics.median(speeds[1])),
        "two, times as fast": ratio(speeds[2], speeds[1]),
    }
    title = (
        f"The demo in two processes of a thread each, two batches of {tokens:,} tokens an update"
    )
    table(title, list(row), [[*row.values()]])
    return row
