"""One optimizer update: its rate, its seed, its gradient, and what happens when that is bad."""

import itertools
import math

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from config import Config
from dataset import Batch
from device import attention_kernels, is_out_of_memory
from training import processes
from training.run import Run, Update
from training.sharding import after_backward, whole
from training.validation import target_loss

LOGITS_AT_ONCE = 512


def learning_rate(step: int, config: Config, total_updates: float) -> float:
    """Return the rate of update `step`, counted from 1 (section 5.3, with its peak at `lr`).

    After warm-up it falls with the root of the step, as in the paper, or in a straight line to
    almost nothing at the last of `total_updates`.
    """
    if config.schedule == "linear":
        falling = max(total_updates - step + 1, 1) / max(total_updates - config.warmup + 1, 1)
    else:
        falling = math.sqrt(config.warmup / step)
    return config.lr * min(step / config.warmup, falling)


def seed_update(seed: int, step: int, rank: int = 0) -> None:
    """Seed dropout for one update, so that a resumed run draws what the first would have."""
    state = np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0]))


def train_update(run: Run, batches: list[Batch]) -> int:
    """Do one update by the mean loss per real target token over all batches of all processes.

    Returns the number of those tokens; `batches` are this process's, and may be none. The update is
    left out, but counted, when its loss or gradient is not finite; the device decides that, so
    that nothing waits for it. `settle_updates` tells afterwards.
    """
    config, optimizer, scaler = run.config, run.optimizer, run.scaler
    step = run.progress.global_step + 1
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, config, run.total_updates)

    tokens = processes.total(sum(batch.tokens for batch in batches))
    loss = accumulate_gradient(run, batches, tokens)
    loss = add_up_gradients(run, loss)
    scaler.unscale_(optimizer)
    norm = whole(nn.utils.clip_grad_norm_(run.model.parameters(), config.clip_norm or math.inf))
    # The fused Adam leaves weights and its own state as they are where this is 1.
    optimizer.found_inf = 1.0 - (loss.isfinite() & norm.isfinite()).float()
    if scaler.is_enabled():  # it has a note of its own, of the gradient alone
        for found in scaler._found_inf_per_device(optimizer).values():
            found.copy_(torch.maximum(found, optimizer.found_inf))
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

    pairs = [index for batch in batches for index in batch.indices]
    run.unread.append(Update(step, loss, norm, tokens, pairs))
    run.progress.global_step = step
    return tokens


def accumulate_gradient(run: Run, batches: list[Batch], tokens: int) -> Tensor:
    """Add up the gradient of these batches' loss, divided by `tokens`; returns the summed loss.

    When memory does not suffice, the largest batch is cut in two and all is done again: the
    gradient is the same. Raises MemoryError when that batch is a single pair.
    """
    config, device = run.config, run.device
    seed_update(config.seed, run.progress.global_step + 1, processes.rank())
    total = torch.zeros((), device=device)
    if config.shard:  # all must compute equally often, as they gather their weights together
        missing = processes.largest(len(batches)) - len(batches)
        batches = [*batches, *[run.data.train.empty_batch().to(device)] * missing]
    try:
        for number, batch in enumerate(batches, start=1):
            total += backward(run, batch, tokens, is_last=number == len(batches))
        return total
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if config.shard:
            raise MemoryError(
                f"{device} has not enough memory for a batch, which cannot be cut where weights "
                f"are sharded: lower --batch_tokens ({config.batch_tokens})"
            ) from None
    # Only here, as the exception holds what was computed.
    run.optimizer.zero_grad(set_to_none=True)
    largest = max(batches, key=lambda batch: batch.src.numel() + batch.tgt_in.numel())
    size = len(largest.indices)
    if size == 1:
        raise MemoryError(
            f"a single pair of {largest.src.shape[1]} and {largest.tgt_in.shape[1]} tokens does "
            f"not fit into the memory of {device}: lower --seq_len ({config.seq_len}), which drops "
            f"such pairs, or the model's size; --batch_tokens ({config.batch_tokens}) cannot help"
        )
    if not run.has_cut_batches:
        tqdm.write(
            f"{device} has not enough memory for a batch of {size} pairs: it is cut in two, as "
            "others may be, with the same gradient; a --batch_tokens below "
            f"{config.batch_tokens} is faster"
        )
        run.has_cut_batches = True
    halves = [half.to(device) for half in run.data.train.cut(largest)]
    return accumulate_gradient(run, [b for b in batches if b is not largest] + halves, tokens)


