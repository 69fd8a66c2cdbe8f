"""Stop a run at random instants of every phase, and compare it with one never stopped.

    python tests/stops.py [--kills 30] [--seed 0] [--minutes 10] [word|bpe]

Trains a tiny model on part of the phrasebook once without a stop; then again, ended by SIGKILL
at the given number of instants and by SIGTERM and SIGINT in each phase, and started again after
each. Prints each instant
and what it hit. Exits with 1 if anything differs in the end: weights, optimizer, scores, best,
curves, or the names of the files.
"""

import argparse
import itertools
import os
import random
import select
import shutil
import signal
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

import checkpoint  # noqa: E402
import dataset  # noqa: E402
import train  # noqa: E402
from corpus import cleaning, sources  # noqa: E402
from phrasebook import sentences  # noqa: E402
from training import data as run_data  # noqa: E402

PAIRS = 1500
PIPE = 100  # the same in each start, as the dataset library hashes what a function holds
# What is entered when each phase begins: (module, name of its function).
PHASES = {
    "building the cache": (sources, "phrasebook_rows"),
    "cleaning": (cleaning, "_clean"),
    "training the tokenizer": (run_data, "build_tokenizer"),
    "tokenising": (dataset, "_encode"),
    "training": (train, "train_update"),
    "validating": (train, "run_validation"),
    "saving": (checkpoint, "write_file"),
    "pruning": (checkpoint, "prune"),
}
SETTINGS = {
    "word": "--precision bf16 --accumulate 2 --tokenizer word",
    "bpe": "--precision fp32 --tokenizer bpe --vocab_size 600 --validate_every 20",
}
COMMON = (
    "--datasource phrasebook --seq_len 40 --d_model 32 --N 1 --h 2 --d_ff 64 --dropout 0.2 "
    "--batch_tokens 1024 --lr 5e-3 --warmup 20 --num_epochs 60 --patience 7 --val_size 60 "
    "--save_every 2 --log_every 3 --keep_last 2 --device cpu"
)


def arguments(kind, name):
    places = f"--model_folder ./{name} --experiment_name runs/{name}"
    return f"{COMMON} {SETTINGS[kind]} {places}".split()


class Started:
    """A run in a process of its own, which tells by a pipe which phase it enters."""

    def __init__(self, kind, name, log):
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            os.dup2(writing, PIPE)
            self._train(kind, name, log)
        os.close(writing)
        self.pipe, self.phase = reading, "starting"

    def _train(self, kind, name, log):
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.environ["HF_HOME"] = os.path.abspath(f"cache_{name}")
        code = 99
        try:
            for number, (room, function) in enumerate(PHASES.values()):
                watch(room, function, number)
            sys.argv = ["train.py", *arguments(kind, name)]
            code = train.main()
        finally:
            sys.stdout.flush()
            os._exit(code)

    def run_to(self, phase, count, deadline):
        """Wait until a phase, or the training after it, is entered for the count-th time.

        Returns False when the run ends before.
        """
        while count:
            if not self._read(deadline - time.monotonic()):
                return False
            is_late = self.phase == "training" and phase in list(PHASES)[:4]
            count -= self.phase == phase or is_late
        return True

    def stop(self, signum):
        """Send a signal and wait for the end; returns the phase that it hit and the exit code."""
        while select.select([self.pipe], [], [], 0)[0] and self._read(0):
            pass
        phase = self.phase
        os.kill(self.pid, signum)
        return phase, self.wait(time.monotonic() + 60)

    def wait(self, deadline):
        while self._read(deadline - time.monotonic()):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(status)

    def _read(self, seconds):
        ready, _, _ = select.select([self.pipe], [], [], max(0, seconds))
        if not ready:
            os.kill(self.pid, signal.SIGKILL)
            raise TimeoutError("out of time: see the log")
        byte = os.read(self.pipe, 1)
        if byte:
            self.phase = list(PHASES)[byte[0]]
        return bool(byte)


def watch(room, function, number):
    original = getattr(room, function)

    def entered(*args, **kwargs):
        os.write(PIPE, bytes([number]))
        return original(*args, **kwargs)

    # And it hashes a function of a module by its name.
    entered.__module__, entered.__qualname__ = original.__module__, original.__qualname__
    entered.__name__ = original.__name__
    setattr(room, function, entered)


