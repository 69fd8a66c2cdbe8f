"""Train a Transformer for translation: python train.py [base|demo|small|tiny] [--flag value ...]"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the imports below take their seconds

import itertools
import sys
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path

import tyro
from tqdm import tqdm

import checkpoint
import console
from checkpoint import Progress, WeightsFolder
from config import PRESETS, Config, get_config
from device import is_out_of_memory
from model import Transformer
from training import processes
from training.batches import batches_of_epoch
from training.data import get_ds, get_or_build_tokenizer
from training.history import best_validation, count_ties
from training.lock import lock_weights_folder
from training.messages import describe_end, describe_finished
from training.pace import Pace
from training.resume import delete_leftovers, rename_newer_checkpoints
from training.run import Run
from training.samples import format_samples, hints_on, sample_attention, sample_translations
from training.schedule import (
    actions_after_update,
    is_finished,
    is_validation_due,
    learning_rate,
)
from training.sharding import whole_weights
from training.signals import StoppedBySignal, StopSignals
from training.start import get_model, start_run
from training.tensorboard import Curves, claim_log_dir
from training.update import collect_updates, train_update
from training.validation import run_validation
from translation.decode import greedy_decode

# The names of the original tutorial: notebooks and other scripts import them from here.
__all__ = [
    "get_ds", "get_model", "get_or_build_tokenizer", "greedy_decode", "run_validation",
    "train_model",
]  # fmt: skip


def main() -> int:
    return console.run_script("train.py", train)


def train() -> int:
    """Train as the command line says; return the exit code."""
    try:
        with processes.process_group():
            config = parse_arguments(sys.argv[1:])
            console.outlive_readers()
            train_model(config)
    except BrokenPipeError:  # while printing the help
        raise
    except processes.LostProcess as error:
        # The lost process has printed its error, or was killed; torchrun reports which.
        if processes.is_main():
            print(f"train.py: {error}", file=sys.stderr)
        return 1
    except StoppedBySignal as stop:
        remedy = "the same command resumes from here"
        if config.preload != "latest":
            remedy = "without --preload the same command resumes from the newest checkpoint"
        if processes.is_main():
            print(f"stopped by {stop}; {remedy}", file=sys.stderr)
        return 128 + stop.signum
    except (ValueError, ArithmeticError, OSError) as error:
        processes.print_error("train.py", error)
        return 1
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        lines = str(error).splitlines() or ["the machine is out of memory"]
        processes.print_error("train.py", lines[0])
        return 1
    return 0


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
        description="Train a Transformer for translation, or resume a run that was stopped.",
        use_underscores=True,
    )


def train_model(config: Config) -> None:
    """Train until all epochs are done or patience is exhausted, then score the test set, if any.

    Resumes from the latest checkpoint. Raises StoppedBySignal after saving.
    """
    folder = WeightsFolder.of(config)
    lock = lock_weights_folder(folder) if processes.is_main() else nullcontext()
    with StopSignals() as signals, lock:
        run = start_run(config)
        progress = run.progress
        if is_finished(progress, config) and not is_validation_due(progress, config):
            print(describe_finished(progress, config))
        else:
            if processes.is_main():
                delete_leftovers(config)
                rename_newer_checkpoints(config, progress)
            with signals.postponed():
                train_epochs(run, signals)
        if run.data.test is not None:
            score_test_set(run)


def train_epochs(run: Run, signals: StopSignals) -> None:
    """Train a run to its end, and write its curves."""
    config, progress = run.config, run.progress
    open_curves(run)
    if is_validation_due(progress, config):
        validate(run, signals)
    if not is_finished(progress, config) and run.total_updates < config.warmup:
        print(
            f"only {run.total_updates:,} updates are planned, fewer than warmup "
            f"({config.warmup:,}): the learning rate will not reach its peak; lower --warmup or "
            "--batch_tokens"
        )
    pace = Pace(progress.global_step)
    while not is_finished(progress, config):
        train_epoch(run, signals, pace)
    run.curves.close()
    if progress.history:
        print(describe_end(run))


def train_epoch(run: Run, signals: StopSignals, pace: Pace) -> None:
    """Train to the end of the current epoch, or until patience is exhausted."""
    config, progress = run.config, run.progress
    run.model.train()
    for update in batches_of_epoch(run, signals, pace):
        tokens = train_update(run, update.batches)
        progress.batch = update.end
        if update.ends_pool:
            progress.end_pool(run.data.next_position)
        pace.add_update(tokens)

        signum = signals.across_ranks()
        actions = actions_after_update(progress, config, stop=signum > 0)
        if actions.log or actions.save or len(run.pending_updates) >= config.max_bad_updates:
            collect_updates(run)
        if actions.log:
            message = log_training(run, pace.end_window())
            pace.report(message, progress.global_step, run.total_updates)
        if actions.save:
            run.save(run.path)
        if actions.stop:
            tqdm.write(f"saved {run.path}")
            raise StoppedBySignal(signum)
        if actions.validate:
            with pace.paused():
                validate(run, signals)
            if is_finished(progress, config):
                return


def log_training(run: Run, tokens_per_second: float) -> str:
    """Add a point to the training curves, start the next window, and return the point as text."""
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


def validate(run: Run, signals: StopSignals) -> None:
    """Score the model, log the scores, and save them.

    Saves the checkpoint `best`, too, if this validation is the best so far. If validation fails,
    training goes on without its scores.
    """
    progress, config = run.progress, run.config
    # After the last update of an epoch, `progress` stands at the start of the next one.
    epoch = progress.epoch - 1 if progress.batch == 0 else progress.epoch
    name = f"validation {epoch:02d}"
    model = get_whole_model(run)
    try:
        loss, scores, predicted = run_validation(
            model, run.data.valid, config, run.device, name, signals.check
        )
    except Exception as error:  # the training itself is saved and can go on
        tqdm.write(
            f"{name} failed at update {progress.global_step}: {type(error).__name__}: {error}; "
            "training goes on without its scores"
        )
        return
    row = {"step": progress.global_step, "epoch": epoch, "val/loss": loss, **scores.row()}
    progress.history.append(row)
    run.curves.add_row(row)
    samples = sample_translations(run.data.valid, predicted)
    run.curves.add_table("val/samples", ["source", "target", "predicted"], samples, row["step"])
    picture = partial(sample_attention, model, run, predicted)
    run.curves.add_figure("val/attention", picture, row["step"])

    lines = [f"epoch {epoch:02d}, update {row['step']:,}: val/loss {loss:.3f}, {scores}"]
    if len(progress.history) == 1:
        lines.append(scores.signature)
    lines += [*format_samples(samples[:2]), *hints_on(predicted)]
    is_best = best_validation(progress.history, config.monitor) == len(progress.history) - 1
    if is_best and count_ties(progress.history, config.monitor):
        lines.append(f"{config.monitor} equals the best so far; this validation has a lower loss")
    tqdm.write("\n".join(lines))
    if is_best:
        run.save(run.folder.best)
    run.save(run.path)


def get_whole_model(run: Run) -> Transformer:
    """Return a run's model, or a whole copy of a sharded one, to validate with."""
    if not run.config.shard:
        return run.model
    weights = whole_weights(run.model)
    model = get_model(run.config, *run.data.train.tokenizers.sizes).to(run.device)
    model.load_state_dict(weights)
    return model


