"""Beam search finds what it should, and obeys its rules."""

import itertools

import pytest
import torch

from dataset import padding_mask
from model import build_transformer
from translation.decode import Rules, beam_search, greedy_decode

PAD, SOS, EOS = 1, 2, 3
LIMIT = 6  # tokens that the small models have positions for


def make_model(vocabulary=7, seed=0, **changes):
    torch.manual_seed(seed)
    sizes = dict(src_seq_len=40, tgt_seq_len=LIMIT, d_model=16, N=2, h=2, dropout=0.0, d_ff=32)
    model = build_transformer(vocabulary, vocabulary, **{**sizes, **changes}).eval()
    with torch.no_grad():  # as sure of itself as a trained one
        model.projection.linear.weight.mul_(3)
        model.projection.linear.bias.normal_(generator=torch.Generator().manual_seed(seed))
    return model


def make_sources(count=8, longest=9, vocabulary=7, seed=1):
    generator = torch.Generator().manual_seed(seed)
    src = torch.full((count, longest), PAD)
    for row in src:
        length = int(torch.randint(3, longest + 1, (), generator=generator))
        row[:length] = torch.randint(4, vocabulary, (length,), generator=generator)
        row[0], row[length - 1] = SOS, EOS
    return src, padding_mask(src, PAD)


def search(model, src, mask, beam_size, **options):
    return beam_search(model, src, mask, sos_id=SOS, eos_id=EOS, beam_size=beam_size, **options)


def log_probability(model, src, mask, ids):
    tgt = torch.tensor([[SOS, *ids[:-1]]])
    with torch.no_grad():
        scores = model(src, mask, tgt).log_softmax(-1)[0]
    return sum(scores[i, token].item() for i, token in enumerate(ids))


def every_output(model, src, mask, alpha):
    """Return (score, ids) of every output there is, best first: the brute force."""
    found = []
    vocabulary = model.projection.linear.out_features
    for length in range(1, LIMIT + 1):
        for ids in itertools.product(range(vocabulary), repeat=length):
            ends = ids[-1] == EOS or length == LIMIT
            if ends and EOS not in ids[:-1]:
                found.append(list(ids))
    by_length = {}
    for ids in found:
        by_length.setdefault(len(ids), []).append(ids)
    scored = []
    with torch.no_grad():
        encoded = model.encode(src, mask)
        for length, group in by_length.items():
            out = torch.tensor(group)
            tgt = torch.cat([torch.full((len(out), 1), SOS), out[:, :-1]], dim=1)
            x = model.decode(
                encoded.expand(len(out), -1, -1), mask.expand(len(out), -1, -1, -1), tgt
            )
            each = model.project(x).log_softmax(-1).gather(2, out.unsqueeze(2)).sum(dim=(1, 2))
            penalty = ((5 + length) / 6) ** alpha
            scored += [(s / penalty, ids) for s, ids in zip(each.tolist(), group, strict=True)]
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("seed", range(4))
def test_beam_1_is_greedy_token_for_token(seed, norm):
    model = make_model(seed=seed, tgt_seq_len=40, norm=norm)
    src, mask = make_sources(seed=seed)
    greedy = greedy_decode(model, src, mask, sos_id=SOS, eos_id=EOS)
    for alpha in (0.0, 0.6, 1.0):
        assert [each[0].ids for each in search(model, src, mask, 1, alpha=alpha)] == greedy


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_exhaustive_beam_finds_the_best_of_all_outputs(seed, alpha):
    model = make_model(vocabulary=5, seed=seed, tgt_seq_len=LIMIT)
    src, mask = make_sources(count=1, vocabulary=5, seed=seed)
    expected = every_output(model, src, mask, alpha)
    found = search(model, src, mask, 5**4, alpha=alpha, n_best=3)[0]
    assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected[:3]]
    for hypothesis, (score, _) in zip(found, expected, strict=False):
        assert hypothesis.score == pytest.approx(score, abs=1e-4)


def test_a_hypothesis_has_the_log_probability_that_the_model_gives_it():
    model, (src, mask) = make_model(tgt_seq_len=20), make_sources()
    for i, hypotheses in enumerate(search(model, src, mask, 4, alpha=0.6, n_best=4)):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert len(hypotheses) == 4 and scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == 4
        for each in hypotheses:
            expected = log_probability(model, src[i : i + 1], mask[i : i + 1], each.ids)
            assert each.log_probability == pytest.approx(expected, abs=1e-3)
            penalty = ((5 + len(each.ids)) / 6) ** 0.6
            assert each.score == pytest.approx(each.log_probability / penalty)


@pytest.mark.parametrize("beam_size", [2, 5])
def test_a_sentences_result_does_not_depend_on_its_batch(beam_size):
    model, (src, mask) = make_model(tgt_seq_len=30), make_sources(count=12)
    together = search(model, src, mask, beam_size, n_best=2)
    for i in range(len(src)):
        alone = src[i : i + 1, : int(mask[i].sum())]
        single = search(model, alone, padding_mask(alone, PAD), beam_size, n_best=2)[0]
        assert [each.ids for each in single] == [each.ids for each in together[i]]


