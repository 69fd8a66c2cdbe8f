"""CTranslate2, an engine for production: writing a model for it, and translating with it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from config import Config, config_from_dict
from console import print_note
from corpus.tokenizer import TokenizerPair, load_tokenizer
from device import get_device
from model import MultiHeadAttentionBlock, ResidualConnection, Transformer
from translation.budget import CPU_TOKENS
from translation.decode import EXTRA_LENGTH, Hypothesis, length_penalty
from translation.loading import LoadedModel
from translation.options import Options
from translation.translator import Translator


def import_ctranslate2() -> ModuleType:
    """Return the optional library; raises ValueError with the pip command if it is missing."""
    try:
        import ctranslate2
    except ImportError:
        raise ValueError("ctranslate2 is not installed: pip install ctranslate2==4.8.5") from None
    return ctranslate2


def to_spec(
    model: Transformer, config: Config, src_vocabulary: list[str], tgt_vocabulary: list[str]
) -> object:
    """Return weights and vocabularies of a model as a `ctranslate2.specs.TransformerSpec`."""
    spec = import_ctranslate2().specs.TransformerSpec.from_config(
        (config.N, config.N), config.h, pre_norm=config.norm == "pre"
    )
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = "[UNK]", "[SOS]", "[EOS]"
    spec.config.decoder_start_token = "[SOS]"
    spec.config.add_source_bos = spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps
    spec.register_source_vocabulary(src_vocabulary)
    spec.register_target_vocabulary(tgt_vocabulary)

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
    return spec


def export_ctranslate2(folder: Path, loaded: LoadedModel, quantization: str | None) -> None:
    """Write a model for CTranslate2, its tokenizers and a README into a new folder."""
    tokenizers = loaded.tokenizers
    spec = to_spec(loaded.model, loaded.config, *(each.vocabulary() for each in tokenizers))
    spec.optimize(quantization=quantization)
    folder.mkdir()
    spec.save(str(folder))

    text = json.dumps(asdict(loaded.config), indent=2)
    (folder / "run.json").write_text(text + "\n", "utf-8")
    for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
        (folder / f"tokenizer_{side}.json").write_text(tokenizer.to_json(), "utf-8")
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
    """Return a tensor as a float32 NumPy array."""
    return tensor.detach().float().cpu().numpy()


def set_linear(spec: object, *linears: nn.Linear) -> None:
    """Set the weights of a spec from one linear map, or from several, concatenated by rows."""
    import numpy as np

    spec.weight = np.concatenate([plain(linear.weight) for linear in linears])
    spec.bias = np.concatenate([plain(linear.bias) for linear in linears])


def set_norm(spec: object, norm: nn.LayerNorm) -> None:
    """Set the weights of a spec from a layer normalisation."""
    spec.gamma, spec.beta = plain(norm.weight), plain(norm.bias)


def set_attention(spec: object, sublayer: ResidualConnection, is_self: bool) -> None:
    """Set the weights of a spec from an attention block and its layer normalisation."""
    attention: MultiHeadAttentionBlock = sublayer.sublayer
    queries, keys, values = attention.w_q, attention.w_k, attention.w_v
    groups = [[queries, keys, values]] if is_self else [[queries], [keys, values]]
    for linear_spec, linears in zip(spec.linear, [*groups, [attention.w_o]], strict=True):
        set_linear(linear_spec, *linears)
    set_norm(spec.layer_norm, sublayer.norm)


@dataclass(frozen=True)
class ExportedTranslator(Translator):
    """Translates with a model that `export.py` wrote for CTranslate2, by that engine.

    Its translations equal ours except with rules (min_length, no_repeat_ngram, ban_unknown): the
    engine renormalises the probabilities of the allowed tokens, and may choose others.
    """

    engine: object  # a ctranslate2.Translator; `model` is None

    @property
    def budget(self) -> int:
        """The token budget of a batch."""
        return self.options.batch_tokens or CPU_TOKENS

    def decode(self, src: Tensor, src_mask: Tensor) -> list[list[Hypothesis]]:
        """Return the hypotheses of src (B, S), best first."""
        lens = src_mask.sum(dim=(1, 2, 3)).tolist()
        found: list[list[Hypothesis]] = [[] for _ in lens]
        # The engine has one length limit per call, so sources of one length go together.
        for length in sorted(set(lens)):
            rows = [row for row, each in enumerate(lens) if each == length]
            limit = min(length + EXTRA_LENGTH, self.config.seq_len)
            for row, result in zip(rows, self.run(src[rows, :length], limit), strict=True):
                found[row] = self.rank(result)
        return found

    def run(self, src: Tensor, limit: int) -> list:
        """Return the engine's results for src (B, S), of at most `limit` tokens each."""
        options, to_token = self.options, self.tokenizers.src.backend.id_to_token
        is_forced = options.min_length or options.no_repeat_ngram
        try:
            return self.engine.translate_batch(
                # The engine adds [SOS] and [EOS].
                [[to_token(i) for i in row[1:-1]] for row in src.tolist()],
                beam_size=options.beam_size,
                num_hypotheses=options.beam_size,
                length_penalty=options.alpha,
                min_decoding_length=min(options.min_length, limit),
                no_repeat_ngram_size=options.no_repeat_ngram,
                disable_unk=options.ban_unknown,
                suppress_sequences=[["[PAD]"], ["[SOS]"]] if is_forced else None,
                max_decoding_length=limit,
                return_scores=True,
                return_end_token=True,
            )
        except RuntimeError as error:
            raise ValueError(f"the exported model cannot be run: {error}") from None

    def rank(self, result: object) -> list[Hypothesis]:
        """Return the engine's hypotheses, best first by our length penalty."""
        alpha = self.options.alpha if self.options.beam_size > 1 else 0.0
        found = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [self.tokenizers.tgt.backend.token_to_id(token) for token in tokens]
            total = score * len(tokens) ** alpha  # the engine divides by this
            found.append(
                Hypothesis(ids, total, total / length_penalty(len(ids), self.options.alpha))
            )
        found.sort(key=lambda hypothesis: -hypothesis.score)
        return found[: self.options.n_best]


