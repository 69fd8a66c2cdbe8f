"""The training and validation data of a run, and its tokenizers."""

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    run_script,
    small_config,
    small_tokenizer,
    texts,
    train_flags,
    write_number_pairs,
    write_text_pair,
)

import checkpoint
import train
from checkpoint import WeightsFolder
from corpus import cache
from corpus.pairs import load_pairs
from corpus.vocabulary import build_tokenizer
from dataset import form_batches
from train import train_model
from training import data as run_data
from training.data import get_ds, tokenizer_paths
from training.start import start_run


def test_the_validation_and_test_splits_of_a_hub_set_are_used(tmp_path, capsys):
    from datasets import Dataset

    for split, word in (("train", "one"), ("validation", "two"), ("test", "three")):
        rows = [{"translation": {"en": f"{word} {i}", "it": "uno"}} for i in range(3)]
        Dataset.from_list(rows).to_parquet(str(tmp_path / "set" / f"{split}-0-of-1.parquet"))
    source = str(tmp_path / "set")
    config = small_config(source, validsource=source, testsource=source)
    data = get_ds(config, None, tokenizer_paths(config))
    words = [each.texts("src_text")[0][:3] for each in (data.train, data.valid, data.test)]
    assert words == ["one", "two", "thr"]
    assert "of default, its validation split, en -> it" in capsys.readouterr().out
    for split in ("validation", "test"):
        (tmp_path / "set" / f"{split}-0-of-1.parquet").unlink()
    assert texts(load_pairs(source, "en", "it", "test"))[0][0] == "one 0"


def test_an_epoch_uses_a_pair_as_often_as_its_weight_says(tmp_path):
    first = write_text_pair(tmp_path, [(f"a{i}", "x") for i in range(40)], "first")
    second = write_text_pair(tmp_path, [(f"b{i}", "y") for i in range(20)], "second")
    config = small_config(f"{first},{second}:3", seq_len=30)
    data = get_ds(config, None, tokenizer_paths(config))
    assert WeightsFolder.of(config).path == Path("first_second_weights")
    counts = Counter(data.train.texts("src_text"))
    assert {text[0]: count for text, count in counts.items()} == {"a": 1, "b": 3}
    assert all(counts[text] == (1 if text[0] == "a" else 3) for text in counts)
    held_out = data.valid.texts("src_text")
    assert len(held_out) == len(set(held_out)) == 6 and not set(held_out) & set(counts)
    other = get_ds(small_config(f"{first},{second}:2", seq_len=30), None, tokenizer_paths(config))
    assert other.fingerprint != data.fingerprint
    batches = form_batches(data.train.src_lens, data.train.tgt_lens, 60, seed=(0, 0))
    assert len(np.concatenate(batches)) == len(data.train) == sum(counts.values())


# --- Corpora of several parts ---


def test_processing_in_several_parts_gives_the_same_data(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=250))
    one = get_ds(config, None, tokenizer_paths(config))
    monkeypatch.setattr(cache, "PART", 40)
    many = get_ds(config, None, tokenizer_paths(config))
    assert many.fingerprint == one.fingerprint
    for name in ("train", "valid"):
        whole, parts = getattr(one, name), getattr(many, name)
        everything = range(len(whole))
        assert [parts[i] for i in everything] == [whole[i] for i in everything]
        assert parts.texts("src_text") == whole.texts("src_text")
        np.testing.assert_array_equal(parts.tgt_lens, whole.tgt_lens)


def test_interrupted_preparation_keeps_its_finished_parts(tmp_path, monkeypatch):
    from datasets import Dataset

    monkeypatch.setattr(cache, "PART", 40)
    config = small_config(write_number_pairs(tmp_path, count=250, seed=7))
    map_rows = Dataset.map

    def map_until_tired(rows, *args, **kwargs):
        if kwargs["desc"] == "tokenising training, part 4 of 6":
            raise KeyboardInterrupt
        return map_rows(rows, *args, **kwargs)

    monkeypatch.setattr(Dataset, "map", map_until_tired)
    with pytest.raises(KeyboardInterrupt):
        get_ds(config, None, tokenizer_paths(config))
    done = {path: path.stat().st_mtime_ns for path in cached_files()}
    monkeypatch.setattr(Dataset, "map", map_rows)
    data = get_ds(config, None, tokenizer_paths(config))
    assert {path: path.stat().st_mtime_ns for path in done} == done
    made = [path for path in cached_files() if path not in done]
    assert len(made) == 3 + 1  # of training from the fourth part on, and of validation
    assert len(data.train) > 200


