"""The processes of one run, started by `torchrun`: their ranks and what they exchange.

In a run of one process, without torchrun, these functions do nothing.
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

# How long a process waits for the others, for example while the main process prepares a corpus.
TIMEOUT = timedelta(hours=6)


class LostProcess(RuntimeError):
    """Another process of the run ended, or cannot be reached any more."""


@contextmanager
def process_group() -> Iterator[None]:
    """Join the process group that torchrun started, inside the `with` block.

    Only the main process prints. Raises LostProcess if another process is gone.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield
        return
    has_cuda = torch.cuda.is_available()
    store, number, size = next(dist.rendezvous("env://"))
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # After a restart the launcher's store still has the addresses of the killed processes.
        # On several machines the restart counts differ, so the prefix cannot be used there.
        store = dist.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    dist.init_process_group(
        # Messages between processes lie on the CPU, so that they do not wait for a device.
        "cpu:gloo,cuda:nccl" if has_cuda else "gloo",
        store=store, rank=number, world_size=size, timeout=TIMEOUT,
    )  # fmt: skip
    try:
        if is_main():
            yield
        else:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                with redirect_stderr(nowhere):
                    yield
    except RuntimeError as error:
        if "onnection" in str(error) or "peer" in str(error):  # gloo has no error class for it
            raise LostProcess(f"another process of the run is gone: {error}") from None
        raise
    dist.destroy_process_group()


def take_own_gpu(device: torch.device) -> None:
    """Make `cuda` the GPU of this process, by its local rank.

    Raises ValueError if the machine has fewer GPUs than processes.
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
    """Return the rank of this process; 0 is the main process."""
    return dist.get_rank() if _are_joined() else 0


def world_size() -> int:
    """Return the number of processes of the run."""
    return dist.get_world_size() if _are_joined() else 1


def is_main() -> bool:
    """Return whether this is the main process, which prints and writes the run's files."""
    return rank() == 0


def from_main(work: Callable[[], T]) -> T:
    """Call `work` in the main process only, and return its result in all processes."""
    results = [work() if is_main() else None]
    if world_size() > 1:
        dist.broadcast_object_list(results, device=torch.device("cpu"))
    return results[0]


def first_on_each_machine(work: Callable[[], T]) -> T:
    """Call `work` in one process of each machine, then in the others; return its result."""
    if world_size() == 1:
        return work()
    is_first = os.environ["LOCAL_RANK"] == "0"
    result = work() if is_first else None
    gather(None)  # a barrier, on the CPU
    return result if is_first else work()


def gather(value: T) -> list[T]:
    """Return the values of all processes, ordered by rank."""
    values = [value] * world_size()
    if world_size() > 1:
        dist.all_gather_object(values, value)
    return values


def from_all(work: Callable[[], T]) -> list[T]:
    """Call `work` in all processes and return their results by rank.

    An error in one process is raised in all.
    """
    if world_size() == 1:
        return [work()]
    result, failure = None, None
    try:
        result = work()
    except Exception as error:  # the other processes wait for this result
        failure = error
    outcomes = gather((result, failure and f"{type(failure).__name__}: {failure}"))
    if failure:
        raise failure
    for number, (_, words) in enumerate(outcomes):
        if words:
            raise RuntimeError(f"process {number}: {words}")
    return [result for result, _ in outcomes]


def sum_over_ranks(number: int) -> int:
    """Return the sum of a number over all processes."""
    return int(all_reduce_sum([torch.tensor(number)])[0])


def max_over_ranks(number: int) -> int:
    """Return the maximum of a number over all processes."""
    largest = torch.tensor(number)
    if world_size() > 1:
        dist.all_reduce(largest, dist.ReduceOp.MAX)
    return int(largest)


def all_reduce_sum(tensors: list[Tensor]) -> list[Tensor]:
    """Return the sums of tensors over all processes, exchanged in one all-reduce.

    All tensors must have the same dtype and device.
    """
    if world_size() == 1:
        return tensors
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    sums = flat.split([tensor.numel() for tensor in tensors])
    return [each.view_as(tensor) for each, tensor in zip(sums, tensors, strict=True)]


def _are_joined() -> bool:
    return dist.is_available() and dist.is_initialized()


def print_error(script: str, error: object) -> None:
    """Print an error to standard error, even in processes that print nothing else."""
    name = script if is_main() else f"{script}: process {rank()}"
    print(f"{name}: {error}", file=sys.__stderr__)
