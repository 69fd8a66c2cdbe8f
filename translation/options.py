"""The options of `translate.py`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Options:
    """The options of `translate.py`; the trailing comments are their help text.

    Raises ValueError for invalid values, and names the options in conflict.
    """

    text: tyro.conf.Positional[tuple[str, ...]] = ()  # sentence to translate
    weights: str | None = None  # checkpoint, or its folder (None: the run trained last)
    average: int = 1  # mean of the weights of the last N epochs (1: the best epoch)
    input: str | None = None  # file to translate, line by line
    output: str | None = None  # file for the translations (None: standard output)
    batch_tokens: int | None = None  # token budget of a batch (None: by device and memory)
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16 is faster; it may choose other words

    # Search
    beam_size: int = 1  # hypotheses kept at each step (1: greedy)
    alpha: float = 0.6  # length penalty: a higher value favours longer translations
    n_best: int = 1  # translations of each line
    min_length: int = 0  # minimum number of tokens of a translation
    no_repeat_ngram: int = 0  # no group of N tokens twice in a translation (0: off)
    prefix: str | None = None  # how the translation of each sentence begins
    ban_unknown: bool = False  # never write [UNK]
    replace_unknown: bool = False  # replace [UNK] by the source word with the highest attention
    sample: bool = False  # draw each token by its probability: n_best samples
    temperature: float = 1.0  # of --sample: a lower value prefers likely tokens
    top_k: int = 0  # draw among the N likeliest tokens (0: among all)
    seed: int = 0  # of --sample: seed and sentence determine the samples

    # Output
    format: Literal["text", "tsv", "jsonl"] = "text"  # tsv and jsonl contain source and scores
    target: str | None = None  # file with translations of --input to score
    reference: str | None = None  # file with references for --input: print BLEU and other scores
    attention: str | None = None  # picture of cross-attention; a folder for several sentences
    heads: Literal["mean", "each"] = "mean"  # of the last layer: their mean, or a panel for each
    bootstrap: bool = False  # with 95 % confidence intervals, of 1,000 resamplings

    def __post_init__(self) -> None:
        for name in ("target", "reference"):
            if getattr(self, name) is not None and self.input is None:
                raise ValueError(f"--{name} {getattr(self, name)} needs --input")
        if self.target is not None and self.reference is not None:
            raise ValueError(
                f"--target {self.target} is scored itself; --reference {self.reference} scores new "
                "translations: give one of them"
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
            raise ValueError(
                "--target prints one number per line: no --output, --attention, --format"
            )
        if self.target is not None and (self.beam_size > 1 or self.sample or self.prefix):
            raise ValueError("--target is scored itself: no --beam_size, --sample, --prefix")
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
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise ValueError(f"batch_tokens ({self.batch_tokens}) must be at least 1")
