"""Every knob of a run, its checks, the named presets, and where a run keeps its files."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Config:
    """The settings of one run. The trailing comments are the help text of `train.py`.

    Raises ValueError on construction for values that cannot work, naming the values in conflict.
    """

    # Data
    datasource: str = "opus_books"  # hub name, folder, file, prefix of two files; or a:2,b:1
    lang_src: str = "en"  # language code translated from
    lang_tgt: str = "it"  # language code translated into
    validsource: str | None = None  # validation pairs, named like datasource (else a tenth of it)
    testsource: str | None = None  # test pairs, scored once at the end by the best checkpoint
    val_size: int | None = None  # validate on at most this many pairs (else on all)
    streaming: bool = False  # read the pairs while training on them (else: all of them before)
    pool_size: int = 100_000  # pairs that streaming holds at a time, shuffled and batched by length
    seq_len: int = 350  # longest sentence in tokens, [SOS] and [EOS] included

    # Tokenizers
    tokenizer: Literal["word", "bpe"] = "word"  # whole words, or byte-level sub-words
    vocab_size: int = 30000  # most entries of a vocabulary
    min_frequency: int = 2  # a word, or a merge, seen less often does not enter the vocabulary
    shared_vocab: bool = False  # one vocabulary for both languages
    tokenizer_file: str = "tokenizer_{0}.json"  # name in the weights folder, or a path of yours

    # Model
    d_model: int = 512  # width of embeddings and layers
    N: int = 6  # layers in the encoder, and in the decoder
    h: int = 8  # attention heads
    d_ff: int = 2048  # inner width of the feed-forward blocks
    dropout: float = 0.1  # share dropped in training of embeddings and of what layers add to them
    inner_dropout: float | None = None  # of attention weights, in the feed-forward (else: dropout)
    norm: Literal["pre", "post"] = "pre"  # normalise before each sublayer, or after (paper)
    tie_embeddings: Literal["none", "target", "all"] = "none"  # embeddings tied to the projection

    # Training
    batch_tokens: int = 2048  # budget of a batch, in padded tokens of its longer side
    batch_size: int | None = None  # most sentence pairs in a batch
    accumulate: int = 1  # batches per update
    num_epochs: int = 20  # passes over the training pairs
    lr: float = 7e-4  # highest learning rate, reached after warmup updates
    warmup: int = 2000  # updates of linear warm-up to lr
    schedule: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"  # after it: how the rate falls
    label_smoothing: float = 0.1  # probability spread evenly over the vocabulary
    clip_norm: float = 1.0  # largest gradient norm (0: no clipping)
    max_bad_updates: int = 10  # stop after so many in a row whose loss or gradient is not finite
    seed: int = 0  # of split, initial weights, batches and dropout

    # Validation
    validate_every: int | None = None  # also validate every so many updates
    patience: int = 0  # stop after so many validations without a better score (0: never)
    monitor: Literal["val/bleu", "val/loss"] = "val/bleu"  # the score that picks the best
    beam_size: int = 1  # of the decoding that is scored (1: greedy)

    # Machine
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"  # auto: bf16 where fast
    compile: bool = False  # compile the model with torch.compile
    shard: bool = False  # share the weights out among the processes of torchrun (FSDP)

    # Files
    model_folder: str = "weights"  # a name gives DATASOURCE_name; a path is used as it is
    model_basename: str = "tmodel_"  # start of checkpoint names
    preload: str = "latest"  # start from: latest, best, a finished epoch (07), a file, or none
    save_every: int | None = None  # also save every so many updates
    keep_last: int = 3  # finished epochs to keep, beside the newest and the best (-1: all)
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
            raise ValueError("shard and compile do not go together: choose one")
        if self.shard and self.precision == "fp16":
            raise ValueError("shard does not go with precision fp16: --precision bf16, or fp32")
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
                "streaming cannot hold pairs out: name those to validate on, by --validsource"
            )
        if self.schedule == "linear":
            raise ValueError(
                "streaming does not know its last update, to which schedule (linear) "
                "falls: --schedule inverse_sqrt"
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
# Above these a model is a slip of the keyboard, or a hostile file that wants all memory.
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
    # Half the width and depth, 8 million parameters: for some ten thousand pairs of long sentences,
    # as OPUS Books has. RESULTS.md says why so, here and in tiny.
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

# What a checkpoint fixes for its run: with other values its weights or its position mean nothing.
FIXED_BY_CHECKPOINT = (
    "lang_src", "lang_tgt", "seq_len", "tokenizer", "vocab_size", "min_frequency", "shared_vocab",
    "d_model", "N", "h", "d_ff", "norm", "tie_embeddings", "seed", "val_size",
    "monitor", "streaming",
)  # fmt: skip
# What may change from one epoch to the next, but not inside one.
FIXED_IN_EPOCH = ("batch_tokens", "batch_size", "accumulate")
# What says where to look, and nothing of the run itself.
NOT_OF_THE_RUN = ("preload", "model_folder")


def get_config(preset: str = "base") -> Config:
    """Return the config of a named preset; ValueError lists the names when there is none."""
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; the presets are {', '.join(PRESETS)}")
    return Config(**PRESETS[preset])


def config_from_dict(values: Mapping[str, object]) -> Config:
    """Return the config stored in a checkpoint as plain values, checked like any other."""
    unknown = set(values) - {field.name for field in fields(Config)}
    if unknown:
        raise ValueError(f"the config has fields unknown to this version: {sorted(unknown)}")
    return Config(**values)


def check_same_run(saved: Config, asked: Config, in_epoch: bool) -> list[str]:
    """Refuse a checkpoint that does not fit the asked run.

    Returns a line for each other field that differs (the asked value is the one used).
    Raises ValueError that names the first field which the checkpoint fixes and both its values.
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
            way_on = "--model_folder NAME starts a new run"
            if name in FIXED_IN_EPOCH:
                way_on = "it can change between epochs only: --preload EPOCH"
            raise ValueError(f"{name}: the checkpoint says {old}, you say {new}; {way_on}")
        changes.append(f"{name}: the checkpoint says {old}, you say {new}: using {new}")
    return changes


