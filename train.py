"""Train a Transformer for translation: python train.py [base|demo|small|tiny] [--flag value ...]"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the imports below take their seconds

import itertools
import math
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import tyro
from torch.utils.data import DataLoader
from tqdm import tqdm

import checkpoint
import processes
from attention import cross_attention, draw, tokens_of
from config import (
    PRESETS,
    Config,
    check_same_run,
    config_from_dict,
    get_config,
    get_weights_file_path,
    get_weights_folder,
    latest_weights_file_path,
)
from curves import Curves, is_log_dir, new_log_dir
from dataset import BilingualDataset, form_batches
from device import get_device, get_precision, is_out_of_memory, keep_freed_memory
from interrupt import Interrupt, Interrupted
from model import Transformer, build_transformer
from run import (
    Progress,
    Run,
    delete_leftovers,
    load_checkpoint,
    only_run,
    read_attempt,
    set_newer_aside,
    write_attempt,
)
from run_data import RunData, get_ds, tokenizer_paths, tokenizers_to_build
from sharding import local_size, shard, whole_weights
from tokenizer import tokenizer_from_json
from update import learning_rate, settle_updates, train_update
from validation import evaluating, run_validation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = 5  # sentences whose translations are shown at each validation


# --- What the run is made of ---


def get_model(config: Config, src_vocab_size: int, tgt_vocab_size: int) -> Transformer:
    """Return a new model, its weights drawn by the config's seed."""
    torch.manual_seed(config.seed)
    return build_transformer(src_vocab_size, tgt_vocab_size, **config.model_arguments())


def get_whole_model(run: Run) -> Transformer:
    """Return a run's model, or of a sharded one a copy in one piece, to validate with."""
    if not run.config.shard:
        return run.model
    weights = whole_weights(run.model)
    tokenizers = (run.data.train.tokenizer_src, run.data.train.tokenizer_tgt)
    model = get_model(run.config, *(tokenizer.size for tokenizer in tokenizers)).to(run.device)
    model.load_state_dict(weights)
    return model


# --- The run ---


def log_window(run: Run, tokens_per_second: float) -> str:
    """Add a point to the training curves and start the next window; return the point in words."""
    progress, window = run.progress, run.progress.window
    step = progress.global_step
    if not window["updates"]:
        return f"no update since {progress.train_row.get('step', 0)} had a finite gradient"
    row = {
        "step": step,
        "train/loss": window["loss"] / window["tokens"],
        "train/lr": learning_rate(step, run.config, run.total_updates),
        "train/grad_norm": window["norm"] / window["updates"],
        "train/tokens_per_second": tokens_per_second,
    }
    progress.train_row, progress.window = row, Progress().window
    run.curves.add_row(row)
    return (
        f"loss {row['train/loss']:.3f}, lr {row['train/lr']:.1e}, {tokens_per_second:,.0f} tokens/s"
    )


def validate(run: Run, interrupt: Interrupt) -> None:
    """Score the model, log it, keep the best, and save the scores with the checkpoint."""
    progress, config = run.progress, run.config
    epoch = progress.epoch - (progress.batch == 0)
    name = f"validation {epoch:02d}"
    model = get_whole_model(run)
    try:
        loss, scores, predicted = run_validation(
            model, run.data.valid, config, run.device, name, interrupt.check
        )
    except Exception as error:  # whatever it is, the training itself is well and saved
        tqdm.write(
            f"{name} failed at update {progress.global_step}: {type(error).__name__}: {error}; "
            "training goes on without its scores"
        )
        return
    row = {"step": progress.global_step, "epoch": epoch, "val/loss": loss}
    row |= {f"val/{name}": getattr(scores, name) for name in ("bleu", "chrf", "cer", "wer")}
    progress.history.append(row)

    run.curves.add_row(row)
    lines = [f"epoch {epoch:02d}, update {row['step']:,}: val/loss {loss:.3f}, {scores}"]
    if len(progress.history) == 1:
        lines.append(scores.signature)
    samples = sample_translations(run.data.valid, predicted)
    run.curves.add_table("val/samples", ["source", "target", "predicted"], samples, row["step"])
    picture = partial(sample_attention, model, run, predicted)
    run.curves.add_figure("val/attention", picture, row["step"])
    for sample in samples[:2]:
        names = ("SOURCE", "TARGET", "PREDICTED")
        texts = (text if len(text) < 200 else f"{text[:200]}…" for text in sample)
        lines += [f"{name:>10}: {text}" for name, text in zip(names, texts, strict=True)]
    if len(predicted) > 1 and len(set(predicted)) == 1:
        lines.append(
            "every prediction is the same sentence: early in training that passes; later it means "
            "that the learning rate (--lr, --warmup) does not fit"
        )
    tqdm.write("\n".join(lines))
    if progress.best(config.monitor) == len(progress.history) - 1:
        run.save(get_weights_file_path(config, "best"))
    run.save(run.path())