def cached_files():
    return [*Path(os.environ["HF_HOME"]).rglob("cache-*.arrow")]


# --- Tokenizers ---


def test_tokenizers_are_trained_on_a_part_of_a_large_corpus(tmp_path, monkeypatch, capsys):
    config = small_config(write_number_pairs(tmp_path, count=250))
    monkeypatch.setattr(run_data, "MOST_FOR_TOKENIZERS", 3)
    data = get_ds(config, None, tokenizer_paths(config))
    assert "tokenizers are trained on 3 of" in capsys.readouterr().out
    assert data.train.tokenizers.src.size < 4 + 10  # the special tokens and fewer than ten words


def test_a_run_resumes_with_moved_or_rewritten_tokenizer_files(tmp_path, capsys):
    (tmp_path / "old").mkdir()
    for lang, text in (("en", "one two three"), ("it", "uno due")):
        path = tmp_path / "old" / f"own_{lang}.json"
        path.write_text(small_tokenizer("word", [text]).to_json(), "utf-8")
    old = str(tmp_path / "old" / "own_{0}.json")
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, tokenizer_file=old)
    train_model(config)
    (tmp_path / "old").rename(tmp_path / "new")
    new = str(tmp_path / "new" / "own_{0}.json")
    moved = replace(config, num_epochs=2, tokenizer_file=new)
    train_model(moved)
    assert f"tokenizer_file: the checkpoint says {old}, you say {new}" in capsys.readouterr().out
    # In the weights folder with the default name, and the same entries indented.
    for lang in ("en", "it"):
        text = (tmp_path / "new" / f"own_{lang}.json").read_text("utf-8")
        indented = json.dumps(json.loads(text), indent=4)
        Path("train_weights", f"tokenizer_{lang}.json").write_text(indented, "utf-8")
    usual = replace(config, num_epochs=3, tokenizer_file="tokenizer_{0}.json")
    train_model(usual)
    assert checkpoint.load(WeightsFolder.of(config).end_of(2))["epoch"] == 3


@pytest.mark.parametrize("name", ["elsewhere/own_{0}.json", "tokenizer_{0}.json"])
def test_resuming_with_other_or_missing_tokenizer_files_is_refused(tmp_path, name):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    config = replace(config, tokenizer_file=str(tmp_path / "own_{0}.json"))
    for lang, text in (("en", "one two three"), ("it", "uno due")):
        (tmp_path / f"own_{lang}.json").write_text(
            small_tokenizer("word", [text]).to_json(), "utf-8"
        )
    train_model(config)
    other = replace(config, num_epochs=2, tokenizer_file=name)
    path = Path(*Path(name).parts[:-1] or ("train_weights",), Path(name).name)
    with pytest.raises(ValueError, match=r"own_\{0\}.json, you say .*, and there is no .*_en.json"):
        train_model(other)
    path.parent.mkdir(exist_ok=True)
    for lang in ("en", "it"):
        shutil.copy(tmp_path / "own_it.json", str(path).format(lang))
    with pytest.raises(ValueError, match="tokenizer_file: .* of 7 entries, than .*, of 6"):
        train_model(other)


# --- Unknown tokens at the start of a run ---


def printed_unknown(tmp_path, capsys, train, valid, **changes):
    """Return what a run prints about unknown tokens when it trains and validates on pairs."""
    for name, pairs in (("train", train), ("valid", valid)):
        for lang, side in zip(("en", "it"), zip(*pairs, strict=True), strict=True):
            (tmp_path / f"{name}.{lang}").write_text("".join(f"{x}\n" for x in side), "utf-8")
    source = changes.pop("datasource", str(tmp_path / "train"))
    config = small_config(source, validsource=str(tmp_path / "valid"), **changes)
    get_ds(config, None, tokenizer_paths(config))
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if "unknown tokens" in line or "are unknown" in line]


@pytest.mark.parametrize("changes", [{}, {"streaming": True, "pool_size": 3}])
def test_the_share_of_unknown_tokens_is_printed_for_each_side(tmp_path, capsys, changes):
    train = [("one two", "uno due"), ("three", "tre"), ("four five six", "sei")]
    valid = [("one seven two three four", "uno"), ("two six five one", "due sette due tre uno sei")]
    assert printed_unknown(tmp_path, capsys, train, valid, **changes) == [
        "unknown tokens: training 0.0% (en), 0.0% (it); validation 11.1% (en), 14.3% (it)"
    ]
    assert printed_unknown(tmp_path, capsys, train, train, **changes) == []


