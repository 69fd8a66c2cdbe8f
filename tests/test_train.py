"""Updates follow the definition, and a run that is stopped ends as one that is not."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import SMALL, flags, run_script, small_config, write_number_pairs
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from test_dataset import make_dataset, swap_ids
from torch._dynamo.testing import CompileCounter

import checkpoint
import train
from config import (
    Config,
    get_weights_file_path,
    get_weights_folder,
    latest_weights_file_path,
)
from corpus.tokenizer import build_tokenizer, tokenizer_from_json
from curves import Curves, read_curves
from dataset import Batch
from device import get_device, get_precision
from train import log_window, train_model
from training import data as run_data
from training import validation
from training.data import batches_of
from training.interrupt import Interrupt, Interrupted
from training.progress import Progress
from training.run import set_newer_aside
from training.start import get_model, start_run
from training.update import (
    accumulate_gradient,
    learning_rate,
    seed_update,
    settle_updates,
    train_update,
)
from training.validation import evaluating, target_loss
from translation import metrics

# --- The rate and the loss ---


def test_the_rate_rises_to_its_peak_then_falls_with_the_root():
    config = Config(lr=1e-3, warmup=7)
    rates = [learning_rate(step, config, 0) for step in range(1, 30)]
    assert rates[:7] == sorted(rates[:7]) and rates[6:] == sorted(rates[6:], reverse=True)
    assert rates[6] == pytest.approx(1e-3) and rates[0] == pytest.approx(1e-3 / 7)
    assert rates[27] == pytest.approx(1e-3 / 2)


def test_the_linear_schedule_falls_evenly_to_the_last_update_of_all_epochs(tmp_path):
    config = Config(lr=1e-3, warmup=10, schedule="linear")
    rates = [learning_rate(step, config, 110) for step in range(1, 113)]
    assert rates[:10] == pytest.approx([1e-4 * step for step in range(1, 11)])
    steps = [b - a for a, b in zip(rates[9:], rates[10:110], strict=False)]
    assert steps == pytest.approx([-1e-3 / 101] * 100)
    assert rates[109:] == pytest.approx([1e-3 / 101] * 3)  # after the end nothing more is lost

    run = make_run(tmp_path, schedule="linear", num_epochs=3, accumulate=2)
    batches = len(batches_of(run.config, run.data.train, 0))
    planned = 3 * ((batches + 1) // 2)
    assert batches > 2 and run.total_updates == planned
    run.progress.global_step, run.progress.batch = 1, 2  # as a run that goes on inside an epoch
    run.plan(batches)
    assert run.total_updates == planned


def test_the_linear_schedule_ends_with_the_last_update_when_later_epochs_are_longer(tmp_path):
    config = small_config(
        write_number_pairs(tmp_path, count=60), schedule="linear", warmup=2, log_every=1
    )
    train_model(replace(config, num_epochs=2))
    train_model(replace(config, num_epochs=4, batch_tokens=config.batch_tokens // 2))
    steps, rates = read_curves(tmp_path / "runs" / "tmodel")["train/lr"]
    assert rates[-1] == pytest.approx(config.lr / (steps[-1] - 2 + 1))
    assert sorted(rates[-4:], reverse=True) == list(rates[-4:])


def test_the_papers_schedule_is_one_choice_of_lr():
    config = Config(lr=512**-0.5 * 4000**-0.5, warmup=4000)
    for step in (1, 100, 4000, 100000):
        assert learning_rate(step, config, 0) == pytest.approx(
            512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        )


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.99])
@pytest.mark.parametrize("pads", [0, 1, 9])
def test_the_loss_is_the_smoothed_cross_entropy_of_real_tokens(smoothing, pads):
    torch.manual_seed(0)
    logits, pad_id = torch.randn(2, 5, 5), 3
    tgt_out = torch.tensor([[0, 1, 2, 4, 0], [4, 4, 1, 0, 2]])
    tgt_out.view(-1)[10 - pads :] = pad_id
    expected = 0.0
    for row, token in zip(logits.view(-1, 5), tgt_out.view(-1).tolist(), strict=True):
        if token != pad_id:
            goal = torch.full((5,), smoothing / 5)
            goal[token] += 1 - smoothing
            expected -= (goal * row.log_softmax(-1)).sum()
    torch.testing.assert_close(target_loss(logits, tgt_out, pad_id, smoothing), expected)


def make_run(folder, **changes):
    source = write_number_pairs(folder, count=60)
    settings = {"precision": "fp32", "lr": 1.0, "warmup": 1, **changes}
    return start_run(small_config(source, **settings))


def do_update(run, batches):
    """Do an update and add its numbers to the window at once."""
    train_update(run, batches)
    settle_updates(run)


def gradients(run, batches):
    """Return the gradients of one update: with plain descent they are what it subtracts."""
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    run.optimizer = torch.optim.SGD(run.model.parameters(), lr=1.0, fused=True)
    run.progress = Progress()
    rate = learning_rate(1, run.config, run.total_updates)
    do_update(run, batches)
    after = run.model.parameters()
    return [(b - a.detach()) / rate for b, a in zip(before, after, strict=True)]


def assert_same_gradients(one, other):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_padding_adds_nothing_to_loss_or_gradients(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.0)
    ds = run.data.train
    short = ds.collate(ds.__getitems__([0]))

    def wider(ids, pad_id):
        return torch.nn.functional.pad(ids, (0, 4), value=pad_id)

    src_pad, tgt_pad = ds.tokenizer_src.pad_id, ds.tokenizer_tgt.pad_id
    src = wider(short.src, src_pad)
    mask = (src != src_pad)[:, None, None]
    tgt_in, tgt_out = wider(short.tgt_in, tgt_pad), wider(short.tgt_out, tgt_pad)
    long = Batch([0], src, mask, tgt_in, tgt_out, short.real, short.tokens)
    state = {name: value.clone() for name, value in run.model.state_dict().items()}
    one = gradients(run, [short])
    loss = run.progress.window["loss"]
    run.model.load_state_dict(state)
    assert_same_gradients(one, gradients(run, [long]))
    assert float(run.progress.window["loss"]) == pytest.approx(float(loss), rel=1e-5)


def test_accumulated_batches_count_by_their_tokens(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.0)
    ds = run.data.train
    state = {name: value.clone() for name, value in run.model.state_dict().items()}
    indices = list(range(12))
    whole = gradients(run, [ds.collate(ds.__getitems__(indices))])
    run.model.load_state_dict(state)
    parts = [ds.collate(ds.__getitems__(part)) for part in (indices[:1], indices[1:5], indices[5:])]
    assert_same_gradients(whole, gradients(run, parts))


def test_the_gradient_is_clipped_to_its_norm(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.01)
    clipped = gradients(run, [run.data.train.collate(run.data.train.__getitems__([0, 1]))])
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in clipped))
    assert norm == pytest.approx(0.01, rel=1e-2)
    assert run.progress.window["norm"] > 0.01


def test_source_and_target_may_number_their_special_tokens_apart(tmp_path):
    plain = make_dataset()
    swapped_tgt = swap_ids(plain.tokenizer_tgt, "[UNK]", "[PAD]")
    swapped = make_dataset(tokenizers=(plain.tokenizer_src, swapped_tgt))
    losses = []
    for ds in (plain, swapped):
        torch.manual_seed(0)
        model = get_model(small_config("x"), ds.tokenizer_src.size, ds.tokenizer_tgt.size)
        with torch.no_grad(), evaluating(model):
            if ds is swapped:  # the same words, under the other numbers
                rows = [1, 0, *range(2, ds.tokenizer_tgt.size)]
                for name in ("tgt_embed.embedding.weight", "projection.linear.weight"):
                    weight = model.get_parameter(name)
                    weight.data = weight.data[rows]
            batch = ds.collate(ds.__getitems__([0, 1, 2, 3]))
            logits = model(batch.src, batch.src_mask, batch.tgt_in)
            pad_id = ds.tokenizer_tgt.pad_id
            losses.append(target_loss(logits, batch.tgt_out, pad_id, 0.0).item() / batch.tokens)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_dropout_of_an_update_depends_on_seed_step_and_rank_alone():
    def draw(*key):
        seed_update(*key)
        return torch.rand(3).tolist()

    assert draw(0, 5) == draw(0, 5, 0)
    assert len({tuple(draw(*key)) for key in [(0, 5, 0), (1, 5, 0), (0, 6, 0), (0, 5, 1)]}) == 4


def test_a_step_too_large_for_fp16_leaves_the_weights_and_lowers_the_scale(tmp_path):
    run = make_run(tmp_path, max_bad_updates=40)
    run.precision = torch.float16
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    before = [parameter.clone() for parameter in run.model.parameters()]
    batch = run.data.train.collate(run.data.train.__getitems__([0, 1, 2]))
    do_update(run, [batch])
    assert run.progress.skipped == run.progress.skipped_in_row == 1
    assert run.progress.window["updates"] == 0 and run.scaler.get_scale() == 2.0**39
    assert all(map(torch.equal, before, run.model.parameters()))
    while not run.progress.window["updates"]:
        do_update(run, [batch])
    assert run.progress.skipped_in_row == 0
    assert run.progress.global_step == run.progress.skipped + 1


def test_an_fp16_step_is_left_out_for_its_loss_too(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    real = accumulate_gradient
    monkeypatch.setattr("training.update.accumulate_gradient", lambda *args: real(*args) * math.inf)
    before = [parameter.clone() for parameter in run.model.parameters()]
    do_update(run, [first_batch(run)])
    assert run.progress.skipped == 1
    assert all(map(torch.equal, before, run.model.parameters()))


def test_evaluating_switches_dropout_off_and_brings_the_mode_back(tmp_path):
    run = make_run(tmp_path, dropout=0.5)
    for training in (True, False):
        run.model.train(training)
        with evaluating(run.model):
            assert not run.model.training and not torch.is_grad_enabled()
        assert run.model.training is training


def test_validation_gives_the_same_result_each_time(tmp_path):
    run = make_run(tmp_path, dropout=0.5)
    first, again = (
        train.run_validation(run.model, run.data.valid, run.config, run.device) for _ in range(2)
    )
    assert first == again


def test_the_validation_loss_does_not_depend_on_the_batches(tmp_path):
    run = make_run(tmp_path)
    losses = [
        train.run_validation(run.model, run.data.valid, config, run.device)[0]
        for config in (run.config, replace(run.config, batch_tokens=16))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


# --- The machine ---


def test_a_device_that_is_not_there_is_told():
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(ValueError, match="no cuda; --device cpu"):
        get_device("cuda")
    assert get_device("cpu").type == "cpu"
    with pytest.raises(ValueError, match="'gpu9'"):
        get_device("gpu9")


def test_fp16_is_for_cuda_and_bf16_for_all():
    with pytest.raises(ValueError, match="fp16 needs device cuda, not cpu"):
        get_precision("fp16", torch.device("cpu"))
    assert get_precision("bf16", torch.device("cpu")) == torch.bfloat16
    assert get_precision("fp32", torch.device("cpu")) == torch.float32


# --- Stopping and going on ---


def curves(log_dir):
    """Return {tag: [(step, value), ...]} as TensorBoard shows them."""
    events = EventAccumulator(str(log_dir), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    shown = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in tags["scalars"]}
    return shown | {tag: [(e.step, None) for e in events.Tensors(tag)] for tag in tags["tensors"]}


def train_with_stops(config, stops, monkeypatch):
    """Train; after each update whose number is in stops send SIGINT, then start again."""
    stops = set(stops)
    update = train.train_update

    def update_and_stop(run, batches):
        done = update(run, batches)
        if run.progress.global_step in stops:
            stops.remove(run.progress.global_step)
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(train, "train_update", update_and_stop)
    for _ in range(len(stops)):
        with pytest.raises(Interrupted):
            train_model(config)
        # TensorBoard reads event files by the second of their name, then by process: two runs of
        # one process within a second would be out of order.
        time.sleep(1.1 - time.time() % 1)
    train_model(config)


def assert_same_run(one, other, epoch):
    """Compare two runs bit for bit: weights, optimizer, progress and curves."""
    a, b = (checkpoint.load(get_weights_file_path(config, epoch)) for config in (one, other))
    for name, weight in a["model"].items():
        assert torch.equal(weight, b["model"][name]), name
    for key, state in a["optimizer"].items():
        assert all(map(torch.equal, state.values(), b["optimizer"][key].values()))
    for key in ("epoch", "batch", "global_step", "window", "history"):
        assert a[key] == b[key], key
    shown = [curves(config.experiment_name) for config in (one, other)]
    assert (
        shown[0].keys() == shown[1].keys() > {"train/loss", "val/bleu", "val/samples/text_summary"}
    )
    for tag, points in shown[0].items():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps)), tag
        assert [step for step, _ in shown[1][tag]] == steps, tag
        if tag != "train/tokens_per_second":
            assert shown[1][tag] == points, tag


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "bf16", "accumulate": 2},
        {"precision": "fp32", "tokenizer": "bpe", "validate_every": 7, "save_every": 3},
    ],
)
def test_a_run_stopped_anywhere_ends_as_one_never_stopped(tmp_path, monkeypatch, changes, capsys):
    source = write_number_pairs(tmp_path, count=200)
    settings = dict(num_epochs=3, dropout=0.3, **changes)
    never, often = (
        small_config(source, model_folder=f"./{name}", experiment_name=f"runs/{name}", **settings)
        for name in ("never", "often")
    )
    train_model(never)
    steps = checkpoint.load(get_weights_file_path(never, 2))["global_step"]
    per_epoch = steps // 3
    assert steps == 3 * per_epoch and per_epoch > 2
    # The first update of all; the last of an epoch; the first and two more of the next; the end.
    stops = {1, per_epoch, per_epoch + 1, per_epoch + 2, 2 * per_epoch - 1, steps}
    train_with_stops(often, stops, monkeypatch)
    assert_same_run(never, often, epoch=2)
    assert sorted(path.name for path in Path("often").glob("*.pt")) == [
        "tmodel_00.pt", "tmodel_01.pt", "tmodel_02.pt", "tmodel_best.pt",
    ]  # fmt: skip


def test_a_checkpoint_from_before_there_were_pools_goes_on(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    path = get_weights_file_path(config, 0)
    state = checkpoint.load(path)
    for key in ("pool", "pool_start", "position", "processes"):
        del state[key]
    for key in ("streaming", "pool_size"):
        del state["config"][key]
    torch.save(state, path)
    train_model(replace(config, num_epochs=2, pool_size=7))
    assert checkpoint.load(get_weights_file_path(config, 1))["pool"] == 0


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    never, killed = (
        small_config(source, num_epochs=2, model_folder=f"./{name}", experiment_name=f"runs/{name}")
        for name in ("never", "killed")
    )
    train_model(never)
    per_epoch = checkpoint.load(get_weights_file_path(never, 0))["global_step"]
    update = train.train_update

    def die(run, batches):
        if run.progress.global_step == per_epoch + 2:
            raise RuntimeError("power cut")
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", die)
    with pytest.raises(RuntimeError, match="power cut"):
        train_model(killed)
    monkeypatch.setattr(train, "train_update", update)
    time.sleep(1.1 - time.time() % 1)
    train_model(killed)
    assert_same_run(never, killed, epoch=1)


def test_a_run_killed_before_its_first_checkpoint_starts_again_in_its_own_curves(
    tmp_path, monkeypatch
):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1, log_every=1)
    update, updates = train.train_update, iter(range(3))

    def die(run, batches):
        next(updates)  # StopIteration at the fourth
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", die)
    with pytest.raises(StopIteration):
        train_model(config)
    monkeypatch.setattr(train, "train_update", update)
    time.sleep(1.1 - time.time() % 1)
    train_model(config)
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    shown = curves("runs/tmodel")
    steps = [step for step, _ in shown["train/loss"]]
    assert steps == list(range(1, len(steps) + 1)) and len(steps) > 3
    assert shown["config/text_summary"] == [(0, None)]


def test_validation_that_fails_is_told_and_done_at_the_next_start(tmp_path, monkeypatch, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    with monkeypatch.context() as patch:
        patch.setattr(train, "run_validation", lambda *_: 1 / 0)
        train_model(config)
    out = capsys.readouterr().out
    assert "validation 00 failed at update" in out and "ZeroDivisionError: division" in out
    assert checkpoint.load(get_weights_file_path(config, 1))["history"] == []
    train_model(config)
    assert len(checkpoint.load(get_weights_file_path(config, 1))["history"]) == 1


def test_a_finished_run_says_so_and_changes_nothing(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    train_model(config)
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    for num_epochs in (2, 1):
        train_model(replace(config, num_epochs=num_epochs))
        assert "nothing left to train: 2 epochs are done" in capsys.readouterr().out
    after = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    assert {k: v for k, v in after.items() if "cache" not in str(k)} == before


def test_more_epochs_go_on(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    train_model(replace(config, num_epochs=2, lr=1e-3))
    out = capsys.readouterr().out
    assert "lr: the checkpoint says 0.01, you say 0.001: using 0.001" in out
    assert "going on from train_weights/tmodel_00.pt: epoch 1" in out
    assert checkpoint.load(get_weights_file_path(config, 1))["epoch"] == 2


def test_patience_stops_a_run_that_no_longer_gets_better(tmp_path, capsys):
    # A rate of nearly 0: the first validation stays the best.
    config = small_config(
        write_number_pairs(tmp_path, count=60), num_epochs=9, patience=2, lr=1e-12
    )
    train_model(config)
    history = checkpoint.load(get_weights_file_path(config, 2))["history"]
    assert len(history) == 3 and not get_weights_file_path(config, 3).exists()
    best = checkpoint.load(get_weights_file_path(config, "best"))
    assert len(best["history"]) == 1
    train_model(config)
    out = capsys.readouterr().out
    assert "nothing left to train: 3 epochs are done" in out and "a higher --patience" in out


def test_the_best_is_by_the_score_that_is_monitored():
    progress = Progress(history=[{"val/bleu": b, "val/loss": 5 - b} for b in (1.0, 3.0, 3.0, 2.0)])
    assert progress.best("val/bleu") == 1 and progress.best("val/loss") == 1
    progress.history.append({"val/bleu": 0.0, "val/loss": 0.5})
    assert progress.best("val/bleu") == 1 and progress.best("val/loss") == 4
    assert Progress().best("val/bleu") is None


def test_a_loss_that_is_not_a_number_stops_the_run_and_spares_the_checkpoint(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=2, log_every=100)
    train_model(replace(config, num_epochs=1))
    before = get_weights_file_path(config, 0).read_bytes()
    monkeypatch.setattr("training.update.target_loss", lambda logits, *_: logits.sum() * math.nan)
    with pytest.raises(ArithmeticError, match="10 updates in a row, up to update .*lr"):
        train_model(config)
    assert get_weights_file_path(config, 0).read_bytes() == before
    assert not get_weights_file_path(config, 1).exists()


# --- Which checkpoint ---


@pytest.fixture
def two_epochs(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    train_model(config)
    return config


def test_preload_names_a_checkpoint_or_is_refused(two_epochs, tmp_path, capsys):
    for preload in ("07", "nowhere.pt"):
        with pytest.raises(FileNotFoundError, match=preload.lstrip("0")):
            train_model(replace(two_epochs, preload=preload))
    with pytest.raises(ValueError, match="preload is none, but train_weights holds tmodel_01.pt"):
        train_model(replace(two_epochs, preload="none"))
    with pytest.raises(FileNotFoundError):
        train_model(replace(two_epochs, preload="best", model_folder="./new"))
    assert not Path("new").exists()
    train_model(replace(two_epochs, preload="none", model_folder="./new", num_epochs=1))
    assert Path("new/tmodel_00.pt").exists()


def test_going_back_sets_the_newer_checkpoints_aside(two_epochs, capsys):
    newer = get_weights_file_path(two_epochs, 1)
    weights = checkpoint.load(newer)["model"]
    train_model(replace(two_epochs, preload="00"))
    assert newer.with_name(newer.name + ".old").exists()
    assert "tmodel_01.pt is newer" in capsys.readouterr().out
    best = get_weights_file_path(two_epochs, "best")
    assert checkpoint.load(best)["global_step"] <= checkpoint.load(newer)["global_step"]
    train_model(replace(two_epochs, preload="00"))
    assert newer.with_name(newer.name + ".old1").exists()
    again = checkpoint.load(newer)["model"]
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(two_epochs, capsys):
    newest = get_weights_file_path(two_epochs, 1)
    weights = checkpoint.load(newest)["model"]
    newest.write_bytes(newest.read_bytes()[:1000])
    get_weights_file_path(two_epochs, "best").unlink()  # it is of the second epoch, too
    train_model(two_epochs)
    out = capsys.readouterr().out
    assert "tmodel_01.pt is damaged" in out and "going on from train_weights/tmodel_00.pt" in out
    again = checkpoint.load(newest)["model"]
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    for path in get_weights_folder(two_epochs).glob("tmodel_*.pt"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="no checkpoint in train_weights can be read"):
        train_model(two_epochs)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_model": 64}, "d_model: the checkpoint says 32, you say 64"),
        ({"N": 2}, "N: the checkpoint says 1, you say 2"),
        ({"seq_len": 20}, "seq_len: the checkpoint says 16, you say 20"),
        ({"norm": "post"}, "norm: the checkpoint says pre, you say post"),
        ({"tokenizer": "bpe"}, "tokenizer: the checkpoint says word, you say bpe"),
        ({"lang_src": "it", "lang_tgt": "en"}, "lang_src: the checkpoint says en, you say it"),
        ({"seed": 1}, "seed: the checkpoint says 0, you say 1"),
    ],
)
def test_another_run_than_the_checkpoints_is_refused_by_name(two_epochs, changes, words):
    with pytest.raises(ValueError, match=words):
        train_model(replace(two_epochs, **changes))


def test_other_pairs_than_the_checkpoints_are_refused(two_epochs, tmp_path):
    write_number_pairs(tmp_path, count=60, seed=9)
    with pytest.raises(
        ValueError, match="training pairs: the checkpoint says .*you say .*--model_folder"
    ):
        train_model(replace(two_epochs, num_epochs=3))


def test_other_validation_pairs_than_the_checkpoints_are_refused(tmp_path):
    source, valid = (write_number_pairs(tmp_path, name, count=40) for name in ("train", "valid"))
    config = small_config(source, validsource=valid, num_epochs=1)
    train_model(config)
    write_number_pairs(tmp_path, "valid", count=40, seed=9)
    with pytest.raises(ValueError, match="validation pairs: the checkpoint says .*valid with hash"):
        train_model(replace(config, num_epochs=2))


def test_a_shared_source_of_validation_and_training_is_counted(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=40)
    start_run(small_config(source, validsource=source))
    assert "40 of the sources to validate on are trained on, too" in capsys.readouterr().out


def test_a_new_run_in_the_folder_of_an_old_one_has_its_own_curves(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    train_model(replace(config, model_basename="other_"))
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tmodel", "tmodel_2"]
    assert len(curves("runs/tmodel")["val/bleu"]) == 1


def test_even_a_short_run_has_a_point_of_the_training_curves_and_a_warning(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, log_every=1000)
    train_model(config)
    assert len(curves("runs/tmodel")["train/loss"]) == 1
    assert "fewer than warmup (60)" in capsys.readouterr().out


def test_without_its_best_a_run_is_tested_by_its_newest(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=1, testsource=source)
    train_model(config)
    get_weights_file_path(config, "best").unlink()
    train_model(config)
    assert "test of train_weights/tmodel_00.pt" in capsys.readouterr().out


def test_the_last_line_of_a_training_has_the_command_that_translates_with_it(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=60)
    for folder, words in (
        ("weights", 'python translate.py "a sentence" uses it'),
        ("out/second", 'python translate.py --weights out/second "a sentence" uses it'),
    ):
        train_model(small_config(source, num_epochs=1, model_folder=folder))
        assert words in capsys.readouterr().out.splitlines()[-1]


def test_a_resumed_run_has_its_tokenizers_from_the_checkpoint(two_epochs):
    files = [get_weights_folder(two_epochs) / f"tokenizer_{lang}.json" for lang in ("en", "it")]
    files[0].write_bytes(files[1].read_bytes())
    files[1].unlink()
    before = checkpoint.load(get_weights_file_path(two_epochs, 1))
    train_model(replace(two_epochs, num_epochs=3))
    after = checkpoint.load(get_weights_file_path(two_epochs, 2))
    for side in ("tokenizer_src", "tokenizer_tgt"):
        assert after[side] == before[side]


def test_tokenizer_files_of_a_run_without_checkpoint_are_not_trusted(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(train, "train_update", lambda *_: 1 / 0)
        train_model(config)
    assert (get_weights_folder(config) / "tmodel_attempt.json").exists()
    (get_weights_folder(config) / "tokenizer_en.json").write_text("cut off")
    train_model(config)
    assert not (get_weights_folder(config) / "tmodel_attempt.json").exists()
    state = checkpoint.load(get_weights_file_path(config, 0))
    stored = (get_weights_folder(config) / "tokenizer_en.json").read_text("utf-8")
    assert stored == state["tokenizer_src"]


def test_tokenizer_files_that_no_run_wrote_are_the_users(tmp_path, capsys):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    own = build_tokenizer(["one two three"], "word", 50, 1)
    path = get_weights_folder(config) / "tokenizer_en.json"
    checkpoint.write_file(path, lambda file: file.write(own.to_json().encode()))
    train_model(config)
    assert path.read_text("utf-8") == own.to_json()
    assert checkpoint.load(get_weights_file_path(config, 0))["tokenizer_src"] == own.to_json()
    assert f"the tokenizer {path} is used as it is" in capsys.readouterr().out


def test_own_tokenizer_files_are_used_as_they_are(tmp_path, shared_data):
    own = str(shared_data / "tokenizers" / "sos_eos_swapped" / "tokenizer_{0}.json")
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, tokenizer_file=own)
    train_model(config)
    vocabulary = json.loads(checkpoint.load(get_weights_file_path(config, 0))["tokenizer_src"])
    assert vocabulary["model"]["vocab"]["[SOS]"] == 3
    with pytest.raises(FileNotFoundError, match="no tokenizer elsewhere/tokenizer_en.json"):
        missing = replace(config, tokenizer_file="elsewhere/tokenizer_{0}.json")
        train_model(replace(missing, model_folder="./other"))


def test_saved_names_carry_no_prefix_of_a_compiled_model(tmp_path):
    run = make_run(tmp_path, compile=True)
    assert not any(name.startswith("_orig_mod") for name in run.model.state_dict())


def test_batches_of_other_sizes_are_not_compiled_anew(tmp_path, monkeypatch):
    compiled, real = CompileCounter(), torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **how: real(f, backend=compiled, **how))
    run = make_run(tmp_path, compile=True)
    counts = []
    for size in (2, 3, 5, 8, 13, 21, 34, 50):
        do_update(run, [run.data.train.collate([run.data.train[i] for i in range(size)])])
        counts.append(compiled.frame_count)
    assert counts[0] > 0 and set(counts) == {counts[0]}


# --- TensorBoard ---


def test_a_refused_checkpoint_leaves_no_folder_of_curves(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    train_model(config)
    path = get_weights_file_path(config, 0)
    checkpoint.save(path, {**checkpoint.load(path), "batch": 10**6})
    state = {**checkpoint.load(path), "batch": 1, "pool": 1, "pool_start": 1, "position": "x"}
    checkpoint.save(path.with_name("other.pt"), state)
    with pytest.raises(ValueError, match="is in pool 1, which cannot be"):
        train_model(replace(config, num_epochs=3, preload=str(path.with_name("other.pt"))))
    with pytest.raises(ValueError, match="is after batch 1000000 of "):
        train_model(replace(config, num_epochs=3, experiment_name="runs/other"))
    assert not Path("runs/other").exists()


def test_two_runs_have_two_folders_and_a_resumed_run_its_own(tmp_path, capsys):
    source = write_number_pairs(tmp_path, count=60)
    first, second = (small_config(source, num_epochs=1, model_folder=f"./{m}") for m in "ab")
    train_model(first)
    train_model(second)
    train_model(replace(first, num_epochs=2))
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tmodel", "tmodel_2"]
    assert len(curves("runs/tmodel")["val/bleu"]) == 2
    assert len(curves("runs/tmodel_2")["val/bleu"]) == 1
    assert "config/text_summary" in curves("runs/tmodel")


def test_without_tensorboard_it_trains_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("curves.SummaryWriter", None)
    monkeypatch.setattr("curves.why_not", "No module named 'tensorboard'", raising=False)
    train_model(small_config(write_number_pairs(tmp_path, count=60), num_epochs=1))
    assert "TensorBoard cannot be imported (No module named" in capsys.readouterr().out
    assert Path("train_weights/tmodel_00.pt").exists()


# --- Through the command line ---


def test_it_learns_to_translate_and_reports_it(trained):
    printed = (trained / "printed").read_text("utf-8")
    best = checkpoint.load(trained / "train_weights" / "tmodel_best.pt")
    assert max(row["val/bleu"] for row in best["history"]) > 95
    assert "600 pairs, en -> it" in printed
    for word in ("SOURCE:", "TARGET:", "PREDICTED:", "tok:13a", "version:", "CER", "WER", "chrF"):
        assert word in printed


def test_a_checkpoint_holds_plain_values_only(trained):
    state = checkpoint.load(trained / "train_weights" / "tmodel_29.pt")
    assert state["config"]["num_epochs"] == 30 and len(state["history"]) == 30
    assert json.dumps({key: state[key] for key in ("history", "config", "window", "train_row")})


def test_the_last_epochs_and_the_best_are_kept(trained):
    names = sorted(path.name for path in (trained / "train_weights").iterdir())
    assert names == [
        "tmodel_27.pt", "tmodel_28.pt", "tmodel_29.pt", "tmodel_best.pt",
        "tokenizer_en.json", "tokenizer_it.json",
    ]  # fmt: skip


def test_ctrl_c_saves_inside_the_epoch_and_says_how_to_go_on(tmp_path):
    settings = {**SMALL, "datasource": write_number_pairs(tmp_path, count=600), "num_epochs": 500}
    process = subprocess.Popen(
        [sys.executable, train.__file__, *flags(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not Path("train_weights/tmodel_01.pt").exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"the same command goes on from here" in errors and b"Traceback" not in errors
    state = checkpoint.load(latest_weights_file_path(Config(datasource="train")))
    assert state["global_step"] > 0 and not Path("train_weights/tmodel_attempt.json").exists()


@pytest.mark.parametrize("arguments", [(), ("--lang_tgt", "zh"), ("small",)])
def test_without_the_hub_it_stops_with_one_message_and_writes_nothing(arguments):
    process = run_script("train.py", *arguments, check=False)
    assert process.returncode == 1
    assert "python train.py demo" in process.stderr and "Traceback" not in process.stderr
    assert len(process.stderr.strip().splitlines()) == 1
    assert list(Path().iterdir()) == []


def test_a_mistake_in_the_data_writes_nothing(tmp_path):
    source = write_number_pairs(tmp_path)
    with open(f"{source}.it", "a") as file:
        file.write("dieci\n")
    before = sorted(Path().iterdir())
    process = run_script("train.py", "--datasource", source, check=False)
    assert process.returncode == 1 and "600" in process.stderr and "601" in process.stderr
    assert sorted(Path().iterdir()) == before


def test_it_runs_with_warnings_as_errors(tmp_path):
    source = write_number_pairs(tmp_path, count=20)
    settings = flags({**SMALL, "datasource": source, "num_epochs": 1})
    process = subprocess.run(
        [sys.executable, "-W", "error", train.__file__, *settings], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr


def test_the_hub_layout_trains_in_the_asked_direction(shared_data):
    printed = run_script(
        "train.py",
        *flags(
            {**SMALL, "datasource": shared_data / "hub_layout", "lang_tgt": "de", "seq_len": 40}
        ),
        *flags({"num_epochs": 1, "val_size": 20, "batch_tokens": 2000}),
    ).stdout
    assert "of de-en, en -> de" in printed
    source = next(line for line in printed.splitlines() if "SOURCE" in line)
    target = next(line for line in printed.splitlines() if "TARGET" in line)
    assert {"a", "the", "A", "of", "is", "and"} & set(source.split())
    assert {"ein", "eine", "Ein", "Eine", "der", "die", "und"} & set(target.split())


def test_a_test_set_is_scored_by_the_best_checkpoint(tmp_path):
    source = write_number_pairs(tmp_path, count=60)
    test = write_number_pairs(tmp_path, "test", count=10, seed=5)
    settings = flags({**SMALL, "datasource": source, "num_epochs": 1, "testsource": test})
    printed = run_script("train.py", *settings).stdout
    assert "test of train_weights/tmodel_best.pt: BLEU" in printed
    again = run_script("train.py", *settings).stdout
    assert printed.splitlines()[-1] == again.splitlines()[-1]


def first_batch(run, indices=(0, 1, 2)):
    return run.data.train.collate(run.data.train.__getitems__(list(indices)))


def test_each_update_is_done_at_its_own_rate(tmp_path):
    run = make_run(tmp_path, lr=1e-2, warmup=3)
    for step in range(1, 6):
        do_update(run, [first_batch(run)])
        assert run.optimizer.param_groups[0]["lr"] == learning_rate(
            step, run.config, run.total_updates
        )


def test_an_update_descends_the_smoothed_loss(tmp_path):
    run = make_run(tmp_path, dropout=0.0, label_smoothing=0.3)
    batch = first_batch(run)
    with torch.no_grad():
        logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
        expected = target_loss(logits, batch.tgt_out, run.pad_id, 0.3).item()
    do_update(run, [batch])
    assert float(run.progress.window["loss"]) == pytest.approx(expected, rel=1e-5)


def test_no_two_updates_drop_the_same(tmp_path):
    run = make_run(tmp_path, dropout=0.5, lr=1e-30)
    losses = []
    for _ in range(3):
        do_update(run, [first_batch(run)])
        losses.append(float(run.progress.window["loss"]))
        run.progress.window = Progress().window
    assert len(set(losses)) == 3


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_an_update_multiplies_in_the_asked_precision(tmp_path, precision, dtype):
    run = make_run(tmp_path, precision=precision)
    seen = set()
    run.model.projection.register_forward_hook(lambda _, __, logits: seen.add(logits.dtype))
    do_update(run, [first_batch(run)])
    assert seen == {dtype}
    assert {parameter.dtype for parameter in run.model.parameters()} == {torch.float32}


def test_a_point_of_the_curves_is_the_mean_since_the_last_by_tokens_and_updates(tmp_path):
    run = make_run(tmp_path, dropout=0.0, lr=1e-30)
    run.curves = Curves("runs/x", 0)
    batches = [first_batch(run, [0]), first_batch(run, range(1, 9))]
    windows = []
    for batch in batches:
        run.progress.window = Progress().window
        do_update(run, [batch])
        windows.append(run.progress.window)
    run.progress.window = Progress().window
    for batch in batches:
        do_update(run, [batch])
    log_window(run, 1.0)
    run.curves.close()
    row = run.progress.train_row
    total = sum(float(window["loss"]) for window in windows)
    assert row["train/loss"] == pytest.approx(total / sum(batch.tokens for batch in batches))
    norms = [float(window["norm"]) for window in windows]
    assert row["train/grad_norm"] == pytest.approx(sum(norms) / 2)
    assert run.progress.window == Progress().window


def test_the_validation_loss_is_the_mean_over_real_target_tokens_unsmoothed(tmp_path):
    run = make_run(tmp_path, label_smoothing=0.3)
    ds, total = run.data.valid, 0.0
    with evaluating(run.model):
        for item in ds:
            alone = ds.collate([item])
            logits = run.model(alone.src, alone.src_mask, alone.tgt_in)
            total += torch.nn.functional.cross_entropy(
                logits[0], alone.tgt_out[0], reduction="sum"
            ).item()
    for batch_tokens in (160, 16):  # one batch with padding, and several
        config = replace(run.config, batch_tokens=batch_tokens)
        loss = train.run_validation(run.model, ds, config, run.device)[0]
        assert loss == pytest.approx(total / sum(ds.tgt_lens), rel=1e-5)


def groups_of_each_epoch(config, monkeypatch):
    """Train; returns for each epoch the pairs' indices of each batch of each update."""
    update, epochs = train.train_update, {}

    def note(run, batches):
        epochs.setdefault(run.progress.epoch, []).append([batch.indices for batch in batches])
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", note)
    train_model(config)
    return list(epochs.values())


