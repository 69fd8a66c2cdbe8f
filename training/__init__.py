"""All that `train.py` calls: the start of a run, its data, updates, validation, signals."""
