"""What it costs: speed and memory against the machine's own limit and against other ways.

    python benchmark.py [all|train|decode|data|start] [--json FILE]

Every figure is a ratio of times taken in turn in one run: the median of the repeats and their
range. Absolute times drift on shared machines; they are here to tell how long things take.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from tqdm import tqdm

import phrasebook
from config import Config, get_config
from dataset import Batch, form_batches, pad, padding_mask
from decode import greedy_decode
from device import get_device, keep_freed_memory
from model import Transformer, build_transformer
from run import Progress, Run
from tokenizer import Tokenizer, build_tokenizer
from update import train_update
from validation import target_loss

ROOT = Path(__file__).parent
PAD, SOS, EOS = 1, 2, 3
VOCABULARY = 8000  # entries of the benchmarked models, about as many as Multi30k's words
CORPUS_SIZES = (10_000, 100_000)  # pairs to prepare
EPOCH_SIZES = (10_000, 100_000, 1_000_000)  # pairs to form batches of
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Options:
    """What to measure; the trailing comments are the help text."""

    part: tyro.conf.Positional[Literal["all", "train", "decode", "data", "start"]] = "all"
    json: str | None = None  # file for all figures
    device: str = "auto"  # auto, cpu, cuda, mps
    repeats: int = 3  # of each measurement

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats ({self.repeats}) must be at least 1")
        if self.json and not Path(self.json).absolute().parent.is_dir():
            raise ValueError(f"the folder of --json {self.json} is not there")


# --- Measuring ---


def seconds(work: Callable[[], object]) -> float:
    """Return how long work takes, to the end of what it started on a device."""
    started = time.perf_counter()
    work()
    for kind in (torch.cuda, torch.mps):
        if kind.is_available():
            kind.synchronize()
    return time.perf_counter() - started


def in_turn(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each way, measured one after the other in every repeat."""
    for work in ways.values():
        work()  # makes what is made on first use
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in tqdm(range(repeats), f"  {', '.join(ways)}", leave=False):
        for name, work in ways.items():
            times[name].append(seconds(work))
    return times


def ratio(above: list[float], below: list[float]) -> dict[str, float]:
    """Return median and range of one way's times over another's, repeat by repeat."""
    values = [a / b for a, b in zip(above, below, strict=True)]
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def table(title: str, header: list[str], rows: list[list[object]]) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        cells = (
            f"{cell['median']:.2f} ({cell['low']:.2f}-{cell['high']:.2f})"
            if isinstance(cell, dict)
            else str(cell)
            for cell in row
        )
        print(f"| {' | '.join(cells)} |")


def in_a_process_of_its_own(work: Callable, *arguments: object) -> object:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


