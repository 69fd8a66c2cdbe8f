"""The training loss: cross-entropy with label smoothing."""

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
