"""The log-probabilities of given translations."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from console import print_note
from corpus.tokenizer import clean_text
from dataset import form_batches, pad, padding_mask
from translation.budget import within_memory
from translation.translator import Translator

LOGITS_AT_ONCE = 512  # target tokens: with the vocabulary, logits would be the largest tensor


@torch.inference_mode()
def log_probabilities(
    translator: Translator, sources: list[str | None], targets: list[str]
) -> list[float | None]:
    """Return the log-probability of each target as a translation of its source.

    Two blank texts have 0, like the translation of a blank line. It is None if the source is None,
    or (with a note) if one text is blank or does not fit the model.
    """
    src, tgt, longest = [], [], translator.config.seq_len
    of_src, of_tgt = translator.tokenizers
    numbers, result = [], [None] * len(sources)
    for number, pair in enumerate(zip(sources, targets, strict=True)):
        if pair[0] is None:
            continue
        texts = [clean_text(text) for text in pair]
        ids = [t.encode(text) for t, text in zip(translator.tokenizers, texts, strict=True)]
        if not any(texts):
            result[number] = 0.0
            continue
        if not all(ids) or max(len(ids[0]) + 2, len(ids[1]) + 1) > longest:
            print_note(
                f"line {number + 1} has {len(ids[0])} and {len(ids[1])} tokens, the model "
                f"takes 1 to {longest - 2} and 1 to {longest - 1}: its score is blank"
            )
            continue
        numbers.append(number)
        src.append([of_src.sos_id, *ids[0], of_src.eos_id])
        tgt.append([of_tgt.sos_id, *ids[1], of_tgt.eos_id])

    def of_batch(source: Tensor, mask: Tensor, target: Tensor) -> list[float]:
        """Return the log-probability of each row of target (B, 1 + T), which begins with [SOS]."""
        x = translator.model.hidden_states(source, mask, target[:, :-1]).flatten(0, 1)
        labels = target[:, 1:].flatten()
        losses = [
            F.cross_entropy(
                translator.model.project(hidden_states).float(),
                ids,
                ignore_index=of_tgt.pad_id,
                reduction="none",
            )
            for hidden_states, ids in zip(
                x.split(LOGITS_AT_ONCE), labels.split(LOGITS_AT_ONCE), strict=True
            )
        ]
        return (-torch.cat(losses)).view(len(target), -1).sum(dim=1).tolist()

    lens = (np.array([len(ids) for ids in src]), np.array([len(ids) - 1 for ids in tgt]))
    for indices in form_batches(*lens, translator.budget):
        source = pad([src[i] for i in indices], of_src.pad_id)
        target = pad([tgt[i] for i in indices], of_tgt.pad_id)
        batch = (source, padding_mask(source, of_src.pad_id), target)
        found = within_memory(of_batch, *(each.to(translator.device) for each in batch))
        for i, total in zip(indices, found, strict=True):
            result[numbers[i]] = total
    return result
