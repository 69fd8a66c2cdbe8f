"""The benchmark of epochs trains each model on the same batches, in a process of its own."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from conftest import small_config, write_number_pairs

from benchmarks import epochs
from benchmarks.epochs import Corpus, Trainer, benchmark_epochs, most_common_shape, one_model
from benchmarks.training_step import with_peers_dropout
from dataset import padded_length

CPU = torch.device("cpu")


def make_config(tmp_path):
    return with_peers_dropout(small_config(write_number_pairs(tmp_path, count=300), d_model=16))


def test_all_ways_are_measured_in_turn(tmp_path, capfd):
    row = one_model(make_config(tmp_path), "fp32", CPU, updates=3, repeats=2)
    ratios = [cell for cell in row.values() if isinstance(cell, dict)]
    assert len(ratios) == 3 and all(0 < r["low"] <= r["median"] <= r["high"] for r in ratios)
    assert row["tokens/s"] > 0
    if "MB of Marian" in row:
        assert min(row["MB after the first turn"], row["the last"], row["MB of Marian"]) > 50
    assert "pairs to train on" not in capfd.readouterr().out


@pytest.mark.parametrize("way", epochs.WAYS)
def test_a_trainer_learns_from_the_batches_of_epochs(tmp_path, way):
    pytest.importorskip("transformers")
    trainer = Trainer(way, make_config(tmp_path), "fp32", "cpu")
    batches = [next(trainer.batches) for _ in range(12)]
    shapes = {tuple(batch.tgt_in.shape) for batch in batches}
    assert (len(shapes) == 1) is (way == "ours, one shape")
    weights = [weight for weight in trainer.run.model.parameters() if weight.requires_grad]
    before = [weight.detach().clone() for weight in weights]
    assert 0 < trainer.train(2) < 10
    assert not any(torch.equal(a, b) for a, b in zip(before, weights, strict=True))


def test_marian_has_our_size_apart_from_the_last_norms(tmp_path):
    pytest.importorskip("transformers")
    config = make_config(tmp_path)
    ours, marian = (Trainer(way, config, "fp32", "cpu").run.model for way in ("ours", "Marian"))
    sizes = [sum(p.numel() for p in model.parameters()) for model in (ours, marian)]
    last_norms, bias = 4 * config.d_model, ours.projection.linear.bias.numel()
    positions = sum(p.numel() for n, p in marian.named_parameters() if "embed_positions" in n)
    assert sizes[1] - positions == sizes[0] - last_norms - bias


def test_the_most_common_shape_is_found(tmp_path):
    pairs = Trainer("ours", make_config(tmp_path), "fp32", "cpu").pairs
    lens = padded_length(np.maximum(pairs.src_lens, pairs.tgt_lens))
    [short, *_], [long, *_] = np.flatnonzero(lens == lens.min()), np.flatnonzero(lens == lens.max())
    batches = [np.array([long]), np.array([short]), np.array([short])]
    assert most_common_shape(pairs, batches).tolist() == [short]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_low_over_many_updates_of_many_shapes(tmp_path):
    """In bf16 oneDNN keeps kernels for each number of rows: those of an epoch must be few."""
    rng = np.random.default_rng(0)
    src_lens = np.minimum(rng.geometric(0.04, 3000) + 4, 54)
    tgt_lens = (src_lens * rng.uniform(0.9, 1.1, 3000)).astype(int)
    for lang, lens in (("en", src_lens), ("it", tgt_lens)):
        lines = [" ".join(rng.choice(["a", "b", "c"], length)) for length in lens]
        (tmp_path / f"long.{lang}").write_text("\n".join(lines), "utf-8")
    sizes = dict(d_model=64, d_ff=128, N=2, h=2, seq_len=64, batch_tokens=1000)
    config = small_config(str(tmp_path / "long"), **sizes)
    arguments = ("ours", config, "bf16", "cpu")
    with ProcessPoolExecutor(1, get_context("spawn"), Trainer.begin, arguments) as worker:
        begin, epoch, later = (worker.submit(Trainer.turn, n).result()[1] for n in (2, 120, 120))
    # As many shapes as there are lengths leave 450 MB.
    assert epoch - begin < 250 and later - epoch < 20, (begin, epoch, later)


def test_missing_pairs_are_an_error_before_any_process(tmp_path, monkeypatch):
    monkeypatch.setattr(epochs, "ProcessPoolExecutor", None)
    with pytest.raises((ValueError, OSError), match="nowhere"):
        benchmark_epochs(1, CPU, Corpus("nowhere/train", "en", "it"), 2)


def test_it_goes_on_without_marian(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(epochs, "has_marian", lambda: False)
    config = replace(make_config(tmp_path), precision="fp32")
    row = one_model(config, "fp32", CPU, updates=2, repeats=1)
    assert row["times Marian"] == "" and row["times torch.nn.Transformer"]["median"] > 0
