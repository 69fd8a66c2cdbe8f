"""Turning source ids into target ids, one token at a time, over a cache of keys and values."""

import torch
from torch import Tensor, nn

# The longest output, in tokens beyond the source's (section 6.1 of the paper).
EXTRA_LENGTH = 50


@torch.inference_mode()
def greedy_decode(
    model: nn.Module, src: Tensor, src_mask: Tensor, *, sos_id: int, eos_id: int
) -> list[list[int]]:
    """Translate a batch of sentences by taking the likeliest token at each step.

    src is (B, S), src_mask (B, 1, 1, S). Returns B lists of target ids without [SOS]; a list
    ends with [EOS] unless it was cut: at the source's length (with [SOS] and [EOS]) + 50, or at the
    end of the model's position table. A sentence's result does not depend on its batch.
    """
    encoder_output = model.encode(src, src_mask)
    limit = src_mask.sum(dim=(1, 2, 3)) + EXTRA_LENGTH
    limits = limit.clamp(max=model.tgt_seq_len).tolist()  # of each sentence
    outputs: list[list[int]] = [[] for _ in src]
    decoding = list(range(len(src)))  # the sentence of each row still in the batch
    cache = model.new_cache()
    token = src.new_full((len(src),), sos_id)
    while decoding:
        x = model.decode(encoder_output, src_mask, token.unsqueeze(1), cache=cache)
        token = model.project(x[:, -1]).argmax(dim=-1)  # (rows,)
        for i, token_id in zip(decoding, token.tolist(), strict=True):
            outputs[i].append(token_id)
        live = [
            row
            for row, i in enumerate(decoding)
            if outputs[i][-1] != eos_id and len(outputs[i]) < limits[i]
        ]
        if len(live) < len(decoding):
            decoding = [decoding[row] for row in live]
            rows = torch.tensor(live, dtype=torch.long, device=src.device)
            token, encoder_output, src_mask = token[rows], encoder_output[rows], src_mask[rows]
            cache.select(rows)
    return outputs
