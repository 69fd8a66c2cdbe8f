"""Which validation is the best."""

import pytest
from conftest import small_config, write_number_pairs

import checkpoint
from checkpoint import WeightsFolder
from train import train_model
from training import validation
from training.history import best_validation, count_ties, validations_since_best
from translation import metrics


def test_best_validation_is_by_the_monitored_score():
    history = [{"val/bleu": b, "val/loss": 5 - b} for b in (1.0, 3.0, 3.0, 2.0)]
    assert best_validation(history, "val/bleu") == 1 and best_validation(history, "val/loss") == 1
    history.append({"val/bleu": 0.0, "val/loss": 0.5})
    assert best_validation(history, "val/bleu") == 1 and best_validation(history, "val/loss") == 4
    assert best_validation([], "val/bleu") is None


def history_of(*scores):
    return [{"val/bleu": bleu, "val/loss": loss} for bleu, loss in scores]


def test_equal_scores_are_compared_by_the_printed_loss():
    history = history_of((0.0, 5.0), (0.0, 3.0), (0.0, 4.0))
    assert best_validation(history, "val/bleu") == 1 and count_ties(history, "val/bleu") == 2
    history = history_of((7.0, 2.0001), (7.0, 2.0), (6.0, 1.0))
    assert best_validation(history, "val/bleu") == 0 and count_ties(history, "val/bleu") == 1
    history = history_of((7.0, 2.0), (7.5, 3.0))
    assert best_validation(history, "val/bleu") == 1 and count_ties(history, "val/bleu") == 0
    assert best_validation(history, "val/loss") == 0 and count_ties(history, "val/loss") == 0
    # Smoothing gives an untrained model some BLEU by chance.
    history = history_of((0.69, 3.6), (0.0, 3.1), (0.36, 2.9))
    assert best_validation(history, "val/bleu") == 2 and count_ties(history, "val/bleu") == 2
    history += history_of((1.1, 3.0))
    assert best_validation(history, "val/bleu") == 3 and count_ties(history, "val/bleu") == 0


def test_bleu_of_0_neither_keeps_the_untrained_model_nor_ends_the_run(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        validation.metrics,
        "score",
        lambda predicted, target, lang: metrics.Scores(
            {name: metrics.Score(0, "", "") for name in ("bleu", "chrf", "cer", "wer")}
        ),
    )
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=4, patience=1)
    train_model(config)
    out = capsys.readouterr().out
    best = checkpoint.load(WeightsFolder.of(config).best)
    losses = [row["val/loss"] for row in best["history"]]
    assert len(losses) == 4 and losses[-1] == min(losses)
    assert "val/bleu equals the best so far; this validation has a lower loss" in out
    assert "the lowest val/loss of 4 validations with this score" in out


@pytest.mark.parametrize(("monitor", "best"), [("val/chrf", 2), ("val/cer", 1), ("val/wer", 0)])
def test_best_validation_follows_the_direction_of_the_metric(monitor, best):
    rows = ((40.0, 30.0, 20.0), (40.0, 10.0, 30.0), (50.0, 20.0, 40.0))
    history = [
        {"val/loss": 2.0, "val/chrf": chrf, "val/cer": cer, "val/wer": wer}
        for chrf, cer, wer in rows
    ]
    assert best_validation(history, monitor) == best
    assert validations_since_best(history, monitor) == 2 - best
