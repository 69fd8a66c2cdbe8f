"""Pairs that are read while they are trained on: each of them, in bounded memory, from anywhere."""

import gzip
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from conftest import (
    assert_same_run,
    small_config,
    texts,
    train_with_stops,
    write_file,
    write_number_pairs,
    write_text_pair,
)

import checkpoint
import train
from checkpoint import WeightsFolder
from corpus import hub, text_files
from corpus.pairs import load_pairs
from dataset import form_batches
from train import train_model
from training.batches import form_pool_batches
from training.data import get_ds, tokenizer_paths
from training.signals import StoppedBySignal
from training.start import start_run
from training.streaming import Stream, read_pools


def stream_config(folder, source=None, **changes):
    """Return the config of a run that streams number words in pools of 100 (the last of 50)."""
    source = source or write_number_pairs(folder, count=350)
    valid = write_number_pairs(folder, "valid", count=40, seed=1)
    return small_config(
        source, **{"validsource": valid, "streaming": True, "pool_size": 100, **changes}
    )


def pairs_of(pools):
    return [pair for pairs, _, _ in pools for pair in texts(pairs)]


# --- What is read ---


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_a_file_of_any_kind_streams_the_pairs_that_loading_gives(tmp_path, kind):
    config = stream_config(tmp_path, write_file(tmp_path, kind), pool_size=3)
    pools = list(read_pools(config))
    assert [len(pairs) for pairs, _, _ in pools] == [3, 1]
    assert pairs_of(pools) == texts(load_pairs(config.datasource, "en", "it"))


def test_compressed_text_and_the_phrasebook_stream_as_they_load(tmp_path):
    prefix = write_number_pairs(tmp_path, count=250)
    for lang in ("en", "it"):
        path = Path(f"{prefix}.{lang}")
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    for source in (prefix, "phrasebook"):
        config = stream_config(tmp_path, source, pool_size=120)
        assert pairs_of(read_pools(config)) == texts(load_pairs(source, "en", "it"))


def test_a_hub_set_streams_from_a_folder_and_from_the_cache(tmp_path, shared_data):
    folder = str(shared_data / "hub_layout")
    loaded = texts(load_pairs(folder, "en", "de"))
    config = stream_config(tmp_path, folder, lang_tgt="de", pool_size=1700)
    assert pairs_of(read_pools(config)) == loaded
    rows, _ = hub._cached_hub_pairs(folder, ["de-en"], "train", streaming=True)
    assert [row["translation"]["de"] for row in rows][:3] == [tgt for _, tgt in loaded[:3]]


def test_drops_are_reported_by_pool_and_an_empty_pool_is_skipped(tmp_path, capsys):
    pairs = [("one", "uno"), ("", "uno"), ("", ""), ("", "due"), ("two", "x" * 30_000)]
    config = stream_config(tmp_path, write_text_pair(tmp_path, [*pairs, *pairs]), pool_size=2)
    data = get_ds(config, None, tokenizer_paths(config))
    assert len(data.train) == 1 and data.next_position
    train, end = data.stream.read(data.next_position)
    assert train.texts("tgt_text") == ["uno"] and end == ""
    out = capsys.readouterr().out
    assert out.count("pairs 1 to 2, en -> it, 1 with an empty side dropped") == 1
    assert "pairs 3 to 4, en -> it, 2 with an empty side dropped" in out
    assert "pairs 9 to 10, en -> it, 1 with an empty side dropped, 1 over 20,000 char" in out


def test_every_position_resumes_with_the_next_pool(tmp_path):
    for source in (write_number_pairs(tmp_path, count=350), write_file(tmp_path, "parquet")):
        config = stream_config(tmp_path, source, pool_size=100 if source.endswith("train") else 2)
        everything = pairs_of(read_pools(config))
        done = 0
        for pairs, place, _ in read_pools(config):
            done += len(pairs)
            assert pairs_of(read_pools(config, *place)) == everything[done:]
        assert done == len(everything)


