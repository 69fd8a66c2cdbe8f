"""Validation: its loss, its failures, and what it shows."""

import math
import signal

import pytest
import torch
from conftest import (
    SMALL,
    curves,
    flags,
    make_run,
    run_script,
    small_config,
    write_number_pairs,
)
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import checkpoint
import train
from checkpoint import WeightsFolder
from train import train_model
from training import validation
from training.samples import hints_on
from training.signals import StoppedBySignal
from training.validation import evaluating


def test_evaluating_switches_dropout_off_and_restores_the_mode(tmp_path):
    run = make_run(tmp_path, dropout=0.5)
    for training in (True, False):
        run.model.train(training)
        with evaluating(run.model):
            assert not run.model.training and not torch.is_grad_enabled()
        assert run.model.training is training


def test_validation_is_deterministic(tmp_path):
    run = make_run(tmp_path, dropout=0.5)
    first, again = (
        train.run_validation(run.model, run.data.valid, run.config, run.device) for _ in range(2)
    )
    assert first == again


def test_neither_loss_nor_translations_depend_on_the_batches(tmp_path, monkeypatch):
    run, found = make_run(tmp_path), []
    for budget in (4096, 16):
        monkeypatch.setattr(validation, "decoding_budget", lambda *_, budget=budget: budget)
        found.append(train.run_validation(run.model, run.data.valid, run.config, run.device))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    assert found[0][2] == found[1][2]


def test_validation_goes_on_with_half_a_batch_if_memory_does_not_suffice(
    tmp_path, monkeypatch, capsys
):
    run = make_run(tmp_path)
    expected = train.run_validation(run.model, run.data.valid, run.config, run.device)
    decode = validation.greedy_decode

    def short_of_memory(model, src, src_mask, **ends):
        if len(src) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return decode(model, src, src_mask, **ends)

    monkeypatch.setattr(validation, "greedy_decode", short_of_memory)
    found = train.run_validation(run.model, run.data.valid, run.config, run.device)
    assert found == expected
    assert "not enough memory" in capsys.readouterr().err


def test_logits_of_a_validation_are_computed_in_groups(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    expected = train.run_validation(run.model, run.data.valid, run.config, run.device)[0]
    rows, project = [], run.model.project
    monkeypatch.setattr(validation, "LOGITS_AT_ONCE", 7)
    monkeypatch.setattr(run.model, "project", lambda x: rows.append(len(x)) or project(x))
    batch = run.data.valid.batch(range(len(run.data.valid)))
    with evaluating(run.model):
        total = validation.loss_sum(run.model, batch, run.data.valid.pad_ids[1])
    assert total / batch.tokens == pytest.approx(expected, rel=1e-5)
    assert max(rows) == 7 and sum(rows) == batch.tokens


def test_failed_validation_is_reported_and_repeated_at_the_next_start(
    tmp_path, monkeypatch, capsys
):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    with monkeypatch.context() as patch:
        patch.setattr(train, "run_validation", lambda *_: 1 / 0)
        train_model(config)
    out = capsys.readouterr().out
    assert "validation 00 failed at update" in out and "ZeroDivisionError: division" in out
    assert checkpoint.load(WeightsFolder.of(config).end_of(1))["history"] == []
    train_model(config)
    assert len(checkpoint.load(WeightsFolder.of(config).end_of(1))["history"]) == 1


def test_validation_loss_is_the_unsmoothed_mean_over_target_tokens(tmp_path, monkeypatch):
    run = make_run(tmp_path, label_smoothing=0.3)
    ds, total = run.data.valid, 0.0
    with evaluating(run.model):
        for item in ds:
            alone = ds.collate([item])
            logits = run.model(alone.src, alone.src_mask, alone.tgt_in)
            total += torch.nn.functional.cross_entropy(
                logits[0], alone.tgt_out[0], reduction="sum"
            ).item()
    for budget in (4096, 16):  # one batch with padding, and several
        monkeypatch.setattr(validation, "decoding_budget", lambda *_, budget=budget: budget)
        loss = train.run_validation(run.model, ds, run.config, run.device)[0]
        assert loss == pytest.approx(total / sum(ds.tgt_lens), rel=1e-5)


def test_signal_stops_a_validation_between_its_batches(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    monkeypatch.setattr(validation, "decoding_budget", lambda *_: 16)
    decode, calls = validation.greedy_decode, []

    def decode_and_stop(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return decode(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(StoppedBySignal):
        patch.setattr(validation, "greedy_decode", decode_and_stop)
        train_model(config)
    assert len(calls) == 1
    assert checkpoint.load(WeightsFolder.of(config).end_of(0))["history"] == []


def test_each_validation_has_an_attention_picture_of_the_same_sentence(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    train_model(config)
    events = EventAccumulator(config.experiment_name)
    events.Reload()
    steps = [row["step"] for row in checkpoint.load(WeightsFolder.of(config).end_of(1))["history"]]
    pictures = events.Images("val/attention")
    assert [each.step for each in pictures] == steps and len(steps) == 2
    assert all(each.encoded_image_string.startswith(b"\x89PNG") for each in pictures)


def test_pairs_of_two_words_reach_bleu_100_and_translate(tmp_path):
    words = {
        "red": "rosso",
        "black": "nero",
        "small": "piccolo",
        "old": "vecchio",
        "tame": "docile",
    }
    names = {"cat": "gatto", "dog": "cane", "bird": "uccello", "bear": "orso", "fox": "lupo"}
    for lang in ("en", "it"):
        lines = [
            f"{a} {n}\n" if lang == "en" else f"{names[n]} {words[a]}\n"
            for a in words
            for n in names
        ]
        (tmp_path / f"two.{lang}").write_text("".join(lines * 4), "utf-8")
    settings = {**SMALL, "datasource": "two", "validsource": "two", "num_epochs": 12}
    out = run_script("train.py", *flags(settings)).stdout
    assert "eff:yes" in out and "val/bleu 100.00" in out and "of epoch 00" not in out
    assert run_script("translate.py", "old bear").stdout == "orso vecchio\n"


def test_predictions_of_unknown_words_only_name_the_tokenizer_without_them():
    for predicted in (["[UNK] [UNK]", "[UNK]"], ["[UNK]。", "[UNK]。"], ["", "¿[UNK], [UNK]?"]):
        [hint] = hints_on(predicted)
        assert "--tokenizer bpe" in hint and "learning rate" not in hint
    assert "--lr" in hints_on(["il", "il"])[0]
    assert not hints_on(["il [UNK]", "lo"]) and not hints_on(["uno"])
    assert not hints_on([""])


def test_nonfinite_validation_loss_is_a_failed_validation(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "training.validation.cross_entropy_sum", lambda logits, *_: logits.sum() * math.nan
    )
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    assert "validation 00 failed" in capsys.readouterr().out
    assert not any(tag.startswith("val/") for tag in curves("runs/tmodel"))
    assert checkpoint.load(WeightsFolder.of(config).end_of(0))["history"] == []
