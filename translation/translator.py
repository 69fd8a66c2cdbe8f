"""The translator: text in, text out, by a loaded model and its tokenizers."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from config import Config
from console import print_note
from corpus.tokenizer import MAX_CHARS, TokenizerPair, clean_text
from dataset import source_batches
from model import Transformer
from translation.budget import decoding_budget, within_memory
from translation.decode import EXTRA_LENGTH, Hypothesis, Rules, beam_search, greedy_decode, sample
from translation.options import Options
from translation.segmentation import join, parts_that_fit, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Translation:
    """A translation of a line; the numbers are sums over the pieces of the line."""

    text: str
    score: float  # the log-probability divided by the length penalty
    log_probability: float  # natural logarithm, summed over the tokens
    copied: tuple[str, ...] = ()  # source words that replace [UNK]


@dataclass(frozen=True)
class Piece:
    """A text that fits the model, and its ids without [SOS] and [EOS]."""

    text: str
    ids: list[int]


@dataclass(frozen=True)
class Translator:
    """Translates texts by a loaded model and its tokenizers, as the options say."""

    model: Transformer
    tokenizers: TokenizerPair
    config: Config
    device: torch.device
    options: Options

    def split(self, text: str, number: int) -> list[Piece]:
        """Return a text in one piece if it fits the model, else split into sentences.

        A sentence that is too long is cut into parts, with a note. Raises ValueError with the line
        number if the text is over MAX_CHARS.
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
            print_note(
                f"line {number} has {what} of {max(cut):,} tokens, the model takes {longest:,}: "
                f"translated in {count:,} parts"
            )
        return [piece for piece in pieces if piece.text]

    def piece(self, text: str) -> Piece:
        """Return a text with its ids."""
        text = text.strip()
        return Piece(text, self.tokenizers.src.encode(text))

    def translate(self, lines: list[list[Piece]], first: int = 1) -> list[list[Translation]]:
        """Return the translations of each line, best first, from its pieces (see `split`).

        A line without pieces has an empty translation. The translation of a line does not depend on
        the other lines. `first` is the number of the first line, for notes on standard error.
        """
        pieces = [(number, piece) for number, line in enumerate(lines) for piece in line]
        found: list[list[list[Translation]]] = [[] for _ in lines]
        ordered: list[list[Translation]] = [[] for _ in pieces]
        sources = [piece.ids for _, piece in pieces]
        for indices, src, src_mask in source_batches(sources, self.tokenizers.src, self.budget):
            on_device = (src.to(self.device), src_mask.to(self.device))
            decoded = within_memory(self.decode, *on_device)
            for i, hypotheses in zip(indices, decoded, strict=True):
                number, piece = pieces[i]
                ordered[i] = [self.to_translation(piece, hypothesis) for hypothesis in hypotheses]
                ids = hypotheses[0].ids
                if not ids or ids[-1] != self.tokenizers.tgt.eos_id:
                    print_note(
                        f"line {first + number}: the translation was cut at its limit, "
                        f"{len(ids)} tokens"
                    )
        for (number, _), translations in zip(pieces, ordered, strict=True):
            found[number].append(translations)
        return [self.join_pieces(pieces_of_line) for pieces_of_line in found]

    def to_translation(self, piece: Piece, hypothesis: Hypothesis) -> Translation:
        """Return a hypothesis as text; with `replace_unknown`, each [UNK] replaced from the source.

        The replacement is the source token with the highest attention in the last layer, among the
        unknown tokens if there are any: its word, or the part of a word that it covers (`copy_of`).
        """
        tokenizer, ids = self.tokenizers.tgt, hypothesis.ids
        numbers = (hypothesis.score, hypothesis.log_probability)
        if not self.options.replace_unknown or tokenizer.unk_id not in ids:
            return Translation(tokenizer.decode(ids), *numbers)
        _, weights = self.attention(piece, ids)
        weights = weights.mean(dim=0)[:, 1:-1]  # without [SOS] and [EOS]
        is_unknown = torch.tensor(piece.ids, device=weights.device) == self.tokenizers.src.unk_id
        if is_unknown.any():
            weights = weights.masked_fill(~is_unknown, -1)
        looked_at = weights.argmax(dim=-1).tolist()
        parts = self.tokenizers.src.parts_of(piece.text)
        unknown = [parts[at] for at, i in zip(looked_at, ids, strict=True) if i == tokenizer.unk_id]
        control = (tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id)
        text = tokenizer.decode_with([i for i in ids if i not in control], unknown)
        return Translation(text, *numbers, tuple(map(tokenizer.copy_of, unknown)))

    def as_batch(self, piece: Piece) -> tuple[Tensor, Tensor]:
        """Return src (1, S) and src_mask (1, 1, 1, S) of a piece."""
        [(_, src, src_mask)] = source_batches([piece.ids], self.tokenizers.src, self.budget)
        return src.to(self.device), src_mask.to(self.device)

    def attention(self, piece: Piece, ids: list[int]) -> tuple[list[int], Tensor]:
        """Return the source's ids (S), and the last layer's cross-attention (h, T, S).

        `ids` (T) is the translation; row t has the weights with which the decoder predicted id t.
        """
        from translation.attention import cross_attention

        src, src_mask = self.as_batch(piece)
        tgt = src.new_tensor([[self.tokenizers.tgt.sos_id, *ids[:-1]]])
        return src[0].tolist(), cross_attention(self.model, src, src_mask, tgt)[-1, 0]

    def draw_attention(self, text: str, number: int = 1) -> "Figure":
        """Return a heat map of the last layer's cross-attention for a text and its translation.

        Raises ValueError if the text is blank or does not fit the model.
        """
        from translation.attention import draw, tokens_of

        pieces = self.split(text, number)
        if len(pieces) != 1:
            raise ValueError(
                f"line {number} has no picture: it is "
                f"{'split into sentences' if pieces else 'blank'}"
            )
        ids = self.decode(*self.as_batch(pieces[0]))[0][0].ids
        src_ids, weights = self.attention(pieces[0], ids)
        if self.options.heads == "mean":
            weights = weights.mean(dim=0, keepdim=True)
        tokens = tokens_of(self.tokenizers.src, src_ids)
        return draw(weights, tokens, tokens_of(self.tokenizers.tgt, ids))

    def decode(self, src: Tensor, src_mask: Tensor) -> list[list[Hypothesis]]:
        """Return the hypotheses of src (B, S), best first, by the search that the options name."""
        options, tokenizer, rules = self.options, self.tokenizers.tgt, self.rules
        ends = {"sos_id": tokenizer.sos_id, "eos_id": tokenizer.eos_id}
        if options.sample:
            count = options.n_best
            drawn = sample(
                self.model,
                src.repeat_interleave(count, dim=0),
                src_mask.repeat_interleave(count, dim=0),
                **ends,
                # A sample depends on the source, not on its place in the batch.
                seeds=[
                    (options.seed, number, *row[row != self.tokenizers.src.pad_id].tolist())
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
            return [[Hypothesis(ids, 0.0, 0.0)] for ids in outputs]  # scores are not needed
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
    def budget(self) -> int:
        """The token budget of a batch."""
        hypotheses = max(self.options.beam_size, self.options.n_best)
        return self.options.batch_tokens or decoding_budget(self.model, self.device, hypotheses)

    @cached_property
    def rules(self) -> Rules:
        """The decoding rules that the options ask for."""
        options, tokenizer = self.options, self.tokenizers.tgt
        banned = (tokenizer.unk_id,) if options.ban_unknown else ()
        prefix = tuple(tokenizer.encode(clean_text(options.prefix or "")))
        if options.min_length or options.no_repeat_ngram or options.sample or prefix:
            # Forced away from its first choice, a model may even choose control tokens.
            banned += (tokenizer.pad_id, tokenizer.sos_id)
        return Rules(options.min_length, options.no_repeat_ngram, banned, prefix)

    def check_prefix(self) -> None:
        """Raise ValueError if the prefix has unknown words, or is longer than any translation."""
        unknown = self.tokenizers.tgt.unknown_words(clean_text(self.options.prefix or ""))
        if unknown:
            raise ValueError(f"--prefix has unknown words: {', '.join(unknown)}")
        length, most = len(self.rules.prefix), min(EXTRA_LENGTH, self.config.seq_len - 1)
        if length > most:
            raise ValueError(f"--prefix has {length} tokens, and may have at most {most}")

    def join_pieces(self, pieces: list[list[Translation]]) -> list[Translation]:
        """Return the translations of a line: the n-th one joins the n-th of each piece."""
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

    def translate_text(self, text: str, number: int = 1) -> list[Translation]:
        """Return the translations of one text, best first; print its unknown words as a note."""
        text = clean_text(text)
        unknown = self.tokenizers.src.unknown_words(text)
        if unknown:
            print_note(f"not in the vocabulary: {', '.join(unknown)}")
        return self.translate([self.split(text, number)], number)[0]