def test_each_epoch_trains_once_on_every_pair_in_batches_of_its_own(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    config = small_config(source, num_epochs=2, accumulate=3, batch_size=7)
    epochs = groups_of_each_epoch(config, monkeypatch)
    for groups in epochs:
        assert [len(group) for group in groups] == [3, 3, 2]  # the rest is an update too
        batches = [batch for group in groups for batch in group]
        assert max(map(len, batches)) <= 7
        indices = sorted(index for batch in batches for index in batch)
        assert indices == list(range(len(indices))) and len(indices) > 50
    assert epochs[0] != epochs[1]


def test_a_signal_stops_a_validation_between_its_batches(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, batch_tokens=16)
    decode, calls = validation.greedy_decode, []

    def decode_and_stop(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return decode(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(validation, "greedy_decode", decode_and_stop)
        train_model(config)
    assert len(calls) == 1
    assert checkpoint.load(get_weights_file_path(config, 0))["history"] == []


def test_the_test_set_is_scored_by_the_best_weights(tmp_path, capsys, monkeypatch):
    source = write_number_pairs(tmp_path, count=60)
    test = write_number_pairs(tmp_path, "test", count=10, seed=5)
    config = small_config(source, num_epochs=1, testsource=test)
    train_model(config)
    best = checkpoint.load(get_weights_file_path(config, "best"))
    eos_id = tokenizer_from_json(best["tokenizer_tgt"], "target").eos_id
    best["model"]["projection.linear.bias"][eos_id] = 1e4  # says nothing at all
    checkpoint.save(get_weights_file_path(config, "best"), best)
    capsys.readouterr()
    scored, run_validation = [], train.run_validation

    def note(model, ds, *arguments):
        scored.append(len(ds))
        return run_validation(model, ds, *arguments)

    monkeypatch.setattr(train, "run_validation", note)
    train_model(config)
    assert scored == [10]
    assert "WER 100.00" in capsys.readouterr().out.splitlines()[-1]


def test_the_scale_of_fp16_is_kept_in_the_checkpoint(tmp_path):
    run = make_run(tmp_path)
    run.curves = Curves("runs/x", 0)
    do_update(run, [first_batch(run)])
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**7)
    run.scaler.scale(torch.zeros(()))  # it has no scale before its first use
    run.save(Path("t.pt"))
    run.scaler = torch.amp.GradScaler("cpu")
    run.restore(Path("t.pt"), checkpoint.load(Path("t.pt")))
    assert run.scaler.get_scale() == 2.0**7


def test_an_fp16_gradient_is_clipped_at_its_real_size(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.01)
    batch = run.data.train.collate(run.data.train.__getitems__([0, 1]))
    state = {name: value.clone() for name, value in run.model.state_dict().items()}
    plain = gradients(run, [batch])
    run.model.load_state_dict(state)
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**7)
    assert_same_gradients(plain, gradients(run, [batch]))


def test_the_first_signal_is_noted_and_the_second_ends_the_process():
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    for signum in (signal.SIGINT, signal.SIGTERM):
        name = signal.Signals(signum).name
        with Interrupt() as interrupt:
            with pytest.raises(Interrupted, match=name), interrupt.postponed():
                interrupt.check()
                assert signal.getsignal(signum) not in (signal.SIG_DFL, *before)
                signal.raise_signal(signum)
                with pytest.raises(Interrupted, match=name):
                    interrupt.check()
            for each in (signal.SIGINT, signal.SIGTERM):
                assert signal.getsignal(each) is signal.SIG_DFL
        assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before
        with pytest.raises(Interrupted, match=name), Interrupt():
            signal.raise_signal(signum)  # nothing is under way that could be lost


@pytest.mark.parametrize("preload", ["best", "00", "train_weights/tmodel_00.pt"])
def test_a_run_goes_on_from_the_checkpoint_asked_for(two_epochs, preload):
    best = get_weights_file_path(two_epochs, "best")
    best.write_bytes(get_weights_file_path(two_epochs, 0).read_bytes())
    progress = start_run(replace(two_epochs, preload=preload)).progress
    assert progress.epoch == 1 and len(progress.history) == 1


def test_validation_pairs_are_the_asked_ones(tmp_path):
    source = write_number_pairs(tmp_path, count=60)
    other = write_number_pairs(tmp_path, "other", count=30, seed=5)
    config = small_config(source, val_size=4)
    assert len(start_run(config).data.valid) == 4
    data = start_run(replace(config, validsource=other, val_size=None)).data
    assert len(data.train) == 60 and len(data.valid) == 30
    seeds = [start_run(replace(config, seed=s, val_size=None)).data.valid for s in (0, 1)]
    assert seeds[0].texts("src_text") != seeds[1].texts("src_text")


def test_the_phrasebook_is_validated_on_its_own_pairs(monkeypatch):
    asked = []
    load = run_data.load_pairs

    def note(source, lang_src, lang_tgt, split="train"):
        asked.append(split)
        return load(source, lang_src, lang_tgt, "validation")

    monkeypatch.setattr(run_data, "load_pairs", note)
    config = small_config("phrasebook")
    run_data.get_ds(config, None, run_data.tokenizer_paths(config))
    assert asked == ["validation", "train"]


def test_a_shared_vocabulary_knows_both_languages(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), shared_vocab=True)
    ds = start_run(config).data.train
    assert ds.tokenizer_src.to_json() == ds.tokenizer_tgt.to_json()
    assert ds.tokenizer_src.unknown_words("one uno ten dieci zebra") == ["zebra"]