def note_lines(monkeypatch):
    """Return a list that gets a path for each line that is read from now on."""
    read, read_lines = [], text_files.read_lines

    def note(path):
        for line in read_lines(path):
            read.append(path)
            yield line

    monkeypatch.setattr(text_files, "read_lines", note)
    return read


def test_only_the_current_and_the_next_pool_are_read(tmp_path, monkeypatch):
    read = note_lines(monkeypatch)
    config = stream_config(tmp_path, write_number_pairs(tmp_path, count=5000), pool_size=10)
    next(read_pools(config))
    assert len(read) <= 2 * (10 + 1)
    data = get_ds(config, None, tokenizer_paths(config))  # two pools, after one for the tokenizers
    assert len(read) <= 2 * (10 + 10 + 20 + 3) + 2 * 40
    assert len(data.train) == 10


def test_an_epoch_reads_each_line_once(tmp_path, monkeypatch):
    config = stream_config(tmp_path, pool_size=20)
    data = get_ds(config, None, tokenizer_paths(config))
    read = note_lines(monkeypatch)
    train_pairs, position = data.stream.read("")
    pairs = len(train_pairs)
    while position:
        train_pairs, position = data.stream.read(position)
        pairs += len(train_pairs)
    assert pairs == 350 and len(read) == 2 * 350


def test_each_pool_has_its_own_order(tmp_path):
    config = stream_config(tmp_path, streaming=False)
    pairs = get_ds(config, None, tokenizer_paths(config)).train

    def order(pool):
        return [int(i) for batch in form_pool_batches(config, pairs, 2, pool) for i in batch]

    whole = form_batches(
        pairs.src_lens, pairs.tgt_lens, config.batch_tokens, None, (config.seed, 2)
    )
    assert order(0) == [int(i) for batch in whole for i in batch] != order(1) != order(2)


def test_a_source_with_nothing_to_train_on_is_refused(tmp_path):
    config = stream_config(tmp_path, write_text_pair(tmp_path, [("", "x")] * 3))
    with pytest.raises(ValueError, match="no pair with text on both sides, en and it"):
        get_ds(config, None, tokenizer_paths(config))
    long = write_text_pair(tmp_path, [("one " * 40, "uno")] * 3, "long")
    with pytest.raises(ValueError, match="no pair to train on at all"):
        config = stream_config(tmp_path, long)
        get_ds(config, None, tokenizer_paths(config))


def test_damaged_source_is_reported_in_one_line(tmp_path):
    path = tmp_path / "pairs.parquet"
    shutil.copy(write_file(tmp_path, "parquet"), tmp_path / "whole")
    path.write_bytes((tmp_path / "whole").read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"pairs\.parquet cannot be read: ") as caught:
        config = stream_config(tmp_path, str(path))
        get_ds(config, None, tokenizer_paths(config))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [",b", ":2", ",b:2"])
def test_several_sources_or_a_weight_are_refused_but_not_a_path_of_that_name(tmp_path, ending):
    config = stream_config(tmp_path)
    config = stream_config(tmp_path, f"{config.datasource}{ending}")
    with pytest.raises(ValueError, match=rf"streaming reads one source.*train{ending}\)"):
        get_ds(config, None, tokenizer_paths(config))
    write_text_pair(tmp_path, [("one", "uno"), ("two", "due")], f"train{ending}")
    assert len(get_ds(config, None, tokenizer_paths(config)).train) == 2


# --- What is trained on ---


def note_sources(monkeypatch):
    """Return a list that gets (epoch, sources of the update) of each update from now on."""
    noted, update = [], train.train_update

    def note(run, batches):
        train_pairs = run.data.train.texts("src_text")
        noted.append((run.progress.epoch, [train_pairs[i] for b in batches for i in b.indices]))
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", note)
    return noted


