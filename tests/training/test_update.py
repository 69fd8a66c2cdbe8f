"""One update: its gradient, its precision, non-finite numbers, and memory."""

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import (
    assert_same_run,
    curves,
    do_update,
    first_batch,
    make_run,
    small_config,
    spoil,
    train_with_stops,
    write_number_pairs,
)
from test_dataset import make_dataset, swap_ids
from torch._dynamo.testing import CompileCounter

import checkpoint
import train
from checkpoint import Progress, WeightsFolder
from dataset import Batch
from train import train_model
from training import update
from training.batches import form_pool_batches
from training.start import get_model
from training.tensorboard import Curves
from training.update import (
    LOGITS_STEP,
    accumulate_gradient,
    collect_updates,
    learning_rate,
    seed_update,
    train_update,
)
from training.validation import cross_entropy_sum, evaluating


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


def test_padding_changes_neither_loss_nor_gradients(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.0)
    ds = run.data.train
    short = ds.batch([0])

    def wider(ids, pad_id):
        return torch.nn.functional.pad(ids, (0, 4), value=pad_id)

    src_pad, tgt_pad = ds.tokenizers.src.pad_id, ds.tokenizers.tgt.pad_id
    src = wider(short.src, src_pad)
    mask = (src != src_pad)[:, None, None]
    tgt_in, tgt_out = wider(short.tgt_in, tgt_pad), wider(short.tgt_out, tgt_pad)
    long = Batch([0], src, mask, tgt_in, tgt_out, short.target_positions, short.tokens)
    state = {name: value.clone() for name, value in run.model.state_dict().items()}
    one = gradients(run, [short])
    loss = run.progress.window["loss"]
    run.model.load_state_dict(state)
    assert_same_gradients(one, gradients(run, [long]))
    assert float(run.progress.window["loss"]) == pytest.approx(float(loss), rel=1e-5)


def test_accumulated_batches_are_weighted_by_their_tokens(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.0)
    ds = run.data.train
    state = {name: value.clone() for name, value in run.model.state_dict().items()}
    indices = list(range(12))
    whole = gradients(run, [ds.batch(indices)])
    run.model.load_state_dict(state)
    parts = [ds.batch(part) for part in (indices[:1], indices[1:5], indices[5:])]
    assert_same_gradients(whole, gradients(run, parts))


def test_gradient_is_clipped_to_its_norm(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.01)
    clipped = gradients(run, [run.data.train.batch([0, 1])])
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in clipped))
    assert norm == pytest.approx(0.01, rel=1e-2)
    assert run.progress.window["norm"] > 0.01


def test_source_and_target_may_have_different_ids_for_special_tokens(tmp_path):
    plain = make_dataset()
    swapped_tgt = swap_ids(plain.tokenizers.tgt, "[UNK]", "[PAD]")
    swapped = make_dataset(tokenizers=(plain.tokenizers.src, swapped_tgt))
    losses = []
    for ds in (plain, swapped):
        torch.manual_seed(0)
        model = get_model(small_config("x"), ds.tokenizers.src.size, ds.tokenizers.tgt.size)
        with torch.no_grad(), evaluating(model):
            if ds is swapped:  # the same words, under the other numbers
                rows = [1, 0, *range(2, ds.tokenizers.tgt.size)]
                for name in ("tgt_embed.embedding.weight", "projection.linear.weight"):
                    weight = model.get_parameter(name)
                    weight.data = weight.data[rows]
            batch = ds.batch([0, 1, 2, 3])
            logits = model(batch.src, batch.src_mask, batch.tgt_in)
            pad_id = ds.tokenizers.tgt.pad_id
            losses.append(
                cross_entropy_sum(logits, batch.tgt_out, pad_id, 0.0).item() / batch.tokens
            )
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_dropout_of_an_update_depends_on_seed_step_and_rank_only():
    def draw(*key):
        seed_update(*key)
        return torch.rand(3).tolist()

    assert draw(0, 5) == draw(0, 5, 0)
    assert len({tuple(draw(*key)) for key in [(0, 5, 0), (1, 5, 0), (0, 6, 0), (0, 5, 1)]}) == 4


def test_fp16_overflow_keeps_the_weights_and_lowers_the_scale(tmp_path):
    run = make_run(tmp_path, max_bad_updates=40)
    run.precision = torch.float16
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    before = [parameter.clone() for parameter in run.model.parameters()]
    batch = run.data.train.batch([0, 1, 2])
    do_update(run, [batch])
    assert run.progress.skipped == run.progress.skipped_in_row == 1
    assert run.progress.window["updates"] == 0 and run.scaler.get_scale() == 2.0**39
    assert all(map(torch.equal, before, run.model.parameters()))
    while not run.progress.window["updates"]:
        do_update(run, [batch])
    assert run.progress.skipped_in_row == 0
    assert run.progress.global_step == run.progress.skipped + 1


