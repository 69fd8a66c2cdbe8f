"""Training pairs that are read while they are trained on, for what should not be loaded whole."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from config import Config
from corpus import clean_rows
from dataset import BilingualDataset, NoPairFits
from sources import find_rows, last_line
from tokenizer import Tokenizer

if TYPE_CHECKING:
    from datasets import Dataset


class Stream:
    """The pairs of a run's `datasource`, encoded pool by pool.

    A pool is `pool_size` pairs in the source's order, less those that cleaning drops. One is
    trained on while the next is at hand already, and no more is in memory. A position is where a
    pool begins, as text for a checkpoint: "" is the beginning of the source, and also its end.
    """

    def __init__(self, config: Config, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        self.config, self.tokenizers = config, tokenizers
        self.position = ""  # of the pool that is at hand
        self.ahead: tuple[BilingualDataset, str] | None = None  # that pool, and what comes after

    def read(self, position: str) -> tuple[BilingualDataset, str]:
        """Return the pool at a position, and the position of the next.

        Raises ValueError where the source has nothing to train on from there, and like
        `read_pools`.
        """
        if not position or position != self.position:
            self.pools = read_pools(self.config, position)
            self.ahead = self._next_pool()
            if self.ahead is None:
                where = f"after the {json.loads(position)[0]:,} first" if position else "at all"
                raise ValueError(f"{self.config.datasource} has no pair to train on {where}")
        pool, after = self.ahead
        self.ahead = self._next_pool()
        self.position = after if self.ahead else ""
        return pool, self.position

    def _next_pool(self) -> tuple[BilingualDataset, str] | None:
        for pairs, after, words in self.pools:
            print(words)
            try:
                if len(pairs):
                    return BilingualDataset(pairs, *self.tokenizers, self.config.seq_len), after
            except NoPairFits as error:
                print(error)
        return None


def first_pairs(config: Config) -> "Dataset":
    """Return the cleaned pairs of the first pool that has any: what tokenizers learn from."""
    for pairs, _, _ in read_pools(config):
        if len(pairs):
            return pairs
    raise ValueError(
        f"{config.datasource} has no pair with text on both sides, {config.lang_src} and "
        f"{config.lang_tgt}"
    )


def read_pools(config: Config, position: str = "") -> "Iterator[tuple[Dataset, str, str]]":
    """Yield the cleaned pairs of pool after pool, the position after each, and what was read.

    Raises ValueError, FileNotFoundError or ConnectionError, in one line.
    """
    source, langs = config.datasource, (config.lang_src, config.lang_tgt)
    rows, note = find_rows(source, *langs, "train", streaming=True)
    last = 0
    try:
        if position:
            last, state = json.loads(position)
            rows.load_state_dict(state)
        for pool in rows.iter(config.pool_size):
            first, last = last + 1, last + len(next(iter(pool.values())))
            pairs, drops = clean_rows(pool, *langs)
            words = f"{source}: pairs {first:,} to {last:,}{note}, {' -> '.join(langs)}{drops}"
            yield pairs, json.dumps([last, rows.state_dict()]), words
    except Exception as error:  # the library raises whatever its parsers raise
        if type(error) is ValueError or isinstance(error, OSError):
            raise
        raise ValueError(f"{source} cannot be read: {last_line(error)}") from None
