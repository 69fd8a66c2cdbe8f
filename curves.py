"""A run's TensorBoard events: curves, sample translations and the configuration."""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from config import Config, get_weights_folder

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


def get_log_dir(config: Config) -> str:
    """Return the run's TensorBoard folder: always the same for one weights folder.

    A new run takes `experiment_name`, or with a number added where another run has that.
    """
    note = get_weights_folder(config) / "log_dir.txt"
    if note.exists():
        log_dir = note.read_text(encoding="utf-8")
        if re.fullmatch(rf"{re.escape(config.experiment_name)}(_\d+)?", log_dir):
            return log_dir
    names = itertools.chain(
        [config.experiment_name], (f"{config.experiment_name}_{i}" for i in itertools.count(2))
    )
    log_dir = next(name for name in names if not Path(name).exists())
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(log_dir, encoding="utf-8")
    return log_dir
