"""The cost of a training step: speed and memory, against the machine's limit and other ways."""

import statistics
import sys
from dataclasses import replace
from pathlib import Path

import torch
from tqdm import tqdm

from benchmarks import inputs
from benchmarks.inputs import PAD, PRECISIONS, phrasebook_batches
from benchmarks.measuring import (
    in_new_process,
    in_turn,
    peak_memory,
    ratio,
    seconds,
    table,
)
from benchmarks.peers import (
    MatrixProducts,
    TorchTransformer,
    padded_as_in_the_original,
    plain_step,
)
from checkpoint import Progress
from config import Config, get_config
from device import keep_freed_memory
from model import build_transformer
from training.run import Run
from training.update import train_update

MEMORY_OF = [("fp32", 2048), ("bf16", 1024), ("bf16", 2048), ("bf16", 4096)]  # with batch_tokens


def new_run(
    config: Config,
    precision: str,
    device: torch.device,
    vocabularies: tuple[int, int] | None = None,
) -> Run:
    """Return a run with new weights, in a precision of `PRECISIONS`, without data.

    `vocabularies` are the sizes for source and target (default: `inputs.VOCABULARY`).
    """
    torch.manual_seed(0)
    src_vocab_size, tgt_vocab_size = vocabularies or (inputs.VOCABULARY, inputs.VOCABULARY)
    model = build_transformer(src_vocab_size, tgt_vocab_size, **config.model_arguments())
    model = model.to(device).train()
    return Run(
        config=config,
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=config.lr, fused=True),
        scaler=torch.amp.GradScaler(device.type, enabled=False),
        data=None,
        device=device,
        precision=PRECISIONS[precision],
        progress=Progress(),
        log_dir="",
        total_updates=1,
    )


def with_peers_dropout(config: Config) -> Config:
    """Return a config with what the peers have: one dropout for all, and nothing tied."""
    return replace(config, tie_embeddings="none", dropout=0.1, inner_dropout=None)


def benchmark_steps(repeats: int, device: torch.device) -> dict:
    """Measure training steps against `torch.nn.Transformer` and the step's own matrix products."""
    results, rows = {}, []
    batch = phrasebook_batches(2048, 1)[0].to(device)
    for preset in ("base", "small", "tiny"):
        config = replace(with_peers_dropout(get_config(preset)), shared_vocab=True)
        for precision in PRECISIONS:
            run, peer = (new_run(config, precision, device) for _ in range(2))
            peer.model = TorchTransformer(config, peer.model).to(device).train()
            peer.optimizer = torch.optim.Adam(peer.model.parameters(), lr=config.lr, fused=True)
            with MatrixProducts() as products:
                train_update(run, [batch])
            ways = {
                "ours": lambda run=run: train_update(run, [batch]),
                "torch.nn.Transformer": lambda peer=peer: plain_step(peer, batch, PAD),
                "matrix products": products.again(),
            }
            times = in_turn(ways, repeats)
            row = {
                "tokens/s": round(batch.tokens / statistics.median(times["ours"])),
                "matmul share": ratio(times["matrix products"], times["ours"]),
                "times torch.nn.Transformer": ratio(times["torch.nn.Transformer"], times["ours"]),
            }
            row["times the original's way"] = ""
            if preset == "base":
                original = new_run(replace(config, seq_len=350), "fp32", device)
                padded = padded_as_in_the_original(batch, PAD)
                plain_step(original, padded, PAD)
                taken = seconds(lambda: plain_step(original, padded, PAD))  # noqa: B023
                ours = statistics.median(times["ours"]) / batch.tokens
                row["times the original's way"] = round(taken / padded.tokens / ours)
            results[f"{preset} {precision}"] = row
            rows.append([preset, precision, *row.values()])
    table(
        f"Training steps of {batch.tokens:,} target tokens, sentence lengths of the phrasebook, "
        f"vocabulary {inputs.VOCABULARY:,}, dropout 0.1",
        ["preset", "precision", *row],
        rows,
    )
    if device.type == "cpu" and sys.platform == "linux":
        results["memory"] = benchmark_memory()
    return results


def benchmark_memory() -> dict:
    """Measure the peak memory of a step of `base`, by precision and token budget."""
    config = replace(get_config("base"), shared_vocab=True, dropout=0.1)
    results, rows = {}, []
    for precision, budget in tqdm(MEMORY_OF, "  memory", leave=False):
        ours, peer = (
            round(in_new_process(peak_of_a_step, config, precision, budget, way) / 1e6)
            for way in ("ours", "peer")
        )
        row = {"MB": ours, "MB of torch.nn.Transformer": peer}
        results[f"{precision} {budget}"] = row
        rows.append([precision, f"{budget:,}", *row.values()])
    table("Peak memory of a step of base", ["precision", "batch_tokens", *row], rows)
    return results


def peak_of_a_step(config: Config, precision: str, budget: int, way: str) -> int:
    """Return the peak memory of two steps in bytes, without the libraries', in a new process."""
    batch = phrasebook_batches(budget, 1)[0]
    device = torch.device("cpu")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = peak_memory()
    run = new_run(config, precision, device)
    if way == "ours":
        keep_freed_memory()
    else:
        run.model = TorchTransformer(config, run.model).train()
        run.optimizer = torch.optim.Adam(run.model.parameters(), lr=config.lr, fused=True)
    for _ in range(2):
        train_update(run, [batch]) if way == "ours" else plain_step(run, batch, PAD)
    return peak_memory() - before
