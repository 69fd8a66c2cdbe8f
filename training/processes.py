"""The processes of one run, started by `torchrun`: who they are, and what they tell each other.

In a run of one process, which is any that torchrun did not start, all of this does nothing.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

T = TypeVar("T")

# The longest that one waits for the others: while the main process prepares a large corpus.
PATIENCE = timedelta(hours=6)


class LostProcess(RuntimeError):
    """Another process of the run ended, or cannot be reached any more."""


@contextmanager
def joined() -> Iterator[None]:
    """Be one of the processes that torchrun started while in the `with` block.

    Only the main one prints. Raises LostProcess when another one is gone.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield
        return
    has_cuda = torch.cuda.is_available()
    store, number, size = next(dist.rendezvous("env://"))
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # After a restart the launcher's store still has the addresses of those that were killed.
        # Several machines do not count their restarts alike.
        store = dist.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    dist.init_process_group(
        # What they tell each other lies on the CPU, so that no device has to be waited for.
        "cpu:gloo,cuda:nccl" if has_cuda else "gloo",
        store=store, rank=number, world_size=size, timeout=PATIENCE,
    )  # fmt: skip
    try:
        if is_main():
            yield
        else:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                with redirect_stderr(nowhere):
                    yield
    except RuntimeError as error:
        if "onnection" in str(error) or "peer" in str(error):  # gloo has no class for it
            raise LostProcess(f"another process of the run is gone: {error}") from None
        raise
    dist.destroy_process_group()


def take_own_gpu(device: torch.device) -> None:
    """Make `cuda` this process's own GPU, by its number on this machine.

    Raises ValueError where there are fewer GPUs than processes.
    """
    if device.type != "cuda" or not _are_joined():
        return
    number, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= gpus:
        started = os.environ["LOCAL_WORLD_SIZE"]
        raise ValueError(
            f"torchrun started {started} processes on a machine with {gpus} GPUs: "
            f"--nproc_per_node={gpus}, or --device cpu"
        )
    torch.cuda.set_device(number)


def rank() -> int:
    """Return this process's number among all."""
    return dist.get_rank() if _are_joined() else 0


def count() -> int:
    """Return how many processes the run has."""
    return dist.get_world_size() if _are_joined() else 1


def is_main() -> bool:
    """Tell whether this is the one process that prints and writes the run's files."""
    return rank() == 0


def from_main(work: Callable[[], T]) -> T:
    """Return, in every process, what `work` gives in the main one, where alone it is done."""
    results = [work() if is_main() else None]
    if count() > 1:
        dist.broadcast_object_list(results, device=torch.device("cpu"))
    return results[0]


def first_on_each_machine(work: Callable[[], T]) -> T:
    """Return what `work` gives, done by one process a machine before its others do the same."""
    if count() == 1:
        return work()
    is_first = os.environ["LOCAL_RANK"] == "0"
    result = work() if is_first else None
    gathered(None)  # a barrier, on the CPU
    return result if is_first else work()


def gathered(value: T) -> list[T]:
    """Return the values of all processes, by rank."""
    values = [value] * count()
    if count() > 1:
        dist.all_gather_object(values, value)
    return values


def from_all(work: Callable[[], T]) -> list[T]:
    """Return what `work` gives in each process, by rank; an error in one is raised in all."""
    if count() == 1:
        return [work()]
    result, failure = None, None
    try:
        result = work()
    except Exception as error:  # the others wait for this one's share
        failure = error
    outcomes = gathered((result, failure and f"{type(failure).__name__}: {failure}"))
    if failure:
        raise failure
    for number, (_, words) in enumerate(outcomes):
        if words:
            raise RuntimeError(f"process {number}: {words}")
    return [result for result, _ in outcomes]


def total(number: int) -> int:
    """Return the sum of the processes' numbers."""
    return int(add_up([torch.tensor(number)])[0])


def largest(number: int) -> int:
    """Return the largest of the processes' numbers."""
    largest = torch.tensor(number)
    if count() > 1:
        dist.all_reduce(largest, dist.ReduceOp.MAX)
    return int(largest)


def add_up(tensors: list[Tensor]) -> list[Tensor]:
    """Return the sums over all processes of tensors of one kind, exchanged in one piece."""
    if count() == 1:
        return tensors
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    sums = flat.split([tensor.numel() for tensor in tensors])
    return [each.view_as(tensor) for each, tensor in zip(sums, tensors, strict=True)]


def _are_joined() -> bool:
    return dist.is_available() and dist.is_initialized()


def tell_error(script: str, error: object) -> None:
    """Print an error, also where nothing else is printed."""
    name = script if is_main() else f"{script}: process {rank()}"
    print(f"{name}: {error}", file=sys.__stderr__)