def get_weights_folder(config: Config) -> Path:
    """Return the folder of a run's checkpoints and tokenizers, such as `opus_books_weights`.

    Its name follows from the config alone, so it stays the same when a file of the datasource
    comes or goes: each comma and each weight in the datasource counts as one between sources.
    """
    if Path(config.model_folder).name != config.model_folder:
        return Path(config.model_folder)
    sources = [re.sub(r":\d+$", "", source) for source in config.datasource.split(",")]
    name = "_".join(Path(source).name.split(".")[0] for source in sources)
    return Path(f"{name}_{config.model_folder}")


def get_weights_file_path(config: Config, epoch: int | str, step: int | None = None) -> Path:
    """Return the path of the checkpoint of a finished epoch (an int), or of `best`.

    With `step` it is the checkpoint inside that epoch after `step` updates of the whole run.
    """
    name = epoch if isinstance(epoch, str) else f"{epoch:02d}"
    inside = "" if step is None else f"_{step}"
    return get_weights_folder(config) / f"{config.model_basename}{name}{inside}.pt"


def get_attempt_path(config: Config) -> Path:
    """Return the path of the note that a run keeps until its first checkpoint."""
    return get_weights_folder(config) / f"{config.model_basename}attempt.json"


def get_lock_path(config: Config) -> Path:
    """Return the path of the file that a run keeps locked while it trains in a folder."""
    return get_weights_folder(config) / "train.lock"


def get_process_path(config: Config) -> Path:
    """Return the path of the file that names the process which holds the lock.

    It lies beside the lock: on Windows nobody else can read or write a locked file.
    """
    return get_weights_folder(config) / "train.process"


def weights_file_paths(config: Config) -> list[Path]:
    """Return a run's checkpoints, oldest first: by epoch, an epoch's end after its inside."""
    return [path for _, _, path in _numbered_weights(config)]


def latest_weights_file_path(config: Config) -> Path | None:
    """Return the newest checkpoint of a run by its number, or None when there is none."""
    paths = weights_file_paths(config)
    return paths[-1] if paths else None


def obsolete_weights_file_paths(config: Config) -> list[Path]:
    """Return the checkpoints that newer ones replace: all but `keep_last` and the newest."""
    numbered = _numbered_weights(config)
    finished = [path for _, inside, path in numbered if inside == float("inf")]
    first = 0 if config.keep_last == -1 else max(0, len(finished) - config.keep_last)
    return [path for _, _, path in numbered[:-1] if path not in finished[first:]]


def newer_weights_file_paths(config: Config, epoch: int, step: int) -> list[Path]:
    """Return the checkpoints beyond a run that is in `epoch`, after `step` updates in all."""
    return [
        path
        for number, inside, path in _numbered_weights(config)
        if (number >= epoch if inside == float("inf") else inside > step)
    ]


def last_weights_file_paths(folder: Path, basename: str, count: int) -> list[Path]:
    """Return a run's newest checkpoints of finished epochs, oldest first, to be averaged.

    Raises FileNotFoundError when there are too few.
    """
    matches = [
        (re.fullmatch(rf"{re.escape(basename)}(\d+)\.pt", path.name), path)
        for path in folder.glob("*.pt")
    ]
    numbered = sorted((int(match[1]), path) for match, path in matches if match)
    if len(numbered) < count:
        raise FileNotFoundError(
            f"{folder} has {len(numbered)} checkpoints of finished epochs to average, not {count}; "
            "train with a higher --keep_last"
        )
    return [path for _, path in numbered[-count:]]


def _numbered_weights(config: Config) -> list[tuple[int, float, Path]]:
    numbered = []
    for path in get_weights_folder(config).glob("*.pt"):
        match = re.fullmatch(rf"{re.escape(config.model_basename)}(\d+)(?:_(\d+))?\.pt", path.name)
        if match:
            inside = float("inf") if match[2] is None else int(match[2])
            numbered.append((int(match[1]), inside, path))
    return sorted(numbered)


def _check_types(config: Config) -> None:
    hints = get_type_hints(Config)
    for field in fields(Config):
        value, hint = getattr(config, field.name), hints[field.name]
        if isinstance(value, str) and not _is_text(value):
            raise ValueError(
                f"{field.name} ({value!r}) is no text in this locale: set PYTHONUTF8=1 to read it "
                "as UTF-8"
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
    """Tell whether a string holds characters alone, and no bytes that could not be decoded."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
