"""One optimizer update: its seed, its gradient, and how a non-finite one is skipped."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from dataset import Batch
from device import is_out_of_memory
from training import processes
from training.loss import loss_and_gradient
from training.run import Run, Update
from training.schedule import learning_rate
from training.sharding import after_backward, whole

LOGITS_AT_ONCE = 512  # target tokens
# The last group of tokens is padded to a multiple of this, so that groups have few shapes.
LOGITS_STEP = 64


def seed_update(seed: int, step: int, rank: int = 0) -> None:
    """Seed dropout for one update, so that a resumed run draws the same random numbers."""
    state = np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0]))


def train_update(run: Run, batches: list[Batch]) -> int:
    """Do one update by the mean loss per target token over all batches of all processes.

    `batches` are those of this process, possibly none. Returns the number of target tokens in all
    processes. The update is skipped, but counted, if its loss or gradient is not finite. The device
    decides that, so that nothing waits for it; `collect_updates` reports it later.
    """
    config, optimizer, scaler = run.config, run.optimizer, run.scaler
    step = run.progress.global_step + 1
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, config, run.total_updates)

    tokens = processes.sum_over_ranks(sum(batch.tokens for batch in batches))
    loss = accumulate_gradient(run, batches, tokens)
    loss = sum_gradients(run, loss)
    scaler.unscale_(optimizer)
    norm = whole(nn.utils.clip_grad_norm_(run.model.parameters(), config.clip_norm or math.inf))
    skip_if_nonfinite(optimizer, scaler, loss.isfinite() & norm.isfinite())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

    pairs = [index for batch in batches for index in batch.indices]
    run.pending_updates.append(Update(step, loss, norm, tokens, pairs))
    run.progress.global_step = step
    return tokens


def skip_if_nonfinite(
    optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, is_finite: Tensor
) -> None:
    """Let the next step leave weights and moments unchanged if `is_finite` () is False.

    Raises RuntimeError if this version of torch lacks the names that it uses: the attribute
    `found_inf` of a fused optimizer, and the scaler's private `_found_inf_per_device` (read in
    torch 2.13).
    """
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        raise RuntimeError(f"torch {torch.__version__}: the optimizer does not read found_inf")
    found_inf = 1.0 - is_finite.float()
    optimizer.found_inf = found_inf
    if scaler.is_enabled():  # it has a flag for the gradient only, and replaces the optimizer's
        if not hasattr(scaler, "_found_inf_per_device"):
            raise RuntimeError(f"torch {torch.__version__}: no GradScaler._found_inf_per_device")
        for flag in scaler._found_inf_per_device(optimizer).values():
            flag.copy_(torch.maximum(flag, found_inf))


def accumulate_gradient(run: Run, batches: list[Batch], tokens: int) -> Tensor:
    """Accumulate the gradient of these batches' loss, divided by `tokens`; return the summed loss.

    If memory does not suffice, the largest batch is split in two and all batches are computed
    again: apart from dropout, the gradient is the same. Raises MemoryError if that batch is a
    single pair.
    """
    config, device = run.config, run.device
    seed_update(config.seed, run.progress.global_step + 1, processes.rank())
    total = torch.zeros((), device=device)
    if config.shard:  # all processes compute equally often, because they gather weights together
        missing = processes.max_over_ranks(len(batches)) - len(batches)
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
                f"{device} has not enough memory for a batch, which cannot be split if weights "
                f"are sharded: lower --batch_tokens ({config.batch_tokens})"
            ) from None
    # Outside the handler, because the exception keeps the computed tensors in memory.
    run.optimizer.zero_grad(set_to_none=True)
    largest = max(batches, key=lambda batch: batch.src.numel() + batch.tgt_in.numel())
    size = len(largest.indices)
    if size == 1:
        raise MemoryError(
            f"a single pair of {largest.src.shape[1]} and {largest.tgt_in.shape[1]} tokens does "
            f"not fit into the memory of {device}: lower --seq_len ({config.seq_len}), which drops "
            f"such pairs, or the model's size; --batch_tokens ({config.batch_tokens}) cannot help"
        )
    if not run.has_split_batches:
        tqdm.write(
            f"{device} has not enough memory for a batch of {size} pairs: splitting such batches "
            f"in two, with other dropout and else the same gradient; a --batch_tokens below "
            f"{config.batch_tokens} is faster"
        )
        run.has_split_batches = True
    halves = [half.to(device) for half in run.data.train.split(largest)]
    return accumulate_gradient(run, [b for b in batches if b is not largest] + halves, tokens)


def sum_gradients(run: Run, loss: Tensor) -> Tensor:
    """Sum the gradients over all processes, and return the sum of their losses.

    DistributedDataParallel cannot do it: it needs equally many backward passes in all processes,
    and here a process may have fewer batches, or split one. If weights are sharded, the backward
    pass has summed the gradients already.
    """
    if processes.world_size() == 1:
        return loss
    if run.config.shard:
        return processes.all_reduce_sum([loss])[0]
    weights = list(run.model.parameters())
    gradients = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    loss, *gradients = processes.all_reduce_sum([loss, *gradients])
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    return loss


def backward(run: Run, batch: Batch, tokens: int, is_last: bool) -> Tensor:
    """Add the gradient of a batch's loss, divided by `tokens`; return the summed loss.

    Logits are computed only for non-padding tokens, `LOGITS_AT_ONCE` at a time, and the gradient of
    each group before the next one: with the vocabulary, logits would be the largest tensor. After
    the last batch of an update, sharded gradients are exchanged.
    """
    config, model = run.config, run.model
    total = torch.zeros((), device=run.device)
    autocast = torch.autocast(
        run.device.type, run.precision, enabled=run.precision != torch.float32
    )
    with autocast:
        hidden_states = model.hidden_states(batch.src, batch.src_mask, batch.tgt_in)  # (B, T, D)
        hidden_states = hidden_states.flatten(0, 1)[batch.target_positions]  # (tokens, D)
        labels = batch.tgt_out.flatten()[batch.target_positions]  # (tokens,)
        inputs = hidden_states.detach()
        # An empty batch, too, projects once: sharded processes compute equally often.
        rows = max(math.ceil(len(inputs) / LOGITS_STEP), 1) * LOGITS_STEP
        inputs = F.pad(inputs, (0, 0, 0, rows - len(inputs))).requires_grad_()
        scale = run.scaler.scale(torch.full((), 1 / tokens, device=run.device))
        if config.shard:
            after_backward(model, free=False, exchange=False)
        for start in range(0, rows, LOGITS_AT_ONCE):
            group = slice(start, start + LOGITS_AT_ONCE)
            logits = model.project(inputs[group])
            loss, gradient = loss_and_gradient(logits, labels[group], config.label_smoothing, scale)
            logits.backward(gradient)
            total += loss
    if config.shard:
        after_backward(model, free=True, exchange=is_last)
    hidden_states.backward(inputs.grad[: len(labels)])
    return total


def collect_updates(run: Run) -> None:
    """Add losses and norms of the pending updates to the window, and report the skipped ones.

    Waits for the device. Raises ArithmeticError if `max_bad_updates` in a row were skipped.
    """
    config, progress, updates = run.config, run.progress, run.pending_updates
    if not updates:
        return
    numbers = torch.stack([torch.stack([each.loss, each.norm]) for each in updates]).tolist()
    run.pending_updates = []
    for update, (loss, norm) in zip(updates, numbers, strict=True):
        if math.isfinite(loss) and math.isfinite(norm):
            progress.skipped_in_row = 0
            progress.add_update(loss, norm, update.tokens)
            continue
        progress.skipped += 1
        progress.skipped_in_row += 1
        rate = learning_rate(update.step, config, run.total_updates)
        pairs = itertools.chain(*processes.gather(update.pairs))
        tqdm.write(
            f"update {update.step} is skipped ({progress.skipped} so far): loss {loss}, gradient "
            f"norm {norm}, lr {rate:.2g}, training pairs {' '.join(map(str, pairs))}"
        )
        if progress.skipped_in_row >= config.max_bad_updates:
            raise ArithmeticError(
                f"{progress.skipped_in_row} updates in a row, up to update {update.step} (lr "
                f"{rate:.2g}), had a loss or gradient that is not finite: training stopped "
                "without another save; resume from the last checkpoint, if any, with a lower --lr "
                "or a longer --warmup, or raise --max_bad_updates"
            )
