"""Measuring times and memory, and comparing them within one run."""

import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from tqdm import tqdm


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that work takes, including what it started on a device."""
    started = time.perf_counter()
    work()
    for kind in (torch.cuda, torch.mps):
        if kind.is_available():
            kind.synchronize()
    return time.perf_counter() - started


def in_turn(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each way; every repeat measures all ways, one after the other."""
    for work in ways.values():
        work()  # warm-up
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in tqdm(range(repeats), f"  {', '.join(ways)}", leave=False):
        for name, work in ways.items():
            times[name].append(seconds(work))
    return times


def ratio(above: list[float], below: list[float]) -> dict[str, float]:
    """Return median and range of the ratios of two ways' times, repeat by repeat."""
    values = [a / b for a, b in zip(above, below, strict=True)]
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def table(title: str, header: list[str], rows: list[list[object]]) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        cells = (
            f"{cell['median']:.2f} ({cell['low']:.2f}-{cell['high']:.2f})"
            if isinstance(cell, dict)
            else str(cell)
            for cell in row
        )
        print(f"| {' | '.join(cells)} |")


def in_new_process(work: Callable, *arguments: object) -> object:
    """Return what work returns in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def peak_memory() -> int:
    """Return the peak of this process's memory in bytes (Linux only)."""
    return _bytes_of_status("VmHWM")


def resident_memory() -> int:
    """Return this process's memory in bytes (Linux only)."""
    return _bytes_of_status("VmRSS")


def _bytes_of_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def describe_machine(device: torch.device) -> dict[str, object]:
    """Return processor, threads, device and versions."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if "model name" in line), name)
    if device.type == "cuda":
        name = f"{torch.cuda.get_device_name()}; {name}"
    return {
        "machine": name,
        "threads": torch.get_num_threads(),
        "device": str(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
