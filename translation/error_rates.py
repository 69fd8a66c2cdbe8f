"""The rates of wrong characters and words, over a whole set of translations."""

import torch
from rapidfuzz.distance import Levenshtein
from torchmetrics import Metric


class ErrorRate(Metric):
    """The edits (Levenshtein, 1966) that turn translations into their references, per unit.

    Units are those into which texts are split before: characters of a string, words of a list. The
    states are sums of integers, so that they add up over batches and processes.
    """

    higher_is_better = False
    full_state_update = False

    def __init__(self) -> None:
        super().__init__()
        for name in ("edits", "units"):
            self.add_state(name, torch.tensor(0, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, predicted: list, target: list) -> None:
        """Add translations and their references, one each."""
        self.edits += sum(map(Levenshtein.distance, predicted, target))
        self.units += sum(map(len, target))

    def compute(self) -> torch.Tensor:
        """Return the edits per unit of the references, from 0 on (may exceed 1)."""
        return self.edits.double() / self.units


def error_rate(predicted: list, target: list) -> float:
    """Return the `ErrorRate` of a set: edits per unit of its references."""
    rate = ErrorRate()
    rate.update(predicted, target)
    return rate.compute().item()
