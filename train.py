"""Train a Transformer for translation: python train.py [base|demo|small|tiny] [--flag value ...]"""

import itertools
import math
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import tyro
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm

import checkpoint
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
from curves import Curves, new_log_dir
from dataset import Batch, BilingualDataset, form_batches, get_ds, tokenizer_paths
from device import get_device, get_precision
from model import Transformer, build_transformer
from run import (
    Interrupt,
    Interrupted,
    Progress,
    Run,
    load_checkpoint,
    read_attempt,
    set_newer_aside,
    write_attempt,
)
from tokenizer import store_tokenizer
from validation import run_validation, target_loss

SAMPLES = 5  # sentences whose translations are shown at each validation


# --- What the run is made of ---


def get_model(config: Config, src_vocab_size: int, tgt_vocab_size: int) -> Transformer:
    """Return a new model, its weights drawn by the config's seed."""
    torch.manual_seed(config.seed)
    return build_transformer(src_vocab_size, tgt_vocab_size, **config.model_arguments())


# --- One update ---


def learning_rate(step: int, config: Config) -> float:
    """Return the rate of update `step`, counted from 1 (section 5.3, with its peak at `lr`)."""
    return config.lr * min(step / config.warmup, math.sqrt(config.warmup / step))


def seed_update(seed: int, step: int, rank: int = 0) -> None:
    """Seed dropout for one update, so that a resumed run draws what the first would have."""
    state = np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0]))


def train_update(run: Run, batches: list[Batch]) -> bool:
    """Do one update by the mean loss per real target token over all its batches.

    Counts it in the run's progress, unless the gradient scaler found it too large for fp16 and
    skipped it. Returns whether it was done. Does not wait for the device, but for fp16.
    """
    config, device, precision, scaler = run.config, run.device, run.precision, run.scaler
    step = run.progress.global_step + 1
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(step, config)
    seed_update(config.seed, step)

    tokens = sum(batch.tokens for batch in batches)
    total = torch.zeros((), device=device)
    for batch in batches:
        with torch.autocast(device.type, precision, enabled=precision != torch.float32):
            logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
            loss = target_loss(logits, batch.tgt_out, run.pad_id, config.label_smoothing)
        scaler.scale(loss / tokens).backward()
        total += loss.detach()
    scaler.unscale_(run.optimizer)
    norm = nn.utils.clip_grad_norm_(run.model.parameters(), config.clip_norm or math.inf)
    scale = scaler.get_scale()
    scaler.step(run.optimizer)
    scaler.update()
    run.optimizer.zero_grad(set_to_none=True)

    skipped = scaler.get_scale() < scale
    if not skipped:
        run.progress.count_update(total, norm, tokens)
    return not skipped


# --- The run ---


def log_window(run: Run, tokens_per_second: float) -> str:
    """Add a point to the training curves and start the next window; return the point in words."""
    progress, window = run.progress, run.progress.window
    step = progress.global_step
    check_finite(run)
    row = {
        "step": step,
        "train/loss": float(window["loss"]) / window["tokens"],
        "train/lr": learning_rate(step, run.config),
        "train/grad_norm": float(window["norm"]) / window["updates"],
        "train/tokens_per_second": tokens_per_second,
    }
    progress.train_row, progress.window = row, Progress().window
    run.curves.add_row(row)
    return (
        f"loss {row['train/loss']:.3f}, lr {row['train/lr']:.1e}, {tokens_per_second:,.0f} tokens/s"
    )


def check_finite(run: Run) -> None:
    """Raise ArithmeticError if a loss or gradient since the last point was not a number."""
    window, step = run.progress.window, run.progress.global_step
    if not (math.isfinite(window["loss"]) and math.isfinite(window["norm"])):
        raise ArithmeticError(
            f"the loss or its gradient is not finite at update {step} "
            f"(lr {learning_rate(step, run.config):.2g}), and was not saved: "
            "go on from the last checkpoint, if any, with a lower --lr or a longer --warmup"
        )


