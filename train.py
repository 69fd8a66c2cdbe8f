"""Train a Transformer for translation: python train.py [base|demo|small|tiny] [--flag value ...]"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the imports below take their seconds

import itertools
import math
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import tyro
from torch.utils.data import DataLoader
from tqdm import tqdm

import checkpoint
import console
from config import (
    PRESETS,
    Config,
    get_config,
    get_weights_file_path,
    get_weights_folder,
    latest_weights_file_path,
)
from curves import Curves, claim_log_dir
from device import is_out_of_memory
from model import Transformer
from training import processes
from training.data import batches_of
from training.interrupt import Interrupt, Interrupted
from training.progress import Pace, Progress
from training.run import Run, delete_leftovers, only_run, set_newer_aside
from training.samples import sample_attention, sample_translations
from training.sharding import whole_weights
from training.start import get_model, start_run
from training.update import learning_rate, settle_updates, train_update
from training.validation import run_validation


def get_whole_model(run: Run) -> Transformer:
    """Return a run's model, or of a sharded one a copy in one piece, to validate with."""
    if not run.config.shard:
        return run.model
    weights = whole_weights(run.model)
    tokenizers = (run.data.train.tokenizer_src, run.data.train.tokenizer_tgt)
    model = get_model(run.config, *(tokenizer.size for tokenizer in tokenizers)).to(run.device)
    model.load_state_dict(weights)
    return model


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
    lines += hint_on(predicted)
    is_best = progress.best(config.monitor) == len(progress.history) - 1
    if is_best and progress.ties(config.monitor):
        lines.append(
            f"{config.monitor} is no better than before; this is the best so far by its val/loss"
        )
    tqdm.write("\n".join(lines))
    if is_best:
        run.save(get_weights_file_path(config, "best"))
    run.save(run.path())


def hint_on(predicted: list[str]) -> list[str]:
    """Return what to try where all predictions are alike, in no line or one."""
    known = "".join(text.replace("[UNK]", "") for text in predicted)
    if "[UNK]" in "".join(predicted) and not any(map(str.isalnum, known)):
        return [
            "every prediction is made of [UNK] and punctuation: the words of the target are not in "
            "the vocabulary; a new run with --tokenizer bpe has no unknown words"
        ]
    if len(predicted) > 1 and len(set(predicted)) == 1:
        return [
            "every prediction is the same sentence: early in training that passes; later it means "
            "that the learning rate (--lr, --warmup) does not fit"
        ]
    return []


def enter_pool(run: Run, interrupt: Interrupt) -> None:
    """Have the pairs that the run has come to: of a stream, the main process reads them for all.

    That may take long where a network fails, so a signal ends it at once: all is saved.
    """
    data, position = run.data, run.progress.position
    if position != data.position:
        with interrupt.at_once():
            train, after = processes.from_main(lambda: data.stream.read(position))
        run.data = replace(data, train=train, position=position, next_position=after)


def train_pool(run: Run, interrupt: Interrupt, pace: Pace) -> None:
    """Train to the end of the pool, or until patience is lost; save and validate on the way.

    The pool is all of the epoch, but of a stream. The batches are dealt to the processes one by
    one, each update taking `accumulate` for each.
    """
    config, progress = run.config, run.progress
    enter_pool(run, interrupt)
    epoch, pool = progress.epoch, progress.pool
    batches = batches_of(config, run.data.train, epoch, pool)
    run.plan(len(batches))
    done, end = progress.batch - progress.pool_start, progress.pool_start + len(batches)
    loader = DataLoader(
        run.data.train,
        batch_sampler=batches[done + processes.rank() :: processes.count()],
        collate_fn=run.data.train.collate,
        pin_memory=run.device.type == "cuda",
    )
    remaining = iter(loader)
    of_update = config.accumulate * processes.count()
    name = f"epoch {epoch:02d}" + (f", pool {pool}" if config.streaming else "")
    bar = tqdm(
        desc=name,
        unit="update",
        initial=done // of_update,
        total=math.ceil(len(batches) / of_update),
        disable=None,  # where there is no terminal
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
            is_last = progress.batch == end
            if is_last:
                progress.end_pool(run.data.next_position)
            bar.update()
            step = progress.global_step
            due = progress.validation_is_due(config)
            # Asked once, and of all: one may come between two lines, and to one process first.
            stopping = processes.largest(interrupt.signum or 0)
            saving = due or stopping or (config.save_every and step % config.save_every == 0)
            saving = saving or is_last  # what comes next may not be readable
            logging = step % config.log_every == 0 or progress.batch == 0
            if saving or logging or len(run.unread) >= config.max_bad_updates:
                settle_updates(run)
            if logging:
                words = log_window(run, tokens / (time.perf_counter() - started))
                bar.set_postfix_str(words)
                if not console.shows_bars():
                    where = pace.where(progress.global_step, run.total_updates)
                    print(f"{name}, {where}, {words}", file=sys.stderr)
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
    if folder:
        claim_log_dir(folder, run.run_id, get_weights_folder(config))
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
    pace = Pace(progress.global_step)
    while not progress.is_finished(config):
        train_pool(run, interrupt, pace)
    run.curves.close()
    if progress.history:
        print(result_of(run))


def result_of(run: Run) -> str:
    """Return in a line which validation was the best, and how to translate with its weights."""
    config, progress = run.config, run.progress
    row = progress.history[progress.best(config.monitor)]
    score = f"{config.monitor} {row[config.monitor]:.2f}"
    ties = progress.ties(config.monitor)
    if ties:
        score += f", the lowest val/loss of {ties + 1} validations with no better score"
    folder, path = get_weights_folder(config), get_weights_file_path(config, "best")
    weights = "" if folder.parent == Path() else f"--weights {folder} "
    way_on = f'python translate.py {weights}"a sentence" uses'
    if path.exists():
        return f"done: the best is {path} of epoch {row['epoch']:02d}, {score}; {way_on} it"
    return (
        f"done: the best was epoch {row['epoch']:02d}, {score}, but its checkpoint is not in "
        f"{folder}; {way_on} {latest_weights_file_path(config)}"
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


def train() -> int:
    try:
        with processes.joined():
            config = parse_arguments(sys.argv[1:])
            console.outlive_readers()
            train_model(config)
    except BrokenPipeError:  # of the help: nobody reads it any more
        raise
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


def main() -> int:
    return console.run_script("train.py", train)


if __name__ == "__main__":
    sys.exit(main())
