"""The batches of an epoch: formed by length, dealt out to the processes, update by update."""

import itertools
import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from config import Config
from dataset import Batch, BilingualDataset, form_batches
from training import processes
from training.pace import Pace
from training.run import Run
from training.signals import StopSignals


@dataclass(frozen=True)
class UpdateBatches:
    """The batches of one update."""

    batches: list[Batch]  # those of this process, possibly none
    end: int  # batches of the epoch, over all processes, trained on after this update
    ends_pool: bool


def form_pool_batches(
    config: Config, pairs: BilingualDataset, epoch: int, pool: int = 0
) -> list[np.ndarray]:
    """Return the indices of each batch of a pool (without streaming: of the epoch).

    They are a function of the lengths and of (seed, epoch, pool).
    """
    lens = (pairs.src_lens, pairs.tgt_lens)
    return form_batches(*lens, config.batch_tokens, config.batch_size, (config.seed, epoch, pool))


def batches_of_epoch(run: Run, signals: StopSignals, pace: Pace) -> Iterator[UpdateBatches]:
    """Yield the remaining batches of the current epoch, update by update.

    Each update takes `accumulate` batches for every process. The caller advances
    `run.progress` after each of them. Without streaming, an epoch is one pool.
    """
    config, progress = run.config, run.progress
    epoch = progress.epoch
    while progress.epoch == epoch:
        load_pool(run, signals)
        indices = form_pool_batches(config, run.data.train, epoch, progress.pool)
        run.plan(len(indices))
        done, end = progress.batch - progress.pool_start, progress.pool_start + len(indices)
        of_rank = indices[done + processes.rank() :: processes.world_size()]
        pin = run.device.type == "cuda"
        of_update = config.accumulate * processes.world_size()
        name = f"epoch {epoch:02d}" + (f", pool {progress.pool}" if config.streaming else "")
        bar = pace.showing(name, done // of_update, math.ceil(len(indices) / of_update))
        with bar, closing(prepared(run.data.train, of_rank, pin)) as remaining:
            for start in range(progress.batch, end, of_update):
                batches = itertools.islice(remaining, config.accumulate)
                after = min(start + of_update, end)
                yield UpdateBatches([b.to(run.device) for b in batches], after, after == end)


def prepared(
    pairs: BilingualDataset, batches: list[np.ndarray], pin: bool, ahead: int = 4
) -> Iterator[Batch]:
    """Yield the batches of some indices; a thread prepares `ahead` of them for the device.

    A thread is enough: it works in numpy, which waits for no Python code of the training.
    """

    def prepare(indices: np.ndarray) -> Batch:
        batch = pairs.batch(indices)
        return batch.pin_memory() if pin else batch

    waiting = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as thread:
        try:
            for indices in batches:
                waiting.append(thread.submit(prepare, indices))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def load_pool(run: Run, signals: StopSignals) -> None:
    """Load the pool at the run's position in its stream; the main process reads it for all.

    Reading may take long if the network fails, so a signal stops the run at once: all is saved.
    """
    data, position = run.data, run.progress.position
    if position != data.position:
        with signals.at_once():
            train, after = processes.from_main(lambda: data.stream.read(position))
        run.data = replace(data, train=train, position=position, next_position=after)