def test_unknown_tokens_count_by_the_weight_of_their_pair(tmp_path, capsys):
    for lang, text in (("en", "rare one"), ("it", "uno")):
        (tmp_path / f"rare.{lang}").write_text(f"{text}\n", "utf-8")
    settings = {"datasource": f"{tmp_path / 'train'},{tmp_path / 'rare'}:6", "min_frequency": 2}
    pairs = [("one one", "uno uno")] * 4
    told, remedy = printed_unknown(tmp_path, capsys, pairs, pairs, **settings)
    assert "training 30.0% (en), 0.0% (it); validation 0.0% (en), 0.0% (it)" in told
    assert "--tokenizer bpe" in remedy


@pytest.mark.parametrize(
    ("text", "other"),
    [("我们去看电影吧", "他昨天没有来。"), ("今日は雨です", "猫が好きだ。"), ("ฉันรักคุณ", "แมวดำ")],
)
def test_for_scripts_without_blanks_the_message_suggests_sub_words(tmp_path, capsys, text, other):
    train = [(f"house {i}", "".join(rotated(text, i))) for i in range(len(text))]
    valid = [("house 1", other)]
    lines = printed_unknown(tmp_path, capsys, train, valid, min_frequency=2)
    assert "training" in lines[0] and "100.0% (it); validation" in lines[0]
    assert len(lines) == 2 and "--tokenizer bpe" in lines[1]
    settings = {"tokenizer": "bpe", "seq_len": 60, "model_folder": "./other"}
    assert printed_unknown(tmp_path, capsys, train, valid, **settings) == []


def rotated(text, i):
    return text[i:] + text[:i]


def test_validation_sources_that_are_trained_on_are_counted(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=40)
    start_run(small_config(source, validsource=source))
    assert "40 of the sources to validate on are trained on, too" in capsys.readouterr().out


def test_resumed_run_takes_its_tokenizers_from_the_checkpoint(two_epochs):
    files = [WeightsFolder.of(two_epochs).path / f"tokenizer_{lang}.json" for lang in ("en", "it")]
    files[0].write_bytes(files[1].read_bytes())
    files[1].unlink()
    before = checkpoint.load(WeightsFolder.of(two_epochs).end_of(1))
    train_model(replace(two_epochs, num_epochs=3))
    after = checkpoint.load(WeightsFolder.of(two_epochs).end_of(2))
    for side in ("tokenizer_src", "tokenizer_tgt"):
        assert after[side] == before[side]


def test_tokenizer_files_of_a_run_without_checkpoint_are_built_again(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(train, "train_update", lambda *_: 1 / 0)
        train_model(config)
    assert (WeightsFolder.of(config).path / "tmodel_attempt.json").exists()
    (WeightsFolder.of(config).path / "tokenizer_en.json").write_text("cut off")
    train_model(config)
    assert not (WeightsFolder.of(config).path / "tmodel_attempt.json").exists()
    state = checkpoint.load(WeightsFolder.of(config).end_of(0))
    stored = (WeightsFolder.of(config).path / "tokenizer_en.json").read_text("utf-8")
    assert stored == state["tokenizer_src"]


def test_tokenizer_files_of_the_user_are_used_unchanged(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    own = build_tokenizer(["one two three"], "word", 50, 1)
    path = WeightsFolder.of(config).path / "tokenizer_en.json"
    checkpoint.write_file(path, lambda file: file.write(own.to_json().encode()))
    train_model(config)
    assert path.read_text("utf-8") == own.to_json()
    assert checkpoint.load(WeightsFolder.of(config).end_of(0))["tokenizer_src"] == own.to_json()
    assert f"using the tokenizer {path} unchanged" in capsys.readouterr().out


def test_pretrained_tokenizer_files_are_used_unchanged(tmp_path, shared_data):
    own = str(shared_data / "tokenizers" / "sos_eos_swapped" / "tokenizer_{0}.json")
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, tokenizer_file=own)
    train_model(config)
    vocabulary = json.loads(checkpoint.load(WeightsFolder.of(config).end_of(0))["tokenizer_src"])
    assert vocabulary["model"]["vocab"]["[SOS]"] == 3
    with pytest.raises(FileNotFoundError, match="no tokenizer elsewhere/tokenizer_en.json"):
        missing = replace(config, tokenizer_file="elsewhere/tokenizer_{0}.json")
        train_model(replace(missing, model_folder="./other"))


def test_validation_pairs_come_from_validsource(tmp_path):
    source = write_number_pairs(tmp_path, count=60)
    other = write_number_pairs(tmp_path, "other", count=30, seed=5)
    config = small_config(source, val_size=4)
    assert len(start_run(config).data.valid) == 4
    data = start_run(replace(config, validsource=other, val_size=None)).data
    assert len(data.train) == 60 and len(data.valid) == 30
    seeds = [start_run(replace(config, seed=s, val_size=None)).data.valid for s in (0, 1)]
    assert seeds[0].texts("src_text") != seeds[1].texts("src_text")


def test_phrasebook_has_its_own_validation_pairs(monkeypatch):
    asked = []
    load = run_data.load_pairs

    def note(source, lang_src, lang_tgt, split="train"):
        asked.append(split)
        return load(source, lang_src, lang_tgt, "validation")

    monkeypatch.setattr(run_data, "load_pairs", note)
    config = small_config("phrasebook")
    run_data.get_ds(config)
    assert asked == ["validation", "train"]


def test_shared_vocabulary_knows_both_languages(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), shared_vocab=True)
    ds = start_run(config).data.train
    assert ds.tokenizers.src.to_json() == ds.tokenizers.tgt.to_json()
    assert ds.tokenizers.src.unknown_words("one uno ten dieci zebra") == ["zebra"]