def test_fp16_update_is_skipped_for_a_nonfinite_loss_too(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    real = accumulate_gradient
    monkeypatch.setattr("training.update.accumulate_gradient", lambda *args: real(*args) * math.inf)
    before = [parameter.clone() for parameter in run.model.parameters()]
    do_update(run, [first_batch(run)])
    assert run.progress.skipped == 1
    assert all(map(torch.equal, before, run.model.parameters()))


def test_nonfinite_losses_stop_the_run_and_keep_the_checkpoint(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=2, log_every=100)
    train_model(replace(config, num_epochs=1))
    before = WeightsFolder.of(config).end_of(0).read_bytes()
    monkeypatch.setattr(
        "training.update.loss_and_gradient",
        lambda logits, *_, **__: (logits.sum() * math.nan, logits.detach() * math.nan),
    )
    with pytest.raises(ArithmeticError, match="10 updates in a row, up to update .*lr"):
        train_model(config)
    assert WeightsFolder.of(config).end_of(0).read_bytes() == before
    assert not WeightsFolder.of(config).end_of(1).exists()


def test_batches_of_other_sizes_are_not_compiled_again(tmp_path, monkeypatch):
    compiled, real = CompileCounter(), torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **how: real(f, backend=compiled, **how))
    run = make_run(tmp_path, compile=True)
    of_epoch = form_pool_batches(replace(run.config, batch_tokens=24), run.data.train, 0)
    counts = []
    for indices in (range(2), range(3), range(50), *of_epoch):
        do_update(run, [run.data.train.batch(indices)])
        counts.append(compiled.frame_count)
    assert len(counts) > 10 and counts[0] > 0 and set(counts) == {counts[0]}


def test_an_update_never_waits_for_the_device(tmp_path, monkeypatch):
    """Tensors on `meta` have no values: to look at one, or to mix it with the CPU's, is an error.

    Autocast and the fused Adam do not know `meta`, and are replaced.
    """
    run, meta = make_run(tmp_path, dropout=0.1, clip_norm=1.0), torch.device("meta")
    batches = [first_batch(run).to(meta), first_batch(run, range(3, 9)).to(meta)]
    tokens = sum(batch.tokens for batch in batches)
    run.model, run.device = run.model.to(meta), meta

    class UnfusedAdam(torch.optim.Adam):
        _step_supports_amp_scaling = True

        def step(self):
            assert self.found_inf.device == meta
            del self.found_inf
            super().step()

    run.optimizer = UnfusedAdam(run.model.parameters(), foreach=True)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    for step in (1, 2):
        assert train_update(run, batches) == tokens
        assert run.progress.global_step == step == len(run.pending_updates)
    assert {update.loss.device for update in run.pending_updates} == {meta}
    with pytest.raises((RuntimeError, NotImplementedError)):
        collect_updates(run)


def test_each_update_uses_its_learning_rate(tmp_path):
    run = make_run(tmp_path, lr=1e-2, warmup=3)
    for step in range(1, 6):
        do_update(run, [first_batch(run)])
        assert run.optimizer.param_groups[0]["lr"] == learning_rate(
            step, run.config, run.total_updates
        )


def test_update_descends_the_smoothed_loss(tmp_path):
    run = make_run(tmp_path, dropout=0.0, label_smoothing=0.3)
    batch = first_batch(run)
    with torch.no_grad():
        logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
        expected = cross_entropy_sum(logits, batch.tgt_out, run.data.train.pad_ids[1], 0.3).item()
    do_update(run, [batch])
    assert float(run.progress.window["loss"]) == pytest.approx(expected, rel=1e-5)


def test_two_updates_have_different_dropout(tmp_path):
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
def test_update_multiplies_in_the_chosen_precision(tmp_path, precision, dtype):
    run = make_run(tmp_path, precision=precision)
    seen = set()
    run.model.projection.register_forward_hook(lambda _, __, logits: seen.add(logits.dtype))
    do_update(run, [first_batch(run)])
    assert seen == {dtype}
    assert {parameter.dtype for parameter in run.model.parameters()} == {torch.float32}


