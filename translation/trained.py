"""A checkpoint, loaded to be used: its model, its tokenizers, its config."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

import checkpoint
from config import Config, config_from_dict, last_weights_file_paths
from corpus.tokenizer import Tokenizer, get_saved_tokenizers
from model import Transformer, build_transformer


@dataclass(frozen=True)
class Trained:
    """What a checkpoint holds for translating, its model on the CPU."""

    path: Path
    global_step: int
    model: Transformer
    config: Config
    tokenizer_src: Tokenizer
    tokenizer_tgt: Tokenizer


def load_trained(weights: str | None, average: int = 1) -> Trained:
    """Load the checkpoint that weights names, or the mean of the last epochs' of its run.

    Raises FileNotFoundError or ValueError, in one line, before memory is taken for what the file
    does not hold.
    """
    place = Path(weights) if weights else None
    path = find_weights_file_path(place)
    try:
        state = checkpoint.load(path)
    except ValueError as error:
        if path == place:
            raise
        others = [each for each in path.parent.glob("*.pt") if each != path]
        way_on = f"any other file in {path.parent}" if others else "another file or folder"
        raise ValueError(f"{error}; --weights takes {way_on}") from None
    if average > 1:
        if path == place:
            raise ValueError(f"--average {average} takes a folder, not the checkpoint {path}")
        basename = config_from_dict(state["config"]).model_basename
        *others, path = last_weights_file_paths(path.parent, basename, average)
        state = checkpoint.average([*others, path])
        note(f"the mean of the weights in {', '.join(each.name for each in others)} and")
    config = config_from_dict(state["config"])
    tokenizers = get_saved_tokenizers(state)
    held = sum(weight.numel() for weight in state["model"].values())
    least = config.N * config.d_model * (config.d_model + config.d_ff)
    if least > held:
        raise ValueError(
            f"the checkpoint {path} holds {held:,} numbers, its config asks for over {least:,}"
        )
    model = build_transformer(*(each.size for each in tokenizers), **config.model_arguments())
    checkpoint.load_weights(model, state, path)
    return Trained(path, state["global_step"], model.eval(), config, *tokenizers)


def find_weights_file_path(place: Path | None) -> Path:
    """Return the checkpoint to translate with: the best of a folder, else its newest.

    `place` is that folder or a file; None looks into the folders in the current one and takes
    the one trained last. Checkpoints of other programs are skipped. Raises FileNotFoundError when
    there is none.
    """
    if place is not None and not place.is_dir():
        return place
    # An epoch has two digits or more, a step no leading zero: exp2_07 is epoch 7 of exp2_.
    pattern = re.compile(r".*?(best|(\d{2,})(?:_([1-9]\d*))?)\.pt")

    def rank(path: Path) -> tuple[float, float]:
        name, epoch, step = pattern.fullmatch(path.name).groups()
        if name == "best":
            return float("inf"), 0
        return int(epoch), float("inf") if step is None else int(step)

    named = [
        path
        for path in (Path().glob("*/*.pt") if place is None else place.glob("*.pt"))
        if pattern.fullmatch(path.name)
    ]
    ours = {path: checkpoint.is_ours(path) for path in named}
    candidates = [path for path in named if ours[path] is not False]
    # A damaged file is taken for ours where whole ones lie beside it, or no whole one anywhere.
    folders = {path.parent for path in named if ours[path]} or {path.parent for path in candidates}
    if not folders:
        where = place or "the folders here"
        raise FileNotFoundError(f"no checkpoint in {where}: train first, or name one by --weights")
    in_ours = [path for path in candidates if path.parent in folders]
    newest = max(in_ours, key=lambda path: path.stat().st_mtime)
    return max((path for path in in_ours if path.parent == newest.parent), key=rank)


def note(message: str) -> None:
    """Print to standard error, so that standard output holds translations only."""
    if sys.stderr is not None:
        tqdm.write(message, file=sys.stderr)