def test_a_run_saves_every_so_many_updates(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1, save_every=2)
    saved, save = [], checkpoint.save

    def note(path, state):
        saved.append((path.name, state["global_step"]))
        save(path, state)

    monkeypatch.setattr(checkpoint, "save", note)
    train_model(config)
    inside = [step for name, step in saved if name == f"tmodel_00_{step}.pt"]
    last = saved[-1][1]
    assert inside == [step for step in range(2, last, 2)] and len(inside) > 1


def test_the_first_weights_follow_the_seed(tmp_path):
    runs = [make_run(tmp_path, seed=seed) for seed in (0, 0, 1)]
    first, again, other = (run.model.projection.linear.weight for run in runs)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_going_back_inside_an_epoch_sets_its_newer_checkpoints_aside(two_epochs):
    state = checkpoint.load(get_weights_file_path(two_epochs, 1))
    step = state["global_step"]
    for batch in (1, 2):
        inside = {"epoch": 2, "batch": batch, "global_step": step + batch}
        checkpoint.save(get_weights_file_path(two_epochs, 2, step + batch), {**state, **inside})
    progress = Progress(epoch=2, batch=1, global_step=step + 1)
    set_newer_aside(two_epochs, progress)
    names = {path.name for path in get_weights_folder(two_epochs).glob("tmodel_0*")}
    assert names == {
        "tmodel_00.pt", "tmodel_01.pt", f"tmodel_02_{step + 1}.pt", f"tmodel_02_{step + 2}.pt.old",
    }  # fmt: skip


