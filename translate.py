"""Translate with a trained model: python translate.py "a sentence", lines, files, or a prompt."""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the imports below take their seconds

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
import tyro
from tqdm import tqdm

from console import run_script
from corpus.lines import Line, argument_lines, file_lines, read_lines, stream_lines
from corpus.tokenizer import clean_text, one_line
from device import get_device, is_out_of_memory, keep_freed_memory
from translation.engine import load_exported
from translation.trained import load_trained, note
from translation.translator import PICTURES, Options, Piece, Translation, Translator

CHUNK = 1000  # lines of a file sorted and translated together, then written
# Line separators that JSON allows in a string. Readers such as `str.splitlines` end a line there.
SEPARATORS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}


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
    tokenizers = (trained.tokenizer_src, trained.tokenizer_tgt)
    translator = Translator(model, *tokenizers, config, device, options)
    translator.check_prefix()
    return translator


def check_files(options: Options) -> None:
    """Raise FileNotFoundError, or ValueError, for files that are not there or cannot be made."""
    for name in ("input", "target", "reference"):
        path = getattr(options, name)
        if path is not None and (not path or not Path(path).exists()):
            raise FileNotFoundError(f"there is no file {path!r} for --{name}")
        if path is not None and Path(path).is_dir():
            raise ValueError(f"--{name} {path} is a folder; it takes a file or a pipe")
    for name in ("output", "attention"):
        path = getattr(options, name)
        if path and not Path(path).absolute().parent.is_dir():
            raise FileNotFoundError(f"the folder of --{name} {path} is not there")
    if options.output and Path(options.output).resolve() == Path(options.input).resolve():
        raise ValueError(f"--output {options.output} is the input itself")


def in_format(source: str, translations: list[Translation], format: str) -> str:
    """Return one line of output: the text, or with source and scores as tsv or jsonl."""
    if format == "text":
        return translations[0].text
    if format == "tsv":
        cells = [cell for each in translations for cell in (f"{each.score:.4f}", each.text)]
        return "\t".join([one_line(source), *cells])
    row = {"source": source, "hypotheses": [asdict(each) for each in translations]}
    return json.dumps(row, ensure_ascii=False).translate(SEPARATORS)


def split_line(translator: Translator, line: Line, number: int, source: str) -> list[Piece] | None:
    """Return the pieces of a line, or None with a note when it cannot be translated."""
    try:
        if line.fault:
            raise ValueError(line.fault)
        return translator.split(line.text, number)
    except ValueError as error:
        note(f"translate.py: {source}, {error}; its translation is blank")
        return None


def translate_file(
    translator: Translator, source: Path, lines: list[Line], target: Path | None
) -> tuple[list[str], int]:
    """Translate the lines of a file; one that cannot be translated stops no other.

    Returns the best translation of each line, and the exit code. Without a target, and when they
    are to be compared with references, the lines are printed or not, as the options say.
    """
    options = translator.options
    pieces, code = [], 0
    for number, line in enumerate(lines, start=1):
        of_line = split_line(translator, line, number, str(source))
        code = 1 if of_line is None else code
        pieces.append(of_line or [])
    unk_id, unknown_words = translator.tokenizer_src.unk_id, translator.tokenizer_src.unknown_words
    unknown = sum(
        len(unknown_words(piece.text)) for line in pieces for piece in line if unk_id in piece.ids
    )
    if unknown:
        note(f"{unknown:,} unknown words in {source}")
    file = open(target, "w", encoding="utf-8", newline="\n") if target else sys.stdout
    best = []
    with tqdm(total=len(lines), unit="line", desc="translating", delay=2, disable=None) as bar:
        for start in range(0, len(lines), CHUNK):
            found = translator.translate(pieces[start : start + CHUNK], start + 1)
            best += [translations[0].text for translations in found]
            if target or not options.reference:
                rows = zip(lines[start : start + CHUNK], found, strict=True)
                written = (in_format(line.text, each, options.format) for line, each in rows)
                file.write("".join(f"{line}\n" for line in written))
                file.flush()
            bar.update(len(found))
    if target:
        file.close()
    return best, code


def draw_file(translator: Translator, lines: list[Line]) -> int:
    """Save a picture of each line of a file that is not blank; returns the exit code."""
    code = 0
    for number, line in enumerate(lines, start=1):
        if clean_text(line.text) and not line.fault:
            code = save_picture(translator, line.text, number) or code
    return code


