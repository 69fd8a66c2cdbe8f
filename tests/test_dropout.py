"""Dropout is what its name says, whichever bits it is drawn from."""

import pytest
import torch

from dropout import Dropout, drop_on_cpu
from model import build_transformer
from training.update import seed_update


def drop_ones(p, count=400_000, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return drop_on_cpu(torch.ones(count, dtype=dtype), p)


@pytest.mark.parametrize("p", [0.001, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rate_and_scale_are_those_of_the_probability(p, dtype):
    dropped = drop_ones(p, dtype=dtype)
    kept = dropped != 0
    spread = (p * (1 - p) / len(dropped)) ** 0.5
    assert abs(kept.float().mean().item() - (1 - p)) < 5 * spread + 2**-16
    assert set(dropped.unique().tolist()) == {0.0, dropped.max().item()}
    assert dropped.max().item() == pytest.approx(1 / (1 - p), rel=5e-3)
    assert dropped.float().mean().item() == pytest.approx(1, abs=5 * spread / (1 - p) + 5e-3)


def test_each_number_is_dropped_by_itself():
    kept = (drop_ones(0.5) != 0).float() - 0.5
    for distance in (1, 2, 3, 4, 8, 64, 1000):  # four share a word of random bits
        correlation = (kept[:-distance] * kept[distance:]).mean().item() * 4
        assert abs(correlation) < 5 / len(kept) ** 0.5


def test_the_gradient_goes_through_what_was_kept_with_the_same_scale():
    x = torch.randn(1001, requires_grad=True)
    torch.manual_seed(0)
    y = drop_on_cpu(x, 0.3)
    y.sum().backward()
    torch.testing.assert_close(y, x * x.grad)
    assert (x.grad == 0).any() and x.grad.max().item() == pytest.approx(1 / 0.7, rel=1e-4)


def test_the_seed_decides_and_each_call_draws_anew():
    assert torch.equal(drop_ones(0.1, 1000), drop_ones(0.1, 1000))
    assert not torch.equal(drop_ones(0.1, 1000), drop_ones(0.1, 1000, seed=1))
    torch.manual_seed(0)
    assert not torch.equal(*(drop_on_cpu(torch.ones(1000), 0.1) for _ in range(2)))
    masks = []
    for key in [(0, 1, 0), (0, 2, 0), (1, 1, 0), (0, 1, 1)]:  # seed, step, rank
        seed_update(*key)
        masks.append(drop_on_cpu(torch.ones(1000), 0.1))
    assert all(not torch.equal(a, b) for i, a in enumerate(masks) for b in masks[:i])


def test_layers_drop_independently():
    model = build_transformer(9, 9, 9, 9, d_model=32, N=2, h=2, dropout=0.5, d_ff=64).train()
    masks = []
    for layer in (*model.encoder.layers, *model.decoder.layers):
        dropout = layer.feed_forward.dropout
        dropout.register_forward_hook(lambda _, inputs, output: masks.append(output != 0))
    src = torch.randint(4, 9, (4, 9))
    model(src, torch.ones(4, 1, 1, 9, dtype=torch.bool), src)
    assert len(masks) == 4
    assert all(not torch.equal(a, b) for i, a in enumerate(masks) for b in masks[:i])


def test_nothing_is_dropped_by_chance_zero_or_outside_training():
    x = torch.randn(50)
    assert torch.equal(Dropout(0.0).train()(x), x) and torch.equal(Dropout(0.5).eval()(x), x)
    assert not torch.equal(Dropout(0.5).train()(x), x)


def test_almost_certain_dropout_is_finite():
    assert drop_ones(0.9999999).isfinite().all()