# --- Training ---


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
    )


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` between our embeddings and projection."""

    def __init__(self, config: Config, ours: Transformer) -> None:
        super().__init__()
        self.ours = ours  # for its embeddings and projection; its layers are not used
        sizes = (config.d_model, config.h, config.d_ff, config.dropout)
        options = dict(batch_first=True, norm_first=config.norm == "pre")
        # Built by its parts, as the whole warns that nested tensors do not go with pre-norm.
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **options),
            config.N,
            nn.LayerNorm(config.d_model),
            enable_nested_tensor=False,
        )
        self.layers = nn.Transformer(
            config.d_model, config.h, num_decoder_layers=config.N, dim_feedforward=config.d_ff,
            dropout=config.dropout, custom_encoder=encoder, **options,
        )  # fmt: skip
        ours.encoder, ours.decoder = nn.Identity(), nn.Identity()

    def forward(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        padding = ~src_mask[:, 0, 0]
        size = tgt.size(1)
        x = self.layers(
            self.ours.src_pos(self.ours.src_embed(src)),
            self.ours.tgt_pos(self.ours.tgt_embed(tgt)),
            tgt_mask=torch.ones(size, size, dtype=torch.bool, device=tgt.device).triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.ours.project(x)


def plain_step(run: Run, batch: Batch) -> None:
    """Do an update as tutorials do: all logits at once, one mean loss, clip, step."""
    precision = run.precision
    with torch.autocast(run.device.type, precision, enabled=precision != torch.float32):
        logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
        loss = target_loss(logits, batch.tgt_out, PAD, 0.1) / batch.tokens
    loss.backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)


class MatrixProducts(TorchDispatchMode):
    """Notes every matrix product, forward and backward, and can do them again alone."""

    OPERATORS = ("mm", "addmm", "bmm", "baddbmm")

    def __init__(self) -> None:
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function.overloadpacket.__name__ in self.OPERATORS:
            kinds = [(a.shape, a.stride(), a.dtype, a.device) for a in arguments]
            self.calls.append((function, kinds))
        return function(*arguments, **(options or {}))

    def again(self) -> Callable[[], None]:
        made = {}
        for _, kinds in self.calls:
            for shape, stride, dtype, device in kinds:
                tensor = torch.empty_strided(shape, stride, dtype=dtype, device=device)
                made[shape, stride, dtype] = tensor.normal_()
        calls = [(f, [made[kind[:3]] for kind in kinds]) for f, kinds in self.calls]

        def work() -> None:
            for function, arguments in calls:
                function(*arguments)

        return work


def seconds_per_token_in_the_original_way(config: Config, device: torch.device) -> float:
    """Measure a step as in the original tutorial: 8 pairs, all padded to 350, fp32."""
    run = new_run(replace(config, seq_len=350), "fp32", device)
    short = phrasebook_batches(config.batch_tokens, 1)[0]
    first = {name: getattr(short, name)[:8] for name in ("src", "tgt_in", "tgt_out")}
    padded = {
        name: nn.functional.pad(ids, (0, 350 - ids.size(1)), value=PAD)
        for name, ids in first.items()
    }
    real = (padded["tgt_out"] != PAD).flatten().nonzero().flatten()
    mask = padding_mask(padded["src"], PAD)
    batch = Batch(indices=[], src_mask=mask, real=real, tokens=len(real), **padded).to(device)
    plain_step(run, batch)
    return seconds(lambda: plain_step(run, batch)) / batch.tokens


def benchmark_train(options: Options, device: torch.device) -> dict:
    results, rows = {}, []
    batch = phrasebook_batches(2048, 1)[0].to(device)
    for preset in ("base", "small", "tiny"):
        config = replace(get_config(preset), shared_vocab=True, tie_embeddings="none", dropout=0.1)
        for precision in PRECISIONS:
            run, peer = (new_run(config, precision, device) for _ in range(2))
            peer.model = TorchTransformer(config, peer.model).to(device).train()
            peer.optimizer = torch.optim.Adam(peer.model.parameters(), lr=config.lr, fused=True)
            with MatrixProducts() as products:
                train_update(run, [batch])
            ways = {
                "ours": lambda run=run: train_update(run, [batch]),
                "torch.nn.Transformer": lambda peer=peer: plain_step(peer, batch),
                "matrix products": products.again(),
            }
            times = in_turn(ways, options.repeats)
            row = {
                "tokens/s": round(batch.tokens / statistics.median(times["ours"])),
                "matmul share": ratio(times["matrix products"], times["ours"]),
                "times torch.nn.Transformer": ratio(times["torch.nn.Transformer"], times["ours"]),
            }
            row["times the original's way"] = ""
            if preset == "base":
                per_token = seconds_per_token_in_the_original_way(config, device)
                ours = statistics.median(times["ours"]) / batch.tokens
                row["times the original's way"] = round(per_token / ours)
            row["MB"] = row["MB of torch.nn.Transformer"] = ""
            if preset == "base" and device.type == "cpu" and sys.platform == "linux":
                for name, way in (("MB", "ours"), ("MB of torch.nn.Transformer", "plain")):
                    peak = in_a_process_of_its_own(peak_of_a_step, config, precision, way)
                    row[name] = round(peak / 1e6)
            results[f"{preset} {precision}"] = row
            rows.append([preset, precision, *row.values()])
    table(
        f"Training steps of {batch.tokens:,} real target tokens, batches as the phrasebook's, "
        f"vocabulary {VOCABULARY:,}, dropout 0.1",
        ["preset", "precision", *row],
        rows,
    )
    return results


def peak_of_a_step(config: Config, precision: str, way: str) -> int:
    """Return the bytes that two steps need at most, beyond the libraries', in a fresh process."""
    batch = phrasebook_batches(2048, 1)[0]
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
        train_update(run, [batch]) if way == "ours" else plain_step(run, batch)
    return peak_memory() - before


def peak_memory() -> int:
    """Return the most bytes that this process had in memory (on Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


# --- Decoding ---


def decode_without_cache(model: Transformer, src: Tensor, src_mask: Tensor, length: int) -> Tensor:
    """Decode greedily as tutorials do: all target tokens again at each step."""
    encoder_output = model.encode(src, src_mask)
    tgt = src.new_full((len(src), 1), SOS)
    for _ in range(length):
        x = model.decode(encoder_output, src_mask, tgt)
        tgt = torch.cat([tgt, model.project(x[:, -1:]).argmax(-1)], dim=1)
    return tgt[:, 1:]


def new_decoder(length: int, device: torch.device, dtype: torch.dtype) -> Transformer:
    """Return a base model that decodes exactly `length` tokens, as none of its is [EOS]."""
    torch.manual_seed(0)
    arguments = {**get_config("base").model_arguments(), "tgt_seq_len": length}
    return build_transformer(VOCABULARY, VOCABULARY, **arguments).to(device, dtype).eval()


def random_sources(count: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    src = torch.randint(4, VOCABULARY, (count, length), generator=torch.Generator().manual_seed(0))
    return src.to(device), padding_mask(src, PAD).to(device)


def greedy(model: Transformer, src: Tensor, src_mask: Tensor) -> list[list[int]]:
    return greedy_decode(model, src, src_mask, sos_id=SOS, eos_id=-1)


@torch.inference_mode()
def benchmark_decode(options: Options, device: torch.device) -> dict:
    results, rows = {}, []
    plain, reduced = (new_decoder(25, device, dtype) for dtype in PRECISIONS.values())
    for count in (1, 32):
        sources = random_sources(count, 15, device)
        ways = {
            "cache": lambda s=sources: greedy(plain, *s),
            "no cache": lambda s=sources: decode_without_cache(plain, *s, 25),
            "bf16 weights": lambda s=sources: greedy(reduced, *s),
        }
        times = in_turn(ways, options.repeats)
        same = greedy(plain, *sources) == decode_without_cache(plain, *sources, 25).tolist()
        row = {
            "sentences/s": round(count / statistics.median(times["cache"]), 1),
            "times no cache": ratio(times["no cache"], times["cache"]),
            "bf16 weights": ratio(times["cache"], times["bf16 weights"]),
            "same tokens": same,
        }
        results[f"batch {count}"] = row
        rows.append([count, *row.values()])
    title = "Greedy decoding, base, fp32, 15 source and 25 target tokens"
    header = ["batch", "sentences/s", "times no cache", "bf16 weights, times faster", "same tokens"]
    table(title, header, rows)

    models = {length: new_decoder(length, device, torch.float32) for length in (10, 100, 300)}
    source = random_sources(1, 300, device)
    ways = {str(length): lambda m=model: greedy(m, *source) for length, model in models.items()}
    times = in_turn(ways, options.repeats)
    per_token = {length: [t / int(length) for t in each] for length, each in times.items()}
    row = {length: ratio(each, per_token["100"]) for length, each in per_token.items()}
    results["time per token, 100 tokens = 1"] = row
    table("Time per target token by length, batch 1 (100 tokens = 1)", list(row), [[*row.values()]])

    lens = np.random.default_rng(0).integers(5, 26, 1000)
    sources = [random_sources(1, length, device) for length in lens]
    by_length = form_batches(lens, lens, 4096)
    outputs: list[list[int]] = [[] for _ in lens]

    def sorted_batches() -> None:
        for indices in by_length:
            src = pad([sources[i][0][0].tolist() for i in indices], PAD).to(device)
            decoded = greedy(plain, src, padding_mask(src, PAD))
            for i, ids in zip(indices, decoded, strict=True):
                outputs[i] = ids

    one_by_one = range(0, 1000, 40)
    alone: list[list[int]] = []
    times = in_turn(
        {
            "1,000 sentences": sorted_batches,
            "25 one by one": lambda: alone.extend(
                greedy(plain, *sources[i])[0] for i in one_by_one
            ),
        },
        max(1, options.repeats // 2),
    )
    faster = ratio([40 * t for t in times["25 one by one"]], times["1,000 sentences"])
    same = sum(outputs[i] == ids for i, ids in zip(one_by_one, alone[:25], strict=True))
    results["file"] = {"times batch 1": faster, "same": f"{same} of 25"}
    table(
        "A file of 1,000 sentences in batches", ["times batch 1", "same"], [[faster, f"{same}/25"]]
    )
    return results


# --- Data ---


def benchmark_data(options: Options, device: torch.device) -> dict:
    results, rows = {}, []
    texts = list(phrasebook.write_pairs("train"))
    with tempfile.TemporaryDirectory() as folder:
        for count in CORPUS_SIZES:
            results[f"{count} pairs"] = prepare(texts, count, Path(folder))
            rows.append([f"{count:,}", *results[f"{count} pairs"].values()])
    header = ["pairs", "pairs/s", "tokenising, share of the library's speed", "bytes a pair"]
    table("From two text files to ids on the disk", header, rows)

    rows = []
    lens = np.array([(len(src.split()) + 3, len(tgt.split()) + 2) for src, tgt in texts])
    for count in EPOCH_SIZES:
        many = np.resize(lens, (count, 2))
        times = [seconds(lambda m=many: form_batches(*m.T, 2048, seed=(0, 0))) for _ in range(3)]
        batches = form_batches(*many.T, 2048, seed=(0, 0))
        room = sum(2 * len(batch) * many[batch].max(axis=0).mean() for batch in batches)
        padding = 1 - many.sum() / room
        rows.append([f"{count:,}", f"{statistics.median(times):.2f}", f"{100 * padding:.1f} %"])
        results[f"batches of {count}"] = {"seconds": statistics.median(times), "padding": padding}
    table("Forming an epoch's batches", ["pairs", "seconds", "padding"], rows)
    return results


def prepare(texts: list[tuple[str, str]], count: int, folder: Path) -> dict:
    """Load, clean and tokenise `count` pairs from files; compare with the tokenizers alone."""
    from corpus import load_pairs
    from dataset import BilingualDataset

    prefix = folder / f"pairs_{count}"
    for lang, side in (("en", 0), ("it", 1)):
        lines = (f"{texts[i % len(texts)][side]} {i}\n" for i in range(count))
        prefix.with_suffix(f".{lang}").write_text("".join(lines), "utf-8")
    sides = [[pair[side] for pair in texts] for side in (0, 1)]
    tokenizers = [build_tokenizer(side, "bpe", 8000, 2) for side in sides]

    started = time.perf_counter()
    pairs = load_pairs(str(prefix), "en", "it")
    loaded = time.perf_counter()
    data = BilingualDataset(pairs, *tokenizers, seq_len=100)
    done = time.perf_counter()
    alone = seconds(lambda: encode_alone(tokenizers, prefix))
    size = sum(Path(file["filename"]).stat().st_size for file in data.rows.cache_files)
    return {
        "pairs/s": round(count / (done - started)),
        "share": round(alone / (done - loaded), 2),
        "bytes": round(size / count),
    }


def encode_alone(tokenizers: list[Tokenizer], prefix: Path) -> None:
    for lang, tokenizer in zip(("en", "it"), tokenizers, strict=True):
        lines = prefix.with_suffix(f".{lang}").read_text("utf-8").splitlines()
        for start in range(0, len(lines), 1000):
            encoded = tokenizer.backend.encode_batch_fast(lines[start : start + 1000])
            [each.ids for each in encoded]


# --- Starting ---


def benchmark_start(options: Options, device: torch.device) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HF_HOME": str(Path(folder, "cache"))}
        train = [str(ROOT / "train.py"), "demo", "--save_every", "1", "--num_epochs", "1"]
        translate = [str(ROOT / "translate.py"), "the house is big", "--device", "cpu"]

        def run(*command: str) -> float:
            process = [sys.executable, *command]
            return seconds(
                lambda: subprocess.run(
                    process, cwd=folder, env=environment, check=True, capture_output=True
                )
            )

        def first_update(name: str) -> float:
            command = [sys.executable, *train, "--model_folder", f"./{name}"]
            started = time.perf_counter()
            with subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                while not any(Path(folder, name).glob("*.pt")):
                    assert process.poll() is None, "training ended before its first update"
                    time.sleep(0.02)
                taken = time.perf_counter() - started
                process.kill()
            return taken

        cold = first_update("cold")
        times: dict[str, list[float]] = {"import": [], "warm": [], "translation": []}
        for number in tqdm(range(options.repeats), "  starting", leave=False):
            times["import"].append(run("-c", "import torch"))
            times["warm"].append(first_update(f"warm_{number}"))
            times["translation"].append(run(*translate))
    rows = {
        "import torch": [statistics.median(times["import"]), 1],
        "first update, cold cache": [cold, round(cold / statistics.median(times["import"]), 1)],
        "first update, warm cache": [
            statistics.median(times["warm"]),
            ratio(times["warm"], times["import"]),
        ],
        "a translation": [
            statistics.median(times["translation"]),
            ratio(times["translation"], times["import"]),
        ],
    }
    table(
        "From the command to its result",
        ["what", "seconds", "times import torch"],
        [[name, f"{taken:.1f}", share] for name, (taken, share) in rows.items()],
    )
    return {
        name: {"seconds": taken, "times import": share} for name, (taken, share) in rows.items()
    }


PARTS = {
    "train": benchmark_train,
    "decode": benchmark_decode,
    "data": benchmark_data,
    "start": benchmark_start,
}


def machine(device: torch.device) -> dict[str, object]:
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if "model name" in line), name)
    if device.type == "cuda":
        name = f"{torch.cuda.get_device_name()}; {name}"
    return {
        "machine": name,
        "threads": torch.get_num_threads(),
        "device": str(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def main() -> int:
    options = tyro.cli(Options, prog="benchmark.py", description=__doc__, use_underscores=True)
    try:
        device = get_device(options.device)
        if device.type == "cpu":
            keep_freed_memory()
        results: dict[str, object] = machine(device)
        print("; ".join(f"{name} {value}" for name, value in results.items()))
        for name, part in PARTS.items():
            if options.part in ("all", name):
                started = time.perf_counter()
                results[name] = part(options, device)
                print(f"\n({name}: {time.perf_counter() - started:.0f} s)")
        if options.json:
            Path(options.json).write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError) as error:
        print(f"benchmark.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
