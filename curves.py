"""A run's TensorBoard events: curves, sample translations and the configuration.

python curves.py RUN [RUN ...] --output FILE.png draws the curves of runs, such as runs/tmodel.
"""

import errno
import itertools
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from tqdm import tqdm

import checkpoint
from console import run_script

try:
    from tensorboard.summary.writer.event_file_writer import _AsyncWriterThread
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:  # also when a package it needs is missing or too new
    SummaryWriter = None
    why_not = str(error)


if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = "run.json"  # in a folder of curves: the run that they belong to


class Curves:
    """Writes events to a folder; those of an earlier process from `first_step` on are hidden.

    Without a folder it writes nothing. A disk that is full when training has begun ends the
    curves, aloud, and not the training.
    """

    def __init__(self, log_dir: str | None, first_step: int) -> None:
        self.writer = None
        if log_dir is None:
            return
        if SummaryWriter is None:
            print(
                f"TensorBoard cannot be imported ({why_not}), so no curves are written; "
                "pip install -r requirements.txt mends that"
            )
            return
        # TensorBoard reads files in the order of their names, which hold the second.
        while any(Path(log_dir).glob(f"events.out.tfevents.{int(time.time())}.*")):
            time.sleep(0.05)
        threading.excepthook = _leave_to_writer
        try:
            self.writer = SummaryWriter(log_dir, purge_step=first_step)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            self._give_up(error)

    def add_row(self, row: dict) -> None:
        """Add a row's scores, whose names hold a slash, at its `step`."""
        for tag, value in row.items():
            if "/" in tag:
                self._do("add_scalar", tag, value, row["step"])

    def add_table(self, tag: str, header: list[str], rows: Iterable[list[str]], step: int) -> None:
        """Add a table of texts."""
        lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        table = [header, ["---"] * len(header), *lines]
        self._do("add_text", tag, "\n".join(" | ".join(row) for row in table), step)

    def add_figure(self, tag: str, draw: Callable[[], "Figure"], step: int) -> None:
        """Add a picture, drawn only where curves are written; one that cannot be drawn is told."""
        if self.writer:
            try:
                figure = draw()
            except Exception as error:  # no picture is worth a run
                tqdm.write(f"{tag} cannot be drawn: {type(error).__name__}: {error}")
                return
            self._do("add_figure", tag, figure, step)

    def flush(self) -> None:
        self._do("flush")

    def close(self) -> None:
        self._do("close")

    def _do(self, name: str, *arguments: object) -> None:
        if self.writer is None:
            return
        try:
            getattr(self.writer, name)(*arguments)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.writer = None
        tqdm.write(f"the curves cannot be written ({error}): training goes on without them")


def new_log_dir(experiment_name: str) -> str:
    """Make the folder experiment_name, or with a number added where another run has it."""
    names = itertools.chain(
        [experiment_name], (f"{experiment_name}_{number}" for number in itertools.count(2))
    )
    for name in names:
        try:
            Path(name).mkdir(parents=True)
            return name
        except FileExistsError:
            if not Path(name).is_dir():
                raise


def is_log_dir(log_dir: str, experiment_name: str) -> bool:
    """Tell whether `new_log_dir` can have made log_dir."""
    return re.fullmatch(rf"{re.escape(experiment_name)}(_\d+)?", log_dir) is not None


def claim_log_dir(log_dir: str, run_id: str, weights: Path) -> None:
    """Note in a folder of curves which run writes there, and where its weights folder is.

    Comes before the curves themselves: a run that is killed in between finds its own folder.
    """
    note = json.dumps({"run_id": run_id, "weights": _relative(weights, log_dir)}).encode()
    # On a full disk the curves, which come next, say so.
    with suppress(OSError):
        checkpoint.write_file(Path(log_dir) / NOTE, lambda file: file.write(note))


def why_not_in(log_dir: str, run_id: str, weights: Path) -> str:
    """Return why a run with that weights folder cannot continue the curves in log_dir, or "".

    They belong to another run, or to the same run in another weights folder, of which this one is
    a copy. A folder that was moved, alone or with its curves, continues them.
    """
    if not run_id or not any(Path(log_dir).glob("events.*")):  # written before runs had an id
        return ""
    try:
        note = json.loads((Path(log_dir) / NOTE).read_text("utf-8"))
        owner, folder = note["run_id"], str(note["weights"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        owner, folder = None, ""
    if owner != run_id:
        return f"{log_dir} holds the curves of another run"
    if folder != _relative(weights, log_dir) and (Path(log_dir) / folder).is_dir():
        original = os.path.normpath(Path(log_dir) / folder)
        return f"{log_dir} holds the curves of the run in {original}, of which {weights} is a copy"
    return ""


def _relative(weights: Path, log_dir: str) -> str:
    try:
        return Path(os.path.relpath(weights, log_dir)).as_posix()
    except ValueError:  # on another drive of Windows
        return weights.resolve().as_posix()


@dataclass(frozen=True)
class Options:
    """What to draw; the trailing comments are the help text."""

    runs: tyro.conf.Positional[tuple[str, ...]]  # folders of events
    output: str  # picture to make: .png, .pdf or .svg


def read_curves(log_dir: Path) -> dict[str, tuple[list[int], list[float]]]:
    """Return steps and values of each scalar of a run, as TensorBoard shows them.

    Raises FileNotFoundError where there are no events, ValueError where they hold no curve.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    if not any(log_dir.glob("events.out.tfevents.*")):
        raise FileNotFoundError(f"{log_dir} has no events; name a run's own folder, below runs")
    events = EventAccumulator(str(log_dir), size_guidance={"scalars": 0}).Reload()
    if not events.Tags()["scalars"]:
        raise ValueError(f"{log_dir} has events, but no curves among them")
    return {
        tag: ([each.step for each in points], [each.value for each in points])
        for tag in events.Tags()["scalars"]
        for points in [events.Scalars(tag)]
    }


def draw_curves(runs: dict[str, dict[str, tuple[list[int], list[float]]]]) -> "Figure":
    """Return a picture of the losses and the validation BLEU of runs, by update."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    losses, bleu = figure.subplots(1, 2)
    for number, (name, curves) in enumerate(runs.items()):
        color = f"C{number % 10}"
        for panel, tag, style, label in (
            (losses, "train/loss", ":", f"{name}, training (smoothed labels)"),
            (losses, "val/loss", "-", f"{name}, validation"),
            (bleu, "val/bleu", "-", name),
        ):
            panel.plot(*curves.get(tag, ([], [])), style, color=color, label=label)
    for panel, title in ((losses, "loss, nats a token"), (bleu, "validation BLEU")):
        panel.set_title(title)
        panel.set_xlabel("updates")
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    return figure


def draw() -> int:
    options = tyro.cli(Options, prog="curves.py", description=__doc__, use_underscores=True)
    if not options.runs:
        raise ValueError("name a run's folder, such as runs/tmodel")
    if Path(options.output).suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output {options.output!r} must end in .png, .pdf or .svg")
    curves = {run: read_curves(Path(run)) for run in options.runs}
    draw_curves(curves).savefig(options.output, dpi=100)
    return 0


def main() -> int:
    return run_script("curves.py", draw)


def _leave_to_writer(args: threading.ExceptHookArgs) -> None:
    # The thread that writes events hands its error over to `Curves`.
    if not isinstance(args.thread, _AsyncWriterThread):
        threading.__excepthook__(args)


if __name__ == "__main__":
    sys.exit(main())
