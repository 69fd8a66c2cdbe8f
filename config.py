"""The settings of a run, their checks, and the named presets."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args, get_origin, get_type_hints

Monitor = Literal["val/bleu", "val/chrf", "val/cer", "val/wer", "val/loss"]


@dataclass(frozen=True)
class Config:
    """The settings of one run; the trailing comments are the help text of `train.py`.

    Raises ValueError for invalid values, and names the values in conflict.
    """

    # Data
    datasource: str = "opus_books"  # hub name, folder, file, prefix of two files; or a:2,b:1
    lang_src: str = "en"  # language code translated from
    lang_tgt: str = "it"  # language code translated into
    validsource: str | None = None  # validation pairs, as datasource (None: a tenth of it)
    testsource: str | None = None  # test pairs, scored at the end with the best checkpoint
    val_size: int | None = None  # validate on at most this many pairs (None: all)
    streaming: bool = False  # read the pairs while training, not all of them before
    pool_size: int = 100_000  # streaming: pairs in memory at a time, shuffled and batched by length
    seq_len: int = 350  # longest sentence in tokens, including [SOS] and [EOS]

    # Tokenizers
    tokenizer: Literal["word", "bpe"] = "word"  # whole words, or byte-level sub-words
    vocab_size: int = 30000  # maximum number of vocabulary entries
    min_frequency: int = 2  # a rarer word or merge does not enter the vocabulary
    shared_vocab: bool = False  # one vocabulary for both languages
    tokenizer_file: str = "tokenizer_{0}.json"  # name in the weights folder, or your own path

    # Model
    d_model: int = 512  # width of embeddings and layers
    N: int = 6  # layers in the encoder, and in the decoder
    h: int = 8  # attention heads
    d_ff: int = 2048  # inner width of the feed-forward blocks
    dropout: float = 0.1  # dropout rate of embeddings and of sublayer outputs
    inner_dropout: float | None = None  # of attention weights, inside feed-forward (None: dropout)
    norm: Literal["pre", "post"] = "pre"  # normalise before each sublayer, or after (paper)
    tie_embeddings: Literal["none", "target", "all"] = "none"  # embeddings tied to the projection

    # Training
    batch_tokens: int = 2048  # token budget of a batch: padded tokens of its longer side
    batch_size: int | None = None  # maximum number of pairs in a batch (None: any)
    accumulate: int = 1  # batches per update
    num_epochs: int = 20  # passes over the training pairs
    lr: float = 7e-4  # peak learning rate, reached after warmup updates
    warmup: int = 2000  # updates of linear warm-up to lr
    schedule: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"  # how lr falls after it
    label_smoothing: float = 0.1  # probability spread evenly over the vocabulary
    clip_norm: float = 1.0  # maximum gradient norm (0: no clipping)
    max_bad_updates: int = 10  # stop after this many skipped (non-finite) updates in a row
    seed: int = 0  # of split, initial weights, batches and dropout

    # Validation
    validate_every: int | None = None  # also validate after every N updates
    patience: int = 0  # stop after N validations without a better score (0: never)
    monitor: Monitor = "val/bleu"  # the score that selects the best checkpoint
    beam_size: int = 1  # of the scored decoding (1: greedy)

    # Machine
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"  # auto: bf16 where fast
    compile: bool = False  # compile the model with torch.compile
    shard: bool = False  # shard the weights over the processes of torchrun (FSDP)

    # Files
    model_folder: str = "weights"  # a name gives DATASOURCE_name; a path is used unchanged
    model_basename: str = "tmodel_"  # start of checkpoint names
    preload: str = "latest"  # resume from: latest, best, a finished epoch (07), a file, or none
    save_every: int | None = None  # also save after every N updates
    keep_last: int = 3  # finished epochs to keep, besides the newest and the best (-1: all)
    experiment_name: str = "runs/tmodel"  # TensorBoard folder
    log_every: int = 50  # updates between two points of the training curves

    def __post_init__(self) -> None:
        _check_types(self)
        for name in ("lang_src", "lang_tgt"):
            code = getattr(self, name)
            if not re.fullmatch(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*", code):
                raise ValueError(f"{name} ({code!r}) is not a language code such as en or pt-br")
        if self.lang_src.lower() == self.lang_tgt.lower():
            raise ValueError(
                f"lang_src ({self.lang_src}) and lang_tgt ({self.lang_tgt}) are the same language"
            )
        for name in ("datasource", "preload", "model_folder", "experiment_name"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty")
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name} ({value}) must be at least {least}")
            most = _AT_MOST.get(name, 2**31 - 1)
            if value is not None and value > most:
                raise ValueError(f"{name} ({value}) must be at most {most}")
        for name in ("dropout", "inner_dropout", "label_smoothing"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name} ({value}) must be in [0, 1)")
        if not 0 < self.lr < float("inf"):
            raise ValueError(f"lr ({self.lr}) must be a number above 0")
        if self.d_model % self.h:
            raise ValueError(f"h ({self.h}) must divide d_model ({self.d_model})")
        if self.d_model % 2:
            raise ValueError(
                f"d_model ({self.d_model}) must be even: positions are sine and cosine"
            )
        if self.batch_tokens < self.seq_len:
            raise ValueError(
                f"batch_tokens ({self.batch_tokens}) must be at least seq_len ({self.seq_len}): "
                "raise --batch_tokens or lower --seq_len"
            )
        if self.streaming:
            self._check_streaming()
        if self.tie_embeddings == "all" and not self.shared_vocab:
            raise ValueError("tie_embeddings (all) needs one vocabulary: add --shared_vocab")
        if self.shard and self.compile:
            raise ValueError("shard and compile cannot be combined: choose one")
        if self.shard and self.precision == "fp16":
            raise ValueError("shard cannot be combined with precision fp16: use bf16 or fp32")
        if self.keep_last < -1:
            raise ValueError(f"keep_last ({self.keep_last}) must be 0 or more, or -1 for all")
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device):
            raise ValueError(f"device ({self.device!r}) must be auto, cpu, cuda, cuda:N or mps")
        if not re.fullmatch(r"[\w.-]+", self.model_basename):
            raise ValueError(f"model_basename ({self.model_basename!r}) must be a plain file name")
        if not re.fullmatch(r"[^{}]*\{0\}[^{}]*", self.tokenizer_file):
            raise ValueError(
                f"tokenizer_file ({self.tokenizer_file!r}) needs {{0}} for the language code, once"
            )

    def _check_streaming(self) -> None:
        if self.validsource is None and self.datasource != "phrasebook":
            raise ValueError(
                "streaming cannot split pairs for validation: name them with --validsource"
            )
        if self.schedule == "linear":
            raise ValueError(
                "streaming does not know the number of updates, which schedule (linear) needs: "
                "--schedule inverse_sqrt"
            )

    def model_arguments(self) -> dict[str, object]:
        """Return the keyword arguments of `build_transformer` that this config decides."""
        return {
            "src_seq_len": self.seq_len,
            "tgt_seq_len": self.seq_len,
            "d_model": self.d_model,
            "N": self.N,
            "h": self.h,
            "dropout": self.dropout,
            "d_ff": self.d_ff,
            "norm": self.norm,
            "tie_embeddings": self.tie_embeddings,
            "inner_dropout": self.inner_dropout,
        }


_AT_LEAST = {
    "val_size": 1, "pool_size": 1, "seq_len": 4, "vocab_size": 5, "min_frequency": 1, "d_model": 2,
    "N": 1, "h": 1, "beam_size": 1,
    "d_ff": 1, "batch_tokens": 4, "batch_size": 1, "accumulate": 1, "num_epochs": 1, "warmup": 1,
    "clip_norm": 0, "max_bad_updates": 1, "seed": 0, "validate_every": 1, "patience": 0,
    "save_every": 1, "log_every": 1,
}  # fmt: skip
# Larger values are a typing mistake, or a hostile file that asks for all memory.
_AT_MOST = {
    "seq_len": 100_000, "d_model": 65_536, "N": 1000, "d_ff": 1_000_000, "seed": 2**63 - 1
}  # fmt: skip

PRESETS: dict[str, dict[str, object]] = {
    # The paper's base model on OPUS Books.
    "base": {},
    # Learns the built-in phrasebook in minutes on two CPU cores.
    "demo": {
        "datasource": "phrasebook", "seq_len": 64, "d_model": 128, "N": 2, "h": 4, "d_ff": 512,
        "num_epochs": 8, "lr": 3e-3, "warmup": 400, "experiment_name": "runs/demo",
    },
    # Half the width and depth, 8 million parameters: for tens of thousands of long pairs, such as
    # OPUS Books. docs/results.md has the experiments behind `small` and `tiny`.
    "small": {
        "d_model": 256, "N": 3, "h": 8, "d_ff": 1024, "dropout": 0.25, "inner_dropout": 0.0,
        "tokenizer": "bpe", "vocab_size": 8000, "shared_vocab": True, "tie_embeddings": "all",
        "experiment_name": "runs/small",
    },
    # 3 million parameters, for about 30,000 pairs of short sentences.
    "tiny": {
        "d_model": 160, "N": 4, "h": 4, "d_ff": 320, "dropout": 0.25, "inner_dropout": 0.0,
        "tokenizer": "bpe", "vocab_size": 5500, "shared_vocab": True, "tie_embeddings": "all",
        "lr": 3e-3, "warmup": 800, "schedule": "linear", "num_epochs": 48, "keep_last": 10,
        "experiment_name": "runs/tiny",
    },
}  # fmt: skip

# Fixed by the checkpoint: with other values its weights or its position would be invalid.
FIXED_BY_CHECKPOINT = (
    "lang_src", "lang_tgt", "seq_len", "tokenizer", "vocab_size", "min_frequency", "shared_vocab",
    "d_model", "N", "h", "d_ff", "norm", "tie_embeddings", "seed", "val_size",
    "monitor", "streaming",
)  # fmt: skip
# May change from one epoch to the next, but not inside one.
FIXED_IN_EPOCH = ("batch_tokens", "batch_size", "accumulate")
# Say where to look for a checkpoint; not part of the run itself.
NOT_OF_THE_RUN = ("preload", "model_folder")


def get_config(preset: str = "base") -> Config:
    """Return the config of a preset; raises ValueError with the names for an unknown one."""
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; the presets are {', '.join(PRESETS)}")
    return Config(**PRESETS[preset])


def config_from_dict(values: Mapping[str, object]) -> Config:
    """Return the config that a checkpoint stores as plain values; raises ValueError if invalid."""
    unknown = set(values) - {field.name for field in fields(Config)}
    if unknown:
        raise ValueError(
            f"the config has fields unknown to this version, {sorted(unknown)}: use the version "
            "that wrote it"
        )
    return Config(**values)


def check_same_run(saved: Config, asked: Config, in_epoch: bool) -> list[str]:
    """Return a line for each changed setting of a resumed run; the asked value is used.

    Raises ValueError for a setting that the checkpoint fixes, with both values. `in_epoch` says
    that the checkpoint is inside an epoch.
    """
    fixed = FIXED_BY_CHECKPOINT + (FIXED_IN_EPOCH if in_epoch else ())
    if asked.streaming:
        fixed += ("pool_size",)
    changes = []
    for name, old in asdict(saved).items():
        new = getattr(asked, name)
        if new == old or name in NOT_OF_THE_RUN:
            continue
        if name in fixed:
            remedy = "--model_folder NAME starts a new run"
            if name in FIXED_IN_EPOCH:
                remedy = "it can change between epochs only: --preload EPOCH"
            raise ValueError(f"{name}: the checkpoint says {old}, you say {new}; {remedy}")
        changes.append(f"{name}: the checkpoint says {old}, you say {new}: using {new}")
    return changes


def _check_types(config: Config) -> None:
    hints = get_type_hints(Config)
    for field in fields(Config):
        value, hint = getattr(config, field.name), hints[field.name]
        if isinstance(value, str) and not _is_text(value):
            raise ValueError(
                f"{field.name} ({value!r}) is not valid text in this locale: set PYTHONUTF8=1 to "
                "read it as UTF-8"
            )
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                choices = ", ".join(get_args(hint))
                raise ValueError(f"{field.name} ({value!r}) must be one of {choices}")
            continue
        allowed = get_args(hint) or (hint,)
        if float in allowed:
            allowed += (int,)
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            names = " or ".join(kind.__name__ for kind in allowed if kind is not type(None))
            raise ValueError(f"{field.name} ({value!r}) must be of type {names}")


def _is_text(value: str) -> bool:
    """Return whether a string has only characters, and no bytes that could not be decoded."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
