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
    limit = src_mask.sum(dim=(1, 2, 3)) + EXTRA_LENGTH  # (B,)
    limit = limit.clamp(max=model.tgt_seq_len)
    cache = model.new_cache()
    sentence = torch.arange(len(src), device=src.device)  # of each row still decoding
    token = src.new_full((len(src),), sos_id)
    outputs: list[list[int]] = [[] for _ in src]
    length = 0
    while len(sentence):
        x = model.decode(encoder_output, src_mask, token.unsqueeze(1), cache=cache)
        token = model.project(x[:, -1]).argmax(dim=-1)  # (rows,)
        length += 1
        for i, token_id in zip(sentence.tolist(), token.tolist(), strict=True):
            outputs[i].append(token_id)
        live = (token != eos_id) & (limit > length)
        if not live.all():
            rows = live.nonzero().squeeze(1)
            sentence, token, limit = sentence[rows], token[rows], limit[rows]
            encoder_output, src_mask = encoder_output[rows], src_mask[rows]
            cache.select(rows)
    return outputs
