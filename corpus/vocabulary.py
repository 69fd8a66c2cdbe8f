"""Building a tokenizer, whose vocabulary is trained on texts."""

from collections.abc import Iterable

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from tqdm import tqdm

from corpus.tokenizer import JOINER, SPECIAL_TOKENS, Tokenizer, check_tokenizer


def build_tokenizer(
    texts: Iterable[str], kind: str, vocab_size: int, min_frequency: int
) -> Tokenizer:
    """Return a tokenizer of whole words ("word") or byte-level sub-words ("bpe") trained on texts.

    Both restore the blanks of a text when they decode. `word` has the words and punctuation marks
    that occur at least `min_frequency` times. A word has the same id after a blank and after an
    apostrophe. `bpe` can encode any text. Raises ValueError for another `kind`.
    """
    special = {"special_tokens": list(SPECIAL_TOKENS), "show_progress": False}
    if kind == "word":
        backend = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
        backend.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Replace(JOINER, "■"),
                # Separate punctuation marks, and add a joiner on each side that has no blank.
                normalizers.Replace(tokenizers.Regex(r"(?<=\S)(?=[^\w\s])"), f" {JOINER}"),
                normalizers.Replace(tokenizers.Regex(rf"(?<=[^\w\s{JOINER}])(?=\w)"), f"{JOINER} "),
            ]
        )
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        backend.decoder = decoders.Sequence(
            [
                decoders.WordPiece(JOINER, cleanup=False),  # joins to the left
                decoders.Fuse(),
                decoders.Replace(f"{JOINER} ", ""),  # joins to the right
                decoders.Replace(JOINER, ""),
            ]
        )
        trainer = trainers.WordLevelTrainer(
            vocab_size=vocab_size, min_frequency=min_frequency, **special
        )
    elif kind == "bpe":
        backend = tokenizers.Tokenizer(models.BPE())
        backend.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Strip()])
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            **special,
        )
    else:
        raise ValueError(f"tokenizer ({kind!r}) must be word or bpe")
    backend.train_from_iterator(
        tqdm(texts, desc="training tokenizer", delay=2, disable=None), trainer
    )
    return check_tokenizer(backend, "the new tokenizer")
