"""What training prints about a run as a whole: its start, its end, and what to do next."""

from pathlib import Path

from checkpoint import Progress
from config import Config
from training import processes
from training.history import best_validation, count_ties
from training.run import Run
from training.sharding import local_size


def describe_start(run: Run, path: Path | None, state: dict | None) -> list[str]:
    """Return lines on what a run is, and where it resumes if it has a checkpoint `state`."""
    parameters = sum(p.numel() for p in run.model.parameters())
    share = f" ({local_size(run.model):,} in each process)" if run.config.shard else ""
    lines = [
        f"{parameters:,} parameters{share}, {run.device}, "
        f"{str(run.precision).removeprefix('torch.')}; "
        f"weights in {run.folder.path}, curves in {run.log_dir}"
    ]
    if state is None:
        return lines
    lines.append(f"resuming from {path}: epoch {state['epoch']}, update {state['global_step']}")
    if state["processes"] != processes.world_size():
        of_update = run.config.accumulate * processes.world_size()
        lines.append(
            f"processes: the checkpoint says {state['processes']}, now {processes.world_size()}: "
            f"an update takes {of_update} batches; no pair is skipped or used twice"
        )
    return lines


def describe_end(run: Run) -> str:
    """Return a line on the best validation, and on how to translate with its weights."""
    config, history, folder = run.config, run.progress.history, run.folder
    row = history[best_validation(history, config.monitor)]
    score = f"{config.monitor} {row[config.monitor]:.2f}"
    ties = count_ties(history, config.monitor)
    if ties:
        score += f", the lowest val/loss of {ties + 1} validations with this score"
    weights = "" if folder.path.parent == Path() else f"--weights {folder.path} "
    command = f'python translate.py {weights}"a sentence"'
    if folder.best.exists():
        return (
            f"done: the best checkpoint is {folder.best} of epoch {row['epoch']:02d}, {score}; "
            f"{command} uses it"
        )
    return (
        f"done: epoch {row['epoch']:02d} was the best, {score}, but its checkpoint is not in "
        f"{folder.path}; {command} uses {folder.latest()}"
    )


def describe_finished(progress: Progress, config: Config) -> str:
    """Return a line on why nothing is left to train."""
    reason = f"{progress.epoch} epochs are done, num_epochs is {config.num_epochs}"
    remedy = "to continue, raise --num_epochs"
    if progress.epoch < config.num_epochs:
        reason += f", and the patience ({config.patience}) is exhausted"
        remedy = "to continue, raise --patience, or set it to 0"
    return f"nothing left to train: {reason}; {remedy}"