def sample_indices(dataset: BilingualDataset) -> list[int]:
    return np.unique(np.linspace(0, len(dataset) - 1, SAMPLES, dtype=int)).tolist()


def sample_translations(dataset: BilingualDataset, predicted: list[str]) -> list[list[str]]:
    """Return source, target and prediction of a few items, always the same ones."""
    chosen = sample_indices(dataset)
    columns = (dataset.texts("src_text"), dataset.texts("tgt_text"), predicted)
    return [[column[i] for column in columns] for i in chosen]


def sample_attention(model: Transformer, run: Run, predicted: list[str]) -> "Figure":
    """Return a picture of the last layer's cross-attention for the longest sample's prediction."""
    data = run.data.valid
    longest = max(sample_indices(data), key=lambda i: data.src_lens[i])
    item = data[longest]
    batch = data.collate([item]).to(run.device)
    ids = data.tokenizer_tgt.encode(predicted[longest])
    tgt = batch.tgt_in.new_tensor([[data.tokenizer_tgt.sos_id, *ids]])[:, : run.config.seq_len]
    with evaluating(model):
        weights = cross_attention(model, batch.src, batch.src_mask, tgt)[-1, 0]
    tgt_tokens = tokens_of(data.tokenizer_tgt, [*ids, data.tokenizer_tgt.eos_id])[: tgt.size(1)]
    return draw(
        weights.mean(dim=0, keepdim=True), tokens_of(data.tokenizer_src, item["src"]), tgt_tokens
    )


def batches_of(
    config: Config, pairs: BilingualDataset, epoch: int, pool: int = 0
) -> list[np.ndarray]:
    """Return the pairs of each batch of an epoch: a function of (seed, epoch) and its pool."""
    lens = (pairs.src_lens, pairs.tgt_lens)
    return form_batches(*lens, config.batch_tokens, config.batch_size, (config.seed, epoch, pool))


def enter_pool(run: Run) -> None:
    """Have the pairs that the run has come to: of a stream, the main process reads them for all.

    Where they cannot be read, what was trained is saved first.
    """
    data, position = run.data, run.progress.position
    if position == data.position:
        return

    def read() -> tuple[tuple[BilingualDataset, str] | None, Exception | None]:
        try:
            return data.stream.read(position), None
        except (ValueError, OSError) as error:
            return None, error

    pool, error = processes.from_main(read)
    if error is not None:
        settle_updates(run)
        run.save(run.path())
        print(f"saved {run.path()}")
        raise error
    train, next_position = pool
    run.data = replace(data, train=train, position=position, next_position=next_position)


def train_pool(run: Run, interrupt: Interrupt) -> None:
    """Train to the end of the pool, or until patience is lost; save and validate on the way.

    The pool is all of the epoch, but of a stream. The batches are dealt to the processes one by
    one, each update taking `accumulate` for each.
    """
    config, progress = run.config, run.progress
    enter_pool(run)
    epoch, pool = progress.epoch, progress.pool
    batches = batches_of(config, run.data.train, epoch, pool)
    done, end = progress.batch - progress.pool_start, progress.pool_start + len(batches)
    loader = DataLoader(
        run.data.train,
        batch_sampler=batches[done + processes.rank() :: processes.count()],
        collate_fn=run.data.train.collate,
        pin_memory=run.device.type == "cuda",
    )
    remaining = iter(loader)
    of_update = config.accumulate * processes.count()
    bar = tqdm(
        desc=f"epoch {epoch:02d}" + (f", pool {pool}" if config.streaming else ""),
        unit="update",
        initial=done // of_update,
        total=math.ceil(len(batches) / of_update),
    )
    started, tokens = time.perf_counter(), 0  # of the training since the last point
    run.model.train()
    with bar:
        while (progress.epoch, progress.pool) == (epoch, pool):
            group = [
                batch.to(run.device) for batch in itertools.islice(remaining, config.accumulate)
            ]
            tokens += train_update(run, group)
            progress.batch = min(progress.batch + of_update, end)
            if progress.batch == end:
                progress.end_pool(run.data.next_position)
            bar.update()
            step = progress.global_step
            due = progress.validation_is_due(config)
            # Asked once, and of all: one may come between two lines, and to one process first.
            stopping = processes.largest(interrupt.signum or 0)
            saving = due or stopping or (config.save_every and step % config.save_every == 0)
            logging = step % config.log_every == 0 or progress.batch == 0
            if saving or logging or len(run.unread) >= config.max_bad_updates:
                settle_updates(run)
            if logging:
                bar.set_postfix_str(log_window(run, tokens / (time.perf_counter() - started)))
                started, tokens = time.perf_counter(), 0
            if saving:
                run.save(run.path())
            if stopping:
                tqdm.write(f"saved {run.path()}")
                raise Interrupted(stopping)
            if due:
                paused = time.perf_counter()
                validate(run, interrupt)
                started += time.perf_counter() - paused
                if progress.is_finished(config):
                    break


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