def plan(kills, seed):
    """Yield (phase, how often it is entered first, seconds after that, signal).

    Each phase has its share of the kills, one SIGTERM and one SIGINT; those that are over first
    come first, one phase after the other.
    """
    rng = random.Random(seed)
    early, late = list(PHASES)[:4], list(PHASES)[4:]
    signals = {phase: [signal.SIGTERM, signal.SIGINT] for phase in PHASES}
    for i in range(kills):
        signals[list(PHASES)[i % len(PHASES)]].append(signal.SIGKILL)
    stops = [(phase, signum) for phase in early for signum in signals[phase]]
    later = [(phase, signum) for phase in late for signum in signals[phase]]
    rng.shuffle(later)
    for phase, signum in stops + later:
        count = rng.randint(1, 3) if phase in ("training", "saving", "pruning") else 1
        longest = 0.005 if phase in early else 0.03
        yield phase, count, rng.choice([0, rng.random() * longest]), signum


def shown_curves(log_dir):
    """Return what TensorBoard shows: {tag: [(step, value), ...]}."""
    events = EventAccumulator(log_dir, size_guidance={"scalars": 0, "tensors": 0, "images": 0})
    events.Reload()
    tags = events.Tags()
    shown = {
        tag: [(e.step, e.value) for e in events.Scalars(tag)]
        for tag in tags["scalars"]
        if tag != "train/tokens_per_second"
    }
    for tag in tags["tensors"]:  # a text of the same step replaces the one before
        shown[tag] = sorted(
            {e.step: e.tensor_proto.string_val[0] for e in events.Tensors(tag)}.items()
        )
    shown |= {tag: [e.step for e in events.Images(tag)] for tag in tags["images"]}
    shown.pop("config/text_summary")  # holds the names of the run's own folders
    return shown


def differences(one, other):
    """Return the names of what is not equal in two runs' folders."""
    names = [sorted(path.name for path in Path(name).iterdir()) for name in (one, other)]
    found = [] if names[0] == names[1] else [f"files: {names[0]} and {names[1]}"]
    for name in names[0]:
        if not name.endswith(".pt") or name not in names[1]:
            continue
        a, b = (checkpoint.load(Path(folder) / name) for folder in (one, other))
        for key in a.keys() - {"config", "log_dir", "run_id"}:
            if not equal(a[key], b[key]):
                found.append(f"{key} in {name}")
    shown = [shown_curves(f"runs/{name}") for name in (one, other)]
    for tag in sorted(shown[0].keys() | shown[1].keys()):
        if shown[0].get(tag) != shown[1].get(tag):
            found.append(f"curve {tag}")
    return found


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        without = {"train/tokens_per_second"}
        a, b = ({k: v for k, v in each.items() if k not in without} for each in (a, b))
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return a == b


def stop_and_compare(kind, kills, seed, minutes):
    """Do it all in the current folder; returns how many instants were hit, and what differs."""
    pairs = sentences.write_pairs
    sentences.write_pairs = lambda split: itertools.islice(pairs(split), PAIRS)
    deadline = time.monotonic() + 60 * minutes
    started = time.monotonic()
    code = Started(kind, "never", "never.log").wait(deadline)
    assert code == 0, Path("never.log").read_text()[-2000:]
    print(f"never stopped: {time.monotonic() - started:.0f} s")

    hit = []
    for phase, count, delay, signum in plan(kills, seed):
        run = Started(kind, "often", "often.log")
        if not run.run_to(phase, count, deadline):
            code = run.wait(deadline)
            print(f"{len(hit):3}  {phase} was not entered {count} times: the run ended with {code}")
            break
        time.sleep(delay)
        where, code = run.stop(signum)
        expected = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[signum]
        name = signal.Signals(signum).name
        instant = f"{name} {delay * 1000:5.1f} ms into {phase}"
        print(f"{len(hit) + 1:3}  {instant}: hit {where}, exit {code}")
        assert code in (expected, 0), Path("often.log").read_text()[-2000:]
        hit.append(where)
    code = Started(kind, "often", "often.log").wait(deadline)
    assert code == 0, Path("often.log").read_text()[-2000:]
    assert not list(Path("often").glob("*.tmp"))
    return hit, differences("never", "often")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=SETTINGS, default="word")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    folder = Path(f"stops_{options.kind}_{options.seed}").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    hit, found = stop_and_compare(options.kind, options.kills, options.seed, options.minutes)
    counts = ", ".join(f"{phase} {hit.count(phase)}" for phase in PHASES if phase in hit)
    print(f"{len(hit)} stops hit: {counts}")
    print("all equal" if not found else "different: " + "; ".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