def test_fp16_scale_is_stored_in_the_checkpoint(tmp_path):
    run = make_run(tmp_path)
    run.curves = Curves("runs/x", 0)
    do_update(run, [first_batch(run)])
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**7)
    run.scaler.scale(torch.zeros(()))  # it has no scale before its first use
    run.save(Path("t.pt"))
    run.scaler = torch.amp.GradScaler("cpu")
    run.restore(Path("t.pt"), checkpoint.load(Path("t.pt")))
    assert run.scaler.get_scale() == 2.0**7


def test_fp16_gradient_is_clipped_after_unscaling(tmp_path):
    run = make_run(tmp_path, dropout=0.0, clip_norm=0.01)
    batch = run.data.train.batch([0, 1])
    state = {name: value.clone() for name, value in run.model.state_dict().items()}
    plain = gradients(run, [batch])
    run.model.load_state_dict(state)
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**7)
    assert_same_gradients(plain, gradients(run, [batch]))


def test_target_padding_uses_the_pad_id_of_the_target(tmp_path):
    run = make_run(tmp_path)
    pairs = run.data.train
    swapped = swap_ids(pairs.tokenizers.tgt, "[UNK]", "[PAD]")
    pairs.tokenizers = pairs.tokenizers._replace(tgt=swapped)
    assert run.data.train.pad_ids[1] == pairs.tokenizers.tgt.pad_id != pairs.tokenizers.src.pad_id


def test_nonfinite_loss_is_not_saved_inside_an_epoch(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=1, save_every=9, log_every=1000, max_bad_updates=9)
    monkeypatch.setattr(
        "training.update.loss_and_gradient",
        lambda logits, *_, **__: (logits.sum() * math.nan, logits.detach() * math.nan),
    )
    with pytest.raises(ArithmeticError, match="not finite"):
        train_model(config)
    assert not list(WeightsFolder.of(config).path.glob("*.pt"))