def start_run(config: Config) -> Run:
    """Build a run, or bring it back from the checkpoint that `preload` names.

    What a user can get wrong is found here, before anything is written.
    """
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
    device = get_device(config.device)
    precision = get_precision(config.precision, device)
    if device.type == "cpu":
        keep_freed_memory()
    path, state = processes.from_main(lambda: load_checkpoint(config) or (None, None))
    if state is None:
        attempt = processes.from_main(lambda: read_attempt(config))
        new_tokenizers = tokenizers_to_build(config, made_by_us=attempt["tokenizers"])
        log_dir = attempt["log_dir"]
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
        data = load_data(config, state)
        print(*changes, sep="\n", end="\n" if changes else "")

    tokenizers = (data.train.tokenizer_src, data.train.tokenizer_tgt)
    model = get_model(config, *(tokenizer.size for tokenizer in tokenizers))
    if not config.shard:  # else it may be too large for the device
        model.to(device)
    of_update = config.accumulate * processes.count()
    first_epoch = math.ceil(len(batches_of(config, data.train, epoch=0)) / of_update)
    if config.streaming:
        first_epoch = math.inf
    run = Run(
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
        log_dir=log_dir,
        total_updates=first_epoch * config.num_epochs,
    )
    if config.compile:
        model.vectors = torch.compile(model.vectors, dynamic=True)
    if state is not None:
        run.restore(path, state)
        progress = run.progress
        batches = len(batches_of(config, data.train, progress.epoch, progress.pool))
        done = progress.batch - progress.pool_start
        if not 0 <= done < batches:
            raise ValueError(f"{path} is after batch {done} of {batches}")
    if config.shard:
        shard(model, run.optimizer, device)
    if not is_log_dir(log_dir, config.experiment_name):
        run.log_dir = processes.from_main(lambda: new_log_dir(config.experiment_name))
    parameters = sum(p.numel() for p in model.parameters())
    share = f" ({local_size(model):,} in each process)" if config.shard else ""
    print(
        f"{parameters:,} parameters{share}, {device}, {str(precision).removeprefix('torch.')}; "
        f"weights in {get_weights_folder(config)}, curves in {run.log_dir}"
    )
    if state is not None:
        print(f"going on from {path}: epoch {state['epoch']}, update {state['global_step']}")
        if state["processes"] != processes.count():
            print(
                f"processes: the checkpoint says {state['processes']}, now {processes.count()}: an "
                f"update takes {of_update} batches; no pair is left out or taken twice"
            )
    elif processes.is_main():
        write_attempt(config, run.log_dir, new_tokenizers)
        for path, tokenizer in zip(tokenizer_paths(config), tokenizers, strict=False):
            if path in new_tokenizers:
                if path.exists() and path.name not in attempt["tokenizers"]:
                    path.rename(path.with_name(f"{path.name}.old"))
                text = tokenizer.to_json().encode()
                checkpoint.write_file(path, lambda file, text=text: file.write(text))
    return run