def open_curves(run: Run) -> None:
    """Open the TensorBoard events of a run, and continue them at the step of its checkpoint."""
    config, progress = run.config, run.progress
    due = is_validation_due(progress, config)
    is_new = not any(Path(run.log_dir).glob("events.*"))
    log_dir = run.log_dir if processes.is_main() else None
    if log_dir:
        claim_log_dir(log_dir, run.run_id, run.folder.path)
    # A stopped run may have written events after its checkpoint: they are hidden, because this run
    # writes them again. Events at the checkpoint's own step stay, unless its validation is due.
    first_step = progress.global_step if due else progress.global_step + 1
    run.curves = Curves(log_dir, first_step)
    if is_new:
        rows = [[name, str(value)] for name, value in asdict(config).items()]
        run.curves.add_table("config", ["name", "value"], rows, progress.global_step)
    if due and progress.train_row.get("step") == progress.global_step:
        run.curves.add_row(progress.train_row)


def score_test_set(run: Run) -> None:
    """Score the test set with the best checkpoint, or with the latest if there is no best one."""

    def load() -> tuple[Path, dict]:
        best, latest = run.folder.best, run.folder.latest()
        if best.exists():
            return best, checkpoint.load(best)
        print(f"the best checkpoint {best} does not exist: testing {latest}")
        return latest, checkpoint.load(latest)

    path, state = processes.from_main(load)
    model = get_whole_model(run)
    checkpoint.load_weights(model, state, path)
    _, scores, _ = run_validation(model, run.data.test, run.config, run.device, "test")
    print(f"test of {path}: {scores} ({scores.signature})")


if __name__ == "__main__":
    sys.exit(main())
