"""The loss is the smoothed cross-entropy of the target tokens."""

import pytest
import torch

from training import loss as loss_module
from training.loss import cross_entropy_sum, loss_and_gradient


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.99])
@pytest.mark.parametrize("pads", [0, 1, 9])
def test_loss_is_the_smoothed_cross_entropy_of_non_padding_tokens(smoothing, pads):
    torch.manual_seed(0)
    logits, pad_id = torch.randn(2, 5, 5), 3
    tgt_out = torch.tensor([[0, 1, 2, 4, 0], [4, 4, 1, 0, 2]])
    tgt_out.view(-1)[10 - pads :] = pad_id
    expected = 0.0
    for row, token in zip(logits.view(-1, 5), tgt_out.view(-1).tolist(), strict=True):
        if token != pad_id:
            goal = torch.full((5,), smoothing / 5)
            goal[token] += 1 - smoothing
            expected -= (goal * row.log_softmax(-1)).sum()
    torch.testing.assert_close(cross_entropy_sum(logits, tgt_out, pad_id, smoothing), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.99])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("at_once", [1, 11 * 3, 2**18])
def test_gradient_in_closed_form_is_that_of_autograd(smoothing, dtype, at_once, monkeypatch):
    monkeypatch.setattr(loss_module, "NUMBERS_AT_ONCE", at_once)
    torch.manual_seed(0)
    logits, labels = (
        (3 * torch.randn(6, 11)).to(dtype).requires_grad_(),
        torch.tensor([0, 10, 4, 4]),
    )
    expected = cross_entropy_sum(logits[:4].float(), labels, -100, smoothing)
    [wanted] = torch.autograd.grad(expected / 7, logits)
    loss, gradient = loss_and_gradient(logits, labels, smoothing, torch.tensor(1 / 7))
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, wanted)
    assert (gradient[4:] == 0).all(), "rows without a label are padding"
    assert loss.dtype == torch.float32
