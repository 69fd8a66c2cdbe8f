"""A trained model with its tokenizers: text in, text out."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import tyro
from torch import Tensor

from config import Config
from corpus.lines import MAX_CHARS
from corpus.tokenizer import Tokenizer, clean_text
from dataset import form_batches, pad, padding_mask, source_batches
from model import Transformer
from translation.decode import EXTRA_LENGTH, Hypothesis, Rules, beam_search, greedy_decode, sample
from translation.segmentation import join, parts_that_fit, sentences
from translation.trained import note

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Options:
    """What `translate.py` can be asked; the trailing comments are its help text."""

    text: tyro.conf.Positional[tuple[str, ...]] = ()  # sentence to translate
    weights: str | None = None  # checkpoint, or its folder (else the run trained last, here)
    average: int = 1  # mean of so many last epochs' weights (1: the best epoch's alone)
    input: str | None = None  # file to translate, a sentence a line
    output: str | None = None  # file for the translations (else they are printed)
    batch_tokens: int = 4096  # budget of a batch in padded tokens
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16 is faster, and may choose other words

    # Search
    beam_size: int = 1  # beginnings kept at each step (1: greedy)
    alpha: float = 0.6  # of the length penalty: higher favours longer translations
    n_best: int = 1  # translations of each line
    min_length: int = 0  # fewest tokens of a translation
    no_repeat_ngram: int = 0  # no group of so many tokens twice in a translation (0: any)
    prefix: str | None = None  # how each translation of a sentence begins
    ban_unknown: bool = False  # never write [UNK]
    replace_unknown: bool = False  # write the source's word that attention points to for [UNK]
    sample: bool = False  # draw each token by its probability: n_best samples
    temperature: float = 1.0  # of --sample: lower keeps nearer to the likeliest
    top_k: int = 0  # draw among so many likeliest tokens (0: among all)
    seed: int = 0  # of --sample: with the sentence it decides the samples

    # Output
    format: Literal["text", "tsv", "jsonl"] = "text"  # tsv and jsonl have source and scores
    target: str | None = None  # file of translations of --input to score instead of making them
    reference: str | None = None  # file to compare the translations of --input with, by scores
    attention: str | None = None  # picture of the sentence's cross-attention; with more, a folder
    heads: Literal["mean", "each"] = "mean"  # of the last layer, in one picture or a panel each
    bootstrap: bool = False  # with confidence intervals, of 1,000 resamplings

    def __post_init__(self) -> None:
        for name in ("target", "reference"):
            if getattr(self, name) is not None and self.input is None:
                raise ValueError(f"--{name} {getattr(self, name)} needs --input")
        if self.target is not None and self.reference is not None:
            raise ValueError(
                f"--target {self.target} is scored as it is; --reference {self.reference} is "
                "compared with new translations: give one of them"
            )
        for name, least in dict(
            average=1, beam_size=1, n_best=1, min_length=0, no_repeat_ngram=0, top_k=0, seed=0
        ).items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least {least}")
        if not 0 <= self.alpha <= 10:
            raise ValueError(f"alpha ({self.alpha}) must be in [0, 10]")
        if self.beam_size > 1000:
            raise ValueError(f"beam_size ({self.beam_size}) must be at most 1000")
        if self.sample and self.beam_size > 1:
            raise ValueError(f"--sample draws, --beam_size {self.beam_size} searches: give one")
        if not self.sample and (self.temperature, self.top_k, self.seed) != (1.0, 0, 0):
            raise ValueError("--temperature, --top_k and --seed need --sample")
        if not 0.01 <= self.temperature <= 100:
            raise ValueError(f"temperature ({self.temperature}) must be in [0.01, 100]")
        if self.n_best > 1000:
            raise ValueError(f"n_best ({self.n_best}) must be at most 1000")
        if self.n_best > self.beam_size and not self.sample:
            raise ValueError(
                f"n_best ({self.n_best}) must be at most beam_size ({self.beam_size}): "
                f"--beam_size {self.n_best}, or --sample"
            )
        if self.bootstrap and self.reference is None:
            raise ValueError("--bootstrap needs --reference")
        if self.heads == "each" and self.attention is None:
            raise ValueError("--heads each needs --attention")
        if self.target is not None and (self.output or self.attention or self.format != "text"):
            raise ValueError("--target prints a number a line: no --output, --attention, --format")
        if self.target is not None and (self.beam_size > 1 or self.sample or self.prefix):
            raise ValueError("--target is scored as it is: no --beam_size, --sample, --prefix")
        if self.attention and Path(self.attention).suffix not in ("", *PICTURES):
            raise ValueError(
                f"--attention {self.attention} must end in one of {' '.join(PICTURES)}, or name a "
                "folder"
            )
        if self.n_best > 1 and self.format == "text":
            raise ValueError(f"n_best ({self.n_best}) needs --format tsv or jsonl")
        if self.text and self.input is not None:
            raise ValueError(f"give a sentence or --input {self.input}, not both")
        if self.output and self.input is None:
            raise ValueError(f"--output {self.output} needs --input")
        if self.batch_tokens < 1:
            raise ValueError(f"batch_tokens ({self.batch_tokens}) must be at least 1")


@dataclass(frozen=True)
class Translation:
    """A translation of a line; the numbers are sums over the sentences that it was cut into."""

    text: str
    score: float  # by which it was chosen: the log-probability over the length penalty
    log_probability: float  # natural, of all its tokens
    copied: tuple[str, ...] = ()  # what of the source stands where [UNK] was


@dataclass(frozen=True)
class Piece:
    """A text that the model takes whole."""

    text: str
    ids: list[int]


@dataclass(frozen=True)
class Translator:
    """A trained model with its tokenizers: text in, text out."""

    model: Transformer
    tokenizer_src: Tokenizer
    tokenizer_tgt: Tokenizer
    config: Config
    device: torch.device
    options: Options

    def split(self, text: str, number: int) -> list[Piece]:
        """Return a text in one piece if the model can take it, else by sentence.

        A sentence that is too long comes in parts, with a note. Raises ValueError with the text's
        number for one that is longer than any sentence.
        """
        text = clean_text(text)
        if not text:
            return []
        if len(text) > MAX_CHARS:
            raise ValueError(f"line {number} has more than {MAX_CHARS:,} characters")
        longest = self.config.seq_len - 2  # [SOS] and [EOS] go around it
        whole = self.piece(text)
        if len(whole.ids) <= longest:
            return [whole]

        def fits(part: str) -> bool:
            return len(self.piece(part).ids) <= longest

        pieces, cut, count = [], [], 0
        for sentence in map(self.piece, sentences(text)):
            if len(sentence.ids) <= longest:
                pieces.append(sentence)
                continue
            try:
                parts = parts_that_fit(sentence.text, fits)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            cut.append(len(sentence.ids))
            count += len(parts)
            pieces += map(self.piece, parts)
        if cut:
            what = "a sentence" if len(cut) == 1 else f"{len(cut):,} sentences, the longest"
            note(
                f"line {number} has {what} of {max(cut):,} tokens, the model takes {longest:,}: "
                f"translated in {count:,} parts"
            )
        return [piece for piece in pieces if piece.text]

    def piece(self, text: str) -> Piece:
        text = text.strip()
        return Piece(text, self.tokenizer_src.encode(text))

    def translate(self, lines: list[list[Piece]], first: int = 1) -> list[list[Translation]]:
        """Return the translations of each line, best first, from its pieces (`split`).

        No pieces give an empty translation. A line's result does not depend on the others.
        `first` is the first line's number, for the notes on standard error.
        """
        pieces = [(number, piece) for number, line in enumerate(lines) for piece in line]
        found: list[list[list[Translation]]] = [[] for _ in lines]
        ordered: list[list[Translation]] = [[] for _ in pieces]
        sources = [piece.ids for _, piece in pieces]
        batches = source_batches(sources, self.tokenizer_src, self.options.batch_tokens)
        for indices, src, src_mask in batches:
            decoded = self.decode(src.to(self.device), src_mask.to(self.device))
            for i, hypotheses in zip(indices, decoded, strict=True):
                number, piece = pieces[i]
                ordered[i] = [self.in_words(piece, hypothesis) for hypothesis in hypotheses]
                ids = hypotheses[0].ids
                if not ids or ids[-1] != self.tokenizer_tgt.eos_id:
                    note(f"line {first + number}: the translation was cut at {len(ids)} tokens")
        for (number, _), translations in zip(pieces, ordered, strict=True):
            found[number].append(translations)
        return [self.joined(pieces_of_line) for pieces_of_line in found]

    def in_words(self, piece: Piece, hypothesis: Hypothesis) -> Translation:
        """Return a hypothesis as text, with what the source has for each [UNK] if that is wanted.

        That is the source token with the highest attention in the last layer, among the unknown
        ones if there are any: its word, or the part of a word that it covers (`copy_of`).
        """
        tokenizer, ids = self.tokenizer_tgt, hypothesis.ids
        numbers = (hypothesis.score, hypothesis.log_probability)
        if not self.options.replace_unknown or tokenizer.unk_id not in ids:
            return Translation(tokenizer.decode(ids), *numbers)
        _, weights = self.attention(piece, ids)
        weights = weights.mean(dim=0)[:, 1:-1]  # without [SOS] and [EOS]
        is_unknown = torch.tensor(piece.ids, device=weights.device) == self.tokenizer_src.unk_id
        if is_unknown.any():
            weights = weights.masked_fill(~is_unknown, -1)
        looked_at = weights.argmax(dim=-1).tolist()
        parts = self.tokenizer_src.parts_of(piece.text)
        unknown = [parts[at] for at, i in zip(looked_at, ids, strict=True) if i == tokenizer.unk_id]
        control = (tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id)
        text = tokenizer.decode_with([i for i in ids if i not in control], unknown)
        return Translation(text, *numbers, tuple(map(tokenizer.copy_of, unknown)))

    def alone(self, piece: Piece) -> tuple[Tensor, Tensor]:
        """Return src (1, S) and src_mask of a piece as a batch of its own."""
        [(_, src, src_mask)] = source_batches(
            [piece.ids], self.tokenizer_src, self.options.batch_tokens
        )
        return src.to(self.device), src_mask.to(self.device)

    def attention(self, piece: Piece, ids: list[int]) -> tuple[list[int], Tensor]:
        """Return the source's ids (S) and the last layer's cross-attention for a translation.

        That is (h, T, S): for each of its T ids what the decoder looked at to say it.
        """
        from translation.attention import cross_attention

        src, src_mask = self.alone(piece)
        tgt = src.new_tensor([[self.tokenizer_tgt.sos_id, *ids[:-1]]])
        return src[0].tolist(), cross_attention(self.model, src, src_mask, tgt)[-1, 0]

    def draw_attention(self, text: str, number: int = 1) -> "Figure":
        """Return a picture of the last layer's cross-attention for a text and its translation.

        Raises ValueError for a text that is blank or longer than the model.
        """
        from translation.attention import draw, tokens_of

        pieces = self.split(text, number)
        if len(pieces) != 1:
            raise ValueError(
                f"line {number} is {'cut into sentences' if pieces else 'blank'}: no picture"
            )
        ids = self.decode(*self.alone(pieces[0]))[0][0].ids
        src_ids, weights = self.attention(pieces[0], ids)
        if self.options.heads == "mean":
            weights = weights.mean(dim=0, keepdim=True)
        tokens = tokens_of(self.tokenizer_src, src_ids)
        return draw(weights, tokens, tokens_of(self.tokenizer_tgt, ids))

    def decode(self, src: Tensor, src_mask: Tensor) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first, in the way that the options name."""
        options, tokenizer, rules = self.options, self.tokenizer_tgt, self.rules
        ends = {"sos_id": tokenizer.sos_id, "eos_id": tokenizer.eos_id}
        if options.sample:
            count = options.n_best
            drawn = sample(
                self.model,
                src.repeat_interleave(count, dim=0),
                src_mask.repeat_interleave(count, dim=0),
                **ends,
                # By what the source is, and not where it stands, as any translation.
                seeds=[
                    (options.seed, number, *row[row != self.tokenizer_src.pad_id].tolist())
                    for row in src
                    for number in range(count)
                ],
                temperature=options.temperature,
                top_k=options.top_k,
                rules=rules,
            )
            return [drawn[start : start + count] for start in range(0, len(drawn), count)]
        if options.beam_size == 1 and rules == Rules() and options.format == "text":
            outputs = greedy_decode(self.model, src, src_mask, **ends)
            return [[Hypothesis(ids, 0.0, 0.0)] for ids in outputs]  # nobody asked for scores
        return beam_search(
            self.model,
            src,
            src_mask,
            **ends,
            beam_size=options.beam_size,
            alpha=options.alpha,
            n_best=options.n_best,
            rules=rules,
        )

    @cached_property
    def rules(self) -> Rules:
        """What the options forbid."""
        options, tokenizer = self.options, self.tokenizer_tgt
        banned = (tokenizer.unk_id,) if options.ban_unknown else ()
        prefix = tuple(tokenizer.encode(clean_text(options.prefix or "")))
        if options.min_length or options.no_repeat_ngram or options.sample or prefix:
            # Driven off what it would say, a model may write even what it never saw.
            banned += (tokenizer.pad_id, tokenizer.sos_id)
        return Rules(options.min_length, options.no_repeat_ngram, banned, prefix)

    def check_prefix(self) -> None:
        """Raise ValueError for a prefix with unknown words, or longer than any translation."""
        unknown = self.tokenizer_tgt.unknown_words(clean_text(self.options.prefix or ""))
        if unknown:
            raise ValueError(f"--prefix has words that the model cannot say: {', '.join(unknown)}")
        length, most = len(self.rules.prefix), min(EXTRA_LENGTH, self.config.seq_len - 1)
        if length > most:
            raise ValueError(f"--prefix has {length} tokens, and may have {most}")

    def joined(self, pieces: list[list[Translation]]) -> list[Translation]:
        """Return the translations of a line: the n-th of its pieces, one after the other."""
        if not pieces:
            return [Translation("", 0.0, 0.0)]
        return [
            Translation(
                join([each.text for each in nth], self.config.lang_tgt),
                sum(each.score for each in nth),
                sum(each.log_probability for each in nth),
                tuple(word for each in nth for word in each.copied),
            )
            for nth in zip(*pieces, strict=False)  # as many as every piece has
        ]

    @torch.inference_mode()
    def score(self, sources: list[str | None], targets: list[str]) -> list[float | None]:
        """Return the log-probability of each target as a translation of its source.

        Two blank texts have 0, as a blank line that is translated. None stands for a pair that has
        no score: its source is None, or (with a note) one is blank or longer than the model.
        """
        src, tgt, longest = [], [], self.config.seq_len
        numbers, result = [], [None] * len(sources)
        for number, pair in enumerate(zip(sources, targets, strict=True)):
            if pair[0] is None:
                continue
            texts = [clean_text(text) for text in pair]
            ids = [t.encode(text) for t, text in zip(self.tokenizers, texts, strict=True)]
            if not any(texts):
                result[number] = 0.0
                continue
            if not all(ids) or max(len(ids[0]) + 2, len(ids[1]) + 1) > longest:
                note(
                    f"line {number + 1} has {len(ids[0])} and {len(ids[1])} tokens, the model "
                    f"takes 1 to {longest - 2} and 1 to {longest - 1}: its score is blank"
                )
                continue
            numbers.append(number)
            src.append([self.tokenizer_src.sos_id, *ids[0], self.tokenizer_src.eos_id])
            tgt.append([self.tokenizer_tgt.sos_id, *ids[1], self.tokenizer_tgt.eos_id])
        lens = (np.array([len(ids) for ids in src]), np.array([len(ids) - 1 for ids in tgt]))
        for indices in form_batches(*lens, self.options.batch_tokens):
            source = pad([src[i] for i in indices], self.tokenizer_src.pad_id).to(self.device)
            mask = padding_mask(source, self.tokenizer_src.pad_id)
            target = pad([tgt[i] for i in indices], self.tokenizer_tgt.pad_id).to(self.device)
            logits = self.model(source, mask, target[:, :-1]).float()
            labels = target[:, 1:]
            each = logits.log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
            each = each.masked_fill(labels == self.tokenizer_tgt.pad_id, 0).sum(dim=1)
            for i, total in zip(indices, each.tolist(), strict=True):
                result[numbers[i]] = total
        return result

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return self.tokenizer_src, self.tokenizer_tgt

    def translate_text(self, text: str, number: int = 1) -> list[Translation]:
        """Return the translations of one text, with a note on the words that are unknown."""
        text = clean_text(text)
        unknown = self.tokenizer_src.unknown_words(text)
        if unknown:
            note(f"unknown: {', '.join(unknown)}")
        return self.translate([self.split(text, number)], number)[0]
