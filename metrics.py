"""CER, WER, BLEU and chrF of a set of translations: the one place that knows their libraries.

Scores are 0-100; error rates may exceed 100. A perfect set has BLEU and chrF 100, CER and WER 0.
"""

from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF, TER
from torchmetrics.functional.text import char_error_rate, word_error_rate

# Languages written without blanks, where sacrebleu's default tokenization finds no words.
TOKENIZE = {"zh": "zh", "ja": "char", "ko": "char", "th": "char"}


@dataclass(frozen=True)
class Scores:
    """Corpus scores of a set of translations, and how sacrebleu computed its two."""

    cer: float
    wer: float
    bleu: float
    chrf: float
    signature: str

    def __str__(self) -> str:
        return f"BLEU {self.bleu:.2f}, chrF {self.chrf:.2f}, CER {self.cer:.2f}, WER {self.wer:.2f}"


def tokenization(lang_tgt: str) -> str:
    """Return how sacrebleu finds the words of a language for BLEU."""
    return TOKENIZE.get(lang_tgt.replace("_", "-").split("-")[0].lower(), "13a")


def score(predicted: list[str], target: list[str], lang_tgt: str) -> Scores:
    """Score translations against one reference each, as people read them: cased, detokenised.

    Over the whole set, not a mean over sentences. Raises ValueError for an empty set, lists of
    unequal length or an empty reference, for which no error rate exists.
    """
    if len(predicted) != len(target):
        raise ValueError(f"{len(predicted)} translations cannot be scored by {len(target)} targets")
    if not target or not all(target):
        raise ValueError("scores need at least one target, and text in every target")
    bleu = BLEU(tokenize=tokenization(lang_tgt))
    chrf = CHRF()
    return Scores(
        cer=100 * char_error_rate(predicted, target).item(),
        wer=100 * word_error_rate(predicted, target).item(),
        bleu=bleu.corpus_score(predicted, [target]).score,
        chrf=chrf.corpus_score(predicted, [target]).score,
        signature=f"BLEU {bleu.get_signature()}, chrF {chrf.get_signature()}",
    )


def report(
    predicted: list[str], target: list[str], lang_tgt: str, bootstrap: bool = False
) -> list[str]:
    """Return a line for each score of a set of translations, with how it was computed.

    With `bootstrap`, sacrebleu's own scores come with their 95 % intervals of 1,000 resamplings
    (Koehn, 2004). Raises ValueError like `score`.
    """
    scores = score(predicted, target, lang_tgt)
    lines = []
    for metric in (BLEU(tokenize=tokenization(lang_tgt)), CHRF(), TER()):
        found = metric.corpus_score(predicted, [target], n_bootstrap=1000 if bootstrap else 1)
        signature = metric.get_signature()
        lines.append(f"{found.format(signature=str(signature), width=2)}")
    return [*lines, f"CER = {scores.cer:.2f}", f"WER = {scores.wer:.2f}"]
