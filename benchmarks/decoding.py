"""The cost of decoding, against other ways to do it and CTranslate2."""

import statistics

import numpy as np
import torch
from torch import Tensor

from benchmarks import inputs
from benchmarks.inputs import EOS, PAD, PRECISIONS, SOS, random_sources
from benchmarks.measuring import in_turn, ratio, table
from benchmarks.peers import CTranslate2, decode_without_cache
from config import get_config
from dataset import form_batches, pad, padding_mask
from model import Transformer, build_transformer
from translation.decode import beam_search, greedy_decode


@torch.inference_mode()
def benchmark_decode(repeats: int, device: torch.device) -> dict:
    """Measure decoding by batch size and search, by output length, and of a file."""
    return {
        **by_batch(repeats, device),
        "time per token, 100 tokens = 1": by_length(repeats, device),
        "file": in_sorted_batches(repeats, device),
    }


def by_batch(repeats: int, device: torch.device) -> dict:
    """Measure greedy search and beam search against other implementations."""
    results, rows = {}, []
    plain, reduced = (new_decoder(25, device, dtype) for dtype in PRECISIONS.values())
    engines = {}
    if device.type == "cpu":
        words = ["[UNK]", "[PAD]", "[SOS]", "[EOS]", *map(str, range(4, inputs.VOCABULARY))]
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
    """Measure the time per token for outputs of several lengths."""
    models = {length: new_decoder(length, device, torch.float32) for length in (10, 100, 300)}
    source = random_sources(1, 300, device)
    ways = {str(length): lambda m=model: decode(m, *source) for length, model in models.items()}
    times = in_turn(ways, repeats)
    per_token = {length: [t / int(length) for t in each] for length, each in times.items()}
    row = {length: ratio(each, per_token["100"]) for length, each in per_token.items()}
    table("Time per target token by length, batch 1 (100 tokens = 1)", list(row), [[*row.values()]])
    return row


def in_sorted_batches(repeats: int, device: torch.device) -> dict:
    """Measure 1,000 sentences in batches of similar lengths, against one by one."""
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


def new_decoder(length: int, device: torch.device, dtype: torch.dtype) -> Transformer:
    """Return a base model that decodes exactly `length` tokens, because it never chooses [EOS]."""
    torch.manual_seed(0)
    arguments = {**get_config("base").model_arguments(), "tgt_seq_len": length}
    model = build_transformer(inputs.VOCABULARY, inputs.VOCABULARY, **arguments)
    with torch.no_grad():
        model.projection.linear.bias[EOS] = -1e4
    return model.to(device, dtype).eval()


def decode(
    model: Transformer, src: Tensor, src_mask: Tensor, beam_size: int = 1
) -> list[list[int]]:
    """Return the target ids of src (B, S), by greedy search or a beam."""
    if beam_size == 1:
        return greedy_decode(model, src, src_mask, sos_id=SOS, eos_id=EOS)
    found = beam_search(model, src, src_mask, sos_id=SOS, eos_id=EOS, beam_size=beam_size)
    return [hypotheses[0].ids for hypotheses in found]