def load_exported(options: Options, folder: Path) -> ExportedTranslator:
    """Load a folder that `export.py --format ctranslate2` wrote.

    Raises ValueError if it is damaged, or for options that need our own model.
    """
    ctranslate2 = import_ctranslate2()
    device = "cuda" if get_device(options.device).type == "cuda" else "cpu"
    for name in (
        "attention",
        "target",
        "average",
        "precision",
        "prefix",
        "replace_unknown",
        "sample",
    ):
        if getattr(options, name) != getattr(Options(), name):
            raise ValueError(f"--{name} needs a checkpoint; {folder} is an exported model")
    files = [folder / f"tokenizer_{side}.json" for side in ("src", "tgt")]
    tokenizers = TokenizerPair(*map(load_tokenizer, files))
    try:
        values = json.loads((folder / "run.json").read_text("utf-8"))
        files = [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
        if not all(file.exists() for file in files):
            files = [folder / "shared_vocabulary.json"] * 2
        words = [json.loads(file.read_text("utf-8")) for file in files]
        engine = ctranslate2.Translator(str(folder), device=device)
    except (RuntimeError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{folder} is damaged or was not written by export.py: {reason}") from None
    if not isinstance(values, dict) or words != [each.vocabulary() for each in tokenizers]:
        raise ValueError(f"{folder} is damaged: its vocabularies and its tokenizers differ")
    config = config_from_dict(values)
    print_note(f"{folder}: {config.lang_src} -> {config.lang_tgt}, by CTranslate2")
    return ExportedTranslator(None, tokenizers, config, torch.device("cpu"), options, engine)
