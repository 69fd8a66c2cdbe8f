"""Export a checkpoint: python export.py --format ctranslate2|safetensors --output DIR

`ctranslate2` is a model for the engine of that name, which translates in production; `safetensors`
is weights and config for other uses.
"""

import json
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro

from console import run_script
from translation.engine import export_ctranslate2
from translation.trained import Trained, load_trained


@dataclass(frozen=True)
class Options:
    """What `export.py` can be asked; the trailing comments are its help text."""

    output: str  # folder to make
    format: Literal["ctranslate2", "safetensors"] = "ctranslate2"  # what for
    weights: str | None = None  # checkpoint, or its folder (else the run trained last, here)
    quantization: Literal["none", "int8", "int16", "float16", "bfloat16"] = "none"  # of weights


def export_safetensors(folder: Path, trained: Trained) -> None:
    """Write weights and config into folder; tied weights under each of their names."""
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise ValueError("safetensors is not installed: pip install safetensors") from None

    folder.mkdir()
    weights = {name: weight.clone() for name, weight in trained.model.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    text = json.dumps(asdict(trained.config), indent=2)
    (folder / "config.json").write_text(text + "\n", "utf-8")


def export(options: Options) -> None:
    """Write the folder that the options ask for, whole or not at all."""
    folder = Path(options.output)
    if folder.exists():
        raise ValueError(f"--output {folder} is there already; name a folder to make")
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder of --output {folder} is not there")
    if options.format == "safetensors" and options.quantization != "none":
        raise ValueError(f"--quantization {options.quantization} is for --format ctranslate2")
    trained = load_trained(options.weights)
    made = Path(tempfile.mkdtemp(dir=folder.absolute().parent))
    temporary = made / folder.name
    try:
        if options.format == "ctranslate2":
            quantization = None if options.quantization == "none" else options.quantization
            export_ctranslate2(temporary, trained, quantization)
        else:
            export_safetensors(temporary, trained)
        temporary.rename(folder)
    finally:
        shutil.rmtree(made)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {options.format}, {size / 2**20:,.1f} MiB")


def export_by_arguments() -> int:
    export(tyro.cli(Options, prog="export.py", description=__doc__, use_underscores=True))
    return 0


def main() -> int:
    return run_script("export.py", export_by_arguments)


if __name__ == "__main__":
    sys.exit(main())
