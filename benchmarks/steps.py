"""What a model costs: training steps and decoding, against the machine's limit and other ways."""

import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.measuring import (
    in_a_process_of_its_own,
    in_turn,
    peak_memory,
    ratio,
    seconds,
    table,
)
from benchmarks.peers import (
    CTranslate2,
    MatrixProducts,
    TorchTransformer,
    decode_without_cache,
    padded_as_in_the_original,
    plain_step,
)
from config import Config, get_config
from dataset import Batch, form_batches, pad, padding_mask
from device import keep_freed_memory
from model import Transformer, build_transformer
from phrasebook import sentences as phrasebook
from training.progress import Progress
from training.run import Run
from training.update import train_update
from translation.decode import beam_search, greedy_decode

PAD, SOS, EOS = 1, 2, 3
VOCABULARY = 8000  # entries of the benchmarked models, about as many as Multi30k's words
MEMORY_OF = [("fp32", 2048), ("bf16", 1024), ("bf16", 2048), ("bf16", 4096)]  # with batch_tokens
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def phrasebook_batches(batch_tokens: int, count: int) -> list[Batch]:
    """Return batches of sentences as long as the phrasebook's, from one epoch's.

    Their words are drawn at random, so that the vocabulary can have any size.
    """
    pairs = phrasebook.write_pairs("train")
    lens = np.array([(len(src.split()) + 3, len(tgt.split()) + 2) for src, tgt in pairs])
    rng = np.random.default_rng(0)

    def words(length: int) -> list[int]:
        return rng.integers(4, VOCABULARY, length).tolist()

    batches = []
    for indices in form_batches(*lens.T, batch_tokens, seed=(0, 0))[:count]:
        src = pad([[SOS, *words(length - 2), EOS] for length in lens[indices, 0]], PAD)
        targets = [words(length - 1) for length in lens[indices, 1]]
        tgt_out = pad([[*ids, EOS] for ids in targets], PAD)
        batches.append(
            Batch(
                indices=indices.tolist(),
                src=src,
                src_mask=padding_mask(src, PAD),
                tgt_in=pad([[SOS, *ids] for ids in targets], PAD),
                tgt_out=tgt_out,
                real=(tgt_out != PAD).flatten().nonzero().flatten(),
                tokens=int(lens[indices, 1].sum()),
            )
        )
    return batches


@dataclass
class BenchmarkRun(Run):
    """A run without data: all that an update needs."""

    @property
    def pad_id(self) -> int:
        return PAD


def new_run(config: Config, precision: str, device: torch.device) -> Run:
    torch.manual_seed(0)
    model = build_transformer(VOCABULARY, VOCABULARY, **config.model_arguments()).to(device)
    return BenchmarkRun(
        config=config,
        model=model.train(),
        optimizer=torch.optim.Adam(model.parameters(), lr=config.lr, fused=True),
        scaler=torch.amp.GradScaler(device.type, enabled=False),
        data=None,
        device=device,
        precision=PRECISIONS[precision],
        progress=Progress(),
        log_dir="",
        total_updates=1,
    )


def benchmark_train(repeats: int, device: torch.device) -> dict:
    results, rows = {}, []
    batch = phrasebook_batches(2048, 1)[0].to(device)
    for preset in ("base", "small", "tiny"):
        config = replace(
            get_config(preset),
            shared_vocab=True,
            tie_embeddings="none",
            dropout=0.1,
            inner_dropout=None,  # as in torch.nn.Transformer
        )
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
        f"Training steps of {batch.tokens:,} real target tokens, batches as the phrasebook's, "
        f"vocabulary {VOCABULARY:,}, dropout 0.1",
        ["preset", "precision", *row],
        rows,
    )
    if device.type == "cpu" and sys.platform == "linux":
        results["memory"] = benchmark_memory()
    return results


def benchmark_memory() -> dict:
    """Measure the peak memory of a step of `base`, by its precision and its batch's budget."""
    config = replace(get_config("base"), shared_vocab=True, dropout=0.1)
    results, rows = {}, []
    for precision, budget in tqdm(MEMORY_OF, "  memory", leave=False):
        ours, peer = (
            round(in_a_process_of_its_own(peak_of_a_step, config, precision, budget, way) / 1e6)
            for way in ("ours", "peer")
        )
        row = {"MB": ours, "MB of torch.nn.Transformer": peer}
        results[f"{precision} {budget}"] = row
        rows.append([precision, f"{budget:,}", *row.values()])
    table("Peak memory of a step of base", ["precision", "batch_tokens", *row], rows)
    return results


def peak_of_a_step(config: Config, precision: str, budget: int, way: str) -> int:
    """Return the bytes that two steps need at most, beyond the libraries', in a fresh process."""
    batch = phrasebook_batches(budget, 1)[0]
    device = torch.device("cpu")
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
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


def new_decoder(length: int, device: torch.device, dtype: torch.dtype) -> Transformer:
    """Return a base model that decodes exactly `length` tokens, as it never says [EOS]."""
    torch.manual_seed(0)
    arguments = {**get_config("base").model_arguments(), "tgt_seq_len": length}
    model = build_transformer(VOCABULARY, VOCABULARY, **arguments)
    with torch.no_grad():
        model.projection.linear.bias[EOS] = -1e4
    return model.to(device, dtype).eval()