def test_no_hypothesis_exceeds_its_limit_or_the_positions():
    for positions, expected in ((4, 4), (100, 53)):
        model = make_model(tgt_seq_len=positions)
        model.projection.linear.bias.data[EOS] = -100.0
        src, mask = make_sources(count=2, longest=3)
        for hypotheses in search(model, src, mask, 3, n_best=3):
            assert [len(each.ids) for each in hypotheses] == [expected] * 3
            assert all(EOS not in each.ids for each in hypotheses)


def test_finished_sentences_leave_the_batch(monkeypatch):
    model, (src, mask) = make_model(tgt_seq_len=30), make_sources(count=12)
    rows, decode = [], model.decode

    def note(encoder_output, *args, **kwargs):
        rows.append(len(encoder_output))
        return decode(encoder_output, *args, **kwargs)

    monkeypatch.setattr(model, "decode", note)
    found = search(model, src, mask, 2)
    assert rows[0] == 24 and rows == sorted(rows, reverse=True) and rows[-1] < 24
    assert len(rows) <= max(len(each[0].ids) for each in found) + 30


def test_wider_beam_finds_likelier_translations_on_average():
    model, (src, mask) = make_model(tgt_seq_len=20), make_sources(count=40)
    sums = [
        sum(each[0].log_probability for each in search(model, src, mask, beam, alpha=0.0))
        for beam in (1, 2, 8)
    ]
    assert sums == sorted(sums) and sums[0] < sums[2]


# --- Rules ---


def ids_of(found):
    return [each.ids for hypotheses in found for each in hypotheses]


def test_rules_hold_in_every_hypothesis():
    model, (src, mask) = make_model(tgt_seq_len=14), make_sources()
    free = ids_of(search(model, src, mask, 3, n_best=3))
    assert any(len(ids) < 7 for ids in free) and any(5 in ids for ids in free)
    ruled = search(model, src, mask, 3, n_best=3, rules=Rules(min_length=7, banned=(5,)))
    assert all(len(ids) > 7 or len(ids) == 14 for ids in ids_of(ruled))
    assert all(5 not in ids for ids in ids_of(ruled))
    begun = search(model, src, mask, 3, n_best=3, rules=Rules(prefix=(4, 6, 4)))
    assert all(ids[:3] == [4, 6, 4] for ids in ids_of(begun))
    assert len({tuple(ids) for ids in ids_of(begun[:1])}) == 3


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_group_of_tokens_is_repeated(size):
    model, (src, mask) = make_model(vocabulary=30, tgt_seq_len=14), make_sources(vocabulary=30)
    model.projection.linear.bias.data[EOS] = -100.0

    def groups(ids):
        return [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]

    def repeats(found):
        return sum(len(groups(ids)) - len(set(groups(ids))) for ids in ids_of(found))

    assert repeats(search(model, src, mask, 3)) > 0
    assert repeats(search(model, src, mask, 3, rules=Rules(no_repeat_ngram=size))) == 0


def test_rules_that_forbid_every_token_return_the_output_so_far():
    model, (src, mask) = make_model(tgt_seq_len=14), make_sources()
    model.projection.linear.bias.data[EOS] = float("-inf")
    found = search(model, src, mask, 2, rules=Rules(no_repeat_ngram=1))
    assert all(len(ids) == 6 == len(set(ids)) for ids in ids_of(found))  # all but [EOS], once


class Told:
    """A model whose next token has given probabilities, whatever came before."""

    tgt_seq_len = 40

    def __init__(self, *steps):
        self.steps, self.calls = [torch.tensor(step).log() for step in steps], 0

    def encode(self, src, src_mask):
        return src.float().unsqueeze(2)

    def new_cache(self):
        return type("", (), {"select": lambda *_, **__: None})()

    def decode(self, encoder_output, src_mask, tgt, cache):
        self.calls += 1
        return encoder_output[:, :1]

    def project(self, x):
        step = self.steps[min(self.calls, len(self.steps)) - 1]
        return step.expand(len(x), -1)


def test_a_full_beam_ends_a_sentence_even_if_the_penalty_would_favour_a_longer_one():
    # [EOS] now, or nearly as likely a token that is certain to be followed by more of itself.
    model = Told([0.01, 0.01, 0.01, 0.5, 0.47], [1e-6, 1e-6, 1e-6, 1e-6, 1.0])
    src, mask = make_sources(count=1)
    assert search(model, src, mask, 1, alpha=1.0)[0][0].ids == [EOS]
    assert model.calls == 1


def test_search_ends_when_no_unfinished_hypothesis_can_win():
    model = Told([0.02, 0.02, 0.02, 0.9, 0.04])
    src, mask = make_sources(count=1)
    assert search(model, src, mask, 3, alpha=0.0)[0][0].ids == [EOS]
    assert model.calls == 1
    model.calls = 0
    assert [each.ids[-1] for each in search(model, src, mask, 3, alpha=0.0, n_best=3)[0]] == [
        EOS
    ] * 3
    assert model.calls == 2  # [EOS] alone, then after each of the other two