def add_up_gradients(run: Run, loss: Tensor) -> Tensor:
    """Give each process the gradient of all, and return the loss of all.

    Done by hand, and not by DistributedDataParallel, which wants as many backward passes of every
    process as of the others: here one may have fewer batches, or cut one. Where weights are
    sharded, the backward pass has done it.
    """
    if processes.count() == 1:
        return loss
    if run.config.shard:
        return processes.add_up([loss])[0]
    weights = list(run.model.parameters())
    gradients = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    loss, *gradients = processes.add_up([loss, *gradients])
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    return loss


def backward(run: Run, batch: Batch, tokens: int, is_last: bool) -> Tensor:
    """Add the gradient of a batch's loss, divided by `tokens`; returns the summed loss.

    Logits are made for real tokens alone, and for a few at a time, whose gradient is taken before
    the next are made: with the vocabulary they are the largest tensor of all. The last batch of an
    update is where sharded gradients are exchanged.
    """
    config, model = run.config, run.model
    total = torch.zeros((), device=run.device)
    autocast = torch.autocast(
        run.device.type, run.precision, enabled=run.precision != torch.float32
    )
    with autocast, attention_kernels(run.device, run.precision):
        x = model.vectors(batch.src, batch.src_mask, batch.tgt_in)
        real = x.flatten(0, 1)[batch.real]  # (tokens of the batch, D)
        labels = batch.tgt_out.flatten()[batch.real]
        vectors = real.detach().requires_grad_()
        if config.shard:
            after_backward(model, free=False, exchange=False)
        for some, their_labels in zip(
            vectors.split(LOGITS_AT_ONCE), labels.split(LOGITS_AT_ONCE), strict=True
        ):
            logits = model.project(some)
            loss = target_loss(logits, their_labels, run.pad_id, config.label_smoothing)
            run.scaler.scale(loss / tokens).backward()
            total += loss.detach()
    if config.shard:
        after_backward(model, free=True, exchange=is_last)
    real.backward(vectors.grad)
    return total


def settle_updates(run: Run) -> None:
    """Add the numbers of the last updates to the window, and report those that were left out.

    Waits for the device. Raises ArithmeticError when `max_bad_updates` in a row were left out.
    """
    config, progress, updates = run.config, run.progress, run.unread
    if not updates:
        return
    numbers = torch.stack([torch.stack([each.loss, each.norm]) for each in updates]).tolist()
    run.unread = []
    for update, (loss, norm) in zip(updates, numbers, strict=True):
        if math.isfinite(loss) and math.isfinite(norm):
            progress.skipped_in_row = 0
            progress.add(loss, norm, update.tokens)
            continue
        progress.skipped += 1
        progress.skipped_in_row += 1
        rate = learning_rate(update.step, config, run.total_updates)
        pairs = itertools.chain(*processes.gathered(update.pairs))
        tqdm.write(
            f"update {update.step} is left out ({progress.skipped} so far): loss {loss}, gradient "
            f"norm {norm}, lr {rate:.2g}, pairs {' '.join(map(str, pairs))}"
        )
        if progress.skipped_in_row >= config.max_bad_updates:
            raise ArithmeticError(
                f"{progress.skipped_in_row} updates in a row, up to update {update.step} (lr "
                f"{rate:.2g}), had a loss or a gradient that is not finite: stopped, and nothing "
                "of them is saved; go on from the last checkpoint, if any, with a lower --lr or a "
                "longer --warmup, or raise --max_bad_updates"
            )
