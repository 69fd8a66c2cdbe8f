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
from torch import Tensor, nn

from model import MultiHeadAttentionBlock, ResidualConnection
from translator import Trained, load_trained


@dataclass(frozen=True)
class Options:
    """What `export.py` can be asked; the trailing comments are its help text."""

    output: str  # folder to make
    format: Literal["ctranslate2", "safetensors"] = "ctranslate2"  # what for
    weights: str | None = None  # checkpoint, or its folder (else the run trained last, here)
    quantization: Literal["none", "int8", "int16", "float16", "bfloat16"] = "none"  # of weights


def export_ctranslate2(folder: Path, trained: Trained, quantization: str | None) -> None:
    """Write a model that CTranslate2 runs, its tokenizers, and how to run it, into folder."""
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError:
        raise ValueError("ctranslate2 is not installed: pip install ctranslate2==4.8.5") from None

    model, config = trained.model, trained.config
    spec = TransformerSpec.from_config(
        (config.N, config.N), config.h, pre_norm=config.norm == "pre"
    )
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = "[UNK]", "[SOS]", "[EOS]"
    spec.config.decoder_start_token = "[SOS]"
    spec.config.add_source_bos = spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps
    spec.register_source_vocabulary(trained.tokenizer_src.vocabulary())
    spec.register_target_vocabulary(trained.tokenizer_tgt.vocabulary())

    spec.encoder.embeddings[0].weight = plain(model.src_embed.embedding.weight)
    spec.decoder.embeddings.weight = plain(model.tgt_embed.embedding.weight)
    spec.encoder.position_encodings.encodings = plain(model.src_pos.table)
    spec.decoder.position_encodings.encodings = plain(model.tgt_pos.table)
    set_linear(spec.decoder.projection, model.projection.linear)
    for ours, theirs in ((model.encoder, spec.encoder), (model.decoder, spec.decoder)):
        if config.norm == "pre":
            set_norm(theirs.layer_norm, ours.norm)
        for layer, layer_spec in zip(ours.layers, theirs.layer, strict=True):
            set_attention(layer_spec.self_attention, layer.self_attention, is_self=True)
            if hasattr(layer, "cross_attention"):
                set_attention(layer_spec.attention, layer.cross_attention, is_self=False)
            block = layer.feed_forward.sublayer
            set_linear(layer_spec.ffn.linear_0, block.w_1)
            set_linear(layer_spec.ffn.linear_1, block.w_2)
            set_norm(layer_spec.ffn.layer_norm, layer.feed_forward.norm)
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir()
    spec.save(str(folder))

    text = json.dumps(asdict(config), indent=2)
    (folder / "run.json").write_text(text + "\n", "utf-8")
    (folder / "tokenizer_src.json").write_text(trained.tokenizer_src.to_json(), "utf-8")
    (folder / "tokenizer_tgt.json").write_text(trained.tokenizer_tgt.to_json(), "utf-8")
    (folder / "README.md").write_text(HOW_TO_RUN, "utf-8")


HOW_TO_RUN = """\
    import ctranslate2, tokenizers
    src, tgt = (tokenizers.Tokenizer.from_file(f"tokenizer_{side}.json") for side in ("src", "tgt"))
    translator = ctranslate2.Translator(".")
    tokens = src.encode("a sentence", add_special_tokens=False).tokens
    result = translator.translate_batch([tokens], beam_size=4)[0].hypotheses[0]
    print(tgt.decode([tgt.token_to_id(token) for token in result]))
"""


def plain(tensor: Tensor) -> object:
    return tensor.detach().float().cpu().numpy()


def set_linear(spec: object, *linears: nn.Linear) -> None:
    """Give a spec the weights of a linear map, or of several one below the other."""
    import numpy as np

    spec.weight = np.concatenate([plain(linear.weight) for linear in linears])
    spec.bias = np.concatenate([plain(linear.bias) for linear in linears])


def set_norm(spec: object, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = plain(norm.weight), plain(norm.bias)


def set_attention(spec: object, sublayer: ResidualConnection, is_self: bool) -> None:
    attention: MultiHeadAttentionBlock = sublayer.sublayer
    queries, keys, values = attention.w_q, attention.w_k, attention.w_v
    groups = [[queries, keys, values]] if is_self else [[queries], [keys, values]]
    for linear_spec, linears in zip(spec.linear, [*groups, [attention.w_o]], strict=True):
        set_linear(linear_spec, *linears)
    set_norm(spec.layer_norm, sublayer.norm)


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


def main() -> int:
    options = tyro.cli(Options, prog="export.py", description=__doc__, use_underscores=True)
    try:
        export(options)
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError) as error:
        print(f"export.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
