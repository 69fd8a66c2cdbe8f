"""Greedy decoding: the same sentence gives the same ids alone, in any batch, cached or not."""

import pytest
import torch

from dataset import padding_mask
from model import build_transformer
from translation.decode import EXTRA_LENGTH, greedy_decode

PAD, SOS, EOS, VOCAB, SEQ_LEN = 1, 2, 3, 40, 90


def make_model(seed=0, seq_len=SEQ_LEN):
    torch.manual_seed(seed)
    model = build_transformer(VOCAB, VOCAB, seq_len, seq_len, 32, 2, 4, 0.1, 64).eval()
    with torch.no_grad():
        # Ends some sentences early and others never; without the pull all would run to the cap.
        model.projection.linear.bias[EOS] = 1.2
    return model


def make_sources(lengths=(1, 3, 8, 20, 33, 40, 12), seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(4, VOCAB, (n,), generator=generator).tolist() for n in lengths]
    return [[SOS, *row, EOS] for row in rows]


def decode(model, sources):
    src = torch.full((len(sources), max(map(len, sources))), PAD)
    for row, ids in zip(src, sources, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    return greedy_decode(model, src, padding_mask(src, PAD), sos_id=SOS, eos_id=EOS)


@torch.no_grad()
def decode_without_cache(model, source):
    """Decode one sentence from the definition: the whole prefix again for each token."""
    src = torch.tensor([source])
    encoded = model.encode(src, padding_mask(src, PAD))
    ids = [SOS]
    while len(ids) <= min(len(source) + EXTRA_LENGTH, SEQ_LEN) and ids[-1] != EOS:
        x = model.decode(encoded, padding_mask(src, PAD), torch.tensor([ids]))
        ids.append(model.project(x)[0, -1].argmax().item())
    return ids[1:]


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_gives_what_each_sentence_gives_alone_and_without_cache(seed):
    model, sources = make_model(seed), make_sources(seed=seed)
    batched = decode(model, sources)
    assert batched == [decode(model, [source])[0] for source in sources]
    assert batched == [decode_without_cache(model, source) for source in sources]
    assert batched == decode(model, sources[::-1])[::-1]


def test_some_of_these_sentences_end_and_some_are_cut():
    outputs = [ids for seed in range(5) for ids in decode(make_model(seed), make_sources())]
    ended = [ids for ids in outputs if ids[-1] == EOS]
    assert 0 < len(ended) < len(outputs)
    assert all(EOS not in ids[:-1] for ids in outputs)


def force_token(model, token_id):
    with torch.no_grad():
        model.projection.linear.bias[token_id] = 1e4
    return model


def test_output_without_eos_is_cut_50_tokens_after_the_source_length():
    lengths = [len(ids) for ids in decode(force_token(make_model(), 7), make_sources((1, 8)))]
    assert lengths == [1 + 2 + EXTRA_LENGTH, 8 + 2 + EXTRA_LENGTH]


def test_a_sentence_never_passes_the_position_table():
    model = force_token(make_model(), 7)
    assert len(decode(model, make_sources((SEQ_LEN - 2,)))[0]) == SEQ_LEN


def test_immediate_eos_gives_only_eos():
    assert decode(force_token(make_model(), EOS), make_sources()) == [[EOS]] * 7


def test_finished_sentences_leave_the_batch_and_the_source_is_encoded_once():
    model = make_model()
    sizes, encoded = [], []
    model.decoder.register_forward_hook(lambda _, args, __: sizes.append(len(args[0])))
    model.encoder.register_forward_hook(lambda *_: encoded.append(1))
    outputs = decode(model, make_sources())
    assert len(encoded) == 1
    assert sizes == [
        sum(len(ids) > step for ids in outputs) for step in range(max(map(len, outputs)))
    ]


def test_each_step_computes_one_position():
    model = make_model()
    lengths = []
    model.decoder.register_forward_hook(lambda _, args, __: lengths.append(args[0].size(1)))
    decode(model, make_sources())
    assert set(lengths) == {1}
