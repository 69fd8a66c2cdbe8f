"""The sentence pairs of the phrasebook, in a training and a validation split."""

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from random import Random

from phrasebook.clauses import Sentence
from phrasebook.lexicon import Pair
from phrasebook.patterns import PATTERNS

LANGUAGES = ("en", "it")
SIZES = {"train": 28_000, "validation": 1_100}
# A sentence is in validation if the checksum of its Italian has this remainder. So a sentence is in
# the same split with every seed. The remainder is that of the README's "i due piccoli cani non
# dormono in cucina", which is therefore never trained on.
HELD_OUT_EVERY, HELD_OUT_REMAINDER = 20, 15
SEEN_IN_TRAINING = 3  # how often the training split has each word of validation, at least


def folded(text: str) -> str:
    """Return a text without capital letters and punctuation, to compare sentences."""
    return text.casefold().rstrip(".?!").replace(",", "")


def words_of(text: str) -> list[str]:
    """Return the words of a sentence, without the punctuation."""
    return text.rstrip(".?!").replace(",", "").split()


def is_held_out(italian: str) -> bool:
    """Return whether a sentence belongs to validation, by its Italian."""
    return zlib.crc32(folded(italian).encode()) % HELD_OUT_EVERY == HELD_OUT_REMAINDER


def sentences(seed: int) -> Iterator[Sentence]:
    """Yield random sentences without end. A sentence may come several times."""
    rng = Random(seed)
    weights = [weight for weight, *_ in PATTERNS]
    while True:
        _, function, options = rng.choices(PATTERNS, weights)[0]
        sentence = function(rng, *options)
        # A word may not follow itself: "il vicino vicino al ponte" is correct, but reads badly.
        if not any(re.search(r"\b(\w+) \1\b", text) for text in sentence.pair):
            yield sentence


def write_pairs(split: str, seed: int = 0) -> list[Pair]:
    """Return the (English, Italian) sentence pairs of a split, the same for the same seed.

    The split is train or validation. No sentence of validation is in train, in either language.
    Each word of validation is in train at least three times, with the same capital letters. About
    half of the pairs have a capital letter and punctuation. Raises ValueError for another split.
    """
    if split not in SIZES:
        raise ValueError(f"no split {split!r}: {' and '.join(SIZES)} are known")
    style = Random(f"style {seed}")
    train: list[Pair] = []
    held_out: list[Pair] = []
    seen = set()
    for sentence in sentences(seed):
        if folded(sentence.en) in seen:
            continue
        seen.add(folded(sentence.en))
        en, it = sentence.pair
        if style.random() < 0.5:
            en, it = (text[0].upper() + text[1:] + sentence.mark for text in (en, it))
        else:
            en, it = (text.replace(",", "") for text in (en, it))
        (held_out if is_held_out(it) else train).append((en, it))
        if len(train) == SIZES["train"]:
            break
    if split == "train":
        return train
    counts = Counter(word for pair in train for text in pair for word in words_of(text))
    known = [
        pair
        for pair in held_out
        if all(counts[word] >= SEEN_IN_TRAINING for text in pair for word in words_of(text))
    ]
    return known[: SIZES["validation"]]


def phrasebook_rows(split: str, version: str) -> Iterator[dict[str, str]]:
    """Yield the pairs of `train` or `validation` as rows with the columns `en` and `it`.

    `version` is not used: it makes the cache of the `datasets` library notice changed code.
    """
    for en, it in write_pairs(split):
        yield {"en": en, "it": it}
