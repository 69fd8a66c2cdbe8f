"""Draw the training curves of runs: python curves.py RUN [RUN ...] --output FILE.png

A RUN is the TensorBoard folder of a run, such as runs/tmodel.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from console import run_script
from training.tensorboard import read_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def main() -> int:
    return run_script("curves.py", draw)


@dataclass(frozen=True)
class Options:
    """The options of `curves.py`; the trailing comments are their help text."""

    runs: tyro.conf.Positional[tuple[str, ...]]  # TensorBoard folders of runs
    output: str  # picture to write: .png, .pdf or .svg

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("name a run's folder, such as runs/tmodel")
        if Path(self.output).suffix not in (".png", ".pdf", ".svg"):
            raise ValueError(f"--output {self.output!r} must end in .png, .pdf or .svg")


def draw() -> int:
    """Write the picture that the command line asks for; return the exit code."""
    options = tyro.cli(Options, prog="curves.py", description=__doc__, use_underscores=True)
    curves = {run: read_curves(Path(run)) for run in options.runs}
    draw_curves(curves).savefig(options.output, dpi=100)
    return 0


def draw_curves(runs: dict[str, dict[str, tuple[list[int], list[float]]]]) -> "Figure":
    """Return a picture of the losses and the validation BLEU over the updates.

    `runs` has for each run's name what `read_curves` returns.
    """
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
    for panel, title in ((losses, "loss, nats per token"), (bleu, "validation BLEU")):
        panel.set_title(title)
        panel.set_xlabel("updates")
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    sys.exit(main())