def test_going_back_past_a_damaged_checkpoint_sets_it_aside(two_epochs):
    newest = get_weights_file_path(two_epochs, 1)
    newest.write_bytes(b"cut off")
    train_model(replace(two_epochs, preload="00"))
    assert checkpoint.load(newest)["epoch"] == 2


def test_what_is_saved_after_a_damaged_checkpoint_inside_an_epoch_is_found_again(
    tmp_path, monkeypatch
):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1)
    train_model(config)
    step = checkpoint.load(get_weights_file_path(config, 0))["global_step"] + 1
    get_weights_file_path(config, 1, step + 1).write_bytes(b"cut off")
    update = train.train_update

    def update_and_stop(run, batches):
        os.kill(os.getpid(), signal.SIGINT)
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", update_and_stop)
    with pytest.raises(Interrupted):
        train_model(replace(config, num_epochs=2))
    assert start_run(replace(config, num_epochs=2)).progress.global_step == step


def test_the_padding_of_the_target_is_known_by_the_targets_own_id(tmp_path):
    run = make_run(tmp_path)
    pairs = run.data.train
    pairs.tokenizer_tgt = swap_ids(pairs.tokenizer_tgt, "[UNK]", "[PAD]")
    assert run.pad_id == pairs.tokenizer_tgt.pad_id != pairs.tokenizer_src.pad_id


