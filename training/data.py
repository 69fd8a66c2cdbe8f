"""The pairs that a run trains, validates and is tested on, and their tokenizers."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint import WeightsFolder
from config import Config
from corpus.cache import checked_cache
from corpus.pairs import fingerprint, iterate, load_pairs, without_weights
from corpus.splitting import cap_pairs, split_pairs
from corpus.tokenizer import Tokenizer, TokenizerPair, get_saved_tokenizers, load_tokenizer
from corpus.vocabulary import build_tokenizer
from dataset import BilingualDataset
from training.streaming import Stream, check_one_source, first_pairs

if TYPE_CHECKING:
    from datasets import Dataset

# More pairs cost time and do not improve a tokenizer.
MOST_FOR_TOKENIZERS = 1_000_000
# In text like the training text 2 to 5 % of the words are unknown, in noisy web text 15 %. In text
# without blanks, which `word` splits at punctuation only, it is more than 40 %.
MUCH_UNKNOWN = 0.2


@dataclass(frozen=True)
class RunData:
    """The encoded pairs of a run."""

    train: BilingualDataset  # for a stream, the current pool
    valid: BilingualDataset
    test: BilingualDataset | None
    fingerprint: str  # hash of training texts (of a stream: its first pool) and validation texts
    stream: Stream | None = None
    position: str = ""  # where in the stream `train` begins
    next_position: str = ""  # where the next pool begins; "" if the epoch ends with this one


@checked_cache()
def get_ds(
    config: Config,
    state: dict | None = None,
    new_tokenizers: Sequence[Path] | None = None,
    tokenizers: TokenizerPair | None = None,
) -> RunData:
    """Return the encoded pairs of a run. Writes nothing into its weights folder.

    Tokenizers are those given, else those of a resumed run's checkpoint `state`, else new ones:
    those with a path in `new_tokenizers` (default: all that have no file) are trained on the
    training pairs, and the others are read. Raises ValueError if the pairs are not those of the
    checkpoint.
    """
    langs = (config.lang_src, config.lang_tgt)
    if config.streaming:
        check_one_source(config)
    test_pairs = None
    if config.testsource:
        test_pairs = without_weights(load_pairs(config.testsource, *langs, "test"))
    train_pairs, valid_pairs = load_train_and_valid(config)
    hashes = f"{fingerprint(train_pairs)}-{fingerprint(valid_pairs)}"
    if state is not None:
        check_same_pairs(state, config, hashes)

    if tokenizers is None and state is None:
        if new_tokenizers is None:
            new_tokenizers = tokenizers_to_build(config)
        tokenizers = get_tokenizers(config, train_pairs, new_tokenizers)
    elif tokenizers is None:
        tokenizers = get_saved_tokenizers(state)
        saved_name = state["config"].get("tokenizer_file", Config.tokenizer_file)
        check_same_tokenizers(config, saved_name, tokenizers)
    stream, position, next_position = None, "", ""
    if config.streaming:
        stream = Stream(config, tokenizers)
        position = state["position"] if state else ""
        train, next_position = stream.read(position)
    else:
        train = BilingualDataset(train_pairs, tokenizers, config.seq_len, "training")
    valid = BilingualDataset(valid_pairs, tokenizers, config.seq_len, "validation")
    print(
        f"{len(train):,} pairs to {'begin with' if next_position else 'train on'}, "
        f"{len(valid):,} to validate; vocabularies of {tokenizers.src.size:,} ({langs[0]}) and "
        f"{tokenizers.tgt.size:,} ({langs[1]})"
    )
    report_unknown(langs, train, valid)
    test = test_pairs and BilingualDataset(test_pairs, tokenizers, config.seq_len, "test")
    return RunData(train, valid, test, hashes, stream, position, next_position)


def report_unknown(
    langs: tuple[str, str], train: BilingualDataset, valid: BilingualDataset
) -> None:
    """Print the shares of unknown tokens, if there are any, and a remedy if they are high."""
    shares = {"training": train.unknown_shares(), "validation": valid.unknown_shares()}
    if not any(map(any, shares.values())):
        return
    words = [
        f"{name} {src:.1%} ({langs[0]}), {tgt:.1%} ({langs[1]})"
        for name, (src, tgt) in shares.items()
    ]
    print(f"unknown tokens: {'; '.join(words)}")
    if max(map(max, shares.values())) > MUCH_UNKNOWN:
        print(
            f"more than {MUCH_UNKNOWN:.0%} of the tokens on a side are unknown: the model cannot "
            "learn them and translates into [UNK]; sub-words have no unknown tokens and need no "
            "blanks: start a new run with --tokenizer bpe"
        )


def load_train_and_valid(config: Config) -> "tuple[Dataset, Dataset]":
    """Return the cleaned pairs to train on (for a stream: the first pool) and to validate on."""
    langs = (config.lang_src, config.lang_tgt)
    valid_pairs = None
    if config.validsource or config.datasource == "phrasebook":
        # Loaded first, so that a missing source is noticed before the long work.
        valid_pairs = load_pairs(config.validsource or "phrasebook", *langs, "validation")
    if config.streaming:
        train_pairs = first_pairs(config)
    else:
        train_pairs = load_pairs(config.datasource, *langs)
    if valid_pairs is None:
        train_pairs, valid_pairs = split_pairs(train_pairs, config.seed)
    else:
        valid_sources = list(iterate(valid_pairs, "src_text"))
        known = set(valid_sources)
        trained_on = {text for text in iterate(train_pairs, "src_text") if text in known}
        shared = sum(text in trained_on for text in valid_sources)
        if shared:
            where = f"among the first {len(train_pairs):,} " if config.streaming else ""
            print(f"{shared:,} of the sources to validate on are {where}trained on, too")
    return train_pairs, without_weights(cap_pairs(valid_pairs, config.val_size, config.seed))


def check_same_tokenizers(config: Config, saved_name: str, saved: Sequence[Tokenizer]) -> None:
    """Raise ValueError if the user's tokenizer files differ from the tokenizers of a checkpoint.

    `saved_name` is the checkpoint's `tokenizer_file`. If the config has another name, as after
    moving a project, files of that name must exist and contain the same.
    """
    is_renamed = saved_name != config.tokenizer_file
    for path, tokenizer in zip(tokenizer_paths(config), saved, strict=False):
        if is_renamed and not path.is_file():
            raise ValueError(
                f"tokenizer_file: the checkpoint says {saved_name}, you say "
                f"{config.tokenizer_file}, and there is no {path}; name the file that the run "
                "began with, or start a new one by --model_folder NAME"
            )
        is_own = is_renamed or path.parent != WeightsFolder.of(config).path
        if is_own and path.is_file() and load_tokenizer(path).to_json() != tokenizer.to_json():
            raise ValueError(
                f"tokenizer_file: the checkpoint has another tokenizer, of {tokenizer.size} "
                f"entries, than {path}, of {load_tokenizer(path).size}; --model_folder NAME "
                "starts a new run"
            )


def check_same_pairs(state: dict, config: Config, hashes: str) -> None:
    """Raise ValueError unless the run of a checkpoint trains and validates on these pairs."""
    saved = state["config"]
    saved_and_new = (state["data"].partition("-"), hashes.partition("-"))
    for side, name, i in (("training", "datasource", 0), ("validation", "validsource", 2)):
        old, new = saved_and_new[0][i], saved_and_new[1][i]
        if old != new:
            old_source = saved.get(name) or saved.get("datasource")
            new_source = getattr(config, name) or config.datasource
            raise ValueError(
                f"{side} pairs: the checkpoint says {old_source} with hash {old[:8]}, you say "
                f"{new_source} with hash {new[:8]}; --model_folder NAME starts a new run"
            )


def get_tokenizers(config: Config, pairs: "Dataset", new: Sequence[Path]) -> TokenizerPair:
    """Return the tokenizers of a run; those whose paths are in `new` are trained on the pairs."""
    if len(pairs) > MOST_FOR_TOKENIZERS and new:
        print(f"tokenizers are trained on {MOST_FOR_TOKENIZERS:,} of {len(pairs):,} pairs")
        pairs = cap_pairs(pairs, MOST_FOR_TOKENIZERS, config.seed)
    elif config.streaming and new:
        print(f"tokenizers are trained on the first {len(pairs):,} pairs")
    texts = [iterate(pairs, column) for column in ("src_text", "tgt_text")]
    if config.shared_vocab:
        texts = [itertools.chain(*texts)]
    tokenizers = [
        get_or_build_tokenizer(config, sentences, None if path in new else path)
        for path, sentences in zip(tokenizer_paths(config), texts, strict=True)
    ]
    return TokenizerPair(tokenizers[0], tokenizers[-1])


def get_or_build_tokenizer(
    config: Config, sentences: Iterator[str], path: Path | None
) -> Tokenizer:
    """Return the tokenizer stored at path, or without a path one trained on the sentences."""
    if path is None:
        return build_tokenizer(sentences, config.tokenizer, config.vocab_size, config.min_frequency)
    tokenizer = load_tokenizer(path)
    text = next(sentences)
    back = tokenizer.decode(tokenizer.encode(text))
    print(f"using the tokenizer {path} unchanged; it encodes and decodes {text!r} as {back!r}")
    return tokenizer


def tokenizers_to_build(config: Config, made_by_us: Sequence[str] = ()) -> list[Path]:
    """Return the paths in the weights folder of the tokenizers that a new run has to build.

    These are missing, or were made by a stopped start of this run (`made_by_us`), or are cut off,
    which it reports. All others are the user's and are used unchanged.
    """
    paths = []
    for path in tokenizer_paths(config):
        if path.parent != WeightsFolder.of(config).path:
            continue
        if path.is_file() and path.name not in made_by_us:
            try:
                json.loads(path.read_bytes())
                continue
            except (ValueError, RecursionError):
                print(f"{path} is cut off or damaged; no checkpoint needs it: building a new one")
        paths.append(path)
    return paths


def tokenizer_paths(config: Config) -> list[Path]:
    """Return the paths of the source's and the target's tokenizer, or of the shared one."""
    own_files = Path(config.tokenizer_file).name != config.tokenizer_file
    folder = Path() if own_files else WeightsFolder.of(config).path
    langs = [config.lang_src, config.lang_tgt]
    names = ["-".join(langs)] if config.shared_vocab else langs
    return [folder / config.tokenizer_file.format(name) for name in names]
