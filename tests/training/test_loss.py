"""The loss is the smoothed cross-entropy of the target tokens."""

import pytest
import torch

from training.validation import cross_entropy_sum


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