def test_epoch_uses_each_pair_once_even_if_no_pair_of_a_pool_fits(tmp_path, monkeypatch, capsys):
    """A pool of pairs that are all too long lies between, and the source ends with another."""
    source = write_number_pairs(tmp_path, count=250)
    long = ["one " * 40] * 100
    for lang in ("en", "it"):
        path = Path(f"{source}.{lang}")
        lines = path.read_text("utf-8").splitlines()
        path.write_text("".join(f"{x}\n" for x in [*lines[:100], *long, *lines[100:], *long[:50]]))
        if lang == "en":
            expected = sorted(lines)
    config = stream_config(tmp_path, source, num_epochs=2, accumulate=2)
    noted = note_sources(monkeypatch)
    train_model(config)
    for epoch in (0, 1):
        assert sorted(s for e, update in noted if e == epoch for s in update) == expected
    orders = [[s for e, update in noted if e == epoch for s in update] for epoch in (0, 1)]
    assert orders[0] != orders[1]
    assert "all 100 training pairs are longer than seq_len" in capsys.readouterr().out
    assert WeightsFolder.of(config).end_of(1).exists()


def test_one_pool_with_the_whole_source_trains_as_without_streaming(tmp_path):
    config = stream_config(tmp_path, num_epochs=2, dropout=0.2, model_folder="./streamed")
    train_model(config)
    plain = stream_config(tmp_path, num_epochs=2, dropout=0.2, streaming=False)
    config = stream_config(
        tmp_path, num_epochs=2, dropout=0.2, pool_size=1000, model_folder="./in_one"
    )
    for each in (plain, config):
        train_model(each)
    whole, one = (checkpoint.load(WeightsFolder.of(each).end_of(1)) for each in (plain, config))
    assert all(torch.equal(whole["model"][name], one["model"][name]) for name in whole["model"])
    pools = checkpoint.load(Path("streamed/tmodel_01.pt"))
    assert not torch.equal(*(s["model"]["encoder.norm.weight"] for s in (whole, pools)))


def test_a_stream_stopped_anywhere_ends_as_one_never_stopped(tmp_path, monkeypatch, capsys):
    settings = {"num_epochs": 3, "dropout": 0.3, "precision": "fp32", "save_every": 4}
    never, often = (
        stream_config(
            tmp_path, model_folder=f"./{name}", experiment_name=f"runs/{name}", **settings
        )
        for name in ("never", "often")
    )
    updates = []
    with monkeypatch.context() as patch:
        update = train.train_update

        def note(run, batches):
            tokens = update(run, batches)
            updates.append((run.progress.pool, run.progress.global_step))
            return tokens

        patch.setattr(train, "train_update", note)
        train_model(never)
    last_of_a_pool = next(i for i, (pool, _) in enumerate(updates) if pool == 1)
    inside = next(i for i, (pool, step) in enumerate(updates[40:], 40) if pool == 2) + 2
    stops = [3, last_of_a_pool, inside, len(updates) - 2]
    train_with_stops(often, stops, monkeypatch)
    assert_same_run(never, often, 2)
    assert "epoch 00, pool 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pool_start": 10**6}, "is after batch -"),
        ({"pool": 0}, "its pool .0. and its position"),
        ({"position": ""}, "its pool .1. and its position"),
        ({"position": "rubbish"}, "position in .*train is damaged: 'rubbish'"),
        ({"position": '[3, {"a": 1}, "x"]'}, "cannot be read after its first 3 pairs"),
        ({"position": "[1e400, {}, 3]"}, "position in .*train is damaged"),
        ({"position": '[true, {"a": 1}, "x"]'}, "position in .*train is damaged"),
        ({"position": '[3, {}, "x"]'}, "does not continue after its first 3 pairs as it did"),
    ],
)  # fmt: skip
def test_impossible_position_is_refused_in_one_line(tmp_path, changes, words, monkeypatch):
    config = stream_config(tmp_path, num_epochs=1, save_every=2, keep_last=-1)
    with monkeypatch.context() as patch:
        update = train.train_update

        def fail(run, batches):
            if run.progress.pool == 1:
                raise OSError("no more")
            return update(run, batches)

        patch.setattr(train, "train_update", fail)
        with pytest.raises(OSError, match="no more"):
            train_model(config)
    (path,) = Path("train_weights").glob("*.pt")
    state = checkpoint.load(path)
    checkpoint.save(path, {**state, **changes})
    with pytest.raises(ValueError, match=words) as caught:
        start_run(config)
    assert "\n" not in str(caught.value)


