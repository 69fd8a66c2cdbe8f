"""CER, WER, BLEU and chrF of a set of translations: the one place that knows their libraries.

Scores are 0-100; error rates may exceed 100. A perfect set has BLEU and chrF 100, CER and WER 0.
"""

from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF, TER
from torchmetrics.functional.text import char_error_rate, word_error_rate

from translation.languages import Writing, writing_of


@dataclass(frozen=True)
class Scores:
    """Corpus scores of a set of translations, and how they were computed."""

    cer: float
    wer: float
    bleu: float
    chrf: float
    signature: str

    def __str__(self) -> str:
        return f"BLEU {self.bleu:.2f}, chrF {self.chrf:.2f}, CER {self.cer:.2f}, WER {self.wer:.2f}"


def tokenization(writing: Writing) -> str:
    """Return the name of the sacrebleu tokenizer that finds the words of a script for BLEU."""
    if writing.script == "Han":
        return "zh"
    return "13a" if writing.has_spaces and writing.script != "Korean" else "char"


def get_bleu(target: list[str], writing: Writing) -> BLEU:
    """Return BLEU as it fits the references: tokenizer by script, order by their longest.

    Without a 4-gram in any reference, BLEU of four orders would be 0 even for a perfect set.
    sacrebleu's effective order then counts the orders that exist, and the signature says `eff:yes`.
    """
    bleu = BLEU(tokenize=tokenization(writing))
    has_4_grams = any(len(bleu.tokenizer(text).split()) >= bleu.max_ngram_order for text in target)
    return bleu if has_4_grams else BLEU(tokenize=tokenization(writing), effective_order=True)


def as_words(texts: list[str], writing: Writing) -> list[str]:
    """Return texts whose blanks separate what word and edit rates count.

    That is words, or characters in a script without blanks, where a word would be a sentence.
    """
    return texts if writing.has_spaces else [" ".join("".join(text.split())) for text in texts]


def score(predicted: list[str], target: list[str], lang_tgt: str) -> Scores:
    """Score translations against one reference each, as people read them: cased, detokenised.

    Over the whole set, not a mean over sentences. Raises ValueError for an empty set, lists of
    unequal length or an empty reference, for which no error rate exists.
    """
    if len(predicted) != len(target):
        raise ValueError(f"{len(predicted)} translations cannot be scored by {len(target)} targets")
    if not target or not all(target):
        raise ValueError("scores need at least one target, and text in every target")
    writing = writing_of(lang_tgt, target)
    bleu, chrf = get_bleu(target, writing), CHRF()
    words = (as_words(predicted, writing), as_words(target, writing))
    return Scores(
        cer=100 * char_error_rate(predicted, target).item(),
        wer=100 * word_error_rate(*words).item(),
        bleu=bleu.corpus_score(predicted, [target]).score,
        chrf=chrf.corpus_score(predicted, [target]).score,
        signature=f"BLEU {bleu.get_signature()}, chrF {chrf.get_signature()}"
        + (f", WER {_unit(writing)[1:]}" if _unit(writing) else ""),
    )


def report(
    predicted: list[str], target: list[str], lang_tgt: str, bootstrap: bool = False
) -> list[str]:
    """Return a line for each score of a set of translations, with how it was computed.

    With `bootstrap`, sacrebleu's own scores come with their 95 % intervals of 1,000 resamplings
    (Koehn, 2004). Raises ValueError like `score`.
    """
    scores = score(predicted, target, lang_tgt)
    writing = writing_of(lang_tgt, target)
    lines = []
    for metric in (get_bleu(target, writing), CHRF(), TER()):
        pair = (predicted, target)
        if isinstance(metric, TER):
            pair = (as_words(predicted, writing), as_words(target, writing))
        found = metric.corpus_score(pair[0], [pair[1]], n_bootstrap=1000 if bootstrap else 1)
        signature = str(metric.get_signature())
        if isinstance(metric, TER):
            signature += _unit(writing)
        lines.append(f"{found.format(signature=signature, width=2)}")
    return [*lines, f"CER = {scores.cer:.2f}", f"WER{_unit(writing)} = {scores.wer:.2f}"]


def _unit(writing: Writing) -> str:
    """Return what word and edit rates count, as a part of a signature; "" for plain words."""
    if writing.has_spaces and writing.decided_by == "code":
        return ""
    unit = "word" if writing.has_spaces else "char"
    return f"|unit:{unit}|script:{writing.script or 'other'}|by:{writing.decided_by}"