def test_batches_may_not_be_formed_anew_inside_an_epoch(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1)
    update = train.train_update

    def update_and_stop(run, batches):
        done = update(run, batches)
        if run.progress.global_step == 1:
            signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(train, "train_update", update_and_stop)
    with pytest.raises(Interrupted):
        train_model(config)
    with pytest.raises(ValueError, match="batch_tokens: the checkpoint says 160, you say 80"):
        start_run(replace(config, batch_tokens=80))


def test_validation_comes_every_so_many_updates_and_at_the_end_of_an_epoch(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1, validate_every=2)
    train_model(config)
    state = checkpoint.load(get_weights_file_path(config, 0))
    last = state["global_step"]
    steps = [row["step"] for row in state["history"]]
    assert steps == sorted({*range(2, last + 1, 2), last}) and len(steps) > 2


def test_a_loss_that_is_not_a_number_is_not_saved_inside_an_epoch(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=1, save_every=9, log_every=1000, max_bad_updates=9)
    monkeypatch.setattr("training.update.target_loss", lambda logits, *_: logits.sum() * math.nan)
    with pytest.raises(ArithmeticError, match="not finite"):
        train_model(config)
    assert not list(get_weights_folder(config).glob("*.pt"))


@pytest.mark.parametrize(("preload", "stays"), [("00", False), ("latest", True)])
def test_a_newer_best_is_set_aside_by_going_back_alone(two_epochs, preload, stays):
    best = get_weights_file_path(two_epochs, "best")
    best.write_bytes(get_weights_file_path(two_epochs, 1).read_bytes())
    step = checkpoint.load(get_weights_file_path(two_epochs, 0))["global_step"]
    set_newer_aside(replace(two_epochs, preload=preload), Progress(epoch=1, global_step=step))
    assert best.exists() is stays and best.with_name(f"{best.name}.old").exists() is not stays


