"""CER, WER, BLEU and chrF of a set of translations: the one place that knows their libraries.

Scores are 0-100; error rates may exceed 100. A perfect set has BLEU and chrF 100, CER and WER 0.
"""

from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF
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


def score(predicted: list[str], target: list[str], lang_tgt: str) -> Scores:
    """Score translations against one reference each, as people read them: cased, detokenised.

    Over the whole set, not a mean over sentences. Raises ValueError for an empty set, lists of
    unequal length or an empty reference, for which no error rate exists.
    """
    if len(predicted) != len(target):
        raise ValueError(f"{len(predicted)} translations cannot be scored by {len(target)} targets")
    if not target or not all(target):
        raise ValueError("scores need at least one target, and text in every target")
    language = lang_tgt.replace("_", "-").split("-")[0].lower()
    bleu = BLEU(tokenize=TOKENIZE.get(language, "13a"))
    chrf = CHRF()
    return Scores(
        cer=100 * char_error_rate(predicted, target).item(),
        wer=100 * word_error_rate(predicted, target).item(),
        bleu=bleu.corpus_score(predicted, [target]).score,
        chrf=chrf.corpus_score(predicted, [target]).score,
        signature=f"BLEU {bleu.get_signature()}, chrF {chrf.get_signature()}",
    )
