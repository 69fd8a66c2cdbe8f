"""Translate with a trained model: python translate.py "a sentence", lines, files, or a prompt."""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the imports below take their seconds

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import tyro
from tqdm import tqdm

from console import print_note, run_script
from corpus.tokenizer import clean_text, one_line
from device import get_device, is_out_of_memory, keep_freed_memory
from translation.engine import load_exported
from translation.likelihood import log_probabilities
from translation.loading import load_model
from translation.options import PICTURES, Options
from translation.translator import Piece, Translation, Translator

if TYPE_CHECKING:
    from corpus.lines import Line

CHUNK = 1000  # lines of a file sorted and translated together, then written
# Line separators that JSON allows inside a string, although `str.splitlines` ends a line there.
SEPARATORS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}


def main() -> int:
    return run_script("translate.py", translate)


def translate() -> int:
    """Translate as the command line says; return the exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = tyro.cli(Options, prog="translate.py", description=__doc__, use_underscores=True)
    check_files(options)
    try:
        return answer(load_translator(options), options)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        first = str(error).splitlines()[:1] or ["out of memory"]
        raise ValueError(f"a single sentence does not fit: {first[0]}") from None


def check_files(options: Options) -> None:
    """Raise FileNotFoundError or ValueError for files that are missing or cannot be written."""
    for name in ("input", "target", "reference"):
        path = getattr(options, name)
        if path is not None and (not path or not Path(path).exists()):
            raise FileNotFoundError(f"there is no file {path!r} for --{name}")
        if path is not None and Path(path).is_dir():
            raise ValueError(f"--{name} {path} is a folder; it takes a file or a pipe")
    for name in ("output", "attention"):
        path = getattr(options, name)
        if path and not Path(path).absolute().parent.is_dir():
            raise FileNotFoundError(f"the folder of --{name} {path} does not exist")
    if options.output and Path(options.output).resolve() == Path(options.input).resolve():
        raise ValueError(f"--output {options.output} is the input itself")


def load_translator(options: Options) -> Translator:
    """Load the checkpoint or exported model that the options name, and print its name."""
    if options.weights and (Path(options.weights) / "model.bin").is_file():
        return load_exported(options, Path(options.weights))
    device = get_device(options.device)
    if device.type == "cpu":
        keep_freed_memory()
    loaded = load_model(options.weights, options.average)
    config = loaded.config
    languages = f"{config.lang_src} -> {config.lang_tgt}"
    print_note(f"{loaded.path}: {languages}, after {loaded.global_step:,} updates")
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    model = loaded.model.to(device, dtype)
    translator = Translator(model, loaded.tokenizers, config, device, options)
    translator.check_prefix()
    return translator


def answer(translator: Translator, options: Options) -> int:
    """Translate what the options name: a file, a sentence, standard input, or a prompt.

    Returns the exit code.
    """
    # Only here, so that importing this script does not load the reading of corpora.
    from corpus.lines import Line, argument_lines, file_lines, stream_lines

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


def translate_lines(translator: Translator, lines: "Iterable[Line]", source: str) -> int:
    """Translate each line when it arrives; return the exit code.

    A line that cannot be translated has a blank translation, with a note.
    """
    code = 0
    for number, line in enumerate(lines, start=1):
        try:
            if line.fault:
                raise ValueError(line.fault)
            translations = translator.translate_text(line.text, number)
        except ValueError as error:
            print_note(f"translate.py: {source}, {error}; its translation is blank")
            translations = [Translation("", 0.0, 0.0)]
            code = 1
        print(in_format(line.text, translations, translator.options.format), flush=True)
        if translator.options.attention and translations[0].text:
            code = save_picture(translator, line.text, number) or code
    return code


def translate_file(
    translator: Translator, source: Path, lines: "list[Line]", target: Path | None
) -> tuple[list[str], int]:
    """Translate the lines of a file; return the best translation of each, and the exit code.

    A line that cannot be translated has a blank translation, with a note. Translations are written
    to `target`, or printed if there is neither a target nor a --reference.
    """
    options = translator.options
    pieces, code = [], 0
    for number, line in enumerate(lines, start=1):
        of_line = split_line(translator, line, number, str(source))
        code = 1 if of_line is None else code
        pieces.append(of_line or [])
    tokenizer = translator.tokenizers.src
    unknown = sum(
        len(tokenizer.unknown_words(piece.text))
        for of_line in pieces
        for piece in of_line
        if tokenizer.unk_id in piece.ids
    )
    if unknown:
        print_note(f"{unknown:,} unknown words in {source}")
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


def split_line(
    translator: Translator, line: "Line", number: int, source: str
) -> list[Piece] | None:
    """Return the pieces of a line, or None with a note when it cannot be translated."""
    try:
        if line.fault:
            raise ValueError(line.fault)
        return translator.split(line.text, number)
    except ValueError as error:
        print_note(f"translate.py: {source}, {error}; its translation is blank")
        return None


def in_format(source: str, translations: list[Translation], format: str) -> str:
    """Return the output line of a source: the text, or a tsv or jsonl row with scores."""
    if format == "text":
        return translations[0].text
    if format == "tsv":
        cells = [cell for each in translations for cell in (f"{each.score:.4f}", each.text)]
        return "\t".join([one_line(source), *cells])
    row = {"source": source, "hypotheses": [asdict(each) for each in translations]}
    return json.dumps(row, ensure_ascii=False).translate(SEPARATORS)


def score_file(translator: Translator, source: Path, lines: "list[Line]", target: Path) -> int:
    """Print the log-probability of each line of target as a translation of its source line.

    A pair without a score has a blank line. Returns the exit code.
    """
    from corpus.lines import read_lines

    targets = list(read_lines(target))
    check_lengths(source, lines, target, targets)
    for line in lines:
        if line.fault:
            print_note(f"translate.py: {source}, {line.fault}; its score is blank")
    sources = [None if line.fault else line.text for line in lines]
    scores = log_probabilities(translator, sources, targets)
    for score in scores:
        print("" if score is None else f"{score:.4f}")
    return 1 if None in scores else 0


def compare_file(translator: Translator, source: Path, lines: "list[Line]") -> int:
    """Translate lines and print the scores of the translations against --reference.

    Returns the exit code.
    """
    from corpus.lines import read_lines

    options = translator.options
    reference = Path(options.reference)
    targets = [clean_text(text) for text in read_lines(reference)]
    blank = next((number for number, text in enumerate(targets, start=1) if not text), None)
    if blank or not targets:
        raise ValueError(
            f"{reference} has no text in line {blank or 1}: every reference needs text"
        )
    check_lengths(source, lines, reference, targets)
    output = Path(options.output) if options.output else None
    predicted, code = translate_file(translator, source, lines, output)
    from translation import metrics  # takes seconds to import

    for line in metrics.report(predicted, targets, translator.config.lang_tgt, options.bootstrap):
        print(line)
    return code


def check_lengths(path: Path, lines: "list[Line]", other: Path, other_lines: list[str]) -> None:
    """Raise ValueError unless two files have equally many lines."""
    if len(lines) != len(other_lines):
        raise ValueError(f"{path} has {len(lines):,} lines, {other} has {len(other_lines):,}")


def draw_file(translator: Translator, lines: "list[Line]") -> int:
    """Save a picture for each line of a file that is not blank; return the exit code."""
    code = 0
    for number, line in enumerate(lines, start=1):
        if clean_text(line.text) and not line.fault:
            code = save_picture(translator, line.text, number) or code
    return code


def save_picture(translator: Translator, line: str, number: int) -> int:
    """Save the attention picture of a line as --attention, or in a folder of that name.

    Prints a note if the line cannot have one. Returns the exit code.
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
        print_note(f"translate.py: {error}")
        return 1
    print_note(str(path))
    return 0


def prompt_lines(lang: str) -> Iterator[str]:
    """Yield the lines that a user types."""
    try:
        import readline  # noqa: F401  (gives input() its history)
    except ImportError:
        pass  # Windows has a history of its own
    print_note("Ctrl-D ends")
    while True:
        try:
            yield input(f"{lang}> ")
        except EOFError:
            print()
            return


if __name__ == "__main__":
    sys.exit(main())