def test_truncated_tokenizer_is_built_again_if_no_checkpoint_needs_it(one_epoch, capsys):
    path = WeightsFolder.of(one_epoch).path / "tokenizer_en.json"
    whole = path.read_text("utf-8")
    path.write_text(whole[:300], "utf-8")
    train_model(replace(one_epoch, num_epochs=2))  # has it from the checkpoint
    state = checkpoint.load(WeightsFolder.of(one_epoch).end_of(1))
    assert state["tokenizer_src"] == whole and path.read_text("utf-8") == whole[:300]
    for checkpoint_path in WeightsFolder.of(one_epoch).path.glob("*.pt"):
        checkpoint_path.unlink()
    train_model(one_epoch)
    assert path.read_text("utf-8") == whole
    assert path.with_name("tokenizer_en.json.old").read_text("utf-8") == whole[:300]
    assert "tokenizer_en.json is cut off or damaged" in capsys.readouterr().out


def test_truncated_cache_file_is_named_with_the_folder_to_delete(one_epoch, monkeypatch, tmp_path):
    arguments = train_flags(one_epoch.datasource, num_epochs=2)
    own = {"env": {**os.environ, "HF_HOME": str(tmp_path / "cache")}}
    run_script("train.py", *train_flags(one_epoch.datasource, num_epochs=1), **own)
    for path in (tmp_path / "cache").rglob("*.arrow"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-100])
        process = run_script("train.py", *arguments, check=False, **own)
        assert process.returncode == 1
        last = process.stderr.splitlines()[-1]
        assert f"delete {tmp_path / 'cache' / 'datasets'}: the next run creates it again" in last
        path.write_bytes(whole)
    assert "done" in run_script("train.py", *arguments, **own).stdout


def test_tokenizer_files_that_differ_from_the_checkpoint_are_refused(tmp_path):
    own = tmp_path / "own_en.json", tmp_path / "own_it.json"
    for path, text in zip(own, ("one two three", "uno due"), strict=True):
        path.write_text(build_tokenizer([text], "word", 50, 1).to_json(), "utf-8")
    config = small_config(
        write_number_pairs(tmp_path, count=60),
        num_epochs=1,
        tokenizer_file=str(tmp_path / "own_{0}.json"),
    )
    train_model(config)
    own[0].write_bytes(own[1].read_bytes())
    with pytest.raises(ValueError, match="tokenizer_file: .* of 7 entries, than .*, of 6"):
        train_model(replace(config, num_epochs=2))
    own[0].unlink()
    train_model(replace(config, num_epochs=2))  # the checkpoint has all


def test_language_codes_cannot_name_another_folder(tmp_path):
    arguments = train_flags(write_number_pairs(tmp_path), lang_src="../../x")
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode != 0 and "'../../x'" in process.stderr
    assert "Traceback" not in process.stderr


def test_pairs_of_a_resumed_run_need_no_tokenizer_file(two_epochs, capsys):
    state = checkpoint.load(WeightsFolder.of(two_epochs).best)
    path = WeightsFolder.of(two_epochs).path / "tokenizer_en.json"
    path.write_text(path.read_text("utf-8")[:100], "utf-8")
    data = get_ds(two_epochs, state)
    assert data.train.tokenizers.src.to_json() == state["tokenizer_src"]
    assert "cut off" not in capsys.readouterr().out
