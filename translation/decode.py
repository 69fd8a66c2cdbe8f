"""Decoding: source ids to target ids, token by token, with a cache of keys and values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

# The maximum output length is the source length plus this (section 6.1).
EXTRA_LENGTH = 50


@dataclass(frozen=True)
class Hypothesis:
    """A translation as ids without [SOS]; it ends with [EOS] unless it reached its limit.

    `log_probability` is the natural logarithm of its probability, summed over its tokens. `score`
    is the log-probability divided by the length penalty.
    """

    ids: list[int]
    log_probability: float
    score: float


@dataclass(frozen=True)
class Rules:
    """Rules that forbid tokens at each step.

    To add a rule, add a field, and its effect in `apply`.
    """

    min_length: int = 0  # minimum number of tokens before [EOS]
    no_repeat_ngram: int = 0  # no group of N tokens twice (0: off)
    banned: tuple[int, ...] = ()  # ids that never occur, such as [UNK]
    prefix: tuple[int, ...] = ()  # ids with which every translation begins

    def apply(self, scores: Tensor, outputs: list[list[int]], eos_id: int) -> None:
        """Set the scores (rows, V) of forbidden next tokens to -inf, in place.

        `outputs` has the tokens of each row so far, equally many in all rows.
        """
        length = len(outputs[0])
        if length < len(self.prefix):
            forced = scores[:, self.prefix[length]].clone()
            scores.fill_(float("-inf"))
            scores[:, self.prefix[length]] = forced
            return
        if self.banned:
            scores[:, list(self.banned)] = float("-inf")
        if length < self.min_length:
            scores[:, eos_id] = float("-inf")
        if self.no_repeat_ngram and length >= self.no_repeat_ngram:
            size = self.no_repeat_ngram
            for row, ids in enumerate(outputs):
                last = ids[len(ids) - size + 1 :]
                starts = range(len(ids) - size + 1)
                seen = [ids[i + size - 1] for i in starts if ids[i : i + size - 1] == last]
                scores[row, seen] = float("-inf")


def length_penalty(length: int, alpha: float) -> float:
    """Return the divisor of a log-probability for an output length (Wu et al., 2016, section 7)."""
    return ((5 + length) / 6) ** alpha


def output_limits(model: nn.Module, src_mask: Tensor) -> list[int]:
    """Return the maximum length of each output: its source's + 50, within the model's positions."""
    limit = src_mask.sum(dim=(1, 2, 3)) + EXTRA_LENGTH
    return limit.clamp(max=model.tgt_seq_len).tolist()


@torch.inference_mode()
def greedy_decode(
    model: nn.Module, src: Tensor, src_mask: Tensor, *, sos_id: int, eos_id: int
) -> list[list[int]]:
    """Translate a batch of sentences by taking the likeliest token at each step.

    src is (B, S), src_mask (B, 1, 1, S). Returns B lists of target ids without [SOS]. A list ends
    with [EOS] unless it reached its limit: the source length (with [SOS] and [EOS]) + 50, or the
    number of the model's positions. The result for a sentence does not depend on its batch.
    """

    def likeliest(logits: Tensor, decoding: list[int], outputs: list[list[int]]) -> Tensor:
        return logits.argmax(dim=-1)

    return _token_by_token(model, src, src_mask, sos_id, eos_id, likeliest)


@torch.inference_mode()
def sample(
    model: nn.Module,
    src: Tensor,
    src_mask: Tensor,
    *,
    sos_id: int,
    eos_id: int,
    seeds: Sequence[Sequence[int]],
    temperature: float = 1.0,
    top_k: int = 0,
    rules: Rules = Rules(),  # noqa: B008 (it is frozen)
) -> list[Hypothesis]:
    """Draw a translation of each sentence of a batch, token by token.

    The probability of a token is the softmax of its logit divided by `temperature`, among the
    `top_k` likeliest (0: all). src is (B, S), src_mask (B, 1, 1, S). `seeds` has numbers for each
    row: they and the sentence determine its translation, whatever the batch. Limits are those of
    `greedy_decode`. Log-probabilities are the model's own, at temperature 1.
    """
    generators = [np.random.default_rng(list(seed)) for seed in seeds]
    sums = [0.0] * len(src)

    def drawn(logits: Tensor, decoding: list[int], outputs: list[list[int]]) -> Tensor:
        scores = logits.float().log_softmax(dim=-1)  # (rows, V)
        rules.apply(scores, [outputs[i] for i in decoding], eos_id)
        best, ids = scores.topk(min(top_k, scores.size(1)) if top_k else scores.size(1))
        # In double precision on the CPU: a running sum over a large vocabulary needs it.
        chances = (best.cpu().double() / temperature).softmax(dim=-1).cumsum(dim=-1)
        draws = torch.tensor([[generators[i].random()] for i in decoding], dtype=torch.float64)
        places = (chances <= draws * chances[:, -1:]).sum(dim=-1, keepdim=True).to(ids.device)
        for i, score in zip(decoding, best.gather(1, places).flatten().tolist(), strict=True):
            sums[i] += score
        return ids.gather(1, places).flatten()

    outputs = _token_by_token(model, src, src_mask, sos_id, eos_id, drawn)
    return [Hypothesis(ids, total, total) for ids, total in zip(outputs, sums, strict=True)]


def _token_by_token(
    model: nn.Module,
    src: Tensor,
    src_mask: Tensor,
    sos_id: int,
    eos_id: int,
    choose: Callable[[Tensor, list[int], list[list[int]]], Tensor],
) -> list[list[int]]:
    """Return the output of each sentence of a batch, with next tokens chosen by `choose`.

    `choose` takes the logits (rows, V), the sentence number of each row, and the outputs of all
    sentences so far, and returns the next tokens (rows,). A finished sentence leaves the batch.
    """
    encoder_output = model.encode(src, src_mask)
    limits = output_limits(model, src_mask)
    outputs: list[list[int]] = [[] for _ in src]
    decoding = list(range(len(src)))  # the sentence of each row still in the batch
    cache = model.new_cache()
    token = src.new_full((len(src),), sos_id)
    while decoding:
        x = model.decode(encoder_output, src_mask, token.unsqueeze(1), cache=cache)
        token = choose(model.project(x[:, -1]), decoding, outputs)
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
            token, src_mask = token[rows], src_mask[rows]
            encoder_output = encoder_output.index_select(0, rows)
            cache.select(rows)
    return outputs


@torch.inference_mode()
def beam_search(
    model: nn.Module,
    src: Tensor,
    src_mask: Tensor,
    *,
    sos_id: int,
    eos_id: int,
    beam_size: int,
    alpha: float = 0.6,
    n_best: int = 1,
    rules: Rules = Rules(),  # noqa: B008 (it is frozen)
) -> list[list[Hypothesis]]:
    """Translate a batch of sentences by beam search with `beam_size` hypotheses each.

    src is (B, S), src_mask (B, 1, 1, S). Returns for each sentence its `n_best` hypotheses, best
    first by log-probability / ((5 + length) / 6) ** alpha, where the length counts [EOS] (Wu et
    al., 2016, section 7). The search of a sentence ends when no unfinished hypothesis can enter the
    n_best, or, with alpha above 0, when beam_size hypotheses have ended. Limits are those of
    `greedy_decode`, which equals beam_size 1.
    """
    limits = output_limits(model, src_mask)
    encoder_output = model.encode(src, src_mask).repeat_interleave(beam_size, dim=0)
    src_mask = src_mask.repeat_interleave(beam_size, dim=0)
    cache = model.new_cache()
    searches = [_Search(limit, beam_size, n_best, alpha, eos_id) for limit in limits]
    live = list(range(len(src)))  # the sentences still in the batch, beam_size rows each
    token = src.new_full((len(src) * beam_size,), sos_id)
    while live:
        x = model.decode(encoder_output, src_mask, token.unsqueeze(1), cache=cache)
        scores = model.project(x[:, -1]).float().log_softmax(dim=-1)  # (rows, V)
        rules.apply(scores, [ids for i in live for ids in searches[i].outputs], eos_id)
        scores += scores.new_tensor([s for i in live for s in searches[i].sums]).unsqueeze(1)
        # Each hypothesis may end with one candidate; twice as many candidates keep the beam full.
        wanted = min(2 * beam_size, beam_size * scores.size(1))
        best, places = scores.view(len(live), -1).topk(wanted)
        beams, ids = places // scores.size(1), places % scores.size(1)
        for i, *candidates in zip(live, best.tolist(), beams.tolist(), ids.tolist(), strict=True):
            searches[i].step(*candidates)
        going_on = [place for place, i in enumerate(live) if not searches[i].is_done]
        rows = [
            place * beam_size + parent
            for place in going_on
            for parent in searches[live[place]].parents
        ]
        live = [live[place] for place in going_on]
        token = src.new_tensor([ids[-1] for i in live for ids in searches[i].outputs])
        index = torch.tensor(rows, dtype=torch.long, device=src.device)
        if len(live) < len(src_mask) // beam_size:
            encoder_output, src_mask = encoder_output.index_select(0, index), src_mask[index]
            cache.select(index)
        else:
            cache.select(index, of_memory=False)
    return [search.results() for search in searches]


class _Search:
    """The beam search of one sentence."""

    def __init__(self, limit: int, beam_size: int, n_best: int, alpha: float, eos_id: int) -> None:
        self.limit, self.beam_size, self.n_best = limit, beam_size, n_best
        self.alpha, self.eos_id = alpha, eos_id
        self.outputs: list[list[int]] = [[] for _ in range(beam_size)]
        self.sums = [0.0] + [float("-inf")] * (beam_size - 1)  # at first only one counts
        self.parents = list(range(beam_size))  # the hypothesis that each continues
        self.ended: list[Hypothesis] = []
        self.is_done = False

    def step(self, sums: list[float], parents: list[int], ids: list[int]) -> None:
        """Continue with the best candidates for the next token, best first."""
        candidates = list(zip(sums, parents, ids, strict=True))
        going_on = []
        for rank, (total, parent, token) in enumerate(candidates):
            output = [*self.outputs[parent], token]
            if token == self.eos_id or len(output) == self.limit:
                if rank < self.beam_size and total > float("-inf"):
                    self.ended.append(Hypothesis(output, total, total / self.penalty(len(output))))
            elif len(going_on) < self.beam_size:
                going_on.append((total, parent, output))
        while going_on and len(going_on) < self.beam_size:  # a vocabulary smaller than the beam
            going_on.append((float("-inf"), *going_on[0][1:]))
        is_full = self.alpha > 0 and len(self.ended) >= self.beam_size
        self.is_done = not going_on or is_full or self.is_decided(going_on)
        if not self.is_done:
            self.sums, self.parents, self.outputs = map(list, zip(*going_on, strict=True))

    def is_decided(self, going_on: list[tuple]) -> bool:
        """Return whether no unfinished hypothesis can still become one of the n_best."""
        if len(self.ended) < self.n_best:
            return going_on[0][0] == float("-inf")
        worst = sorted(hypothesis.score for hypothesis in self.ended)[-self.n_best]
        # A log-probability only decreases, so this is the best score that is still possible.
        return going_on[0][0] / self.penalty(self.limit) <= worst

    def penalty(self, length: int) -> float:
        """Return the length penalty of this search."""
        return length_penalty(length, self.alpha)

    def results(self) -> list[Hypothesis]:
        """Return the n_best hypotheses, best first."""
        best_first = sorted(self.ended, key=lambda hypothesis: -hypothesis.score)
        if not best_first:  # the rules allowed no token at all
            score = self.sums[0] / self.penalty(len(self.outputs[0]))
            best_first = [Hypothesis(self.outputs[0], self.sums[0], score)]
        return best_first[: self.n_best]
