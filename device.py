"""Which device a run computes on, and in which precision."""

import torch


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
        able = torch.cpu.get_capabilities()
        fast = device.type == "cpu" and bool(able.get("amx_bf16") or able.get("avx512_bf16"))
    return torch.bfloat16 if fast else torch.float32


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an error is a device's, or the machine's, lack of memory."""
    words = ("out of memory", "not enough memory", "can't allocate memory")
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or any(each in str(error) for each in words)
