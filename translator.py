"""A trained model with its tokenizers: text in, text out."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import tyro
from torch import Tensor
from tqdm import tqdm

import checkpoint
from config import (
    Config,
    config_from_dict,
    find_weights_file_path,
    last_weights_file_paths,
)
from dataset import form_batches, get_saved_tokenizers, pad, padding_mask, source_batches
from decode import (
    EXTRA_LENGTH,
    Hypothesis,
    Rules,
    beam_search,
    greedy_decode,
    length_penalty,
)
from device import get_device, keep_freed_memory
from model import Transformer, build_transformer
from sources import MAX_CHARS
from tokenizer import Tokenizer, clean_text, load_tokenizer

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
    ban_unknown: bool = False  # never write [UNK]

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
            average=1, beam_size=1, n_best=1, min_length=0, no_repeat_ngram=0
        ).items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least {least}")
        if not 0 <= self.alpha <= 10:
            raise ValueError(f"alpha ({self.alpha}) must be in [0, 10]")
        if self.beam_size > 1000:
            raise ValueError(f"beam_size ({self.beam_size}) must be at most 1000")
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best ({self.n_best}) must be at most beam_size ({self.beam_size})")
        if self.bootstrap and self.reference is None:
            raise ValueError("--bootstrap needs --reference")
        if self.heads == "each" and self.attention is None:
            raise ValueError("--heads each needs --attention")
        if self.target is not None and (self.output or self.attention or self.format != "text"):
            raise ValueError("--target prints a number a line: no --output, --attention, --format")
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


@dataclass(frozen=True)
class Translator:
    """A trained model with its tokenizers: text in, text out."""

    model: Transformer
    tokenizer_src: Tokenizer
    tokenizer_tgt: Tokenizer
    config: Config
    device: torch.device
    options: Options

    def split(self, text: str, number: int) -> list[list[int]]:
        """Return the ids of a text: in one piece if the model can take it, else by sentence.

        Raises ValueError with the text's number and its length when a sentence is too long.
        """
        text = clean_text(text)
        if not text:
            return []
        if len(text) > MAX_CHARS:
            raise ValueError(f"line {number} has more than {MAX_CHARS:,} characters")
        longest = self.config.seq_len - 2  # [SOS] and [EOS] go around it
        whole = self.tokenizer_src.encode(text)
        if len(whole) <= longest:
            return [whole]
        pieces = [self.tokenizer_src.encode(piece) for piece in re.split(r"(?<=[.!?;:])\s+", text)]
        for ids in pieces:
            if len(ids) > longest:
                raise ValueError(
                    f"line {number} has a sentence of {len(ids)} tokens, the model takes {longest}"
                )
        return pieces

    def translate(self, lines: list[list[list[int]]], first: int = 1) -> list[list[Translation]]:
        """Return the translations of each line, best first, from its pieces (`split`).

        No pieces give an empty translation. A line's result does not depend on the others.
        `first` is the first line's number, for the notes on standard error.
        """
        pieces = [(number, ids) for number, line in enumerate(lines) for ids in line]
        found: list[list[list[Translation]]] = [[] for _ in lines]
        ordered: list[list[Translation]] = [[] for _ in pieces]
        sources = [ids for _, ids in pieces]
        batches = source_batches(sources, self.tokenizer_src, self.options.batch_tokens)
        for indices, src, src_mask in batches:
            decoded = self.decode(src.to(self.device), src_mask.to(self.device))
            for i, hypotheses in zip(indices, decoded, strict=True):
                ordered[i] = [
                    Translation(self.tokenizer_tgt.decode(h.ids), h.score, h.log_probability)
                    for h in hypotheses
                ]
                ids = hypotheses[0].ids
                if not ids or ids[-1] != self.tokenizer_tgt.eos_id:
                    number = first + pieces[i][0]
                    note(f"line {number}: the translation was cut at {len(ids)} tokens")
        for (number, _), translations in zip(pieces, ordered, strict=True):
            found[number].append(translations)
        return [self.joined(pieces_of_line) for pieces_of_line in found]

    def draw_attention(self, text: str, number: int = 1) -> "Figure":
        """Return a picture of the last layer's cross-attention for a text and its translation.

        Raises ValueError for a text that is blank or longer than the model.
        """
        from attention import cross_attention, draw, tokens_of

        pieces = self.split(text, number)
        if len(pieces) != 1:
            raise ValueError(
                f"line {number} is {'cut into sentences' if pieces else 'blank'}: no picture"
            )
        sources = source_batches(pieces, self.tokenizer_src, self.options.batch_tokens)
        _, src, src_mask = next(iter(sources))
        src, src_mask = src.to(self.device), src_mask.to(self.device)
        ids = self.decode(src, src_mask)[0][0].ids
        tgt = src.new_tensor([[self.tokenizer_tgt.sos_id, *ids[:-1]]])
        weights = cross_attention(self.model, src, src_mask, tgt)[-1, 0]  # (h, T, S)
        if self.options.heads == "mean":
            weights = weights.mean(dim=0, keepdim=True)
        tokens = tokens_of(self.tokenizer_src, src[0].tolist())
        return draw(weights, tokens, tokens_of(self.tokenizer_tgt, ids))

    def decode(self, src: Tensor, src_mask: Tensor) -> list[list[Hypothesis]]:
        options, tokenizer = self.options, self.tokenizer_tgt
        banned = (tokenizer.unk_id,) if options.ban_unknown else ()
        if options.min_length or options.no_repeat_ngram:
            # Driven off what it would say, a model may write even what it never saw.
            banned += (tokenizer.pad_id, tokenizer.sos_id)
        rules = Rules(options.min_length, options.no_repeat_ngram, banned)
        ends = {"sos_id": tokenizer.sos_id, "eos_id": tokenizer.eos_id}
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

    def joined(self, pieces: list[list[Translation]]) -> list[Translation]:
        """Return the translations of a line: the n-th of its pieces, one after the other."""
        if not pieces:
            return [Translation("", 0.0, 0.0)]
        return [
            Translation(
                " ".join(each.text for each in nth),
                sum(each.score for each in nth),
                sum(each.log_probability for each in nth),
            )
            for nth in zip(*pieces, strict=False)  # as many as every piece has
        ]

    @torch.inference_mode()
    def score(self, sources: list[str], targets: list[str]) -> list[float]:
        """Return the log-probability of each target as a translation of its source.

        Raises ValueError with the line's number for what is longer than the model, or blank.
        """
        src, tgt, longest = [], [], self.config.seq_len
        for number, pair in enumerate(zip(sources, targets, strict=True), start=1):
            ids = [
                t.encode(clean_text(text)) for t, text in zip(self.tokenizers, pair, strict=True)
            ]
            if not all(ids) or max(len(ids[0]) + 2, len(ids[1]) + 1) > longest:
                raise ValueError(
                    f"line {number} has {len(ids[0])} and {len(ids[1])} tokens, the model takes 1 "
                    f"to {longest - 2} and 1 to {longest - 1}"
                )
            src.append([self.tokenizer_src.sos_id, *ids[0], self.tokenizer_src.eos_id])
            tgt.append([self.tokenizer_tgt.sos_id, *ids[1], self.tokenizer_tgt.eos_id])
        lens = (np.array([len(ids) for ids in src]), np.array([len(ids) - 1 for ids in tgt]))
        scores = [0.0] * len(src)
        for indices in form_batches(*lens, self.options.batch_tokens):
            source = pad([src[i] for i in indices], self.tokenizer_src.pad_id).to(self.device)
            mask = padding_mask(source, self.tokenizer_src.pad_id)
            target = pad([tgt[i] for i in indices], self.tokenizer_tgt.pad_id).to(self.device)
            logits = self.model(source, mask, target[:, :-1]).float()
            labels = target[:, 1:]
            each = logits.log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
            each = each.masked_fill(labels == self.tokenizer_tgt.pad_id, 0).sum(dim=1)
            for i, total in zip(indices, each.tolist(), strict=True):
                scores[i] = total
        return scores

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


@dataclass(frozen=True)
class ExportedTranslator(Translator):
    """A model that `export.py` made for CTranslate2, run by that engine.

    Its translations are ours, but for the rules (min_length, no_repeat_ngram, ban_unknown): it
    shares the probability of what they forbid out among the other tokens, and may choose others.
    """

    engine: object  # a ctranslate2.Translator; there is no model of ours

    def decode(self, src: Tensor, src_mask: Tensor) -> list[list[Hypothesis]]:
        lens = src_mask.sum(dim=(1, 2, 3)).tolist()
        found: list[list[Hypothesis]] = [[] for _ in lens]
        # The engine has one limit for all it is given, so that those of one length go together.
        for length in sorted(set(lens)):
            rows = [row for row, each in enumerate(lens) if each == length]
            limit = min(length + EXTRA_LENGTH, self.config.seq_len)
            for row, result in zip(rows, self.run(src[rows, :length], limit), strict=True):
                found[row] = self.chosen(result)
        return found

    def run(self, src: Tensor, limit: int) -> list:
        options, to_token = self.options, self.tokenizer_src.backend.id_to_token
        is_forced = options.min_length or options.no_repeat_ngram
        try:
            return self.engine.translate_batch(
                # The engine puts [SOS] and [EOS] around them.
                [[to_token(i) for i in row[1:-1]] for row in src.tolist()],
                beam_size=options.beam_size,
                num_hypotheses=options.beam_size,
                length_penalty=options.alpha,
                min_decoding_length=min(options.min_length, limit),
                no_repeat_ngram_size=options.no_repeat_ngram,
                disable_unk=options.ban_unknown,
                suppress_sequences=[["[PAD]"], ["[SOS]"]] if is_forced else None,
                max_decoding_length=limit,
                return_scores=True,
                return_end_token=True,
            )
        except RuntimeError as error:
            raise ValueError(f"the exported model cannot be run: {error}") from None

    def chosen(self, result: object) -> list[Hypothesis]:
        """Return the engine's hypotheses by our length penalty, best first."""
        alpha = self.options.alpha if self.options.beam_size > 1 else 0.0
        found = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [self.tokenizer_tgt.backend.token_to_id(token) for token in tokens]
            total = score * len(tokens) ** alpha  # the engine divides by this
            found.append(
                Hypothesis(ids, total, total / length_penalty(len(ids), self.options.alpha))
            )
        found.sort(key=lambda hypothesis: -hypothesis.score)
        return found[: self.options.n_best]

    def score(self, sources: list[str], targets: list[str]) -> list[float]:
        raise ValueError("--target needs a checkpoint; the exported model does not score")

    def draw_attention(self, text: str, number: int = 1) -> "Figure":
        raise ValueError("--attention needs a checkpoint; the exported model does not show it")


