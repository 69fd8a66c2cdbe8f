"""The batches of an epoch."""

from conftest import small_config, write_number_pairs

import train
from train import train_model


def groups_of_each_epoch(config, monkeypatch):
    """Train; returns for each epoch the pairs' indices of each batch of each update."""
    update, epochs = train.train_update, {}

    def note(run, batches):
        epochs.setdefault(run.progress.epoch, []).append([batch.indices for batch in batches])
        return update(run, batches)

    monkeypatch.setattr(train, "train_update", note)
    train_model(config)
    return list(epochs.values())


def test_each_epoch_trains_once_on_every_pair_in_its_own_batches(tmp_path, monkeypatch):
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