@pytest.mark.parametrize("at_once", [1, 7, 512])
def test_logits_are_computed_for_non_padding_tokens_only_and_in_groups(
    tmp_path, monkeypatch, at_once
):
    run = make_run(tmp_path, dropout=0.0)
    ds = run.data.train
    batch = ds.batch(range(12))
    assert batch.tokens < batch.tgt_out.numel()
    logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
    loss = cross_entropy_sum(logits, batch.tgt_out, run.data.train.pad_ids[1], 0.1)
    (loss / batch.tokens).backward()
    expected = [parameter.grad.clone() for parameter in run.model.parameters()]
    run.optimizer.zero_grad()
    rows, project = [], run.model.project
    monkeypatch.setattr("training.update.LOGITS_AT_ONCE", at_once)
    monkeypatch.setattr(run.model, "project", lambda x: rows.append(len(x)) or project(x))
    total = accumulate_gradient(run, [batch], batch.tokens)
    padded = math.ceil(batch.tokens / LOGITS_STEP) * LOGITS_STEP
    assert sum(rows) == padded and max(rows) <= at_once
    assert total.item() == pytest.approx(loss.item(), rel=1e-5)
    for gradient, parameter in zip(expected, run.model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nonfinite_update_is_skipped_and_reported(tmp_path, monkeypatch, capsys, value):
    run = make_run(tmp_path, lr=1e-2)
    batch = first_batch(run)
    spoil(monkeypatch, {2}, value)
    do_update(run, [batch])
    state = {name: weight.clone() for name, weight in run.model.state_dict().items()}
    moments = [
        {key: moment.clone() for key, moment in row.items()} for row in run.optimizer.state.values()
    ]
    window = dict(run.progress.window)
    do_update(run, [batch])
    assert all(torch.equal(state[name], weight) for name, weight in run.model.state_dict().items())
    for before, after in zip(moments, run.optimizer.state.values(), strict=True):
        assert all(torch.equal(before[key], after[key]) for key in before)
    assert run.progress.window == window and run.progress.skipped == 1
    told = capsys.readouterr().out.splitlines()[-1]
    pairs = " ".join(map(str, batch.indices))
    assert told.startswith("update 2 is skipped (1 so far): loss ") and f"{value}" in told
    assert "lr 0.0071" in told and told.endswith(f"pairs {pairs}")
    do_update(run, [batch])
    assert run.progress.global_step == 3 and run.progress.skipped_in_row == 0
    assert not torch.equal(state["projection.linear.weight"], run.model.projection.linear.weight)


def test_run_with_skipped_updates_writes_finite_numbers_and_resumes_exactly(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=200)
    never, often = (
        small_config(source, num_epochs=2, model_folder=f"./{n}", experiment_name=f"runs/{n}")
        for n in ("never", "often")
    )
    bad = {1, 4, 5, 6}
    with monkeypatch.context() as patch:
        spoil(patch, bad)
        train_model(never)
    spoil(monkeypatch, bad)
    train_with_stops(often, {2, 5}, monkeypatch)
    assert_same_run(never, often, epoch=1)
    state = checkpoint.load(WeightsFolder.of(often).end_of(1))
    assert state["skipped"] == 4 and state["skipped_in_row"] == 0
    points = [
        value for tag in curves("runs/often").values() for _, value in tag if value is not None
    ]
    assert len(points) > 10 and all(map(math.isfinite, points))


def test_too_many_skipped_updates_in_a_row_stop_the_run(tmp_path, monkeypatch):
    source = write_number_pairs(tmp_path, count=600)
    config = small_config(source, num_epochs=2, max_bad_updates=3)
    steps, real = [], train.train_update

    def note(run, batches):
        steps.append(run.progress.global_step + 1)
        return real(run, batches)

    monkeypatch.setattr(train, "train_update", note)
    spoil(monkeypatch, {1, 2, 4, 5, 7, 8, 9})
    with pytest.raises(ArithmeticError, match="3 updates in a row, up to update 9 "):
        train_model(config)
    assert 9 <= steps[-1] < 9 + 3  # the device is asked every third update
    assert not list(WeightsFolder.of(config).path.glob("*.pt"))


def forget_memory_over(monkeypatch, run, pairs):
    """Make the model run out of memory for batches of more pairs, half way through."""
    hidden_states, sizes = run.model.hidden_states, []

    def limited(src, *args):
        sizes.append(len(src))
        x = hidden_states(src, *args)
        if len(src) > pairs:
            x.sum().backward()  # gradients that must not count
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return x

    monkeypatch.setattr(run.model, "hidden_states", limited)
    return sizes


def test_batch_that_exceeds_memory_is_split_with_the_same_gradient(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path, dropout=0.0)
    ds = run.data.train
    batches = [ds.batch(part) for part in (range(13), range(13, 16))]
    whole = accumulate_gradient(run, batches, sum(batch.tokens for batch in batches))
    expected = [parameter.grad.clone() for parameter in run.model.parameters()]
    run.optimizer.zero_grad()
    sizes = forget_memory_over(monkeypatch, run, pairs=4)
    cut = accumulate_gradient(run, batches, sum(batch.tokens for batch in batches))
    assert cut.item() == pytest.approx(whole.item(), rel=1e-5)
    for gradient, parameter in zip(expected, run.model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)
    assert sorted(sizes[-5:]) == [3, 3, 3, 3, 4]
    out = capsys.readouterr().out
    assert out.count("splitting such batches in two") == 1 and "batch of 13 pairs" in out


def test_single_pair_that_exceeds_memory_is_an_error_with_a_remedy(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    forget_memory_over(monkeypatch, run, pairs=0)
    with pytest.raises(
        MemoryError, match=r"single pair .*--seq_len \(16\).*--batch_tokens \(160\)"
    ):
        accumulate_gradient(run, [first_batch(run)], 10)


def test_batch_that_exceeds_memory_is_an_error_with_sharded_weights(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    forget_memory_over(monkeypatch, run, pairs=4)
    run.config = replace(run.config, shard=True)
    batch = run.data.train.batch(range(5))
    monkeypatch.setattr(update, "after_backward", lambda *_, **__: None)
    with pytest.raises(MemoryError, match=r"cannot be split .*lower --batch_tokens \(160\)"):
        accumulate_gradient(run, [batch], 10)


def test_other_errors_are_not_taken_for_lack_of_memory(tmp_path, monkeypatch):
    run = make_run(tmp_path)
    monkeypatch.setattr(run.model, "hidden_states", lambda *_: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="inconsistent|size"):
        accumulate_gradient(run, [first_batch(run)], 10)


def test_pending_updates_are_collected_in_order(tmp_path):
    run = make_run(tmp_path)
    for _ in range(3):
        train_update(run, [first_batch(run)])
    assert [each.step for each in run.pending_updates] == [1, 2, 3] and run.progress.window[
        "updates"
    ] == 0
    losses = [each.loss.item() for each in run.pending_updates]
    collect_updates(run)
    assert run.pending_updates == [] and run.progress.window["updates"] == 3
    assert run.progress.window["loss"] == pytest.approx(np.sum(losses))
    assert json.dumps(run.progress.window)
