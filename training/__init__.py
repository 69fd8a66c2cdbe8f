"""What `train.py` calls: start and data of a run, updates, loss, schedule, validation, signals."""
