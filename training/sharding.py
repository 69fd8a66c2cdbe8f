"""Weights shared out among the processes of a run (`--shard`), by PyTorch's FSDP2.

Each process keeps a part of every weight, of its gradient and of what the optimizer knows of it,
and gathers a layer's whole weights only while it computes with them. Whatever else wants whole
weights, as a checkpoint does, asks for them here.

PyTorch's part is imported inside the functions, because it takes a second.
"""

import torch
from torch import Tensor, nn

from model import Transformer
from training import processes


def shard(model: Transformer, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Leave of a whole model and its optimizer this process's part, on the device.

    Every process must hold the same ones. Their gradients are added up, and not averaged.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh(device.type, (processes.count(),))
    before = list(model.parameters())
    for module in (*model.encoder.layers, *model.decoder.layers, model):
        fully_shard(module, mesh=mesh)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    for name in ("vectors", "project"):
        register_fsdp_forward_method(model, name)

    (group,) = optimizer.param_groups
    group["params"] = list(model.parameters())
    for old, new in zip(before, group["params"], strict=True):
        moments = optimizer.state.pop(old, {})
        optimizer.state[new] = {
            # `step` is a number. Without a source process each takes its part of its own tensor.
            name: tensor
            if tensor.dim() == 0
            else distribute_tensor(tensor.to(device), mesh, [Shard(0)], src_data_rank=None)
            for name, tensor in moments.items()
        }


def local_size(model: Transformer) -> int:
    """Return how many numbers of a sharded model's weights this process keeps."""
    return sum(weight.to_local().numel() for weight in model.parameters())


def after_backward(model: Transformer, free: bool, exchange: bool) -> None:
    """Say what the next backward pass of a sharded model does when it has ended.

    `free` gives back the whole weights that it gathered, `exchange` adds up the gradients of all
    processes. What one process does so all must do, equally often.
    """
    model.set_reshard_after_backward(free)
    model.set_requires_gradient_sync(exchange)


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor in one piece, on its device; all processes must ask together."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model, as one that is not sharded has it: tied weights are one."""
    gathered: dict[Tensor, Tensor] = {}
    state = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        if weight not in gathered:
            gathered[weight] = _whole_at_rest(weight.detach())
        state[name] = gathered[weight]
    return state


def whole_moments(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Tensor]]:
    """Return what an optimizer knows of each weight; nothing where this is not the main process."""
    state = {}
    for number, row in optimizer.state_dict()["state"].items():
        gathered = {name: _whole_at_rest(tensor) for name, tensor in row.items()}
        if processes.is_main():  # the others have only helped to gather it
            state[number] = gathered
    return state


def _whole_at_rest(tensor: Tensor) -> Tensor:
    # The device may not have the memory for all of them.
    return whole(tensor).cpu() if hasattr(tensor, "full_tensor") else tensor