def score_file(translator: Translator, source: Path, lines: list[Line], target: Path) -> int:
    """Print the log-probability of each line of target as a translation of its source line.

    A pair that has none gets a blank line; returns the exit code.
    """
    targets = list(read_lines(target))
    check_lengths(source, lines, target, targets)
    for line in lines:
        if line.fault:
            note(f"translate.py: {source}, {line.fault}; its score is blank")
    scores = translator.score([None if line.fault else line.text for line in lines], targets)
    for score in scores:
        print("" if score is None else f"{score:.4f}")
    return 1 if None in scores else 0


def compare_file(translator: Translator, source: Path, lines: list[Line]) -> int:
    """Translate lines and print the scores of the translations against --reference.

    Returns the exit code.
    """
    options = translator.options
    reference = Path(options.reference)
    targets = [clean_text(text) for text in read_lines(reference)]
    blank = next((number for number, text in enumerate(targets, start=1) if not text), None)
    if blank or not targets:
        raise ValueError(f"{reference} has no text in line {blank or 1}, to compare with")
    check_lengths(source, lines, reference, targets)
    output = Path(options.output) if options.output else None
    predicted, code = translate_file(translator, source, lines, output)
    from translation import metrics  # takes seconds to import

    for line in metrics.report(predicted, targets, translator.config.lang_tgt, options.bootstrap):
        print(line)
    return code


def check_lengths(path: Path, lines: list[Line], other: Path, other_lines: list[str]) -> None:
    if len(lines) != len(other_lines):
        raise ValueError(f"{path} has {len(lines):,} lines, {other} has {len(other_lines):,}")


def translate_lines(translator: Translator, lines: Iterable[Line], source: str) -> int:
    """Answer each line as it comes, with a blank where that cannot be; returns the exit code."""
    code = 0
    for number, line in enumerate(lines, start=1):
        try:
            if line.fault:
                raise ValueError(line.fault)
            translations = translator.translate_text(line.text, number)
        except ValueError as error:
            note(f"translate.py: {source}, {error}; its translation is blank")
            translations = [Translation("", 0.0, 0.0)]
            code = 1
        print(in_format(line.text, translations, translator.options.format), flush=True)
        if translator.options.attention and translations[0].text:
            code = save_picture(translator, line.text, number) or code
    return code


def save_picture(translator: Translator, line: str, number: int) -> int:
    """Save a picture under the name that was asked for, or in a folder of that name.

    A line that cannot have one is told; returns the exit code.
    """
    path = Path(translator.options.attention)
    try:
        if path.suffix not in PICTURES:
            path.mkdir(exist_ok=True)
            path = path / f"{number:04d}.png"
        elif number > 1:
            raise ValueError(
                f"--attention {path} is one picture, and this is line {number}; name a folder"
            )
        translator.draw_attention(line, number).savefig(path, dpi=120)
    except (ValueError, OSError) as error:
        note(f"translate.py: {error}")
        return 1
    note(str(path))
    return 0


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


def translate() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = tyro.cli(Options, prog="translate.py", description=__doc__, use_underscores=True)
    check_files(options)
    try:
        return answer(load_translator(options), options)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        first = str(error).splitlines()[:1] or ["out of memory"]
        raise ValueError(f"{first[0]}; --batch_tokens may be lower") from None


def answer(translator: Translator, options: Options) -> int:
    """Translate what the options name: a file, a sentence, lines as they come, or a prompt."""
    if options.input:
        source = Path(options.input)
        lines = file_lines(source)
        if options.target:
            return score_file(translator, source, lines, Path(options.target))
        if options.reference:
            code = compare_file(translator, source, lines)
        else:
            output = Path(options.output) if options.output else None
            _, code = translate_file(translator, source, lines, output)
        return (draw_file(translator, lines) if options.attention else 0) or code
    if options.text:
        lines = argument_lines(" ".join(options.text))
        return translate_lines(translator, lines, "the command line")
    if sys.stdin is None:
        raise ValueError("there is no sentence and no standard input; give one, or --input")
    if sys.stdin.isatty():
        lines = map(Line, prompt_lines(translator.config.lang_src))
    else:
        lines = stream_lines(sys.stdin.buffer)
    return translate_lines(translator, lines, "standard input")


def main() -> int:
    return run_script("translate.py", translate)


if __name__ == "__main__":
    sys.exit(main())
