"""The device that a run computes on, its precision, and its memory."""

import ctypes
import sys
from pathlib import Path

import torch


def get_device(name: str) -> torch.device:
    """Return the device of a name; `auto` means CUDA, else MPS, else the CPU.

    Raises ValueError if the machine does not have it.
    """
    available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if name == "auto":
        name = next((kind for kind, is_available in available.items() if is_available()), "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device {name!r} must be auto, cpu, cuda, cuda:N or mps") from None
    if device.type in available and not available[device.type]():
        raise ValueError(
            f"device {name}: this machine has no {device.type}; --device cpu runs anywhere"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {name}: this machine has {torch.cuda.device_count()} GPUs, numbered from 0"
        )
    return device


def get_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of matrix products; `auto` means bf16 if the device is fast at it.

    Raises ValueError for fp16 on a device without loss scaling.
    """
    if name == "fp16" and device.type != "cuda":
        raise ValueError(
            f"precision fp16 needs device cuda, not {device.type}; bf16 needs no scaler"
        )
    if name != "auto":
        return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # torch 2.8 does not have this function; there `auto` means fp32.
        able = getattr(torch.cpu, "get_capabilities", dict)()
        fast = device.type == "cpu" and bool(able.get("amx_bf16") or able.get("avx512_bf16"))
    return torch.bfloat16 if fast else torch.float32


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed tensors for later ones, if it is glibc.

    By default glibc returns large blocks to the system at once, and the system clears each page of
    the next block: on a CPU that was 6 % of a training step of `base`, and 32 % of `tiny`.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
        if mallopt is not None:
            mallopt(-4, 0)  # M_MMAP_MAX: do not map large blocks separately
            mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: do not return freed memory


def free_memory(device: torch.device) -> int:
    """Return the free memory of a device in bytes; of a CPU and of MPS, as far as is known."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    meminfo = Path("/proc/meminfo")  # on other systems than Linux unknown, so not a limit
    if not meminfo.exists():
        return sys.maxsize
    lines = meminfo.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that a device or the machine is out of memory."""
    words = ("out of memory", "not enough memory", "can't allocate memory")
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or any(each in str(error) for each in words)
