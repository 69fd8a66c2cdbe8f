"""The benchmark measures what it says."""

import json

import pytest
import torch
from conftest import run_script

import benchmark
from benchmarks import decoding, inputs, pipeline, training_step
from config import Config

TINY = dict(d_model=16, N=1, h=2, d_ff=32, seq_len=350, shared_vocab=True)


@pytest.mark.parametrize("part", ["train", "decode", "data"])
def test_each_part_prints_a_table_and_writes_its_figures(part, monkeypatch, tmp_path, capsys):
    for room in (training_step, decoding):
        monkeypatch.setattr(room, "get_config", lambda _: Config(**TINY, inner_dropout=0.0))
    monkeypatch.setattr(inputs, "VOCABULARY", 50)
    monkeypatch.setattr(pipeline, "CORPUS_SIZES", (200,))
    monkeypatch.setattr(training_step, "in_new_process", lambda *_: 10**6)
    monkeypatch.setattr(benchmark, "benchmark_epochs", lambda *_: {})  # has a test of its own
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


def test_missing_device_is_one_line():
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    process = run_script("benchmark.py", "train", "--device", "cuda", check=False)
    assert process.returncode == 1 and len(process.stderr.splitlines()) == 1
