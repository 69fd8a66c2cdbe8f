"""Tokenizers: text to ids and back, loading them and checking them. Text cleaning."""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

import tokenizers
from tokenizers import models

JOINER = "￭"  # marks a side of a punctuation mark that has no blank in the text
SPECIAL_TOKENS = ("[UNK]", "[PAD]", "[SOS]", "[EOS]")
# The longest text, in characters. Longer ones are dropped before they can use all memory.
MAX_CHARS = 20_000


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # including line breaks and tabs
# Characters that show nothing: those that Unicode calls default ignorable, marks of interlinear
# text, and the blank braille pattern.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_VISIBLE = re.compile(rf"[^\s{_INVISIBLE}]")


def clean_text(text: str) -> str:
    """Return a text in the Unicode form NFC, on one line, without blanks at its ends.

    Control characters become blanks: a model that learns line breaks would translate one line into
    several. A text of only invisible characters becomes empty. Inside other texts they stay, since
    they belong to the spelling of Persian, Hindi and emoji.
    """
    if not _VISIBLE.search(text):
        return ""
    return unicodedata.normalize("NFC", _CONTROL.sub(" ", text)).strip()


def one_line(text: str) -> str:
    """Return a clean text for output, without U+2028 and U+2029.

    Some programs end a line there. A corpus keeps them, because real sentences contain them.
    """
    return clean_text(re.sub("[\u2028\u2029]+", " ", text))


@dataclass(frozen=True)
class Part:
    """The part of a text that an id covers."""

    text: str  # with the blank before it, if the id covers that
    word: str
    begins_word: bool
    ends_word: bool


@dataclass(frozen=True)
class Tokenizer:
    """Converts text to ids and back. A control token in a text is ordinary text.

    `build_tokenizer` and `tokenizer_from_json` return one. Encoded texts never include [SOS], [EOS]
    or [PAD]: callers add `sos_id`, `eos_id` and `pad_id`.
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
        """Return the ids of each text, without control tokens."""
        encodings = self.backend.encode_batch_fast(texts, add_special_tokens=False)
        control = {self.pad_id, self.sos_id, self.eos_id}
        return [
            # Only a tokenizer from elsewhere can encode a text as a control token.
            e.ids if control.isdisjoint(e.ids) else self._without_control(e.ids)
            for e in encodings
        ]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without control tokens."""
        return self.encode_batch([text])[0]

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids up to the first [EOS], with [UNK] for unknown words.

        The text is clean and on one line (see `one_line`), even if the ids spell other bytes.
        """
        if self.eos_id in ids:
            ids = ids[: ids.index(self.eos_id)]
        ids = [i for i in ids if i not in (self.pad_id, self.sos_id)]
        return one_line(self.backend.decode(ids, skip_special_tokens=False))

    def decode_with(self, ids: list[int], parts: list[Part]) -> str:
        """Return the clean text of ids without control tokens, with one part for each [UNK]."""
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
        """Return the text that replaces an [UNK]: the whole word if [UNK] stands for a word.

        In sub-word models such as BPE and Unigram, [UNK] stands for a part of a word. The tokens
        beside it spell the rest.
        """
        is_word = isinstance(self.backend.model, (models.WordLevel, models.WordPiece))
        return one_line(part.word if is_word else part.text)

    def _token_of(self, part: Part, before: str) -> str:
        """Return the copy of a part, with the marks that the decoder expects after a token."""
        copy = self.copy_of(part)
        suffix = getattr(self.backend.model, "end_of_word_suffix", None)
        prefix = getattr(self.backend.model, "continuing_subword_prefix", None)
        if suffix or prefix:
            is_word = copy == part.word
            sign = "" if is_word or part.begins_word else prefix or ""
            copy = sign + copy + (suffix if suffix and (is_word or part.ends_word) else "")
        elif part.text.startswith(" ") and not before.endswith("▁"):
            copy = f" {copy}"  # the id also covers the blank
        return copy.replace(JOINER, "■")

    def parts_of(self, text: str) -> list[Part]:
        """Return the part of a clean text that each of its ids covers."""
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
            if JOINER in words[owner]:  # inserted by us: offsets include the word beside it
                mark = words[owner].strip(JOINER)
                parts.append(Part(mark, mark, True, True))
                continue
            covered = text[start:end]
            at = end - len(covered.lstrip())
            # For some tokenizers the whole text is one word.
            first = max(spans[owner][0], text.rfind(" ", 0, at) + 1)
            last = min([spans[owner][1], *([text.find(" ", at)] if " " in text[at:] else [])])
            word = text[first:last].strip()
            is_first, is_last = at <= first, end >= last
            parts.append(Part(covered if covered.strip() else word, word, is_first, is_last))
        return parts

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that have a part without an id, in order."""
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
        """Return the text of a tokenizer file, for `tokenizer_from_json`."""
        return self.backend.to_str()

    def _without_control(self, ids: list[int]) -> list[int]:
        control = (self.pad_id, self.sos_id, self.eos_id)
        return [self.unk_id if i in control else i for i in ids]


class TokenizerPair(NamedTuple):
    """The tokenizers of one run; with a shared vocabulary both are the same."""

    src: Tokenizer
    tgt: Tokenizer

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of entries, special tokens included: (source, target)."""
        return self.src.size, self.tgt.size


def tokenizer_from_json(text: str, name: str) -> Tokenizer:
    """Return the tokenizer in the text of a tokenizer file.

    Raises ValueError for an invalid one. The message names it `name`.
    """
    try:
        backend = tokenizers.Tokenizer.from_str(text)
    except BaseException as error:
        _refuse(error, f"{name} is not a tokenizer file: {error}")
    return check_tokenizer(backend, name)


def get_saved_tokenizers(state: dict) -> TokenizerPair:
    """Return the tokenizers in the state of a checkpoint. Raises like `tokenizer_from_json`."""
    return TokenizerPair(
        tokenizer_from_json(state["tokenizer_src"], "the checkpoint's source tokenizer"),
        tokenizer_from_json(state["tokenizer_tgt"], "the checkpoint's target tokenizer"),
    )


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a file. Raises FileNotFoundError or, if it is invalid, ValueError."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no tokenizer {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a tokenizer file: it is not UTF-8") from None
    return tokenizer_from_json(text, str(path))


def _refuse(error: BaseException, message: str) -> NoReturn:
    # The library raises plain Exception. Where it panics, the error is only a BaseException.
    if isinstance(error, Exception) or type(error).__name__ == "PanicException":
        raise ValueError(message) from None
    raise error


def check_tokenizer(backend: tokenizers.Tokenizer, name: str) -> Tokenizer:
    """Return a `Tokenizer` around a tokenizer of the library, which is set up for this project.

    Raises ValueError with `name` if a special token is missing, if the ids are not 0 to size - 1,
    each once, or if a text with unknown words cannot be encoded.
    """
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
        backend.encode("\U0010fffd")  # a character that no text has
    except BaseException as error:
        _refuse(error, f"{name} cannot encode a text with unknown words: {error}")
    # A file from elsewhere may enable both. Sentences would be cut and padded without a message.
    backend.no_truncation()
    backend.no_padding()
    if getattr(backend.model, "dropout", None):  # with it, a text has other ids each time
        backend.model.dropout = None
    # Not stored in a file, so set for each tokenizer. Without it, "[EOS]" in a text would become
    # the control token, and the text would end there.
    backend.encode_special_tokens = True
    return Tokenizer(
        backend,
        unk_id=ids["[UNK]"],
        pad_id=ids["[PAD]"],
        sos_id=ids["[SOS]"],
        eos_id=ids["[EOS]"],
    )
