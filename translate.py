"""Translate with a trained model: python translate.py "a sentence", lines, files, or a prompt."""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the imports below take their seconds

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro
from tqdm import tqdm

import checkpoint
from config import Config, config_from_dict, find_weights_file_path
from dataset import get_saved_tokenizers, source_batches
from decode import greedy_decode
from device import get_device, keep_freed_memory
from model import Transformer, build_transformer
from sources import MAX_CHARS, read_lines
from tokenizer import Tokenizer, clean_text

CHUNK = 1000  # lines of a file sorted and translated together, then written


@dataclass(frozen=True)
class Options:
    """What `translate.py` can be asked; the trailing comments are its help text."""

    text: tyro.conf.Positional[tuple[str, ...]] = ()  # sentence to translate
    weights: str | None = None  # checkpoint, or its folder (else the run trained last, here)
    input: str | None = None  # file to translate, a sentence a line
    output: str | None = None  # file for the translations (else they are printed)
    batch_tokens: int = 4096  # budget of a batch in padded tokens
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: Literal["fp32", "bf16"] = "fp32"  # bf16 is faster, and may choose other words

    def __post_init__(self) -> None:
        if self.text and self.input is not None:
            raise ValueError(f"give a sentence or --input {self.input}, not both")
        if self.output and self.input is None:
            raise ValueError(f"--output {self.output} needs --input")
        if self.batch_tokens < 1:
            raise ValueError(f"batch_tokens ({self.batch_tokens}) must be at least 1")


@dataclass(frozen=True)
class Translator:
    """A trained model with its tokenizers: text in, text out."""

    model: Transformer
    tokenizer_src: Tokenizer
    tokenizer_tgt: Tokenizer
    config: Config
    device: torch.device
    batch_tokens: int

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

    def translate(self, lines: list[list[list[int]]], first: int = 1) -> list[str]:
        """Return the translation of each line from its pieces (`split`); none gives "".

        A line's result does not depend on the others. `first` is the first line's number, for
        the notes on standard error.
        """
        pieces = [(number, ids) for number, line in enumerate(lines) for ids in line]
        outputs: list[str] = [""] * len(pieces)
        batches = source_batches([ids for _, ids in pieces], self.tokenizer_src, self.batch_tokens)
        for indices, src, src_mask in batches:
            decoded = greedy_decode(
                self.model,
                src.to(self.device),
                src_mask.to(self.device),
                sos_id=self.tokenizer_tgt.sos_id,
                eos_id=self.tokenizer_tgt.eos_id,
            )
            for i, ids in zip(indices, decoded, strict=True):
                outputs[i] = self.tokenizer_tgt.decode(ids)
                if ids[-1] != self.tokenizer_tgt.eos_id:
                    note(
                        f"line {first + pieces[i][0]}: the translation was cut at {len(ids)} tokens"
                    )
        texts: list[list[str]] = [[] for _ in lines]
        for (number, _), text in zip(pieces, outputs, strict=True):
            texts[number].append(text)
        return [" ".join(line) for line in texts]

    def translate_text(self, text: str, number: int = 1) -> str:
        """Return the translation of one text, with a note on the words that are unknown."""
        text = clean_text(text)
        unknown = self.tokenizer_src.unknown_words(text)
        if unknown:
            note(f"unknown: {', '.join(unknown)}")
        return self.translate([self.split(text, number)], number)[0]


def check_files(options: Options) -> None:
    """Raise FileNotFoundError for an input that is not there or an output that cannot be made."""
    if options.input is not None and not Path(options.input).is_file():
        raise FileNotFoundError(f"there is no file {options.input!r} for --input")
    if options.output and not Path(options.output).absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder of --output {options.output} is not there")


def load_translator(options: Options) -> Translator:
    """Load the checkpoint that the options name, and say on standard error which it is."""
    device = get_device(options.device)
    if device.type == "cpu":
        keep_freed_memory()
    path = find_weights_file_path(Path(options.weights) if options.weights else None)
    state = checkpoint.load(path)
    config = config_from_dict(state["config"])
    tokenizer_src, tokenizer_tgt = get_saved_tokenizers(state)
    # More than the file holds is refused before memory is taken for it.
    held = sum(weight.numel() for weight in state["model"].values())
    least = config.N * config.d_model * (config.d_model + config.d_ff)
    if least > held:
        raise ValueError(
            f"the checkpoint {path} holds {held:,} numbers, its config asks for over {least:,}"
        )
    model = build_transformer(tokenizer_src.size, tokenizer_tgt.size, **config.model_arguments())
    checkpoint.load_weights(model, state, path)
    note(f"{path}: {config.lang_src} -> {config.lang_tgt}, after {state['global_step']:,} updates")
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    model = model.to(device, dtype).eval()
    return Translator(model, tokenizer_src, tokenizer_tgt, config, device, options.batch_tokens)


def translate_file(translator: Translator, source: Path, target: Path | None) -> None:
    """Translate a file line by line; nothing is written when a line is too long."""
    texts = enumerate(read_lines(source), start=1)
    lines = [translator.split(text, number) for number, text in texts]
    unknown = sum(ids.count(translator.tokenizer_src.unk_id) for line in lines for ids in line)
    if unknown:
        note(f"{unknown:,} unknown words in {source}")
    file = open(target, "w", encoding="utf-8", newline="\n") if target else sys.stdout
    bar = tqdm(total=len(lines), unit="line", desc="translating", delay=2)
    for start in range(0, len(lines), CHUNK):
        chunk = lines[start : start + CHUNK]
        file.writelines(f"{text}\n" for text in translator.translate(chunk, start + 1))
        file.flush()
        bar.update(len(chunk))
    bar.close()
    if target:
        file.close()


def translate_lines(translator: Translator, lines: Iterable[str]) -> int:
    """Answer each line as it comes, one that is too long with a blank; returns the exit code."""
    code = 0
    for number, line in enumerate(lines, start=1):
        try:
            print(translator.translate_text(line, number), flush=True)
        except ValueError as error:
            note(f"translate.py: {error}")
            print(flush=True)
            code = 1
    return code


def prompt_lines(lang: str) -> Iterator[str]:
    try:
        import readline  # noqa: F401  (gives input() its history)
    except ImportError:
        pass  # Windows has its own
    note("Ctrl-D ends")
    while True:
        try:
            yield input(f"{lang}> ")
        except EOFError:
            print()
            return


def note(message: str) -> None:
    """Print to standard error, so that standard output holds translations only."""
    if sys.stderr is not None:
        tqdm.write(message, file=sys.stderr)


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = tyro.cli(Options, prog="translate.py", description=__doc__, use_underscores=True)
    for stream in filter(None, (sys.stdin, sys.stdout)):
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        check_files(options)
        translator = load_translator(options)
        if options.input:
            output = Path(options.output) if options.output else None
            translate_file(translator, Path(options.input), output)
            return 0
        if options.text:
            # Bytes of the command line that are no UTF-8 come as lone surrogates.
            text = " ".join(options.text).encode("utf-8", "surrogateescape")
            lines = iter(text.decode("utf-8", "replace").split("\n"))
        elif sys.stdin is None:
            raise ValueError("there is no sentence and no standard input; give one, or --input")
        elif sys.stdin.isatty():
            lines = prompt_lines(translator.config.lang_src)
        else:
            lines = (line.removesuffix("\n") for line in sys.stdin)
        return translate_lines(translator, lines)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"translate.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