def test_a_signal_just_after_the_question_is_answered_after_the_next_update(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1)
    # It comes while the end of an update is looked at, when nothing has been saved.
    is_due, asked = Progress.validation_is_due, []

    def late_signal(self, config):
        asked.append(self.global_step)
        return is_due(self, config)

    class Late(Interrupt):
        looks = 0

        @property
        def signum(self):
            Late.looks += 1
            return signal.SIGINT if Late.looks > 1 else None

        @signum.setter
        def signum(self, value):
            pass

    monkeypatch.setattr(train, "Interrupt", Late)
    monkeypatch.setattr(Progress, "validation_is_due", late_signal)
    with pytest.raises(Interrupted):
        train_model(config)
    saved = checkpoint.load(latest_weights_file_path(config))
    assert saved["global_step"] == asked[-1]


@pytest.mark.parametrize("at_once", [1, 7, 512])
def test_logits_are_made_of_real_tokens_alone_and_a_few_at_a_time(tmp_path, monkeypatch, at_once):
    run = make_run(tmp_path, dropout=0.0)
    ds = run.data.train
    batch = ds.collate(ds.__getitems__(range(12)))
    assert batch.tokens < batch.tgt_out.numel()
    logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
    loss = target_loss(logits, batch.tgt_out, run.pad_id, 0.1)
    (loss / batch.tokens).backward()
    expected = [parameter.grad.clone() for parameter in run.model.parameters()]
    run.optimizer.zero_grad()
    rows, project = [], run.model.project
    monkeypatch.setattr("training.update.LOGITS_AT_ONCE", at_once)
    monkeypatch.setattr(run.model, "project", lambda x: rows.append(len(x)) or project(x))
    total = accumulate_gradient(run, [batch], batch.tokens)
    assert sum(rows) == batch.tokens and max(rows) <= at_once
    assert total.item() == pytest.approx(loss.item(), rel=1e-5)
    for gradient, parameter in zip(expected, run.model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)


