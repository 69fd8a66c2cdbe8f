"""Measure speed and memory: python benchmark.py [PART] [--json FILE]

Every figure is a ratio of times that were taken in turn in one run: the median of the repeats and
their range. Absolute times vary on shared machines; they only show how long things take.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro

from benchmarks.decoding import benchmark_decode
from benchmarks.epochs import Corpus, benchmark_epochs
from benchmarks.measuring import describe_machine
from benchmarks.pipeline import benchmark_data, benchmark_processes, benchmark_start
from benchmarks.training_step import benchmark_steps
from console import run_script
from device import get_device, keep_freed_memory


def main() -> int:
    return run_script("benchmark.py", measure)


@dataclass(frozen=True)
class Options:
    """The options of `benchmark.py`; the trailing comments are their help text."""

    part: tyro.conf.Positional[Literal["all", "train", "decode", "data", "start", "processes"]] = (
        "all"
    )
    json: str | None = None  # file for all figures
    device: str = "auto"  # auto, cpu, cuda, mps
    repeats: int = 3  # of each measurement
    datasource: str = "phrasebook"  # pairs whose epochs `train` measures; as in train.py
    lang_src: str = "en"
    lang_tgt: str = "it"
    updates: int = 20  # of each model in each repeat; of `base` a fifth

    def __post_init__(self) -> None:
        if self.updates < 1:
            raise ValueError(f"updates ({self.updates}) must be at least 1")
        if self.repeats < 1:
            raise ValueError(f"repeats ({self.repeats}) must be at least 1")
        if self.json and not Path(self.json).absolute().parent.is_dir():
            raise ValueError(f"the folder of --json {self.json} does not exist")


def benchmark_training(options: Options, device: torch.device) -> dict:
    """Measure single steps, and epochs of batches that differ."""
    corpus = Corpus(options.datasource, options.lang_src, options.lang_tgt)
    steps = benchmark_steps(options.repeats, device)
    return {**steps, "epochs": benchmark_epochs(options.repeats, device, corpus, options.updates)}


PARTS = {
    "train": benchmark_training,
    "decode": lambda options, device: benchmark_decode(options.repeats, device),
    "data": lambda options, device: benchmark_data(options.repeats, device),
    "start": lambda options, device: benchmark_start(options.repeats, device),
    "processes": lambda options, device: benchmark_processes(options.repeats, device),
}


def measure() -> int:
    """Measure as the command line says; return the exit code."""
    options = tyro.cli(Options, prog="benchmark.py", description=__doc__, use_underscores=True)
    device = get_device(options.device)
    if device.type == "cpu":
        keep_freed_memory()
    results: dict[str, object] = describe_machine(device)
    print("; ".join(f"{name} {value}" for name, value in results.items()))
    for name, part in PARTS.items():
        if options.part in ("all", name):
            started = time.perf_counter()
            results[name] = part(options, device)
            print(f"\n({name}: {time.perf_counter() - started:.0f} s)")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
