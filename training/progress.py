"""Where a training run stands, and what is next."""

import math
import time
from dataclasses import dataclass, field

from tqdm import tqdm

from config import Config


@dataclass
class Progress:
    """Where a run stands: all that changes beside weights and optimizer, as plain values."""

    epoch: int = 0  # the one that goes on, counted from 0
    batch: int = 0  # batches of it already trained on
    pool: int = 0  # of a stream, how many of the epoch are done with
    pool_start: int = 0  # batches of the epoch before the pool that goes on
    position: str = ""  # where that one begins in the stream
    global_step: int = 0  # updates of the whole run
    skipped: int = 0  # of those, the ones left out because their loss or gradient was not finite
    skipped_in_row: int = 0  # of those, the last ones without a good one between them
    # Sums since the last point of the training curves.
    window: dict = field(default_factory=lambda: dict(loss=0.0, norm=0.0, tokens=0, updates=0))
    train_row: dict = field(default_factory=dict)  # the last point of the training curves
    history: list[dict] = field(default_factory=list)  # scores of each validation

    def add(self, loss: float, norm: float, tokens: int) -> None:
        """Add an update to the window."""
        added = dict(loss=loss, norm=norm, tokens=tokens, updates=1)
        self.window = {key: self.window[key] + value for key, value in added.items()}

    def end_pool(self, next_position: str) -> None:
        """Go on to the epoch's next pool, or where there is none, to the next epoch."""
        if next_position:
            self.pool, self.pool_start = self.pool + 1, self.batch
        else:
            self.epoch, self.batch, self.pool, self.pool_start = self.epoch + 1, 0, 0, 0
        self.position = next_position

    def best(self, monitor: str) -> int | None:
        """Return the index of the best validation by a score, the first of equals.

        Validations with the same BLEU are compared by their loss, as printed: to three decimals.
        """
        scores = self._scores(monitor)

        def rank(i: int) -> tuple[float, float]:
            return scores[i], -round(self.history[i]["val/loss"], 3)

        return max(range(len(scores)), key=rank, default=None)

    def ties(self, monitor: str) -> int:
        """Return how many other validations have the best one's BLEU, so that the loss decided."""
        scores = self._scores(monitor)
        return 0 if monitor == "val/loss" or not scores else scores.count(max(scores)) - 1

    def _scores(self, monitor: str) -> list[float]:
        """Return a number for each validation, the higher the better.

        BLEU under 1 counts as 0. It is 0 until the first 4-gram is right, however much the model
        has learned; with fewer orders sacrebleu's smoothing makes it a little more, by chance.
        """
        if monitor == "val/loss":
            return [-row[monitor] for row in self.history]
        return [row[monitor] if row[monitor] >= 1 else 0.0 for row in self.history]

    def is_finished(self, config: Config) -> bool:
        since_best = len(self.history) - 1 - (self.best(config.monitor) or 0)
        out_of_patience = config.patience > 0 and since_best >= config.patience
        return self.epoch >= config.num_epochs or out_of_patience

    def validation_is_due(self, config: Config) -> bool:
        """Tell whether the last update calls for a validation that has not been done."""
        done = self.history[-1]["step"] if self.history else 0
        every = config.validate_every
        return self.global_step > done and (
            self.batch == 0 or (every is not None and self.global_step % every == 0)
        )


class Pace:
    """Says in words where a training is, and how long the rest takes at the pace so far."""

    def __init__(self, first_step: int) -> None:
        self.first_step, self.started = first_step, time.perf_counter()

    def where(self, step: int, total: float) -> str:
        """Return the update and, where the number of all updates is known, the time left."""
        if total == math.inf:
            return f"update {step:,}"
        seconds = (time.perf_counter() - self.started) / (step - self.first_step)
        left = tqdm.format_interval(seconds * max(total - step, 0))
        return f"update {step:,} of {total:,}, {left} left"
