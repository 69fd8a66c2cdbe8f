"""Batches to translate fit the device, and are halved if they do not."""

import pytest
import torch

from model import build_transformer
from translation import budget
from translation.budget import CPU_TOKENS, GPU_TOKENS, decoding_budget, within_memory

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def make_model():
    return build_transformer(50, 64, 20, 20, d_model=16, N=2, h=2, d_ff=16)


def test_a_gpu_decodes_eight_times_as_many_sentences_at_once(monkeypatch):
    monkeypatch.setattr(budget, "free_memory", lambda _: 2**40)
    model = make_model()
    assert decoding_budget(model, CPU) == CPU_TOKENS and decoding_budget(model, CUDA) == GPU_TOKENS
    assert GPU_TOKENS == 8 * CPU_TOKENS
    assert decoding_budget(model, CUDA, hypotheses=4) == GPU_TOKENS // 4


def test_the_budget_fits_half_of_the_free_memory(monkeypatch):
    model = make_model()
    # Keys and values of both sides in two layers, twice, and 4 / 16 of 64 logits: fp32.
    each = 4 * (2 * 2 * 2 * 2 * 16 + 16)
    assert budget.bytes_per_token(model) == each
    assert budget.bytes_per_token(make_model().bfloat16()) == each / 2
    for free, expected in ((2 * each * 4096, 4096), (2 * each * 4095, 2048), (0, 1)):
        monkeypatch.setattr(budget, "free_memory", lambda _, free=free: free)
        assert decoding_budget(model, CUDA) == expected


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("out of memory"), MemoryError()])
def test_a_batch_that_does_not_fit_is_halved_until_it_does(error, capsys):
    sizes = []

    def work(src, mask):
        sizes.append(len(src))
        if len(src) > 2:
            raise error
        assert len(mask) == len(src)
        return (src * mask).tolist()

    assert within_memory(work, torch.arange(7), torch.full((7,), 2)) == [0, 2, 4, 6, 8, 10, 12]
    assert sizes == [7, 3, 1, 2, 4, 2, 2]
    assert "cpu has not enough memory for 7 sentences: trying 3" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "error"), [(1, MemoryError), (5, RuntimeError), (5, KeyError)])
def test_other_errors_and_those_of_one_sentence_are_raised(count, error):
    def work(src):
        raise error("broken")

    with pytest.raises(error):
        within_memory(work, torch.zeros(count))