def test_source_that_fails_in_the_middle_keeps_the_training_so_far(tmp_path, monkeypatch, capsys):
    config = stream_config(tmp_path, num_epochs=1, log_every=7)
    path = Path(f"{config.datasource}.en")
    whole = path.read_text("utf-8")
    path.write_text(whole + "one more\n", "utf-8")
    noted = note_sources(monkeypatch)
    with pytest.raises(ValueError, match=r"has 351 lines and .*train.it has 350"):
        train_model(config)
    (saved,) = Path("train_weights").glob("tmodel_0*.pt")
    state = checkpoint.load(saved)
    assert state["window"]["updates"] == state["global_step"] % config.log_every > 0
    path.write_text(whole, "utf-8")
    train_model(config)
    assert f"resuming from {saved}" in capsys.readouterr().out
    assert sorted(s for _, update in noted for s in update) == sorted(whole.splitlines())


def test_position_in_a_changed_file_is_noticed(tmp_path):
    from datasets import Dataset

    path = tmp_path / "pairs.parquet"
    rows = Dataset.from_list([{"en": f"one {i}", "it": f"uno {i}"} for i in range(300)])
    rows.to_parquet(str(path), batch_size=70)
    config = stream_config(tmp_path, str(path))
    data = get_ds(config, None, tokenizer_paths(config))
    train_pairs, _ = Stream(config, data.stream.tokenizers).read(data.next_position)
    assert train_pairs.texts("src_text")[0] == "one 100"
    rows.to_parquet(str(path), batch_size=300)
    with pytest.raises(ValueError, match=r"does not continue after its first 100 pairs as it did"):
        Stream(config, data.stream.tokenizers).read(data.next_position)


def test_signal_while_the_next_pool_is_read_stops_at_once_after_saving(tmp_path, monkeypatch):
    config = stream_config(tmp_path, num_epochs=1)
    started, calls, next_pool = time.monotonic(), [], Stream._next_pool

    def hang(stream):
        calls.append(stream)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(600)
        return next_pool(stream)

    with monkeypatch.context() as patch, pytest.raises(StoppedBySignal):
        patch.setattr(Stream, "_next_pool", hang)
        train_model(config)
    assert time.monotonic() - started < 300
    (path,) = Path("train_weights").glob("*.pt")
    state = checkpoint.load(path)
    assert state["pool"] == 1 and state["batch"] == state["pool_start"] == state["global_step"]
    train_model(config)
    assert checkpoint.load(WeightsFolder.of(config).end_of(0))["epoch"] == 1


def test_source_that_has_become_shorter_is_reported(tmp_path):
    config = stream_config(tmp_path)
    position = get_ds(config, None, tokenizer_paths(config)).next_position
    for lang in ("en", "it"):
        path = Path(f"{config.datasource}.{lang}")
        path.write_text("".join(path.read_text("utf-8").splitlines(True)[:100]), "utf-8")
    data = get_ds(config, None, tokenizer_paths(config))
    with pytest.raises(ValueError, match="no pair to train on after the first 100"):
        data.stream.read(position)


def test_another_pool_size_needs_another_run(tmp_path):
    config = stream_config(tmp_path, num_epochs=1)
    train_model(config)
    with pytest.raises(ValueError, match="pool_size: the checkpoint says 100, you say 50"):
        start_run(stream_config(tmp_path, config.datasource, num_epochs=2, pool_size=50))
    with pytest.raises(ValueError, match="streaming: the checkpoint says True, you say False"):
        start_run(stream_config(tmp_path, config.datasource, num_epochs=2, streaming=False))


def test_other_pairs_at_the_beginning_of_a_stream_are_noticed(tmp_path):
    config = stream_config(tmp_path, num_epochs=1)
    train_model(config)
    path = Path(f"{config.datasource}.en")
    path.write_text("ten ten ten\n" + path.read_text("utf-8").partition("\n")[2], "utf-8")
    with pytest.raises(ValueError, match="training pairs: the checkpoint says"):
        start_run(stream_config(tmp_path, config.datasource, num_epochs=2))
