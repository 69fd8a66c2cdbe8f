"""The beginning of a run: a new one, or one brought back from its checkpoint."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import torch

import checkpoint
from config import Config, check_same_run, config_from_dict, get_weights_folder
from corpus.tokenizer import tokenizer_from_json
from curves import is_log_dir, new_log_dir, why_not_in
from device import get_device, get_precision, keep_freed_memory
from model import Transformer, build_transformer
from training import processes
from training.data import RunData, batches_of, get_ds, tokenizer_paths, tokenizers_to_build
from training.progress import Progress
from training.run import Run, load_checkpoint, read_attempt, write_attempt
from training.sharding import local_size, shard


def get_model(config: Config, src_vocab_size: int, tgt_vocab_size: int) -> Transformer:
    """Return a new model, its weights drawn by the config's seed."""
    torch.manual_seed(config.seed)
    return build_transformer(src_vocab_size, tgt_vocab_size, **config.model_arguments())


def load_data(config: Config, state: dict | None, new_tokenizers: Sequence[Path] = ()) -> RunData:
    """Return the pairs of a run, encoded once on each machine by the main process's tokenizers.

    The others find the main one's work in the cache of their machine, or do it again there.
    """
    data = get_ds(config, state, new_tokenizers) if processes.is_main() else None
    texts = processes.from_main(
        lambda: [each.to_json() for each in (data.train.tokenizer_src, data.train.tokenizer_tgt)]
    )

    def load_again() -> RunData:
        src, tgt = (tokenizer_from_json(text, "the main process's tokenizer") for text in texts)
        return get_ds(config, state, tokenizers=(src, tgt))

    return processes.first_on_each_machine(lambda: data or load_again())


def check_processes(config: Config) -> None:
    """Raise ValueError where a config does not go with the number of processes."""
    if ":" in config.device and processes.count() > 1:
        raise ValueError(
            f"device ({config.device}) is one, torchrun started {processes.count()} processes: "
            "--device cuda gives each its own"
        )
    if config.shard and processes.count() == 1:
        raise ValueError(
            "shard shares weights out among processes, and here is one: torchrun --standalone "
            "--nproc_per_node=2 train.py ... --shard"
        )


def check_position(run: Run, path: Path, batches: int) -> None:
    """Raise ValueError where a checkpoint is in no place of its pool, which has `batches`."""
    progress = run.progress
    is_inside = progress.pool > 0
    fits = is_inside == bool(progress.position) == (progress.pool_start > 0)
    if not fits or progress.position != run.data.position:
        raise ValueError(f"{path} is in pool {progress.pool}, which cannot be where it says")
    done = progress.batch - progress.pool_start
    if not 0 <= done < batches:
        raise ValueError(f"{path} is after batch {done} of {batches}")


def write_tokenizers(config: Config, data: RunData, new: list[Path], made_by_us: list[str]) -> None:
    """Write the new ones of a run's tokenizers; a user's file in their place is renamed."""
    tokenizers = (data.train.tokenizer_src, data.train.tokenizer_tgt)
    for path, tokenizer in zip(tokenizer_paths(config), tokenizers, strict=False):
        if path in new:
            if path.exists() and path.name not in made_by_us:
                path.rename(path.with_name(f"{path.name}.old"))
            text = tokenizer.to_json().encode()
            checkpoint.write_file(path, lambda file, text=text: file.write(text))


def choose_log_dir(config: Config, log_dir: str, run_id: str) -> str:
    """Return the folder of a run's curves: its own so far, where they can go on, or a new one.

    `log_dir` and `run_id` are "" where there are none so far.
    """
    if is_log_dir(log_dir, config.experiment_name):
        reason = why_not_in(log_dir, run_id, get_weights_folder(config))
        if not reason:
            return log_dir
        print(f"{reason}: this run starts curves of its own")
    return new_log_dir(config.experiment_name)


def build_run(config: Config, data: RunData, device: torch.device, precision: torch.dtype) -> Run:
    """Return a run at its beginning, with new weights."""
    tokenizers = (data.train.tokenizer_src, data.train.tokenizer_tgt)
    model = get_model(config, *(tokenizer.size for tokenizer in tokenizers))
    if not config.shard:  # else it may be too large for the device
        model.to(device)
    if config.compile:
        model.vectors = torch.compile(model.vectors, dynamic=True)
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


def tell_start(run: Run, path: Path | None, state: dict | None) -> None:
    """Print what a run is, and where it goes on."""
    parameters = sum(p.numel() for p in run.model.parameters())
    share = f" ({local_size(run.model):,} in each process)" if run.config.shard else ""
    print(
        f"{parameters:,} parameters{share}, {run.device}, "
        f"{str(run.precision).removeprefix('torch.')}; "
        f"weights in {get_weights_folder(run.config)}, curves in {run.log_dir}"
    )
    if state is None:
        return
    print(f"going on from {path}: epoch {state['epoch']}, update {state['global_step']}")
    if state["processes"] != processes.count():
        of_update = run.config.accumulate * processes.count()
        print(
            f"processes: the checkpoint says {state['processes']}, now {processes.count()}: an "
            f"update takes {of_update} batches; no pair is left out or taken twice"
        )


def start_run(config: Config) -> Run:
    """Build a run, or bring it back from the checkpoint that `preload` names.

    What a user can get wrong is found here, before anything is written.
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
        same_folder = path.parent == get_weights_folder(config)
        same_curves = same_folder and saved.experiment_name == config.experiment_name
        log_dir = state["log_dir"] if same_curves else ""
        run_id = state["run_id"] if same_folder else ""
        data = load_data(config, state)
        print(*changes, sep="\n", end="\n" if changes else "")

    run = build_run(config, data, device, precision)
    if state is not None:
        run.restore(path, state)
    batches = len(batches_of(config, data.train, run.progress.epoch, run.progress.pool))
    if state is not None:
        check_position(run, path, batches)
    run.plan(batches)
    if config.shard:
        shard(run.model, run.optimizer, device)
    run.log_dir = processes.from_main(lambda: choose_log_dir(config, log_dir, run_id))
    run.run_id = processes.from_main(lambda: run_id or uuid.uuid4().hex)
    tell_start(run, path, state)
    if state is None and processes.is_main():
        write_attempt(run, new_tokenizers)
        write_tokenizers(config, data, new_tokenizers, made_by_us=attempt["tokenizers"])
    return run
