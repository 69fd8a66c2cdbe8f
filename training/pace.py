"""The progress display of a training, and its speed."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

import console


class Pace:
    """Shows a progress bar on a terminal, and lines with the time left in a log.

    It measures training alone: time inside `paused` does not count for the tokens per second.
    """

    def __init__(self, first_step: int) -> None:
        self.first_step, self.run_started = first_step, time.perf_counter()
        self.window_started, self.tokens = self.run_started, 0
        self.name, self.bar = "", None

    @contextmanager
    def showing(self, name: str, done: int, updates: int) -> Iterator[None]:
        """Show a bar of `updates`, of which some are done, inside the `with` block."""
        self.name = name
        self.window_started, self.tokens = time.perf_counter(), 0
        # disable=None: no bar without a terminal.
        with tqdm(desc=name, unit="update", initial=done, total=updates, disable=None) as self.bar:
            yield

    def add_update(self, tokens: int) -> None:
        """Count an update of so many target tokens."""
        self.tokens += tokens
        self.bar.update()

    def end_window(self) -> float:
        """Return the target tokens per second since the last call, and start to count again."""
        now = time.perf_counter()
        speed = self.tokens / (now - self.window_started)
        self.window_started, self.tokens = now, 0
        return speed

    def report(self, message: str, step: int, total_updates: float) -> None:
        """Show a message after update `step`, on the bar or as a line on standard error."""
        self.bar.set_postfix_str(message)
        if not console.shows_bars():
            where = self.where(step, total_updates)
            print(f"{self.name}, {where}, {message}", file=sys.stderr)

    def where(self, step: int, total_updates: float) -> str:
        """Return the update and, if the number of all updates is known, the time left as text."""
        if total_updates == math.inf:
            return f"update {step:,}"
        seconds = (time.perf_counter() - self.run_started) / (step - self.first_step)
        left = tqdm.format_interval(seconds * max(total_updates - step, 0))
        return f"update {step:,} of {total_updates:,}, {left} left"

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time inside the `with` block."""
        started = time.perf_counter()
        yield
        self.window_started += time.perf_counter() - started
