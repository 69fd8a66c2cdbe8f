"""Loading a checkpoint to translate: its model, its tokenizers, its config."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import checkpoint
from checkpoint import WeightsFolder, position_of
from config import Config, config_from_dict
from console import print_note
from corpus.tokenizer import TokenizerPair, get_saved_tokenizers
from model import Transformer, build_transformer


@dataclass(frozen=True)
class LoadedModel:
    """What translating needs of a checkpoint, with the model on the CPU, in evaluation mode."""

    path: Path
    global_step: int
    model: Transformer
    config: Config
    tokenizers: TokenizerPair


def load_model(weights: str | None, average: int = 1) -> LoadedModel:
    """Load the checkpoint that `weights` names, or the mean of the last epochs of its run.

    Raises FileNotFoundError or ValueError, in one line, before it allocates memory for a config
    that the file's weights do not fit.
    """
    place = Path(weights) if weights else None
    path = find_weights_file_path(place)
    try:
        state = checkpoint.load(path)
    except ValueError as error:
        if path == place:
            raise
        others = [each for each in path.parent.glob("*.pt") if each != path]
        remedy = f"any other file in {path.parent}" if others else "another file or folder"
        raise ValueError(f"{error}; --weights takes {remedy}") from None
    if average > 1:
        if path == place:
            raise ValueError(f"--average {average} takes a folder, not the checkpoint {path}")
        basename = config_from_dict(state["config"]).model_basename
        *others, path = WeightsFolder(path.parent, basename).last_epochs(average)
        state = average_checkpoints([*others, path])
        print_note(f"averaging the weights of {', '.join(each.name for each in (*others, path))}")
    config = config_from_dict(state["config"])
    tokenizers = get_saved_tokenizers(state)
    held = sum(weight.numel() for weight in state["model"].values())
    least = config.N * config.d_model * (config.d_model + config.d_ff)
    if least > held:
        raise ValueError(
            f"the checkpoint {path} is damaged: it has {held:,} weights, its config needs at least "
            f"{least:,}; --weights takes another file"
        )
    model = build_transformer(*tokenizers.sizes, **config.model_arguments())
    checkpoint.load_weights(model, state, path)
    return LoadedModel(path, state["global_step"], model.eval(), config, tokenizers)


def average_checkpoints(paths: Iterable[Path]) -> dict:
    """Return the last of several training states of a run, with the mean of all their weights.

    The paper averages its last checkpoints too (section 6.1). Raises like `load`, and ValueError
    for states of different models or runs.
    """
    first, *others = paths
    state = checkpoint.load(first)
    data = state["data"]
    sums = {name: weight.double() for name, weight in state["model"].items()}
    for path in others:
        before, state = state["model"], checkpoint.load(path)
        checkpoint.check_tensors(state["model"], before, f"the checkpoint {path}")
        if state["data"] != data:
            raise ValueError(
                f"{path} and {first} cannot be averaged: they were trained on different pairs; "
                "average checkpoints of one run"
            )
        for name, weight in state["model"].items():
            sums[name] += weight
    count = 1 + len(others)
    mean = {name: (sums[name] / count).to(w.dtype) for name, w in state["model"].items()}
    return {**state, "model": mean}


def find_weights_file_path(place: Path | None) -> Path:
    """Return the checkpoint to translate with: the best one of a folder, else its newest.

    `place` is that folder or a file. None means the folder trained last among those in the current
    folder. Skips checkpoints of other programs. Raises FileNotFoundError if there is none.
    """
    if place is not None and not place.is_dir():
        return place
    paths = Path().glob("*/*.pt") if place is None else place.glob("*.pt")
    named = [path for path in paths if position_of(path)]
    ours = {path: checkpoint.is_ours(path) for path in named}
    candidates = [path for path in named if ours[path] is not False]
    # A damaged file counts as ours if whole ones lie beside it, or if there is no whole one at all.
    folders = {path.parent for path in named if ours[path]} or {path.parent for path in candidates}
    if not folders:
        where = place or "the folders here"
        raise FileNotFoundError(f"no checkpoint in {where}: train first, or name one by --weights")
    in_ours = [path for path in candidates if path.parent in folders]
    newest = max(in_ours, key=lambda path: path.stat().st_mtime)
    return max((path for path in in_ours if path.parent == newest.parent), key=position_of)
