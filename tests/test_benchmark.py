"""The benchmark measures what it says."""

import json
import statistics
import sys

import pytest
import torch
from conftest import run_script

import benchmark
from benchmarks import measuring, peers
from benchmarks import pipeline as benchmark_run
from benchmarks import steps as benchmark_model
from config import Config

CPU = torch.device("cpu")
TINY = dict(d_model=16, N=1, h=2, d_ff=32, seq_len=350, shared_vocab=True)


def test_times_are_taken_in_turn_and_compared_repeat_by_repeat():
    calls = []
    ways = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = measuring.in_turn(ways, 3)
    assert calls == list("ab" * 4) and {len(each) for each in times.values()} == {3}
    shares = measuring.ratio([2.0, 4.0, 9.0], [1.0, 1.0, 3.0])
    assert shares == {"median": 3.0, "low": 2.0, "high": 4.0}


def test_the_batches_count_their_real_tokens():
    for batch in benchmark_model.phrasebook_batches(300, 3):
        assert batch.tokens == (batch.tgt_out != benchmark_model.PAD).sum() == len(batch.real)
        assert max(batch.src.numel(), batch.tgt_in.numel()) <= 300
        assert (batch.tgt_in[:, 0] == benchmark_model.SOS).all()
        assert torch.equal(batch.tgt_in[:, 1:], batch.tgt_out[:, :-1].where(
            batch.tgt_out[:, :-1] != benchmark_model.EOS, batch.tgt_in[:, 1:]
        ))  # fmt: skip


def test_the_matrix_products_of_a_step_are_all_there_and_can_be_done_again(monkeypatch):
    monkeypatch.setattr(benchmark_model, "VOCABULARY", 50)
    run = benchmark_model.new_run(Config(**TINY, dropout=0.0), "fp32", CPU)
    batch = benchmark_model.phrasebook_batches(300, 1)[0]
    with benchmark_model.MatrixProducts() as products:
        benchmark_model.train_update(run, [batch])
    # Encoder 6, decoder 10, projection 1; each once forward, and twice backward.
    linear = [call for call in products.calls if call[0].overloadpacket.__name__ != "bmm"]
    assert len(linear) == 3 * (6 + 10 + 1)
    products.again()()


def test_the_peer_is_as_large_as_ours_and_learns(monkeypatch):
    monkeypatch.setattr(benchmark_model, "VOCABULARY", 50)
    config = Config(**TINY, dropout=0.0)
    ours, peer = (benchmark_model.new_run(config, "fp32", CPU) for _ in range(2))
    size = sum(p.numel() for p in ours.model.parameters())
    peer.model = benchmark_model.TorchTransformer(config, peer.model)
    assert sum(p.numel() for p in peer.model.parameters()) == size
    peer.optimizer = torch.optim.Adam(peer.model.parameters(), lr=1e-2, fused=True)
    batch = benchmark_model.phrasebook_batches(300, 1)[0]

    def loss():
        with torch.no_grad():
            logits = peer.model(batch.src, batch.src_mask, batch.tgt_in)
            return peers.target_loss(logits, batch.tgt_out, benchmark_model.PAD).item()

    before = loss()
    for _ in range(5):
        benchmark_model.plain_step(peer, batch, benchmark_model.PAD)
    assert loss() < before


def test_the_original_way_pads_eight_pairs_to_350():
    batch = benchmark_model.phrasebook_batches(300, 1)[0]
    padded = benchmark_model.padded_as_in_the_original(batch, benchmark_model.PAD)
    assert {ids.shape for ids in (padded.src, padded.tgt_in, padded.tgt_out)} == {(8, 350)}
    assert padded.tokens == (batch.tgt_out[:8] != benchmark_model.PAD).sum() == len(padded.real)
    assert torch.equal(padded.src_mask[:, 0, 0], padded.src != benchmark_model.PAD)


