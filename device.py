"""Which device a run computes on, in which precision, and its memory."""

import ctypes
import sys
from contextlib import AbstractContextManager, nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def get_device(name: str) -> torch.device:
    """Return the device of that name; `auto` takes CUDA, then MPS, then the CPU."""
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
            f"device {name}: this machine has {torch.cuda.device_count()} GPUs, from 0"
        )
    return device


def get_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of matrix products; `auto` takes bf16 where the device is fast at it."""
    if name == "fp16" and device.type != "cuda":
        raise ValueError(
            f"precision fp16 needs device cuda, not {device.type}; bf16 needs no scaler"
        )
    if name != "auto":
        return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # torch 2.8 has no such function: `auto` is fp32 there.
        able = getattr(torch.cpu, "get_capabilities", dict)()
        fast = device.type == "cpu" and bool(able.get("amx_bf16") or able.get("avx512_bf16"))
    return torch.bfloat16 if fast else torch.float32


def attention_kernels(device: torch.device, precision: torch.dtype) -> AbstractContextManager:
    """Return a context in which attention is trained by the kernels that are fastest there.

    On a CPU in bf16 that is the plain one: forward and backward the fused one takes 4.5 times its
    time for 15 tokens, 2.2 for 30, 1.6 for 100 and 0.9 for 330. (With dropout on the attention
    weights there is no other.)
    """
    if device.type == "cpu" and precision == torch.bfloat16:
        return sdpa_kernel(SDPBackend.MATH)
    return nullcontext()


def keep_freed_memory() -> None:
    """Have the C library keep the memory of freed tensors for the next ones, where it can.

    By default glibc hands large blocks back at once, and the system clears each page of the next
    anew: on a CPU that was 6 % of a training step of `base`, and 32 % of `tiny`.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's alone
        if mallopt is not None:
            mallopt(-4, 0)  # M_MMAP_MAX: no block by itself from the system
            mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: nothing back to it


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an error is a device's, or the machine's, lack of memory."""
    words = ("out of memory", "not enough memory", "can't allocate memory")
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or any(each in str(error) for each in words)
