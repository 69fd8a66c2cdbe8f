"""Streaming: reading the training pairs pool by pool while training on them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config import Config
from corpus.cleaning import clean_rows
from corpus.hub import in_one_line
from corpus.pairs import fingerprint, named_sources
from corpus.sources import find_rows
from corpus.tokenizer import TokenizerPair
from dataset import BilingualDataset, NoPairFits

if TYPE_CHECKING:
    from datasets import Dataset


class Stream:
    """The pairs of a run's `datasource`, encoded pool by pool.

    A pool is `pool_size` pairs in the order of the source, minus those that cleaning drops. One
    pool is encoded ahead. A position says where a pool begins, as text for a checkpoint: "" is the
    beginning of the source, and also its end.
    """

    def __init__(self, config: Config, tokenizers: TokenizerPair) -> None:
        self.config, self.tokenizers = config, tokenizers
        self.position = ""  # of the pool that is encoded ahead
        self.ahead: Pool | None = None

    def read(self, position: str) -> tuple[BilingualDataset, str]:
        """Return the pool at a position, and the position of the next.

        Raises ValueError if there is no pool at that position, or a different one. Errors of
        reading are those of `read_pools`.
        """
        if not position or position != self.position:
            self._go_to(position)
        pool = self.ahead
        self.ahead = self._next_pool()
        self.position = ""
        if self.ahead is not None:
            self.position = json.dumps([*pool.end, self.ahead.digest])
        return pool.pairs, self.position

    def _go_to(self, position: str) -> None:
        source, start, digest = self.config.datasource, (0, {}), None
        if position:
            *start, digest = _parsed(position, source)
        self.pools = read_pools(self.config, *start)
        self.ahead = self._next_pool()
        if self.ahead is None:
            where = f"after the first {start[0]:,}" if position else "at all"
            raise ValueError(f"{source} has no pair to train on {where}")
        if digest not in (None, self.ahead.digest):
            raise ValueError(
                f"{source} does not continue after its first {start[0]:,} pairs as it did before: "
                "the pairs changed, or come from another place (a cache, another kind of file); "
                "restore the source, or start a new run with --model_folder NAME"
            )

    def _next_pool(self) -> "Pool | None":
        for pairs, end, message in self.pools:
            print(message)
            try:
                if len(pairs):
                    encoded = BilingualDataset(pairs, self.tokenizers, self.config.seq_len)
                    return Pool(encoded, end, fingerprint(pairs))
            except NoPairFits as error:
                print(error)
        return None


@dataclass(frozen=True)
class Pool:
    """Encoded pairs, where in the source they end, and a hash of their texts."""

    pairs: BilingualDataset
    end: "Place"
    digest: str


# A place in the source: the number of rows before it, and the library's state to continue there.
Place = tuple[int, dict]


def _parsed(position: str, source: str) -> tuple[int, dict, str]:
    try:
        count, state, digest = json.loads(position)
    except (ValueError, TypeError, RecursionError):
        count = state = digest = None
    if not (type(count) is int and 0 < count < 2**63):
        count = None
    if count is None or not (isinstance(state, dict) and isinstance(digest, str)):
        raise ValueError(f"the checkpoint's position in {source} is damaged: {position[:80]!r}")
    return count, state, digest


def check_one_source(config: Config) -> None:
    """Raise ValueError unless the datasource of a streaming run is one source without a weight."""
    source = config.datasource
    if named_sources(source, config.lang_src, config.lang_tgt) != [(source, None)]:
        raise ValueError(
            f"streaming reads one source without a weight, not datasource ({source}): name one, "
            "or remove --streaming"
        )


def first_pairs(config: Config) -> "Dataset":
    """Return the cleaned pairs of the first pool that has any; tokenizers are trained on them.

    Raises ValueError if no pool has any.
    """
    for pairs, _, _ in read_pools(config):
        if len(pairs):
            return pairs
    raise ValueError(
        f"{config.datasource} has no pair with text on both sides, {config.lang_src} and "
        f"{config.lang_tgt}"
    )


def read_pools(
    config: Config, count: int = 0, state: dict | None = None
) -> "Iterator[tuple[Dataset, Place, str]]":
    """Yield for each pool its cleaned pairs, the place after it, and a message on what was read.

    Begins at the place (count, state). Raises ValueError or FileNotFoundError, in one line.
    """
    source, langs = config.datasource, (config.lang_src, config.lang_tgt)
    rows, note = find_rows(source, *langs, "train", streaming=True)
    try:
        if state:
            rows.load_state_dict(state)
        for pool in rows.iter(config.pool_size):
            first, count = count + 1, count + len(next(iter(pool.values())))
            pairs, drops = clean_rows(pool, *langs)
            words = f"{source}: pairs {first:,} to {count:,}{note}, {' -> '.join(langs)}{drops}"
            yield pairs, (count, rows.state_dict()), words
    except MemoryError:
        raise
    except Exception as error:  # the library passes on the errors of its parsers and of the network
        after = f" after its first {count:,} pairs" if count else ""
        raise ValueError(f"{source} cannot be read{after}: {in_one_line(error)}") from None
