"""The learning rate, and what follows after an update."""

from dataclasses import asdict, replace

import pytest
from conftest import make_run, small_config, write_number_pairs

import checkpoint
from checkpoint import Progress, WeightsFolder
from config import (
    Config,
)
from train import train_model
from training.batches import form_pool_batches
from training.schedule import actions_after_update
from training.tensorboard import read_curves
from training.update import (
    learning_rate,
)


def test_learning_rate_rises_to_its_peak_then_falls_with_the_inverse_square_root():
    config = Config(lr=1e-3, warmup=7)
    rates = [learning_rate(step, config, 0) for step in range(1, 30)]
    assert rates[:7] == sorted(rates[:7]) and rates[6:] == sorted(rates[6:], reverse=True)
    assert rates[6] == pytest.approx(1e-3) and rates[0] == pytest.approx(1e-3 / 7)
    assert rates[27] == pytest.approx(1e-3 / 2)


def test_linear_schedule_falls_evenly_to_the_last_update(tmp_path):
    config = Config(lr=1e-3, warmup=10, schedule="linear")
    rates = [learning_rate(step, config, 110) for step in range(1, 113)]
    assert rates[:10] == pytest.approx([1e-4 * step for step in range(1, 11)])
    steps = [b - a for a, b in zip(rates[9:], rates[10:110], strict=False)]
    assert steps == pytest.approx([-1e-3 / 101] * 100)
    assert rates[109:] == pytest.approx([1e-3 / 101] * 3)  # after the end nothing more is lost

    run = make_run(tmp_path, schedule="linear", num_epochs=3, accumulate=2)
    batches = len(form_pool_batches(run.config, run.data.train, 0))
    planned = 3 * ((batches + 1) // 2)
    assert batches > 2 and run.total_updates == planned
    run.progress.global_step, run.progress.batch = 1, 2  # as a run that goes on inside an epoch
    run.plan(batches)
    assert run.total_updates == planned


def test_linear_schedule_ends_with_the_last_update_if_later_epochs_are_longer(tmp_path):
    config = small_config(
        write_number_pairs(tmp_path, count=60), schedule="linear", warmup=2, log_every=1
    )
    train_model(replace(config, num_epochs=2))
    train_model(replace(config, num_epochs=4, batch_tokens=config.batch_tokens // 2))
    steps, rates = read_curves(tmp_path / "runs" / "tmodel")["train/lr"]
    assert rates[-1] == pytest.approx(config.lr / (steps[-1] - 2 + 1))
    assert sorted(rates[-4:], reverse=True) == list(rates[-4:])


def test_paper_schedule_is_one_choice_of_lr():
    config = Config(lr=512**-0.5 * 4000**-0.5, warmup=4000)
    for step in (1, 100, 4000, 100000):
        assert learning_rate(step, config, 0) == pytest.approx(
            512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        )


def test_patience_stops_a_run_that_no_longer_improves(tmp_path, capsys):
    # A rate of nearly 0: the first validation stays the best.
    config = small_config(
        write_number_pairs(tmp_path, count=60), num_epochs=9, patience=2, lr=1e-12
    )
    train_model(config)
    history = checkpoint.load(WeightsFolder.of(config).end_of(2))["history"]
    assert len(history) == 3 and not WeightsFolder.of(config).end_of(3).exists()
    best = checkpoint.load(WeightsFolder.of(config).best)
    assert len(best["history"]) == 1
    train_model(config)
    out = capsys.readouterr().out
    assert "nothing left to train: 3 epochs are done" in out and "raise --patience" in out


def test_run_saves_every_n_updates(tmp_path, monkeypatch):
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


def test_validation_follows_every_n_updates_and_each_epoch(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=1, validate_every=2)
    train_model(config)
    state = checkpoint.load(WeightsFolder.of(config).end_of(0))
    last = state["global_step"]
    steps = [row["step"] for row in state["history"]]
    assert steps == sorted({*range(2, last + 1, 2), last}) and len(steps) > 2


# --- What follows after an update ---


def actions(stop=False, **changes):
    """Return the names of the actions after update 12, the second of epoch 3."""
    settings = {"log_every": 50, "save_every": None, "validate_every": None}
    progress = {"epoch": 3, "batch": 2, "global_step": 12, "history": [{"step": 10}]}
    for name, value in changes.items():
        (progress if name in progress or name == "pool_start" else settings)[name] = value
    found = actions_after_update(Progress(**progress), Config(**settings), stop)
    return {name for name, due in asdict(found).items() if due}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"log_every": 6}, {"log"}),
        ({"log_every": 5}, set()),
        ({"save_every": 4}, {"save"}),
        ({"save_every": 5}, set()),
        ({"stop": True}, {"save", "stop"}),
        ({"validate_every": 3}, {"save", "validate"}),
        ({"validate_every": 5}, set()),
        ({"validate_every": 3, "history": [{"step": 12}]}, set()),
        ({"batch": 0}, {"log", "save", "validate"}),
        ({"batch": 0, "stop": True}, {"log", "save", "validate", "stop"}),
        ({"pool_start": 2}, {"save"}),  # at the end of a pool
    ],
)
def test_actions_follow_from_where_the_run_stands(changes, expected):
    assert actions(**changes) == expected
