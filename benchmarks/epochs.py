"""The cost of real updates, on batches of many shapes, beside a fixed shape and other models."""

import itertools
import math
import os
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.inputs import PRECISIONS
from benchmarks.measuring import ratio, resident_memory, seconds, table
from benchmarks.peers import Marian, TorchTransformer, import_transformers, plain_step
from benchmarks.training_step import new_run, with_peers_dropout
from config import Config, get_config
from dataset import Batch, BilingualDataset, padded_length
from device import keep_freed_memory
from training.batches import form_pool_batches, prepared
from training.data import get_ds
from training.update import train_update

PEERS = {"Marian": Marian, "torch.nn.Transformer": TorchTransformer}
WAYS = ("ours", "ours, one shape", *PEERS)


@dataclass(frozen=True)
class Corpus:
    """The pairs to train on, as the settings of a run name them."""

    datasource: str
    lang_src: str
    lang_tgt: str


def benchmark_epochs(repeats: int, device: torch.device, corpus: Corpus, updates: int) -> dict:
    """Measure updates of the presets' sizes on the shuffled batches of epochs.

    Each repeat is a turn of `updates` (of `base`: a fifth of them); one more turn warms up.
    """
    results, rows = {}, []
    for preset in ("base", "small", "tiny"):
        config = replace(with_peers_dropout(get_config(preset)), **asdict(corpus), val_size=1)
        of_turn = math.ceil(updates / 5) if preset == "base" else updates
        for precision in PRECISIONS:
            row = one_model(config, precision, device, of_turn, repeats)
            results[f"{preset} {precision}"] = row
            rows.append([preset, precision, *row.values()])
    title = (
        f"Updates on the batches of epochs of {corpus.datasource}, {corpus.lang_src}-"
        f"{corpus.lang_tgt}: {repeats} turns of {updates} (base: {math.ceil(updates / 5)}), after "
        f"one to warm up; dropout 0.1 everywhere, nothing tied"
    )
    table(title, ["preset", "precision", *row], rows)
    return results


def one_model(
    config: Config, precision: str, device: torch.device, updates: int, repeats: int
) -> dict:
    """Measure the updates of one size: ours, ours with a fixed shape, and the peers in turn.

    Each has a process of its own, and waits while another one works.
    """
    load_pairs(config)  # a mistake is an error here, and the workers find the ids in the cache
    ways = [way for way in WAYS if way != "Marian" or has_marian()]
    workers = {
        way: ProcessPoolExecutor(
            1, get_context("spawn"), Trainer.begin, (way, config, precision, str(device))
        )
        for way in ways
    }
    costs: dict[str, list[float]] = {way: [] for way in ways}  # seconds per target token
    memory: dict[str, list[int]] = {way: [] for way in ways}
    try:
        for turn in tqdm(range(1 + repeats), f"  epochs, {precision}", leave=False):
            for way in ways:
                cost, held = workers[way].submit(Trainer.turn, updates).result()
                memory[way].append(held)
                if turn > 0:
                    costs[way].append(cost)
    finally:
        for worker in workers.values():
            worker.shutdown()
    ours = costs["ours"]
    row: dict[str, object] = {"tokens/s": round(1 / statistics.median(ours))}
    row["times one shape"] = ratio(costs["ours, one shape"], ours)
    for peer in PEERS:
        row[f"times {peer}"] = ratio(costs[peer], ours) if peer in ways else ""
    if sys.platform == "linux":
        row["MB after the first turn"], row["the last"] = memory["ours"][0], memory["ours"][-1]
        for peer in PEERS:
            row[f"MB of {peer}"] = memory[peer][-1] if peer in ways else ""
    return row


def load_pairs(config: Config) -> BilingualDataset:
    """Return the training pairs of a config without its messages."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        return get_ds(config).train


def has_marian() -> bool:
    """Return whether `transformers` is installed; say so if it is not."""
    try:
        import_transformers()
    except ValueError as error:
        print(f"\nwithout Marian: {error}")
        return False
    return True


class Trainer:
    """A model in training, in a process of its own."""

    current: "Trainer"  # the one of this process

    def __init__(self, way: str, config: Config, precision: str, device: str) -> None:
        self.way, self.device = way, torch.device(device)
        if self.device.type == "cpu":
            keep_freed_memory()
        self.pairs = load_pairs(config)
        self.pad_id = self.pairs.tokenizers.tgt.pad_id
        self.run = new_run(config, precision, self.device, self.pairs.tokenizers.sizes)
        if way in PEERS:
            model = PEERS[way](config, self.run.model).to(self.device).train()
            self.run.model = model
            self.run.optimizer = torch.optim.Adam(model.parameters(), lr=config.lr, fused=True)
        self.batches = self.all_batches()

    @staticmethod
    def begin(*arguments: str) -> None:
        """Make the trainer of this process."""
        Trainer.current = Trainer(*arguments)

    @staticmethod
    def turn(updates: int) -> tuple[float, int]:
        """Train for some updates; return the seconds per target token, and the MB held then."""
        cost = Trainer.current.train(updates)
        return cost, round(resident_memory() / 1e6) if sys.platform == "linux" else 0

    def all_batches(self) -> Iterator[Batch]:
        """Yield the batches of one epoch after the other; for one shape always the same batch."""
        for epoch in itertools.count():
            indices = form_pool_batches(self.run.config, self.pairs, epoch)
            if self.way == "ours, one shape":
                indices = [most_common_shape(self.pairs, indices)] * len(indices)
            for batch in prepared(self.pairs, indices, self.device.type == "cuda"):
                yield batch.to(self.device)

    def train(self, updates: int) -> float:
        """Train for some updates; return the seconds per target token."""
        tokens = 0

        def work() -> None:
            nonlocal tokens
            for batch in itertools.islice(self.batches, updates):
                if self.way in PEERS:
                    plain_step(self.run, batch, self.pad_id)
                else:
                    train_update(self.run, [batch])
                tokens += batch.tokens
            self.run.pending_updates.clear()

        return seconds(work) / tokens


def most_common_shape(pairs: BilingualDataset, batches: list[np.ndarray]) -> np.ndarray:
    """Return a batch of the shape that most of an epoch's batches have."""

    def shape(batch: np.ndarray) -> tuple[int, int, int]:
        longest = (lens[batch].max() for lens in (pairs.src_lens, pairs.tgt_lens))
        return (len(batch), *(int(padded_length(each)) for each in longest))

    shapes = [shape(batch) for batch in batches]
    [(most_common, _)] = Counter(shapes).most_common(1)
    return batches[shapes.index(most_common)]
