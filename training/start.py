"""The start of a run: a new one, or one restored from its checkpoint."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import torch

from checkpoint import Progress, WeightsFolder
from config import Config, check_same_run, config_from_dict
from corpus.tokenizer import TokenizerPair, tokenizer_from_json
from dataset import BATCHING
from device import get_device, get_precision, keep_freed_memory
from files import write_file
from model import Transformer, build_transformer
from training import processes
from training.batches import form_pool_batches
from training.data import RunData, get_ds, tokenizer_paths, tokenizers_to_build
from training.messages import describe_start
from training.resume import load_checkpoint, read_attempt, write_attempt
from training.run import Run
from training.sharding import shard
from training.tensorboard import is_log_dir, new_log_dir, why_not_continued


def get_model(config: Config, src_vocab_size: int, tgt_vocab_size: int) -> Transformer:
    """Return a new model on the CPU; the config's seed determines its weights."""
    torch.manual_seed(config.seed)
    return build_transformer(src_vocab_size, tgt_vocab_size, **config.model_arguments())


def load_data(config: Config, state: dict | None, new_tokenizers: Sequence[Path] = ()) -> RunData:
    """Return the pairs of a run, encoded in all processes with the main process's tokenizers.

    One process on each machine encodes them; the others read its result from the cache.
    """
    data = get_ds(config, state, new_tokenizers) if processes.is_main() else None
    texts = processes.from_main(lambda: [each.to_json() for each in data.train.tokenizers])

    def load_again() -> RunData:
        name = "the main process's tokenizer"
        tokenizers = TokenizerPair(*(tokenizer_from_json(text, name) for text in texts))
        return get_ds(config, state, tokenizers=tokenizers)

    return processes.first_on_each_machine(lambda: data or load_again())


def check_processes(config: Config) -> None:
    """Raise ValueError if a config does not fit the number of processes."""
    if ":" in config.device and processes.world_size() > 1:
        raise ValueError(
            f"device ({config.device}) is one GPU, but torchrun started {processes.world_size()} "
            "processes: --device cuda gives each process its own"
        )
    if config.shard and processes.world_size() == 1:
        raise ValueError(
            "shard needs several processes, and this run has one: torchrun --standalone "
            "--nproc_per_node=2 train.py ... --shard"
        )


def check_position(run: Run, path: Path, batches: int, batching: int) -> None:
    """Raise ValueError if a checkpoint's position is not inside its pool, which has `batches`.

    The batches of an epoch, which a position counts, are those of one version of `form_batches`.
    """
    progress = run.progress
    if progress.batch and batching != BATCHING:
        before = f"--preload {progress.epoch - 1:02d} goes back to its start"
        remedy = before if progress.epoch else "finish it with the version that wrote it"
        raise ValueError(
            f"{path} is inside an epoch whose batches were formed by rule {batching}, and this "
            f"version has rule {BATCHING}: {remedy}"
        )
    is_inside = progress.pool > 0
    # Beyond the first pool of an epoch, all three differ from their values at its start.
    fits = is_inside == bool(progress.position) and is_inside == (progress.pool_start > 0)
    if not fits or progress.position != run.data.position:
        raise ValueError(
            f"{path} is damaged: its pool ({progress.pool}) and its position in the stream "
            f"({progress.position[:80]!r}) contradict each other"
        )
    done = progress.batch - progress.pool_start
    if not 0 <= done < batches:
        raise ValueError(
            f"{path} is damaged: it is after batch {done} of {batches}; --preload takes another one"
        )


def write_tokenizers(config: Config, data: RunData, new: list[Path], made_by_us: list[str]) -> None:
    """Write the new tokenizers of a run; rename a user's file of the same name."""
    # A shared vocabulary has one path for both.
    for path, tokenizer in zip(tokenizer_paths(config), data.train.tokenizers, strict=False):
        if path in new:
            if path.exists() and path.name not in made_by_us:
                path.rename(path.with_name(f"{path.name}.old"))
            text = tokenizer.to_json().encode()
            write_file(path, lambda file, text=text: file.write(text))


def choose_log_dir(config: Config, log_dir: str, run_id: str) -> str:
    """Return the folder of a run's curves: `log_dir` if they can continue there, or a new one.

    `log_dir` and `run_id` are "" for a new run.
    """
    if is_log_dir(log_dir, config.experiment_name):
        reason = why_not_continued(log_dir, run_id, WeightsFolder.of(config).path)
        if not reason:
            return log_dir
        print(f"{reason}: this run starts new curves")
    return new_log_dir(config.experiment_name)


def build_run(config: Config, data: RunData, device: torch.device, precision: torch.dtype) -> Run:
    """Return a run at its start, with new weights."""
    model = get_model(config, *data.train.tokenizers.sizes)
    if not config.shard:  # a model to be sharded may be too large for the device
        model.to(device)
    if config.compile:
        model.hidden_states = torch.compile(model.hidden_states, dynamic=True)
    return Run(
        config=config,
        model=model,
        optimizer=torch.optim.Adam(
            model.parameters(), lr=config.lr, betas=(0.9, 0.98), eps=1e-9, fused=True
        ),
        scaler=torch.amp.GradScaler(device.type, enabled=precision == torch.float16),
        data=data,
        device=device,
        precision=precision,
        progress=Progress(),
        log_dir="",
    )


def start_run(config: Config) -> Run:
    """Build a run, or restore it from the checkpoint that `preload` names.

    Raises ValueError or OSError for a user's mistake, before anything is written.
    """
    check_processes(config)
    device = get_device(config.device)
    processes.take_own_gpu(device)
    precision = get_precision(config.precision, device)
    if device.type == "cpu":
        keep_freed_memory()
    path, state = processes.from_main(lambda: load_checkpoint(config) or (None, None))
    if state is None:
        attempt = processes.from_main(lambda: read_attempt(config))
        new_tokenizers = tokenizers_to_build(config, made_by_us=attempt["tokenizers"])
        log_dir, run_id = attempt["log_dir"], attempt["run_id"]
        data = load_data(config, None, new_tokenizers)
    else:
        saved = config_from_dict(state["config"])
        try:
            changes = check_same_run(saved, config, in_epoch=state["batch"] > 0)
        except ValueError as error:
            raise ValueError(f"{path} does not fit: {error}") from None
        same_folder = path.parent == WeightsFolder.of(config).path
        same_curves = same_folder and saved.experiment_name == config.experiment_name
        log_dir = state["log_dir"] if same_curves else ""
        run_id = state["run_id"] if same_folder else ""
        data = load_data(config, state)
        print(*changes, sep="\n", end="\n" if changes else "")

    run = build_run(config, data, device, precision)
    if state is not None:
        run.restore(path, state)
    batches = len(form_pool_batches(config, data.train, run.progress.epoch, run.progress.pool))
    if state is not None:
        check_position(run, path, batches, state["batching"])
    run.plan(batches)
    if config.shard:
        shard(run.model, run.optimizer, device)
    run.log_dir = processes.from_main(lambda: choose_log_dir(config, log_dir, run_id))
    run.run_id = processes.from_main(lambda: run_id or uuid.uuid4().hex)
    print(*describe_start(run, path, state), sep="\n")
    if state is None and processes.is_main():
        write_attempt(config, run.log_dir, run.run_id, new_tokenizers)
        write_tokenizers(config, data, new_tokenizers, made_by_us=attempt["tokenizers"])
    return run