def test_each_validation_has_a_picture_of_the_same_sentences_attention(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=2)
    train_model(config)
    events = EventAccumulator(config.experiment_name)
    events.Reload()
    steps = [row["step"] for row in checkpoint.load(get_weights_file_path(config, 1))["history"]]
    pictures = events.Images("val/attention")
    assert [each.step for each in pictures] == steps and len(steps) == 2
    assert all(each.encoded_image_string.startswith(b"\x89PNG") for each in pictures)


# --- The best of validations that have one score ---


def history_of(*scores):
    return [{"val/bleu": bleu, "val/loss": loss} for bleu, loss in scores]


def test_equal_scores_fall_to_the_lower_loss_as_it_is_printed():
    progress = Progress(history=history_of((0.0, 5.0), (0.0, 3.0), (0.0, 4.0)))
    assert progress.best("val/bleu") == 1 and progress.ties("val/bleu") == 2
    progress.history = history_of((7.0, 2.0001), (7.0, 2.0), (6.0, 1.0))
    assert progress.best("val/bleu") == 0 and progress.ties("val/bleu") == 1
    progress.history = history_of((7.0, 2.0), (7.5, 3.0))
    assert progress.best("val/bleu") == 1 and progress.ties("val/bleu") == 0
    assert progress.best("val/loss") == 0 and progress.ties("val/loss") == 0
    # Smoothing gives an untrained model some BLEU by chance.
    progress.history = history_of((0.69, 3.6), (0.0, 3.1), (0.36, 2.9))
    assert progress.best("val/bleu") == 2 and progress.ties("val/bleu") == 2
    progress.history += history_of((1.1, 3.0))
    assert progress.best("val/bleu") == 3 and progress.ties("val/bleu") == 0