def load_exported(options: Options, folder: Path) -> ExportedTranslator:
    """Load a folder that `export.py --format ctranslate2` made."""
    try:
        import ctranslate2
    except ImportError:
        raise ValueError(
            f"{folder} is a CTranslate2 model: pip install ctranslate2==4.8.5"
        ) from None
    if options.average > 1 or options.precision != "fp32":
        raise ValueError("--average and --precision are for checkpoints, not an exported model")
    tokenizers = [load_tokenizer(folder / f"tokenizer_{side}.json") for side in ("src", "tgt")]
    try:
        values = json.loads((folder / "run.json").read_text("utf-8"))
        files = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
        if not all(file.exists() for file in files):
            files = [folder / "shared_vocabulary.json"] * 2
        words = [json.loads(file.read_text("utf-8")) for file in files]
        device = "cuda" if get_device(options.device).type == "cuda" else "cpu"
        engine = ctranslate2.Translator(str(folder), device=device)
    except (RuntimeError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{folder} is damaged or not of export.py: {reason}") from None
    if not isinstance(values, dict) or words != [each.vocabulary() for each in tokenizers]:
        raise ValueError(f"{folder} is damaged: its vocabularies are not those of its tokenizers")
    config = config_from_dict(values)
    note(f"{folder}: {config.lang_src} -> {config.lang_tgt}, by CTranslate2")
    return ExportedTranslator(None, *tokenizers, config, torch.device("cpu"), options, engine)


@dataclass(frozen=True)
class Trained:
    """What a checkpoint holds for translating, its model on the CPU."""

    path: Path
    global_step: int
    model: Transformer
    config: Config
    tokenizer_src: Tokenizer
    tokenizer_tgt: Tokenizer


def load_trained(weights: str | None, average: int = 1) -> Trained:
    """Load the checkpoint that weights names, or the mean of the last epochs' of its run.

    Raises FileNotFoundError or ValueError, in one line, before memory is taken for what the file
    does not hold.
    """
    place = Path(weights) if weights else None
    path = find_weights_file_path(place)
    state = checkpoint.load(path)
    if average > 1:
        if path == place:
            raise ValueError(f"--average {average} takes a folder, not the checkpoint {path}")
        basename = config_from_dict(state["config"]).model_basename
        *others, path = last_weights_file_paths(path.parent, basename, average)
        state = checkpoint.average([*others, path])
        note(f"the mean of the weights in {', '.join(each.name for each in others)} and")
    config = config_from_dict(state["config"])
    tokenizers = get_saved_tokenizers(state)
    held = sum(weight.numel() for weight in state["model"].values())
    least = config.N * config.d_model * (config.d_model + config.d_ff)
    if least > held:
        raise ValueError(
            f"the checkpoint {path} holds {held:,} numbers, its config asks for over {least:,}"
        )
    model = build_transformer(*(each.size for each in tokenizers), **config.model_arguments())
    checkpoint.load_weights(model, state, path)
    return Trained(path, state["global_step"], model.eval(), config, *tokenizers)


def load_translator(options: Options) -> Translator:
    """Load the checkpoint or exported model that the options name; standard error has its name."""
    if options.weights and (Path(options.weights) / "model.bin").is_file():
        return load_exported(options, Path(options.weights))
    device = get_device(options.device)
    if device.type == "cpu":
        keep_freed_memory()
    trained = load_trained(options.weights, options.average)
    config = trained.config
    languages = f"{config.lang_src} -> {config.lang_tgt}"
    note(f"{trained.path}: {languages}, after {trained.global_step:,} updates")
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    model = trained.model.to(device, dtype)
    return Translator(model, trained.tokenizer_src, trained.tokenizer_tgt, config, device, options)


def note(message: str) -> None:
    """Print to standard error, so that standard output holds translations only."""
    if sys.stderr is not None:
        tqdm.write(message, file=sys.stderr)