def validate(run: Run, interrupt: Interrupt) -> None:
    """Score the model, log it, keep the best, and save the scores with the checkpoint."""
    progress, config = run.progress, run.config
    epoch = progress.epoch - (progress.batch == 0)
    loss, scores, predicted = run_validation(
        run.model, run.data.valid, config, run.device, f"validation {epoch:02d}", interrupt.check
    )
    row = {"step": progress.global_step, "epoch": epoch, "val/loss": loss}
    row |= {f"val/{name}": getattr(scores, name) for name in ("bleu", "chrf", "cer", "wer")}
    progress.history.append(row)

    run.curves.add_row(row)
    lines = [f"epoch {epoch:02d}, update {row['step']:,}: val/loss {loss:.3f}, {scores}"]
    if len(progress.history) == 1:
        lines.append(scores.signature)
    samples = sample_translations(run.data.valid, predicted)
    run.curves.add_table("val/samples", ["source", "target", "predicted"], samples, row["step"])
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


def sample_translations(dataset: BilingualDataset, predicted: list[str]) -> list[list[str]]:
    """Return source, target and prediction of a few items, always the same ones."""
    chosen = np.unique(np.linspace(0, len(predicted) - 1, SAMPLES, dtype=int)).tolist()
    columns = (dataset.texts("src_text"), dataset.texts("tgt_text"), predicted)
    return [[column[i] for column in columns] for i in chosen]


def batches_of(run: Run) -> list[np.ndarray]:
    """Return the pairs of each batch of the epoch that goes on: a function of (seed, epoch)."""
    config, pairs = run.config, run.data.train
    seed = (config.seed, run.progress.epoch)
    return form_batches(
        pairs.src_lens, pairs.tgt_lens, config.batch_tokens, config.batch_size, seed
    )


def train_epoch(run: Run, interrupt: Interrupt) -> None:
    """Train to the end of the epoch, or until patience is lost; save and validate on the way."""
    config, progress, epoch = run.config, run.progress, run.progress.epoch
    batches = batches_of(run)
    loader = DataLoader(
        run.data.train,
        batch_sampler=batches[progress.batch :],
        collate_fn=run.data.train.collate,
        pin_memory=run.device.type == "cuda",
    )
    remaining = iter(loader)
    bar = tqdm(
        desc=f"epoch {epoch:02d}",
        unit="update",
        initial=progress.batch // config.accumulate,
        total=math.ceil(len(batches) / config.accumulate),
    )
    started, tokens = time.perf_counter(), 0  # of the training since the last point
    run.model.train()
    while progress.epoch == epoch:
        group = [batch.to(run.device) for batch in itertools.islice(remaining, config.accumulate)]
        stepped = train_update(run, group)
        progress.batch += len(group)
        if progress.batch == len(batches):
            progress.epoch, progress.batch = epoch + 1, 0
        bar.update()
        tokens += sum(batch.tokens for batch in group)
        step = progress.global_step
        if stepped and (step % config.log_every == 0 or progress.batch == 0):
            bar.set_postfix_str(log_window(run, tokens / (time.perf_counter() - started)))
            started, tokens = time.perf_counter(), 0

        due = progress.validation_is_due(config)
        stopping = interrupt.signum is not None  # asked once: a signal may come between two lines
        if due or stopping or (config.save_every and step % config.save_every == 0):
            check_finite(run)
            run.save(run.path())
        if stopping:
            bar.close()
            print(f"saved {run.path()}")
            interrupt.check()
        if due:
            paused = time.perf_counter()
            validate(run, interrupt)
            started += time.perf_counter() - paused
            if progress.is_finished(config):
                break
    bar.close()


