"""Error rates are torchmetrics' own, computed by rapidfuzz."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.text import char_error_rate, word_error_rate

from translation.error_rates import ErrorRate, error_rate

TEXTS = st.text(alphabet="ab c\u00e9\u2009\U0001f600", max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS.filter(lambda text: text.split())), min_size=1, max_size=6))
def test_they_have_the_values_of_torchmetrics(pairs):
    predicted, target = map(list, zip(*pairs, strict=True))
    found = error_rate(predicted, target)
    assert found == pytest.approx(char_error_rate(predicted, target).item(), rel=1e-6)
    words = [[text.split() for text in side] for side in (predicted, target)]
    assert error_rate(*words) == pytest.approx(word_error_rate(predicted, target).item(), rel=1e-6)


def test_states_add_up_over_batches_and_processes():
    predicted, target = ["abc", "", "xyz"], ["abd", "a", "zzzz"]
    parts = [ErrorRate(), ErrorRate()]
    parts[0].update(predicted[:1], target[:1])
    parts[1].update(predicted[1:2], target[1:2])
    parts[1].update(predicted[2:], target[2:])
    total = [sum(getattr(part, name) for part in parts) for name in ("edits", "units")]
    assert total[0].item() == 1 + 1 + 3 and total[1].item() == 3 + 1 + 4
    assert error_rate(predicted, target) == pytest.approx(5 / 8)
