"""Times and memory are measured within one run."""

import statistics

from benchmarks import measuring, training_step
from config import Config

TINY = dict(d_model=16, N=1, h=2, d_ff=32, seq_len=350, shared_vocab=True)


def test_times_are_measured_in_turn_and_compared_repeat_by_repeat():
    calls = []
    ways = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = measuring.in_turn(ways, 3)
    assert calls == list("ab" * 4) and {len(each) for each in times.values()} == {3}
    shares = measuring.ratio([2.0, 4.0, 9.0], [1.0, 1.0, 3.0])
    assert shares == {"median": 3.0, "low": 2.0, "high": 4.0}


def test_memory_is_measured_in_a_new_process():
    config = Config(**{**TINY, "d_model": 512})
    peaks = [
        measuring.in_new_process(training_step.peak_of_a_step, config, "fp32", 2048, way)
        for way in ("ours", "peer")
    ]
    weights = 4 * 4 * 2 * 8000 * 512  # embeddings alone: themselves, gradients, two moments
    assert all(weights < peak < 20 * weights for peak in peaks), statistics.mean(peaks)