def train_model(config: Config) -> None:
    """Train until the epochs are done or patience is lost, then score the test set, if any.

    Goes on from the latest checkpoint. Raises Interrupted when a signal stopped it, after saving.
    """
    alone = only_run(config) if processes.is_main() else nullcontext()
    with Interrupt() as interrupt, alone:
        run = start_run(config)
        progress = run.progress
        if progress.is_finished(config) and not progress.validation_is_due(config):
            reason = f"{progress.epoch} epochs are done, num_epochs is {config.num_epochs}"
            way_on = "a higher --num_epochs goes on"
            if progress.epoch < config.num_epochs:
                reason += f", and patience ({config.patience}) is lost"
                way_on = "a higher --patience, or 0, goes on"
            print(f"nothing left to train: {reason}; {way_on}")
        else:
            if processes.is_main():
                delete_leftovers(config)
                set_newer_aside(config, progress)
            with interrupt.postponed():
                fit(run, interrupt)
        if run.data.test is not None:
            score_test_set(run)


def score_test_set(run: Run) -> None:
    """Score the test set by the best checkpoint."""
    config = run.config
    path = get_weights_file_path(config, "best")

    def load() -> tuple[Path, dict]:
        if path.exists():
            return path, checkpoint.load(path)
        latest = latest_weights_file_path(config)
        print(f"there is no best checkpoint any more: {latest} is tested")
        return latest, checkpoint.load(latest)

    path, state = processes.from_main(load)
    model = get_whole_model(run)
    checkpoint.load_weights(model, state, path)
    _, scores, _ = run_validation(model, run.data.test, config, run.device, "test")
    print(f"test of {path}: {scores} ({scores.signature})")


def fit(run: Run, interrupt: Interrupt) -> None:
    """Write the curves of a run and train it to its end."""
    config, progress = run.config, run.progress
    due = progress.validation_is_due(config)
    is_new = not any(Path(run.log_dir).glob("events.*"))
    # What a stopped run wrote after its checkpoint is hidden, as it will be written again. Its
    # points at the checkpoint's own step are kept, unless the validation there is yet to come.
    folder = run.log_dir if processes.is_main() else None
    run.curves = Curves(folder, first_step=progress.global_step + (not due))
    if is_new:
        rows = [[name, str(value)] for name, value in asdict(config).items()]
        run.curves.add_table("config", ["name", "value"], rows, progress.global_step)
    if due:
        if progress.train_row.get("step") == progress.global_step:
            run.curves.add_row(progress.train_row)
        validate(run, interrupt)
    if not progress.is_finished(config):
        updates = run.total_updates
        if updates < config.warmup:
            print(
                f"only {updates:,} updates are planned, fewer than warmup ({config.warmup:,}): the "
                "learning rate never gets to its peak; a lower --warmup or --batch_tokens helps"
            )
    while not progress.is_finished(config):
        train_pool(run, interrupt)
    run.curves.close()
    if progress.history:
        best = progress.history[progress.best(config.monitor)]
        print(
            f"done: the best is {get_weights_file_path(config, 'best')} of epoch "
            f"{best['epoch']:02d}, {config.monitor} {best[config.monitor]:.2f}; "
            'python translate.py "a sentence" uses it'
        )


def parse_arguments(arguments: list[str]) -> Config:
    """Return the config of a command line: an optional preset, then flags that override it."""
    preset = "base"
    if arguments and not arguments[0].startswith("-"):
        preset, *arguments = arguments
    for before, word in itertools.pairwise(arguments):
        if word in PRESETS and not before.startswith("-"):
            raise ValueError(f"the preset comes first: train.py {word} ...")
    return tyro.cli(
        Config,
        default=get_config(preset),
        args=arguments,
        prog=f"train.py [{'|'.join(PRESETS)}]",
        description="Train a Transformer for translation, or go on where it was stopped.",
        use_underscores=True,
    )


def main() -> int:
    try:
        with processes.joined():
            config = parse_arguments(sys.argv[1:])
            train_model(config)
    except processes.LostProcess as error:
        # It has told its own trouble, or was killed; torchrun says which.
        if processes.is_main():
            print(f"train.py: {error}", file=sys.stderr)
        return 1
    except Interrupted as stop:
        way_on = "the same command goes on from here"
        if config.preload != "latest":
            way_on = "without --preload the same command goes on from the newest checkpoint"
        if processes.is_main():
            print(f"stopped by {stop}; {way_on}", file=sys.stderr)
        return 128 + stop.signum
    except (ValueError, ArithmeticError, OSError) as error:
        processes.tell_error("train.py", error)
        return 1
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        words = str(error).splitlines() or ["the machine is out of memory"]
        processes.tell_error("train.py", words[0])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
