"""Drawn translations have the model's own probabilities, and depend on seed and sentence alone."""

import collections

import pytest
import torch
from test_beam_search import EOS, PAD, SOS, log_probability, make_model, make_sources

from translation.decode import Rules, greedy_decode, sample


def draw(model, src, mask, seeds=None, **options):
    seeds = [(0, row) for row in range(len(src))] if seeds is None else seeds
    return sample(model, src, mask, sos_id=SOS, eos_id=EOS, seeds=seeds, **options)


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, 0), (0.5, 0), (2.0, 3)])
def test_the_first_token_is_drawn_by_its_probability(temperature, top_k):
    model, count = make_model(), 4000
    src, mask = (each[:1] for each in make_sources())
    rows = (each.expand(count, *each.shape[1:]) for each in (src, mask))
    seeds = [(5, i) for i in range(count)]
    drawn = draw(model, *rows, seeds=seeds, temperature=temperature, top_k=top_k)
    counts = collections.Counter(each.ids[0] for each in drawn)
    with torch.no_grad():
        logits = model(src, mask, torch.tensor([[SOS]]))[0, 0] / temperature
    if top_k:
        kept = logits.topk(top_k).indices
        logits = torch.full_like(logits, float("-inf")).index_copy(0, kept, logits[kept])
    chances = logits.softmax(-1)
    for token, chance in enumerate(chances.tolist()):
        # Four standard deviations, and exactly none where the chance is none.
        margin = 4 * (chance * (1 - chance) / count) ** 0.5
        assert counts[token] / count == pytest.approx(chance, abs=margin), token


def test_one_candidate_or_no_temperature_is_greedy():
    model = make_model(seed=3)
    src, mask = make_sources()
    greedy = greedy_decode(model, src, mask, sos_id=SOS, eos_id=EOS)
    assert [each.ids for each in draw(model, src, mask, top_k=1)] == greedy
    assert [each.ids for each in draw(model, src, mask, temperature=0.01)] == greedy


def test_a_sample_depends_on_seed_and_sentence_not_on_its_batch():
    model = make_model(tgt_seq_len=30)
    src, mask = make_sources()
    drawn = draw(model, src, mask)
    again = draw(model, src, mask)
    assert [each.ids for each in drawn] == [each.ids for each in again]
    for row in range(len(src)):
        length = int(mask[row].sum())
        alone = draw(model, src[row : row + 1, :length], mask[row : row + 1, ..., :length],
                     seeds=[(0, row)])  # fmt: skip
        assert alone[0].ids == drawn[row].ids
        assert alone[0].log_probability == pytest.approx(drawn[row].log_probability, abs=1e-4)
    others = draw(model, src, mask, seeds=[(1, row) for row in range(len(src))])
    assert [each.ids for each in drawn] != [each.ids for each in others]


def test_log_probabilities_are_the_models_whatever_the_temperature():
    model = make_model(tgt_seq_len=30)
    src, mask = make_sources()
    for row, each in enumerate(draw(model, src, mask, temperature=3.0, top_k=5)):
        length = int(mask[row].sum())
        one = (src[row : row + 1, :length], mask[row : row + 1, ..., :length])
        assert each.log_probability == pytest.approx(
            log_probability(model, *one, each.ids), abs=1e-3
        )
        assert each.score == each.log_probability


def test_rules_hold_for_samples_too():
    model = make_model(tgt_seq_len=30)
    src, mask = make_sources()
    rules = Rules(min_length=4, no_repeat_ngram=2, banned=(0, PAD, SOS), prefix=(5, 4))
    for each in draw(model, src, mask, temperature=2.0, rules=rules):
        assert each.ids[:2] == [5, 4] and len(each.ids) > 4
        assert not {0, PAD, SOS} & set(each.ids)
        pairs = list(zip(each.ids, each.ids[1:], strict=False))
        assert len(set(pairs)) == len(pairs)
