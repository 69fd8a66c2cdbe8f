"""The validations of a run so far: which one is the best, and how long ago it was.

`history` is `Progress.history`: a row of scores for each validation. `monitor` is the score that
decides, such as val/bleu.
"""

from translation.metrics import METRICS


def best_validation(history: list[dict], monitor: str) -> int | None:
    """Return the index of the best validation, or None if there is none.

    Equal scores are compared by their loss to three decimals, as printed; then the first wins.
    """
    ranks = _ranks(history, monitor)

    def key(i: int) -> tuple[float, float]:
        return ranks[i], -round(history[i]["val/loss"], 3)

    return max(range(len(history)), key=key, default=None)


def count_ties(history: list[dict], monitor: str) -> int:
    """Return how many other validations have the best score, so that the loss decided."""
    ranks = _ranks(history, monitor)
    return 0 if monitor == "val/loss" or not ranks else ranks.count(max(ranks)) - 1


def validations_since_best(history: list[dict], monitor: str) -> int:
    """Return the number of validations after the best one."""
    return len(history) - 1 - (best_validation(history, monitor) or 0)


def _ranks(history: list[dict], monitor: str) -> list[float]:
    """Return a number for each validation; a higher one is better."""
    if monitor == "val/loss":
        return [-row[monitor] for row in history]
    metric = METRICS[monitor.removeprefix("val/")]
    scores = [row[monitor] if row[monitor] >= metric.noise_below else 0.0 for row in history]
    return scores if metric.higher_is_better else [-score for score in scores]
