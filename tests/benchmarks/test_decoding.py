"""The benchmark of decoding compares equal outputs."""

import sys

import pytest
import torch

from benchmarks import decoding, inputs
from config import Config

CPU = torch.device("cpu")
TINY = dict(d_model=16, N=1, h=2, d_ff=32, seq_len=350, shared_vocab=True)


def test_all_ways_to_decode_give_the_same_and_never_end_early(monkeypatch):
    monkeypatch.setattr(decoding, "get_config", lambda _: Config(**TINY))
    monkeypatch.setattr(inputs, "VOCABULARY", 50)
    model = decoding.new_decoder(12, CPU, torch.float32)
    src, src_mask = inputs.random_sources(3, 7, CPU)
    with torch.inference_mode():
        tokens = decoding.decode(model, src, src_mask)
        without = decoding.decode_without_cache(model, src, src_mask, inputs.SOS, 12)
        beams = decoding.decode(model, src, src_mask, beam_size=4)
    assert [len(each) for each in tokens + beams] == [12] * 6
    assert without == tokens
    pytest.importorskip("ctranslate2")
    words = ["[UNK]", "[PAD]", "[SOS]", "[EOS]", *map(str, range(4, 50))]
    engine = decoding.CTranslate2(model, Config(**TINY), words, "float32")
    assert engine.decode(src, 12, 1) == tokens and engine.decode(src, 12, 4) == beams


def test_decoding_is_measured_without_ctranslate2(monkeypatch, capsys):
    monkeypatch.setattr(decoding, "get_config", lambda _: Config(**TINY))
    monkeypatch.setattr(inputs, "VOCABULARY", 50)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    rows = decoding.by_batch(1, CPU)
    assert "pip install ctranslate2" in capsys.readouterr().out
    assert {row["time over CTranslate2's"] for row in rows.values()} == {""}
    assert rows["beam 4, batch 32"]["sentences/s"] > 0
