"""The training loss: cross-entropy with label smoothing, and its gradient."""

import torch
import torch.nn.functional as F
from torch import Tensor


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
    logits: Tensor, labels: Tensor, label_smoothing: float, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy (nats) of labels (n,), summed, and its gradient times `scale`.

    Logits are (rows, V); rows beyond the n-th are padding, and their gradient is 0. The gradient is
    the softmax minus the smoothed target, which costs fewer passes over the vocabulary than
    autograd. Both are computed in fp32.
    """
    n, spread = len(labels), label_smoothing / logits.size(1)
    labels = labels.unsqueeze(1)
    log_p = logits.detach().log_softmax(dim=1, dtype=torch.float32)
    loss = (label_smoothing - 1) * log_p[:n].gather(1, labels).sum() - spread * log_p[:n].sum()
    gradient = log_p.exp_().mul_(scale).sub_(spread * scale)
    confident = gradient.new_full((n, 1), (label_smoothing - 1) * scale)
    gradient[:n].scatter_add_(1, labels, confident)
    gradient[n:] = 0
    return loss, gradient
