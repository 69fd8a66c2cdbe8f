"""The learning rate of an update, and what is due after it."""

import math
from dataclasses import dataclass

from checkpoint import Progress
from config import Config
from training.history import validations_since_best


def learning_rate(step: int, config: Config, total_updates: float) -> float:
    """Return the learning rate of update `step`, counted from 1 (section 5.3, with peak `lr`).

    After the warm-up it falls with the inverse square root of the step, as in the paper, or
    linearly to almost 0 at the last of `total_updates`.
    """
    if config.schedule == "linear":
        falling = max(total_updates - step + 1, 1) / max(total_updates - config.warmup + 1, 1)
    else:
        falling = math.sqrt(config.warmup / step)
    return config.lr * min(step / config.warmup, falling)


@dataclass(frozen=True)
class Actions:
    """What the training loop does after an update."""

    log: bool  # a point of the training curves
    validate: bool
    save: bool
    stop: bool  # a signal asked for it


def actions_after_update(progress: Progress, config: Config, stop: bool) -> Actions:
    """Return what is due after the last update; `stop` says whether a signal has arrived.

    It saves before each validation and at the end of each pool, because what follows may fail.
    """
    step = progress.global_step
    at_epoch_end = progress.batch == 0
    at_pool_end = at_epoch_end or progress.batch == progress.pool_start
    validate = is_validation_due(progress, config)
    save_due = config.save_every is not None and step % config.save_every == 0
    return Actions(
        log=at_epoch_end or step % config.log_every == 0,
        validate=validate,
        save=validate or stop or save_due or at_pool_end,
        stop=stop,
    )


def is_validation_due(progress: Progress, config: Config) -> bool:
    """Return whether the last update calls for a validation that has not been done."""
    done = progress.history[-1]["step"] if progress.history else 0
    every = config.validate_every
    return progress.global_step > done and (
        progress.batch == 0 or (every is not None and progress.global_step % every == 0)
    )


def is_finished(progress: Progress, config: Config) -> bool:
    """Return whether all epochs are done, or `patience` validations brought no better score."""
    since_best = validations_since_best(progress.history, config.monitor)
    out_of_patience = config.patience > 0 and since_best >= config.patience
    return progress.epoch >= config.num_epochs or out_of_patience
