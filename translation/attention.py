"""The weights of cross-attention, and heat maps of them."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from corpus.tokenizer import Tokenizer
from model import Transformer
from translation.fonts import drawable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@torch.inference_mode()
def cross_attention(model: Transformer, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
    """Return the cross-attention weights of all decoder layers, (N, B, h, T, S).

    src is (B, S), src_mask (B, 1, 1, S), tgt (B, T) the decoder's input. Over S they sum to 1.
    """
    weights: list[Tensor] = []
    model.decode(model.encode(src, src_mask), src_mask, tgt, weights=weights)
    return torch.stack(weights)


def tokens_of(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """Return the text of each id, or its vocabulary entry if that text is not printable."""
    texts = [tokenizer.backend.decode([i], skip_special_tokens=False).strip() for i in ids]
    entries = [tokenizer.backend.id_to_token(i) for i in ids]
    return [
        text if text and text.isprintable() and "�" not in text else entry
        for text, entry in zip(texts, entries, strict=True)
    ]


def draw(weights: Tensor, src_tokens: list[str], tgt_tokens: list[str]) -> "Figure":
    """Return a heat map of weights (heads, T, S): one panel per head, with tokens on its axes."""
    from matplotlib.figure import Figure

    # matplotlib reads text between dollar signs as a formula.
    labels, families = drawable(token.replace("$", r"\$") for token in [*src_tokens, *tgt_tokens])
    heads, height, width = weights.shape
    columns = math.ceil(math.sqrt(heads))
    rows = math.ceil(heads / columns)
    size = (columns * (1.5 + 0.3 * width), rows * (1.5 + 0.27 * height))
    figure = Figure(figsize=size, layout="constrained")
    for head, panel in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if head >= heads:
            panel.axis("off")
            continue
        panel.imshow(weights[head].float().cpu().numpy(), cmap="Blues", vmin=0, vmax=1)
        panel.set_xticks(range(width), labels[:width], family=families)
        panel.set_yticks(range(height), labels[width:], family=families)
        panel.tick_params(axis="x", rotation=90, top=True, labeltop=True, bottom=False)
        panel.tick_params(axis="x", labelbottom=False)
        if heads > 1:
            panel.set_xlabel(f"head {head + 1}")
    return figure
