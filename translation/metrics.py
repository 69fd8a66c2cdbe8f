"""The metrics of translations: BLEU, chrF, TER, CER and WER, each known by its row in `METRICS`.

Scores are 0-100; error rates may exceed 100. A perfect set has BLEU and chrF 100, and error rates
of 0.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sacrebleu.metrics import BLEU, CHRF, TER
from tqdm import tqdm

from translation.languages import Writing, writing_of


@dataclass(frozen=True)
class ScoredTexts:
    """Translations and their references, one each."""

    predicted: list[str]
    target: list[str]
    writing: Writing  # of the references
    resamples: int = 1  # for confidence intervals (1: none)


@dataclass(frozen=True)
class Score:
    """The score of a set of translations by one metric."""

    value: float
    signature: str  # how it was computed; "" for plain words or characters
    line: str  # as a report prints it


@dataclass(frozen=True)
class Metric:
    """A metric: its names, its direction, and the function that measures it."""

    name: str  # in curves and for --monitor: bleu is val/bleu
    title: str  # as printed
    measure: Callable[[ScoredTexts], Score]
    higher_is_better: bool
    noise_below: float = 0.0  # lower scores count as 0 when the best validation is chosen
    in_validation: bool = True  # else only in reports, because it is slow


def measure_bleu(texts: ScoredTexts) -> Score:
    """Return sacrebleu's BLEU (Papineni et al., 2002)."""
    return _by_sacrebleu(get_bleu(texts.target, texts.writing), texts)


def measure_chrf(texts: ScoredTexts) -> Score:
    """Return sacrebleu's chrF (Popović, 2015)."""
    return _by_sacrebleu(CHRF(), texts)


def measure_ter(texts: ScoredTexts) -> Score:
    """Return sacrebleu's TER (Snover et al., 2006), by characters in a script without blanks."""
    return _by_sacrebleu(TER(), split_words(texts), _unit(texts.writing))


def measure_cer(texts: ScoredTexts) -> Score:
    """Return the character error rate over the whole set."""
    value = 100 * _error_rate(texts.predicted, texts.target)
    return Score(value, "", f"CER = {value:.2f}")


def measure_wer(texts: ScoredTexts) -> Score:
    """Return the word error rate over the whole set, by characters in a script without blanks."""
    words = split_words(texts)
    sides = (words.predicted, words.target)
    value = 100 * _error_rate(*([text.split() for text in side] for side in sides))
    unit = _unit(texts.writing)
    return Score(value, unit.removeprefix("|"), f"WER{unit} = {value:.2f}")


# In the order in which they are printed.
METRICS = {
    metric.name: metric
    for metric in (
        # sacrebleu's smoothing gives an untrained model a BLEU of up to 0.7.
        Metric("bleu", "BLEU", measure_bleu, higher_is_better=True, noise_below=1.0),
        Metric("chrf", "chrF", measure_chrf, higher_is_better=True),
        Metric("ter", "TER", measure_ter, higher_is_better=False, in_validation=False),
        Metric("cer", "CER", measure_cer, higher_is_better=False),
        Metric("wer", "WER", measure_wer, higher_is_better=False),
    )
}


class Scores(dict[str, Score]):
    """The scores of a set of translations, by the names of their metrics."""

    def row(self) -> dict[str, float]:
        """Return the values by the tags of their curves, such as val/bleu."""
        return {f"val/{name}": score.value for name, score in self.items()}

    @property
    def signature(self) -> str:
        """How the scores were computed, in one line."""
        return ", ".join(
            f"{METRICS[name].title} {score.signature}"
            for name, score in self.items()
            if score.signature
        )

    def __str__(self) -> str:
        return ", ".join(f"{METRICS[name].title} {score.value:.2f}" for name, score in self.items())


def score(predicted: list[str], target: list[str], lang_tgt: str) -> Scores:
    """Score translations against one reference each, as people read them: cased, detokenised.

    Scores are over the whole set, not a mean over sentences. Raises ValueError for an empty set,
    lists of unequal length or an empty reference, for which error rates are undefined.
    """
    texts = _scored_texts(predicted, target, lang_tgt)
    validated = [metric for metric in METRICS.values() if metric.in_validation]
    return Scores({metric.name: metric.measure(texts) for metric in _with_a_bar(validated)})


def report(
    predicted: list[str], target: list[str], lang_tgt: str, bootstrap: bool = False
) -> list[str]:
    """Return a line for each metric of a set of translations, with its signature.

    With `bootstrap`, sacrebleu's scores have 95 % intervals of 1,000 resamplings (Koehn, 2004).
    Raises ValueError like `score`.
    """
    texts = _scored_texts(predicted, target, lang_tgt, 1000 if bootstrap else 1)
    return [metric.measure(texts).line for metric in _with_a_bar(list(METRICS.values()))]


def tokenization(writing: Writing) -> str:
    """Return the name of sacrebleu's tokenizer for the words of a script."""
    if writing.script == "Han":
        return "zh"
    return "13a" if writing.has_spaces and writing.script != "Korean" else "char"


def get_bleu(target: list[str], writing: Writing) -> BLEU:
    """Return the BLEU that fits the references: its tokenizer by script, its order by length.

    If no reference has a 4-gram, BLEU with four orders would be 0 even for a perfect set.
    sacrebleu's effective order then counts the existing orders, and the signature has `eff:yes`.
    """
    bleu = BLEU(tokenize=tokenization(writing))
    has_4_grams = any(len(bleu.tokenizer(text).split()) >= bleu.max_ngram_order for text in target)
    return bleu if has_4_grams else BLEU(tokenize=tokenization(writing), effective_order=True)


def split_words(texts: ScoredTexts) -> ScoredTexts:
    """Return the texts with blanks between the units that WER and TER count.

    Units are words, or characters in a script without blanks, where a word would be a sentence.
    """
    if texts.writing.has_spaces:
        return texts

    def split(side: list[str]) -> list[str]:
        return [" ".join("".join(text.split())) for text in side]

    return replace(texts, predicted=split(texts.predicted), target=split(texts.target))


def _scored_texts(
    predicted: list[str], target: list[str], lang_tgt: str, resamples: int = 1
) -> ScoredTexts:
    if len(predicted) != len(target):
        raise ValueError(f"{len(predicted)} translations cannot be scored by {len(target)} targets")
    if not target or not all(target):
        raise ValueError("scores need at least one target, and text in every target")
    return ScoredTexts(predicted, target, writing_of(lang_tgt, target), resamples)


def _with_a_bar(metrics: list[Metric]) -> Iterable[Metric]:
    return tqdm(metrics, "scoring", unit="metric", leave=False, delay=2, disable=None)


def _by_sacrebleu(metric: BLEU | CHRF | TER, texts: ScoredTexts, unit: str = "") -> Score:
    found = metric.corpus_score(texts.predicted, [texts.target], n_bootstrap=texts.resamples)
    signature = f"{metric.get_signature()}{unit}"
    return Score(found.score, signature, str(found.format(signature=signature, width=2)))


def _error_rate(predicted: list, target: list) -> float:
    from translation.error_rates import error_rate  # torchmetrics is slow to import

    return error_rate(predicted, target)


def _unit(writing: Writing) -> str:
    """Return the unit of word and edit rates as part of a signature; "" for plain words."""
    if writing.has_spaces and writing.decided_by == "code":
        return ""
    unit = "word" if writing.has_spaces else "char"
    return f"|unit:{unit}|script:{writing.script or 'other'}|by:{writing.decided_by}"
