"""Sharding weights over the processes of a run (`--shard`), by PyTorch's FSDP2.

Each process keeps a shard of every weight, of its gradient and of its optimizer state. It gathers
the whole weights of a layer only while it computes with them. What needs whole weights otherwise,
such as a checkpoint, gets them here.

FSDP2 is imported inside the functions, because that takes a second.
"""

import torch
from torch import Tensor, nn

from model import Transformer
from training import processes


def shard(model: Transformer, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Reduce a model and its optimizer to this process's shard, on the device.

    All processes must pass the same model and optimizer. Gradients are summed, not averaged.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh(device.type, (processes.world_size(),))
    before = list(model.parameters())
    for module in (*model.encoder.layers, *model.decoder.layers, model):
        fully_shard(module, mesh=mesh)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    for name in ("hidden_states", "project"):
        register_fsdp_forward_method(model, name)

    (group,) = optimizer.param_groups
    group["params"] = list(model.parameters())
    for old, new in zip(before, group["params"], strict=True):
        moments = optimizer.state.pop(old, {})
        optimizer.state[new] = {
            # `step` is a scalar. Without a source rank, each process takes a shard of its tensor.
            name: tensor
            if tensor.dim() == 0
            else distribute_tensor(tensor.to(device), mesh, [Shard(0)], src_data_rank=None)
            for name, tensor in moments.items()
        }


def local_size(model: Transformer) -> int:
    """Return the number of parameters of a sharded model that this process keeps."""
    return sum(weight.to_local().numel() for weight in model.parameters())


def after_backward(model: Transformer, free: bool, exchange: bool) -> None:
    """Set what a sharded model does after its next backward pass.

    `free` releases the gathered weights, `exchange` sums the gradients over all processes. All
    processes must do the same, equally often.
    """
    model.set_reshard_after_backward(free)
    model.set_requires_gradient_sync(exchange)


def whole(tensor: Tensor) -> Tensor:
    """Return a whole tensor on its device; all processes must call this together."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's state_dict with whole tensors; tied weights share one tensor."""
    gathered: dict[Tensor, Tensor] = {}
    state = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        if weight not in gathered:
            gathered[weight] = _whole_at_rest(weight.detach())
        state[name] = gathered[weight]
    return state


def whole_moments(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Tensor]]:
    """Return the optimizer state of each weight, whole; empty except in the main process."""
    state = {}
    for number, row in optimizer.state_dict()["state"].items():
        gathered = {name: _whole_at_rest(tensor) for name, tensor in row.items()}
        if processes.is_main():  # the others only take part in the gathering
            state[number] = gathered
    return state


def _whole_at_rest(tensor: Tensor) -> Tensor:
    # The device may not have enough memory for all of them.
    return whole(tensor).cpu() if hasattr(tensor, "full_tensor") else tensor
