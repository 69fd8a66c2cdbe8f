"""Compare our decoding with CTranslate2's, with the same weights:

    python tests/agreement.py WEIGHTS FILE [FILE ...]

WEIGHTS is a checkpoint or its folder; the files have a source sentence a line. Every sentence that
differs is listed with both translations and their scores by our length penalty, unless they tie
within 1e-4. CTranslate2 searches by a penalty of its own, so that with alpha above 0 it may end
before it meets what is best by ours. Exits with 1 if it found anything better than we did.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.measuring import table
from corpus.lines import read_lines
from corpus.tokenizer import clean_text
from export import Options as ExportOptions
from export import export
from translate import load_translator
from translation.options import Options

SEARCHES = [(1, 0.0), *((beam, alpha) for beam in (4, 5) for alpha in (0.0, 0.6, 1.0))]
TIE = 1e-4


def translated(weights: str, texts: list[str], **options: object) -> tuple[list, float]:
    """Return the best translation of each text, and how many were made in a second."""
    translator = load_translator(Options(weights=weights, format="jsonl", **options))
    lines = [translator.split(text, number) for number, text in enumerate(texts, start=1)]
    started = time.perf_counter()
    found = [best for best, *_ in translator.translate(lines)]
    return found, len(texts) / (time.perf_counter() - started)


def main(weights: str, files: list[str]) -> int:
    texts = [text for file in files for text in map(clean_text, read_lines(Path(file))) if text]
    different = []
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "model"))
        export(ExportOptions(model, weights=weights))
        for beam_size, alpha in SEARCHES:
            options = {"beam_size": beam_size, "alpha": alpha}
            ours, our_speed = translated(weights, texts, **options)
            theirs, their_speed = translated(model, texts, **options)
            ties = unequal = worse = 0
            furthest = 0.0
            for text, a, b in zip(texts, ours, theirs, strict=True):
                if a.text == b.text:
                    furthest = max(furthest, abs(a.log_probability - b.log_probability))
                elif abs(a.score - b.score) <= TIE:
                    ties += 1
                else:
                    unequal += 1
                    worse += b.score > a.score
                    different.append((beam_size, alpha, text, a, b))
            speeds = (f"{our_speed:.1f}", f"{their_speed:.1f}")
            rows.append([beam_size, alpha, unequal, worse, ties, f"{furthest:.1e}", *speeds])
    header = [
        "beam",
        "alpha",
        "different",
        "theirs better",
        "ties",
        "log-probabilities differ by at most",
    ]
    title = f"{len(texts):,} sentences by {weights}"
    table(title, [*header, "our sentences/s", "CTranslate2's"], rows)
    for beam_size, alpha, text, a, b in different:
        print(f"\nbeam {beam_size}, alpha {alpha}: {text}")
        for name, each in (("ours", a), ("CTranslate2", b)):
            print(f"  {name:12} {each.score:.5f} {each.log_probability:.5f} {each.text}")
    return any(b.score > a.score for *_, a, b in different)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
