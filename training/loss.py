"""The training loss: cross-entropy with label smoothing, and its gradient."""

import torch
import torch.nn.functional as F
from torch import Tensor

NUMBERS_AT_ONCE = 2**18  # of logits in fp32: 1 MB


def cross_entropy_sum(
    logits: Tensor, tgt_out: Tensor, pad_id: int, label_smoothing: float = 0
) -> Tensor:
    """Return the summed cross-entropy (nats) of logits (..., V) over the non-padding of tgt_out.

    tgt_out is (...) and `pad_id` the target's. Label smoothing spreads that share of the
    probability evenly over the vocabulary (section 5.4).
    """
    return F.cross_entropy(
        logits.flatten(0, -2),
        tgt_out.flatten(),
        ignore_index=pad_id,
        label_smoothing=label_smoothing,
        reduction="sum",
    )


def loss_and_gradient(
    logits: Tensor, labels: Tensor, label_smoothing: float, scale: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy (nats) of labels (n,), summed, and its gradient times `scale` ().

    Logits are (rows, V); rows beyond the n-th are padding, and their gradient is 0. The gradient
    has the dtype of the logits, and is computed in fp32. A CPU computes it for a few rows at a
    time, which stay in its cache meanwhile.
    """
    loss, gradient = torch.zeros((), device=logits.device), torch.empty_like(logits)
    rows = max(NUMBERS_AT_ONCE // logits.size(1), 1)
    if logits.device.type != "cpu":
        rows = len(logits)
    for start in range(0, len(logits), rows):
        some = slice(start, start + rows)
        x = logits[some].detach().float()
        loss += _to_gradient(x, labels[some], label_smoothing, scale)
        gradient[some] = x
    return loss, gradient


def _to_gradient(x: Tensor, labels: Tensor, label_smoothing: float, scale: Tensor) -> Tensor:
    """Replace logits by the gradient of their loss, softmax minus target; return the loss."""
    n, labels = len(labels), labels.unsqueeze(1)
    confident, spread = 1 - label_smoothing, label_smoothing / x.size(1)
    x -= x.amax(dim=1, keepdim=True)
    expected = confident * x[:n].gather(1, labels).sum() + spread * x[:n].sum()
    totals = x.exp_().sum(dim=1, keepdim=True)
    x.mul_(scale / totals).sub_(spread * scale)
    x[:n].scatter_add_(1, labels, (-confident * scale).expand(n, 1))
    x[n:] = 0
    return totals[:n].log().sum() - expected
