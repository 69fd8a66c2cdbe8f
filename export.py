"""Export a checkpoint: python export.py --format ctranslate2|safetensors --output DIR

`ctranslate2` writes a model for the engine CTranslate2, which translates in production.
`safetensors` writes weights and config for other uses.
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
from translation.loading import LoadedModel, load_model


def main() -> int:
    return run_script("export.py", export_by_arguments)


def export_by_arguments() -> int:
    """Export as the command line says; return the exit code."""
    export(tyro.cli(Options, prog="export.py", description=__doc__, use_underscores=True))
    return 0


@dataclass(frozen=True)
class Options:
    """The options of `export.py`; the trailing comments are their help text."""

    output: str  # folder to write; it must not exist
    format: Literal["ctranslate2", "safetensors"] = "ctranslate2"  # what to write
    weights: str | None = None  # checkpoint, or its folder (None: the run trained last)
    quantization: Literal["none", "int8", "int16", "float16", "bfloat16"] = "none"  # of weights


def export(options: Options) -> None:
    """Write the folder that the options ask for, whole or not at all.

    Raises ValueError or FileNotFoundError for a user's mistake.
    """
    folder = Path(options.output)
    if folder.exists():
        raise ValueError(f"--output {folder} exists already; name a new folder")
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"the parent folder of --output {folder} does not exist")
    if options.format == "safetensors" and options.quantization != "none":
        raise ValueError(f"--quantization {options.quantization} is for --format ctranslate2")
    loaded = load_model(options.weights)
    made = Path(tempfile.mkdtemp(dir=folder.absolute().parent))
    temporary = made / folder.name
    try:
        if options.format == "ctranslate2":
            quantization = None if options.quantization == "none" else options.quantization
            export_ctranslate2(temporary, loaded, quantization)
        else:
            export_safetensors(temporary, loaded)
        temporary.rename(folder)
    finally:
        shutil.rmtree(made)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {options.format}, {size / 2**20:,.1f} MiB")


def export_safetensors(folder: Path, loaded: LoadedModel) -> None:
    """Write weights and config into a new folder; tied weights under each of their names.

    Raises ValueError if safetensors is not installed.
    """
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise ValueError("safetensors is not installed: pip install safetensors") from None

    folder.mkdir()
    weights = {name: weight.clone() for name, weight in loaded.model.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    text = json.dumps(asdict(loaded.config), indent=2)
    (folder / "config.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