def test_a_bleu_that_stays_0_neither_keeps_the_untrained_model_nor_ends_the_run(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        validation.metrics,
        "score",
        lambda predicted, target, lang: metrics.Scores(cer=0, wer=0, bleu=0, chrf=0, signature=""),
    )
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=4, patience=1)
    train_model(config)
    out = capsys.readouterr().out
    best = checkpoint.load(get_weights_file_path(config, "best"))
    losses = [row["val/loss"] for row in best["history"]]
    assert len(losses) == 4 and losses[-1] == min(losses)
    assert "val/bleu is no better than before; this is the best so far by its val/loss" in out
    assert "the lowest val/loss of 4 validations with no better score" in out


def test_pairs_of_two_words_train_to_100_and_translate(tmp_path):
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


def test_predictions_of_unknown_words_alone_name_the_tokenizer_that_has_none():
    for predicted in (["[UNK] [UNK]", "[UNK]"], ["[UNK]。", "[UNK]。"], ["", "¿[UNK], [UNK]?"]):
        [hint] = train.hint_on(predicted)
        assert "--tokenizer bpe" in hint and "learning rate" not in hint
    assert "--lr" in train.hint_on(["il", "il"])[0]
    assert not train.hint_on(["il [UNK]", "lo"]) and not train.hint_on(["uno"])
    assert not train.hint_on([""])


def test_a_best_that_lies_in_another_folder_is_not_named(two_epochs, tmp_path, capsys):
    path = get_weights_file_path(two_epochs, 1)
    # A rate of nearly 0: what comes is not better.
    config = replace(two_epochs, preload=str(path), model_folder="./new", num_epochs=3, lr=1e-12)
    train_model(config)
    out = capsys.readouterr().out
    assert not Path("new/tmodel_best.pt").exists()
    assert "its checkpoint is not in new; python translate.py" in out
    assert out.strip().endswith("uses new/tmodel_02.pt")


# --- Whose curves they are ---


def steps_of(log_dir):
    return [step for step, _ in curves(log_dir)["train/loss"]]


@pytest.fixture
def a_run(tmp_path):
    """A run of an epoch in ./a_weights, whose curves are in runs/tmodel, and its config."""
    source = write_number_pairs(tmp_path, count=120)
    config = small_config(source, num_epochs=1, model_folder="./a_weights")
    train_model(config)
    time.sleep(1.1 - time.time() % 1)
    return config


def test_a_copied_weights_folder_leaves_the_originals_curves_alone(a_run, capsys):
    shutil.copytree("a_weights", "b_weights")
    before = steps_of("runs/tmodel")
    train_model(replace(a_run, num_epochs=2, model_folder="./b_weights"))
    assert steps_of("runs/tmodel") == before
    assert min(steps_of("runs/tmodel_2")) > max(before)
    assert "of which b_weights is a copy: this run starts curves of its own" in (
        capsys.readouterr().out
    )
    time.sleep(1.1 - time.time() % 1)
    for folder in ("a", "b"):  # each goes on in its own
        train_model(replace(a_run, num_epochs=3, model_folder=f"./{folder}_weights"))
    assert [path.name for path in sorted(Path("runs").iterdir())] == ["tmodel", "tmodel_2"]


def test_a_moved_weights_folder_goes_on_in_its_curves(a_run):
    Path("a_weights").rename("moved")
    for epochs in (2, 3):
        train_model(replace(a_run, num_epochs=epochs, model_folder="./moved"))
        time.sleep(1.1 - time.time() % 1)
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    assert steps_of("runs/tmodel") == sorted(set(steps_of("runs/tmodel")))


def test_a_project_that_is_copied_whole_goes_on_in_its_own_curves(a_run, monkeypatch):
    Path("copy").mkdir()
    for name in ("a_weights", "runs"):
        shutil.copytree(name, f"copy/{name}")
    before = steps_of("runs/tmodel")
    monkeypatch.chdir("copy")
    train_model(replace(a_run, num_epochs=2))
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    assert steps_of("runs/tmodel")[: len(before)] == before


def test_a_weights_folder_from_elsewhere_does_not_go_on_in_the_curves_of_another_run(
    a_run, tmp_path, capsys
):
    other = small_config(
        write_number_pairs(tmp_path, "other", count=90, seed=1), num_epochs=1, model_folder="./o"
    )
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")
    train_model(other)
    os.chdir(tmp_path)
    Path("elsewhere/o").rename("o")
    before = steps_of("runs/tmodel")
    train_model(replace(other, num_epochs=2))
    assert steps_of("runs/tmodel") == before
    assert "runs/tmodel holds the curves of another run" in capsys.readouterr().out


def test_a_checkpoint_without_an_id_goes_on_as_before(a_run):
    for path in Path("a_weights").glob("*.pt"):
        state = torch.load(path, weights_only=True)
        del state["run_id"]
        torch.save(state, path)
    train_model(replace(a_run, num_epochs=2))
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
    assert checkpoint.load(get_weights_file_path(a_run, 1))["run_id"]


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"run_id": 1, "weights": 2}', "[" * 99_999])
def test_a_damaged_note_of_a_folder_of_curves_makes_them_another_runs(a_run, note):
    Path("runs/tmodel/run.json").write_text(note)
    train_model(replace(a_run, num_epochs=2))
    assert Path("runs/tmodel_2").is_dir()


def test_a_run_killed_as_it_begins_its_curves_goes_on_in_their_folder(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=120), num_epochs=1)
    with monkeypatch.context() as patch:

        def die(run, interrupt, pace):
            raise SystemExit

        patch.setattr(train, "train_pool", die)
        with pytest.raises(SystemExit):
            train_model(config)
    assert list(Path("runs/tmodel").glob("events.*"))
    time.sleep(1.1 - time.time() % 1)
    train_model(config)
    assert [path.name for path in Path("runs").iterdir()] == ["tmodel"]
