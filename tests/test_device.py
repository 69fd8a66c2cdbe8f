"""Device and precision."""

import pytest
import torch

from device import get_device, get_precision


def test_missing_device_is_named():
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(ValueError, match="no cuda; --device cpu"):
        get_device("cuda")
    assert get_device("cpu").type == "cpu"
    with pytest.raises(ValueError, match="'gpu9'"):
        get_device("gpu9")


def test_fp16_is_for_cuda_and_bf16_for_all():
    with pytest.raises(ValueError, match="fp16 needs device cuda, not cpu"):
        get_precision("fp16", torch.device("cpu"))
    assert get_precision("bf16", torch.device("cpu")) == torch.bfloat16
    assert get_precision("fp32", torch.device("cpu")) == torch.float32