def start_run(config: Config) -> Run:
    """Build a run, or bring it back from the checkpoint that `preload` names.

    What a user can get wrong is found here, before anything is written.
    """
    device = get_device(config.device)
    precision = get_precision(config.precision, device)
    path, state = load_checkpoint(config) or (None, None)
    if state is None:
        attempt = read_attempt(config)
        new_tokenizers = [
            path
            for path in tokenizer_paths(config)
            if path.parent == get_weights_folder(config)
            and (not path.exists() or path.name in attempt.get("tokenizers", ()))
        ]
        log_dir = attempt.get("log_dir") or new_log_dir(config.experiment_name)
        data = get_ds(config, None, new_tokenizers)
    else:
        saved = config_from_dict(state["config"])
        try:
            changes = check_same_run(saved, config, in_epoch=state["batch"] > 0)
        except ValueError as error:
            raise ValueError(f"{path} does not fit: {error}") from None
        same_folder = path.parent == get_weights_folder(config)
        same_curves = same_folder and saved.experiment_name == config.experiment_name
        log_dir = state["log_dir"] if same_curves else new_log_dir(config.experiment_name)
        data = get_ds(config, state)
        print(*changes, sep="\n", end="\n" if changes else "")

    tokenizers = (data.train.tokenizer_src, data.train.tokenizer_tgt)
    model = get_model(config, *(tokenizer.size for tokenizer in tokenizers)).to(device)
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
    )
    if config.compile:
        model.compile(dynamic=True)
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{parameters:,} parameters, {device}, {str(precision).removeprefix('torch.')}; "
        f"weights in {get_weights_folder(config)}, curves in {log_dir}"
    )

    if state is None:
        write_attempt(config, log_dir, new_tokenizers)
        for path, tokenizer in zip(tokenizer_paths(config), tokenizers, strict=False):
            if path in new_tokenizers:
                store_tokenizer(tokenizer, path)
    else:
        run.restore(state)
        print(f"going on from {path}: epoch {state['epoch']}, update {state['global_step']}")
    return run


def train_model(config: Config) -> None:
    """Train until the epochs are done or patience is lost, then score the test set, if any.

    Goes on from the latest checkpoint. Raises Interrupted when a signal stopped it, after saving.
    """
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
        set_newer_aside(config, progress)
        with Interrupt() as interrupt:
            fit(run, interrupt)
    if run.data.test is not None:
        path = get_weights_file_path(config, "best")
        if not path.exists():
            path = latest_weights_file_path(config)
            print(f"there is no best checkpoint any more: {path} is tested")
        run.model.load_state_dict(checkpoint.load(path)["model"])
        _, scores, _ = run_validation(run.model, run.data.test, config, run.device, "test")
        print(f"test of {path}: {scores} ({scores.signature})")


def fit(run: Run, interrupt: Interrupt) -> None:
    """Write the curves of a run and train it to its end."""
    config, progress = run.config, run.progress
    due = progress.validation_is_due(config)
    is_new = not Path(run.log_dir).exists()
    # What a stopped run wrote after its checkpoint is hidden, as it will be written again. Its
    # points at the checkpoint's own step are kept, unless the validation there is yet to come.
    run.curves = Curves(run.log_dir, first_step=progress.global_step + (not due))
    if is_new:
        rows = [[name, str(value)] for name, value in asdict(config).items()]
        run.curves.add_table("config", ["name", "value"], rows, progress.global_step)
    if due:
        if progress.train_row.get("step") == progress.global_step:
            run.curves.add_row(progress.train_row)
        validate(run, interrupt)
    if not progress.is_finished(config):
        updates = math.ceil(len(batches_of(run)) / config.accumulate) * config.num_epochs
        if updates < config.warmup:
            print(
                f"only {updates:,} updates are planned, fewer than warmup ({config.warmup:,}): the "
                "learning rate never gets to its peak; a lower --warmup or --batch_tokens helps"
            )
    while not progress.is_finished(config):
        train_epoch(run, interrupt)
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
        config = parse_arguments(sys.argv[1:])
        train_model(config)
    except Interrupted as stop:
        but = "" if config.preload == "latest" else ", without --preload,"
        print(f"stopped by {stop}; the same command{but} goes on from here", file=sys.stderr)
        return 128 + stop.signum
    except KeyboardInterrupt:
        print("stopped by SIGINT", file=sys.stderr)
        return 128 + signal.SIGINT
    except (ValueError, ArithmeticError, OSError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