def random_sources(count: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    src = torch.randint(4, VOCABULARY, (count, length), generator=torch.Generator().manual_seed(0))
    src[:, 0], src[:, -1] = SOS, EOS
    return src.to(device), padding_mask(src, PAD).to(device)


def decode(
    model: Transformer, src: Tensor, src_mask: Tensor, beam_size: int = 1
) -> list[list[int]]:
    if beam_size == 1:
        return greedy_decode(model, src, src_mask, sos_id=SOS, eos_id=EOS)
    found = beam_search(model, src, src_mask, sos_id=SOS, eos_id=EOS, beam_size=beam_size)
    return [hypotheses[0].ids for hypotheses in found]


@torch.inference_mode()
def benchmark_decode(repeats: int, device: torch.device) -> dict:
    return {
        **by_batch(repeats, device),
        "time per token, 100 tokens = 1": by_length(repeats, device),
        "file": in_sorted_batches(repeats, device),
    }


def by_batch(repeats: int, device: torch.device) -> dict:
    """Measure greedy and beam search, each against the other ways there are to do it."""
    results, rows = {}, []
    plain, reduced = (new_decoder(25, device, dtype) for dtype in PRECISIONS.values())
    engines = {}
    if device.type == "cpu":
        words = ["[UNK]", "[PAD]", "[SOS]", "[EOS]", *map(str, range(4, VOCABULARY))]
        try:
            engines = {
                kind: CTranslate2(plain, get_config("base"), words, kind)
                for kind in ("float32", "int8")
            }
        except ValueError as error:
            print(f"\nwithout CTranslate2: {error}")
    for count, beam_size in ((1, 1), (32, 1), (1, 4), (32, 4)):
        sources = random_sources(count, 15, device)
        ways = {
            "ours": lambda s=sources, b=beam_size: decode(plain, *s, b),
            "bf16": lambda s=sources, b=beam_size: decode(reduced, *s, b),
        }
        if beam_size == 1:
            ways["no cache"] = lambda s=sources: decode_without_cache(plain, *s, SOS, 25)
        for kind, engine in engines.items():
            ways[kind] = lambda s=sources, b=beam_size, e=engine: e.decode(s[0], 25, b)
        times = in_turn(ways, repeats)
        ours = ways["ours"]()
        row = {"sentences/s": round(count / statistics.median(times["ours"]), 1)}
        row["times no cache"] = row["time over CTranslate2's"] = row["over its int8"] = ""
        row["bf16 weights, times faster"] = ratio(times["ours"], times["bf16"])
        row["other ways with the same tokens"] = ""
        if beam_size == 1:
            row["times no cache"] = ratio(times["no cache"], times["ours"])
        if engines:
            row["time over CTranslate2's"] = ratio(times["ours"], times["float32"])
            row["over its int8"] = ratio(times["ours"], times["int8"])
        same = [name for name in ("no cache", "float32") if name in ways and ways[name]() == ours]
        row["other ways with the same tokens"] = ", ".join(same)
        strategy = "greedy" if beam_size == 1 else f"beam {beam_size}"
        results[f"{strategy}, batch {count}"] = row
        rows.append([strategy, count, *row.values()])
    title = "Decoding with base, fp32, 15 source and 25 target tokens"
    table(title, ["search", "batch", *row], rows)
    return results


def by_length(repeats: int, device: torch.device) -> dict:
    """Measure what a token costs in outputs of several lengths."""
    models = {length: new_decoder(length, device, torch.float32) for length in (10, 100, 300)}
    source = random_sources(1, 300, device)
    ways = {str(length): lambda m=model: decode(m, *source) for length, model in models.items()}
    times = in_turn(ways, repeats)
    per_token = {length: [t / int(length) for t in each] for length, each in times.items()}
    row = {length: ratio(each, per_token["100"]) for length, each in per_token.items()}
    table("Time per target token by length, batch 1 (100 tokens = 1)", list(row), [[*row.values()]])
    return row


def in_sorted_batches(repeats: int, device: torch.device) -> dict:
    """Measure a file of 1,000 sentences in batches of similar lengths against one by one."""
    model = new_decoder(25, device, torch.float32)
    lens = np.random.default_rng(0).integers(5, 26, 1000)
    sources = [random_sources(1, length, device) for length in lens]
    batches = form_batches(lens, lens, 4096)
    outputs: list[list[int]] = [[] for _ in lens]

    def sorted_batches() -> None:
        for indices in batches:
            src = pad([sources[i][0][0].tolist() for i in indices], PAD).to(device)
            decoded = decode(model, src, padding_mask(src, PAD))
            for i, ids in zip(indices, decoded, strict=True):
                outputs[i] = ids

    one_by_one = range(0, 1000, 40)
    alone: dict[int, list[int]] = {}

    def some_alone() -> None:
        alone.update((i, decode(model, *sources[i])[0]) for i in one_by_one)

    ways = {"1,000 sentences": sorted_batches, "25 one by one": some_alone}
    times = in_turn(ways, max(1, repeats // 2))
    faster = ratio([40 * t for t in times["25 one by one"]], times["1,000 sentences"])
    same = f"{sum(outputs[i] == ids for i, ids in alone.items())} of {len(alone)}"
    row = {"times batch 1": faster, "same tokens": same}
    table("A file of 1,000 sentences in batches", list(row), [[*row.values()]])
    return row