def test_all_ways_to_decode_give_the_same_and_never_end_early(monkeypatch):
    monkeypatch.setattr(benchmark_model, "get_config", lambda _: Config(**TINY))
    monkeypatch.setattr(benchmark_model, "VOCABULARY", 50)
    model = benchmark_model.new_decoder(12, CPU, torch.float32)
    src, src_mask = benchmark_model.random_sources(3, 7, CPU)
    with torch.inference_mode():
        tokens = benchmark_model.decode(model, src, src_mask)
        without = benchmark_model.decode_without_cache(
            model, src, src_mask, benchmark_model.SOS, 12
        )
        beams = benchmark_model.decode(model, src, src_mask, beam_size=4)
    assert [len(each) for each in tokens + beams] == [12] * 6
    assert without == tokens
    pytest.importorskip("ctranslate2")
    words = ["[UNK]", "[PAD]", "[SOS]", "[EOS]", *map(str, range(4, 50))]
    engine = benchmark_model.CTranslate2(model, Config(**TINY), words, "float32")
    assert engine.decode(src, 12, 1) == tokens and engine.decode(src, 12, 4) == beams


def test_without_ctranslate2_decoding_is_measured_all_the_same(monkeypatch, capsys):
    monkeypatch.setattr(benchmark_model, "get_config", lambda _: Config(**TINY))
    monkeypatch.setattr(benchmark_model, "VOCABULARY", 50)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    rows = benchmark_model.by_batch(1, CPU)
    assert "pip install ctranslate2" in capsys.readouterr().out
    assert {row["time over CTranslate2's"] for row in rows.values()} == {""}
    assert rows["beam 4, batch 32"]["sentences/s"] > 0


@pytest.mark.parametrize("part", ["train", "decode", "data"])
def test_each_part_prints_a_table_and_writes_its_figures(part, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark_model, "get_config", lambda _: Config(**TINY, inner_dropout=0.0))
    monkeypatch.setattr(benchmark_model, "VOCABULARY", 50)
    monkeypatch.setattr(benchmark_run, "CORPUS_SIZES", (200,))
    monkeypatch.setattr(benchmark_model, "in_a_process_of_its_own", lambda *_: 10**6)
    file = tmp_path / "figures.json"
    arguments = ["benchmark.py", part, "--repeats", "2", "--json", str(file), "--device", "cpu"]
    monkeypatch.setattr("sys.argv", arguments)
    assert benchmark.main() == 0
    results = json.loads(file.read_text())
    assert results["torch"] == torch.__version__ and results["threads"] >= 1
    rows = [row for row in results[part].values() if isinstance(row, dict)]
    cells = [cell for row in rows for cell in row.values() if isinstance(cell, dict)]
    shares = [cell for cell in cells if "median" in cell]
    assert all(0 < cell["low"] <= cell["median"] <= cell["high"] for cell in shares)
    assert part == "data" or len(shares) > 4
    out = capsys.readouterr().out
    assert "| ---" not in out and "|---|" in out


def test_memory_is_that_of_a_fresh_process():
    config = Config(**{**TINY, "d_model": 512})
    peaks = [
        measuring.in_a_process_of_its_own(benchmark_model.peak_of_a_step, config, "fp32", 2048, way)
        for way in ("ours", "peer")
    ]
    weights = 4 * 4 * 2 * 8000 * 512  # embeddings alone: themselves, gradients, two moments
    assert all(weights < peak < 20 * weights for peak in peaks), statistics.mean(peaks)


def test_starting_is_measured_through_the_scripts(tmp_path):
    file = tmp_path / "figures.json"
    run_script("benchmark.py", "start", "--repeats", "1", "--json", file)
    rows = json.loads(file.read_text())["start"]
    # What they are is the machine's affair, and other work's on it.
    assert rows["first update, cold cache"]["times import"] > 0
    assert rows["a translation"]["times import"]["median"] > 0


def test_a_device_that_is_not_there_is_one_line():
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    process = run_script("benchmark.py", "train", "--device", "cuda", check=False)
    assert process.returncode == 1 and len(process.stderr.splitlines()) == 1
