"""The state of a training run, and its checkpoint."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

import checkpoint
from checkpoint import Progress, WeightsFolder
from config import Config
from dataset import BATCHING
from files import delete
from model import Transformer
from training import processes
from training.data import RunData
from training.sharding import whole_moments, whole_weights
from training.tensorboard import Curves


@dataclass(frozen=True)
class Update:
    """An update whose loss and gradient norm are still on the device."""

    step: int
    loss: Tensor  # nats, summed over its target tokens
    norm: Tensor  # of the gradient, before clipping
    tokens: int  # target tokens without padding
    pairs: list[int]  # indices of its pairs in the training dataset


@dataclass
class Run:
    """The state of a training run, which it saves as a checkpoint and restores from one."""

    config: Config
    model: Transformer
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    data: RunData
    device: torch.device
    precision: torch.dtype
    progress: Progress
    log_dir: str  # folder of its TensorBoard events
    run_id: str = ""
    total_updates: float = math.inf  # as planned; unknown for a stream, and before `plan`
    curves: Curves | None = None  # None until training begins
    pending_updates: list[Update] = field(default_factory=list)  # not yet read from the device
    has_split_batches: bool = False  # whether that has been reported

    def plan(self, batches: int) -> None:
        """Set the number of updates of the whole run for epochs of `batches` batches.

        The result is the same at every point of an epoch. For a stream it stays unknown.
        """
        if self.config.streaming:
            return
        of_update = self.config.accumulate * processes.world_size()
        done = self.progress.global_step - math.ceil(self.progress.batch / of_update)
        epochs = self.config.num_epochs - self.progress.epoch
        self.total_updates = done + epochs * math.ceil(batches / of_update)

    @property
    def folder(self) -> WeightsFolder:
        """The folder of this run's checkpoints."""
        return WeightsFolder.of(self.config)

    @property
    def path(self) -> Path:
        """The path of a checkpoint at this point of the run."""
        epoch, step = self.progress.epoch, self.progress.global_step
        if self.progress.batch == 0:
            return self.folder.end_of(epoch - 1)
        return self.folder.inside(epoch, step)

    def save(self, path: Path) -> None:
        """Write a checkpoint, and delete those that it replaces; flush the curves first.

        Only the main process writes, but all processes must call this. Deletes nothing while
        updates are skipped, because the weights before them may be the cause. Raises
        ArithmeticError if weights are not finite.
        """
        weights = whole_weights(self.model)
        moments = whole_moments(self.optimizer)
        for name, weight in weights.items():
            if not weight.isfinite().all():
                raise ArithmeticError(
                    f"the weights of {name} are not finite after update "
                    f"{self.progress.global_step}, and are not saved: resume from the last "
                    "checkpoint, if any, with a lower --lr"
                )
        if not processes.is_main():
            return
        self.curves.flush()
        state = {
            "format": checkpoint.FORMAT,
            "model": weights,
            "optimizer": moments,
            "scaler": self.scaler.state_dict(),
            **asdict(self.progress),
            "config": asdict(self.config),
            "tokenizer_src": self.data.train.tokenizers.src.to_json(),
            "tokenizer_tgt": self.data.train.tokenizers.tgt.to_json(),
            "data": self.data.fingerprint,
            "batching": BATCHING,
            "processes": processes.world_size(),
            "log_dir": self.log_dir,
            "run_id": self.run_id,
        }
        checkpoint.save(path, state)
        delete(self.folder.attempt)
        if not self.progress.skipped_in_row:
            checkpoint.prune(self.folder.replaced(self.config.keep_last))

    def restore(self, path: Path, state: dict) -> None:
        """Restore a training state read from path; raises ValueError if it does not fit."""
        checkpoint.load_weights(self.model, state, path)
        self._restore_optimizer(path, state["optimizer"])
        if self.scaler.is_enabled() and state["scaler"]:
            if state["scaler"].keys() != self.scaler.state_dict().keys():
                raise ValueError(f"the checkpoint {path} has a gradient scaler of another kind")
            self.scaler.load_state_dict(state["scaler"])
        progress = Progress(**{key: state[key] for key in asdict(self.progress)})
        needed = {"step", "epoch", "val/loss", self.config.monitor}
        rows = [("window", progress.window, self.progress.window.keys())]
        rows += [("history", row, needed) for row in progress.history]
        for name, row, keys in rows:
            missing = sorted(keys - row.keys())
            if missing:
                raise ValueError(f"the checkpoint {path} has no {missing[0]} in its {name}")
        self.progress = progress

    def _restore_optimizer(self, path: Path, moments: dict) -> None:
        # Settings such as the learning rate come from the config, the moments from the file.
        state = self.optimizer.state_dict()
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        expected, found = {}, {}
        for number, weight in enumerate(weights):
            for name in ("step", "exp_avg", "exp_avg_sq"):
                expected[f"{number}.{name}"] = torch.zeros(()) if name == "step" else weight
        for number, row in moments.items():
            found |= {f"{number}.{name}": tensor for name, tensor in row.items()}
        name = f"the optimizer of the checkpoint {path}"
        checkpoint.check_tensors(found, expected, name)
        for key, tensor in found.items():
            if not key.endswith("exp_avg") and (tensor < 0).any():
                raise ValueError(f"{name} holds numbers below 0, in {key}")
        self.optimizer.load_state_dict({**state, "state": moments})
