"""Building, checking and storing tokenizers; text to ids and back."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from tqdm import tqdm

JOINER = "￭"  # on the side of a punctuation mark where the text has no blank
SPECIAL_TOKENS = ("[UNK]", "[PAD]", "[SOS]", "[EOS]")


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # line breaks and tabs among them
# Characters without a shape of their own: what Unicode calls default ignorable, marks of
# interlinear text, and braille without a dot.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_VISIBLE = re.compile(rf"[^\s{_INVISIBLE}]")


def clean_text(text: str) -> str:
    """Return text as every room sees it: composed (NFC), on one line, trimmed.

    Control characters are blanks: a model that learned to write line breaks would not give one
    line for one. A text of invisible characters alone is empty; within words they matter, as
    joiners do in Persian, Hindi and emoji, and stay.
    """
    if not _VISIBLE.search(text):
        return ""
    return unicodedata.normalize("NFC", _CONTROL.sub(" ", text)).strip()


def one_line(text: str) -> str:
    """Return clean text for output, where U+2028 and U+2029 would end a line for some readers.

    Inside real sentences of a corpus they are kept.
    """
    return clean_text(re.sub("[\u2028\u2029]+", " ", text))


@dataclass(frozen=True)
class Part:
    """What an id covers of a text."""

    text: str  # with the blank before it, if the id covers that
    word: str
    begins_word: bool
    ends_word: bool


@dataclass(frozen=True)
class Tokenizer:
    """Turns text into ids and back; control tokens typed in a text are ordinary text.

    Made by `build_tokenizer` or `tokenizer_from_json`. Ids never include [SOS], [EOS] or [PAD]:
    who needs them adds `sos_id`, `eos_id` and `pad_id`.
    """

    backend: tokenizers.Tokenizer
    unk_id: int
    pad_id: int
    sos_id: int
    eos_id: int

    @property
    def size(self) -> int:
        """Number of entries, special tokens included."""
        return self.backend.get_vocab_size()

    def vocabulary(self) -> list[str]:
        """Return the entries in the order of their ids."""
        ids = self.backend.get_vocab()
        return sorted(ids, key=ids.get)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        encodings = self.backend.encode_batch_fast(texts, add_special_tokens=False)
        control = {self.pad_id, self.sos_id, self.eos_id}
        return [
            # Only a tokenizer from elsewhere can map a text to a control token.
            e.ids if control.isdisjoint(e.ids) else self._without_control(e.ids)
            for e in encodings
        ]

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids up to the first [EOS]; unknown words show as [UNK].

        The text is clean and one line (`one_line`), whatever bytes the ids spell.
        """
        if self.eos_id in ids:
            ids = ids[: ids.index(self.eos_id)]
        ids = [i for i in ids if i not in (self.pad_id, self.sos_id)]
        return one_line(self.backend.decode(ids, skip_special_tokens=False))

    def decode_with(self, ids: list[int], parts: list[Part]) -> str:
        """Return the clean text of ids without control tokens, with a part for each [UNK]."""
        remaining = iter(parts)
        tokens = [""]
        for i in ids:
            token = self.backend.id_to_token(i)
            tokens.append(
                self._token_of(next(remaining), tokens[-1]) if i == self.unk_id else token
            )
        tokens = tokens[1:]
        decoder = self.backend.decoder
        return one_line(decoder.decode(tokens) if decoder else " ".join(tokens))

    def copy_of(self, part: Part) -> str:
        """Return what stands for an [UNK] of this tokenizer: the word where [UNK] is a word.

        Models of sub-words such as BPE and Unigram have an [UNK] for a part of a word. The
        tokens beside it spell the rest.
        """
        is_word = isinstance(self.backend.model, (models.WordLevel, models.WordPiece))
        return one_line(part.word if is_word else part.text)

    def _token_of(self, part: Part, before: str) -> str:
        """Return the copy of a part as the decoder expects it after the token `before`."""
        copy = self.copy_of(part)
        suffix = getattr(self.backend.model, "end_of_word_suffix", None)
        prefix = getattr(self.backend.model, "continuing_subword_prefix", None)
        if suffix or prefix:
            is_word = copy == part.word
            sign = "" if is_word or part.begins_word else prefix or ""
            copy = sign + copy + (suffix if suffix and (is_word or part.ends_word) else "")
        elif part.text.startswith(" ") and not before.endswith("▁"):
            copy = f" {copy}"  # the id covers the blank, too
        return copy.replace(JOINER, "■")

    def parts_of(self, text: str) -> list[Part]:
        """Return for each id of a clean text what it covers of the text, and of which word."""
        encoding = self.backend.encode(text, add_special_tokens=False)
        normalizer, splitter = self.backend.normalizer, self.backend.pre_tokenizer
        normalized = normalizer.normalize_str(text) if normalizer else text
        words = [w for w, _ in splitter.pre_tokenize_str(normalized)] if splitter else [normalized]
        spans: dict[int, tuple[int, int]] = {}
        for owner, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
            first, last = spans.get(owner, (start, end))
            spans[owner] = min(first, start), max(last, end)
        parts = []
        for owner, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
            if JOINER in words[owner]:  # inserted by us: offsets reach into the word beside it
                mark = words[owner].strip(JOINER)
                parts.append(Part(mark, mark, True, True))
                continue
            covered = text[start:end]
            at = end - len(covered.lstrip())
            # Some tokenizers take the whole text for one word.
            first = max(spans[owner][0], text.rfind(" ", 0, at) + 1)
            last = min([spans[owner][1], *([text.find(" ", at)] if " " in text[at:] else [])])
            word = text[first:last].strip()
            is_first, is_last = at <= first, end >= last
            parts.append(Part(covered if covered.strip() else word, word, is_first, is_last))
        return parts

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text of which a part has no id, in order."""
        ids = self.encode(text)
        if self.unk_id not in ids:
            return []
        words, begun = [], True
        for part, i in zip(self.parts_of(text), ids, strict=True):
            begun = begun or part.begins_word
            if i == self.unk_id and begun:
                words.append(part.word)
                begun = False
        return words

    def to_json(self) -> str:
        return self.backend.to_str()

    def _without_control(self, ids: list[int]) -> list[int]:
        control = (self.pad_id, self.sos_id, self.eos_id)
        return [self.unk_id if i in control else i for i in ids]


def tokenizer_from_json(text: str, name: str) -> Tokenizer:
    """Return the tokenizer that `to_json` wrote; ValueError says what is wrong with `name`."""
    try:
        backend = tokenizers.Tokenizer.from_str(text)
    except BaseException as error:
        _refuse(error, f"{name} is not a tokenizer file: {error}")
    return _checked(backend, name)


def get_saved_tokenizers(state: dict) -> tuple[Tokenizer, Tokenizer]:
    """Return the source's and the target's tokenizer inside a checkpoint."""
    return (
        tokenizer_from_json(state["tokenizer_src"], "the checkpoint's source tokenizer"),
        tokenizer_from_json(state["tokenizer_tgt"], "the checkpoint's target tokenizer"),
    )


def build_tokenizer(
    texts: Iterable[str], kind: str, vocab_size: int, min_frequency: int
) -> Tokenizer:
    """Train a tokenizer of whole words ("word") or byte-level sub-words ("bpe") on texts.

    Both bring back the blanks of the text. `word` knows the words and punctuation marks seen at
    least min_frequency times, a word being the same with a blank or an apostrophe before it; `bpe`
    writes any text at all.
    """
    special = {"special_tokens": list(SPECIAL_TOKENS), "show_progress": False}
    if kind == "word":
        backend = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
        backend.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Replace(JOINER, "■"),
                # Punctuation stands alone, with a joiner on each side that had no blank.
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
    return _checked(backend, "the new tokenizer")


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer stored at path; FileNotFoundError or ValueError when it cannot be."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no tokenizer {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a tokenizer file: it is not UTF-8") from None
    return tokenizer_from_json(text, str(path))


def _refuse(error: BaseException, message: str) -> NoReturn:
    # The library raises plain Exception, and where it panics something that is not even that.
    if isinstance(error, Exception) or type(error).__name__ == "PanicException":
        raise ValueError(message) from None
    raise error


def _checked(backend: tokenizers.Tokenizer, name: str) -> Tokenizer:
    ids = {}
    for token in SPECIAL_TOKENS:
        ids[token] = backend.token_to_id(token)
        if ids[token] is None:
            raise ValueError(f"{name} has no {token} token; it needs {' '.join(SPECIAL_TOKENS)}")
    vocabulary = backend.get_vocab()
    owners: dict[int, str] = {}
    for token, number in vocabulary.items():
        other = owners.setdefault(number, token)
        if other != token:
            raise ValueError(f"{name} gives both {other!r} and {token!r} the id {number}")
    if max(owners) >= len(vocabulary):
        raise ValueError(
            f"{name} has id {max(owners)} but only {len(vocabulary)} entries: ids must be "
            f"0 to {len(vocabulary) - 1}, each once"
        )
    try:
        backend.encode("\U0010fffd")  # which no text has
    except BaseException as error:
        _refuse(error, f"{name} cannot encode a text with unknown words: {error}")
    # A file from elsewhere may ask for them: sentences would be cut and padded behind our back.
    backend.no_truncation()
    backend.no_padding()
    if getattr(backend.model, "dropout", None):  # it would never encode a text twice the same
        backend.model.dropout = None
    # Not part of the stored file, so set on every path into the project: without it a text that
    # holds "[EOS]" would be cut there.
    backend.encode_special_tokens = True
    return Tokenizer(
        backend,
        unk_id=ids["[UNK]"],
        pad_id=ids["[PAD]"],
        sos_id=ids["[SOS]"],
        eos_id=ids["[EOS]"],
    )
