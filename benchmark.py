"""What it costs: speed and memory against the machine's own limit and against other ways.

    python benchmark.py [all|train|decode|data|start|processes] [--json FILE]

Every figure is a ratio of times taken in turn in one run: the median of the repeats and their
range. Absolute times drift on shared machines; they are here to tell how long things take.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from benchmarks.measuring import machine
from benchmarks.pipeline import benchmark_data, benchmark_processes, benchmark_start
from benchmarks.steps import benchmark_decode, benchmark_train
from console import run_script
from device import get_device, keep_freed_memory


@dataclass(frozen=True)
class Options:
    """What to measure; the trailing comments are the help text."""

    part: tyro.conf.Positional[Literal["all", "train", "decode", "data", "start", "processes"]] = (
        "all"
    )
    json: str | None = None  # file for all figures
    device: str = "auto"  # auto, cpu, cuda, mps
    repeats: int = 3  # of each measurement

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats ({self.repeats}) must be at least 1")
        if self.json and not Path(self.json).absolute().parent.is_dir():
            raise ValueError(f"the folder of --json {self.json} is not there")


PARTS = {
    "train": benchmark_train,
    "decode": benchmark_decode,
    "data": benchmark_data,
    "start": benchmark_start,
    "processes": benchmark_processes,
}


def measure() -> int:
    options = tyro.cli(Options, prog="benchmark.py", description=__doc__, use_underscores=True)
    device = get_device(options.device)
    if device.type == "cpu":
        keep_freed_memory()
    results: dict[str, object] = machine(device)
    print("; ".join(f"{name} {value}" for name, value in results.items()))
    for name, part in PARTS.items():
        if options.part in ("all", name):
            started = time.perf_counter()
            results[name] = part(options.repeats, device)
            print(f"\n({name}: {time.perf_counter() - started:.0f} s)")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    return 0


def main() -> int:
    return run_script("benchmark.py", measure)


if __name__ == "__main__":
    sys.exit(main())
