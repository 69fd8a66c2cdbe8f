"""The TensorBoard events of a run: writing curves, tables and pictures, and reading curves back."""

import errno
import itertools
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from files import write_file

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:  # also if a package that it needs is missing or too new
    SummaryWriter = None
    why_not = str(error)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = "run.json"  # in the folder of the events: the run that they belong to


class Curves:
    """Writes events to a folder; hides those of an earlier process from `first_step` on.

    Without a folder it writes nothing. If a write fails, it stops curve logging with a warning, and
    training goes on.
    """

    def __init__(self, log_dir: str | None, first_step: int) -> None:
        self.writer = None
        if log_dir is None:
            return
        if SummaryWriter is None:
            print(
                f"TensorBoard cannot be imported ({why_not}), so no curves are written; "
                "to write them, run pip install -r requirements.txt"
            )
            return
        # TensorBoard reads files in the order of their names, which contain the time in seconds.
        while any(Path(log_dir).glob(f"events.out.tfevents.{int(time.time())}.*")):
            time.sleep(0.05)
        threading.excepthook = _ignore_writer_errors
        try:
            self.writer = SummaryWriter(log_dir, purge_step=first_step)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            self._stop(error)

    def add_row(self, row: dict) -> None:
        """Add a point to each curve in a row, whose names contain a slash, at its `step`."""
        for tag, value in row.items():
            if "/" in tag:
                self._call("add_scalar", tag, value, row["step"])

    def add_table(self, tag: str, header: list[str], rows: Iterable[list[str]], step: int) -> None:
        """Add a table of texts, with the cells of `header` as its first row."""
        lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        table = [header, ["---"] * len(header), *lines]
        self._call("add_text", tag, "\n".join(" | ".join(row) for row in table), step)

    def add_figure(self, tag: str, draw: Callable[[], "Figure"], step: int) -> None:
        """Add the picture that `draw` returns; `draw` is called only if events are written.

        Warns if it cannot be drawn.
        """
        if self.writer:
            try:
                figure = draw()
            except Exception as error:  # a picture must not end a run
                tqdm.write(f"{tag} cannot be drawn: {type(error).__name__}: {error}")
                return
            self._call("add_figure", tag, figure, step)

    def flush(self) -> None:
        """Write all events to the disk."""
        self._call("flush")

    def close(self) -> None:
        """Write all events to the disk and close the file."""
        self._call("close")

    def _call(self, name: str, *arguments: object) -> None:
        if self.writer is None:
            return
        try:
            getattr(self.writer, name)(*arguments)
        except OSError as error:
            self._stop(error)

    def _stop(self, error: OSError) -> None:
        self.writer = None
        tqdm.write(f"the curves cannot be written ({error}): training goes on without them")


def new_log_dir(experiment_name: str) -> str:
    """Make and return the folder experiment_name, with a number added if it exists."""
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
    """Return whether `new_log_dir` can have made log_dir for this name."""
    return re.fullmatch(rf"{re.escape(experiment_name)}(_\d+)?", log_dir) is not None


def claim_log_dir(log_dir: str, run_id: str, weights: Path) -> None:
    """Note in log_dir which run writes there, and where its weights folder is.

    Call it before the first event, so that a run that is killed in between recognises its folder.
    """
    note = json.dumps({"run_id": run_id, "weights": _relative(weights, log_dir)}).encode()
    with suppress(OSError):  # if the disk is full, the first event reports it
        write_file(Path(log_dir) / NOTE, lambda file: file.write(note))


def why_not_continued(log_dir: str, run_id: str, weights: Path) -> str:
    """Return why the run in a weights folder cannot continue the curves in log_dir, or "".

    They belong to another run, or `weights` is a copy of the folder that they belong to. A weights
    folder that was moved, with or without its curves, continues them.
    """
    if not run_id or not any(Path(log_dir).glob("events.*")):  # early checkpoints have no run_id
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


def read_curves(log_dir: Path) -> dict[str, tuple[list[int], list[float]]]:
    """Return the steps and values of each curve of a run, by tag, as TensorBoard shows them.

    Raises FileNotFoundError if there are no events, and ValueError if they contain no curve.
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


def _ignore_writer_errors(args: threading.ExceptHookArgs) -> None:
    # The thread that writes events also raises its error in `Curves`, which reports it.
    if not _is_event_writer(args.thread):
        threading.__excepthook__(args)


def _is_event_writer(thread: threading.Thread | None) -> bool:
    """Return whether TensorBoard writes events in a thread; its class is private.

    Read in tensorboard 2.21. Without the class, an error of that thread is printed twice.
    """
    try:
        from tensorboard.summary.writer.event_file_writer import _AsyncWriterThread
    except ImportError:
        return False
    return isinstance(thread, _AsyncWriterThread)
