"""A run's TensorBoard events: curves, sample translations and the configuration."""

import itertools
from collections.abc import Iterable
from pathlib import Path

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:  # also when a package it needs is missing or too new
    SummaryWriter = None
    why_not = str(error)


class Curves:
    """Writes events to a folder; those of an earlier process from `first_step` on are hidden."""

    def __init__(self, log_dir: str, first_step: int) -> None:
        self.writer = SummaryWriter and SummaryWriter(log_dir, purge_step=first_step)
        if self.writer is None:
            print(
                f"TensorBoard cannot be imported ({why_not}), so no curves are written; "
                "pip install -r requirements.txt mends that"
            )

    def add_row(self, row: dict) -> None:
        """Add a row's scores, whose names hold a slash, at its `step`."""
        for tag, value in row.items():
            if "/" in tag and self.writer:
                self.writer.add_scalar(tag, value, row["step"])

    def add_table(self, tag: str, header: list[str], rows: Iterable[list[str]], step: int) -> None:
        """Add a table of texts."""
        lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        table = [header, ["---"] * len(header), *lines]
        if self.writer:
            self.writer.add_text(tag, "\n".join(" | ".join(row) for row in table), step)

    def flush(self) -> None:
        if self.writer:
            self.writer.flush()

    def close(self) -> None:
        if self.writer:
            self.writer.close()


def new_log_dir(experiment_name: str) -> str:
    """Return experiment_name, or with a number added where another run has that folder."""
    names = itertools.chain(
        [experiment_name], (f"{experiment_name}_{number}" for number in itertools.count(2))
    )
    return next(name for name in names if not Path(name).exists())
