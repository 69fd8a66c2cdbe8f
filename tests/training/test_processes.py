"""Several processes, started by torchrun, train what one does."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT, SMALL, flags, small_config, write_number_pairs

import checkpoint
import train as train_room
from config import Config
from training import processes
from training.batches import form_pool_batches
from training.signals import StoppedBySignal, StopSignals
from training.start import start_run
from training.tensorboard import read_curves

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed"
)
SETTINGS = {**SMALL, "precision": "fp32", "dropout": 0.0, "num_epochs": 3, "log_every": 1}


def start(count, folder, settings, *of_torchrun):
    """Start a training in `count` processes; returns the process."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-u", "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc_per_node={count}", *of_torchrun, str(ROOT / "train.py")]
    return subprocess.Popen(
        [*command, *flags(settings)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def train(count, folder, *of_torchrun, **changes):
    """Train to the end; returns what was printed and the last state."""
    settings = {**SETTINGS, **changes}
    process = start(count, folder, settings, *of_torchrun)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, state_of(folder, settings["num_epochs"] - 1)


def train_alone(folder, monkeypatch, **changes):
    """Train to the end in this process; returns the last state."""
    settings = {**SETTINGS, **changes}
    folder.mkdir(exist_ok=True)
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        train_room.train_model(Config(**settings))
    return state_of(folder, settings["num_epochs"] - 1)


def state_of(folder, epoch):
    return checkpoint.load(folder / "train_weights" / f"tmodel_{epoch:02d}.pt")


def same_weights(one, other):
    return all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"])


def test_one_two_and_four_processes_train_equally(tmp_path, monkeypatch):
    """At an equal global batch; the last update of an epoch has fewer batches than processes."""
    source = write_number_pairs(tmp_path, count=300)
    losses, states, printed = {}, {}, {}
    for count, accumulate in ((1, 4), (2, 2), (4, 1)):
        folder = tmp_path / f"of_{count}"
        settings = {"datasource": source, "accumulate": accumulate}
        if count == 1:
            states[count] = train_alone(folder, monkeypatch, **settings)
        else:
            printed[count], states[count] = train(count, folder, **settings)
        curves = read_curves(folder / "runs" / "tmodel")
        losses[count] = np.array(curves["train/loss"][1])
        assert curves["train/loss"][0] == list(range(1, states[1]["global_step"] + 1))
    assert len(losses[1]) == states[1]["global_step"] >= 9
    for count in (2, 4):
        assert states[count]["processes"] == count
        np.testing.assert_allclose(losses[count], losses[1], atol=1e-5)
        one, other = (states[i]["history"] for i in (1, count))
        assert [row.keys() for row in one] == [row.keys() for row in other]
        for a, b in zip(one, other, strict=True):
            assert list(b.values()) == pytest.approx(list(a.values()), abs=1e-4)
        lines = [line for line in printed[count].splitlines() if "BLEU" in line]
        assert len(lines) == 4  # of three epochs, with the signature once


def test_two_processes_share_a_stream_that_one_of_them_reads(tmp_path, monkeypatch):
    """One or two pools of an epoch end with fewer batches than processes."""
    settings = {
        "datasource": write_number_pairs(tmp_path, count=250), "streaming": True, "pool_size": 100,
        "validsource": write_number_pairs(tmp_path, "valid", count=40, seed=1), "num_epochs": 2,
    }  # fmt: skip
    one, other = tmp_path / "one", tmp_path / "two"
    train_alone(one, monkeypatch, **settings, accumulate=2)
    out, _ = train(2, other, **settings)
    assert out.count("pairs 201 to 250") == 2  # once an epoch, by one process
    losses = [read_curves(folder / "runs" / "tmodel")["train/loss"][1] for folder in (one, other)]
    assert len(losses[0]) == 12
    np.testing.assert_allclose(losses[1], losses[0], atol=1e-5)


def test_sharded_weights_train_like_whole_ones_and_any_run_resumes_their_checkpoint(
    tmp_path, monkeypatch, capsys
):
    """With dropout, tied weights, and fewer batches than processes at the end of an epoch."""
    source = write_number_pairs(tmp_path, count=900)
    settings = {
        "datasource": source, "dropout": 0.1, "accumulate": 2, "shared_vocab": True,
        "tie_embeddings": "all", "val_size": 5, "num_epochs": 7,
    }  # fmt: skip
    pairs = start_run(small_config(source, **settings)).data.train
    counts = [len(form_pool_batches(small_config(source), pairs, epoch)) for epoch in range(7)]
    assert {count % 4 for count in counts} & {1, 2}
    losses, states = {}, {}
    for name, flag in (("whole", {}), ("sharded", {"shard": True})):
        folder = tmp_path / name
        out, states[name] = train(2, folder, **settings, **flag)
        losses[name] = np.array(read_curves(folder / "runs" / "tmodel")["train/loss"][1])
    assert "22,296 parameters (11,148 in each process)" in out
    assert len(losses["whole"]) >= 50
    np.testing.assert_allclose(losses["sharded"][:30], losses["whole"][:30], atol=1e-5)
    # Gradients are summed in another order, and the difference grows.
    np.testing.assert_allclose(losses["sharded"], losses["whole"], atol=5e-3)
    one, other = (states[name]["history"][-1] for name in ("whole", "sharded"))
    assert other["val/loss"] == pytest.approx(one["val/loss"], abs=5e-3)
    one, other = (
        (tmp_path / name / "train_weights/tmodel_06.pt").stat().st_size for name in states
    )
    assert other == pytest.approx(one, rel=0.01)  # tied weights are there once

    folder = tmp_path / "stopped"
    train(2, folder, **{**settings, "num_epochs": 3}, shard=True)
    out, state = train(2, folder, **settings, shard=True)
    assert "resuming from" in out and same_weights(state, states["sharded"])
    state = train_alone(folder, monkeypatch, **{**settings, "num_epochs": 8})
    assert "shard: the checkpoint says True, you say False" in capsys.readouterr().out
    assert state["epoch"] == 8


def test_sharding_in_one_process_is_refused_with_the_command_that_has_more(tmp_path):
    config = small_config(write_number_pairs(tmp_path), shard=True)
    with pytest.raises(
        ValueError, match="this run has one: torchrun --standalone --nproc_per_node=2"
    ):
        start_run(config)


# --- Stopped, killed, gone on with ---

LONGER = {**SETTINGS, "dropout": 0.2, "num_epochs": 8, "log_every": 5, "keep_last": -1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Pairs, and what two processes that nobody stops train on them."""
    folder = tmp_path_factory.mktemp("whole")
    source = write_number_pairs(folder, count=600)
    return source, train(2, folder / "run", datasource=source, **LONGER)[1]


def wait_for(path, process):
    for _ in range(3000):
        if path.exists():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not come")


def workers(process):
    """Return the numbers of the processes that a launcher started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers through /proc")
def test_killed_process_is_restarted_and_the_run_ends_equal(tmp_path, whole):
    source, expected = whole
    folder = tmp_path / "run"
    process = start(2, folder, {**LONGER, "datasource": source}, "--max-restarts=3")
    for epoch, victim in ((1, 0), (3, 1)):  # the main one, then the other
        wait_for(folder / "train_weights" / f"tmodel_{epoch:02d}.pt", process)
        os.kill(workers(process)[victim], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out.count("resuming from") == 2
    assert same_weights(state_of(folder, 7), expected)


def test_sigterm_to_the_launcher_saves_and_the_same_command_resumes(tmp_path, whole):
    source, expected = whole
    folder = tmp_path / "run"
    settings = {**LONGER, "datasource": source}
    process = start(2, folder, settings)
    wait_for(folder / "train_weights" / "tmodel_01.pt", process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    # None where it came into a validation, before which all is saved.
    assert "resuming from" not in out and out.count("saved train_weights/") <= 1
    assert err.count("stopped by SIGTERM; the same command resumes from here") == 1
    assert not (folder / "train_weights" / "tmodel_07.pt").exists()
    out, state = train(2, folder, **settings)
    assert out.count("resuming from") == 1
    assert same_weights(state, expected)


def test_another_number_of_processes_resumes_with_the_remaining_pairs(
    tmp_path, monkeypatch, capsys
):
    """Two processes, played one after the other, are stopped in an epoch; one alone goes on."""
    seen, stop_after = [], 3
    update = train_room.train_update

    def update_and_stop(run, batches):
        seen.extend(pair for batch in batches for pair in batch.indices)
        tokens = update(run, batches)
        if run.progress.global_step == stop_after:
            os.kill(os.getpid(), signal.SIGTERM)
        return tokens

    monkeypatch.setattr(train_room, "train_update", update_and_stop)
    for name in ("sum_over_ranks", "max_over_ranks", "all_reduce_sum"):
        monkeypatch.setattr(processes, name, lambda value: value)
    settings = {"save_every": 1000, "num_epochs": 1, "accumulate": 2}
    config = small_config(write_number_pairs(tmp_path, count=600), **settings)
    for rank in (1, 0):
        monkeypatch.setattr(processes, "world_size", lambda: 1)
        monkeypatch.setattr(processes, "rank", lambda: 0)
        run = start_run(config)
        monkeypatch.setattr(processes, "world_size", lambda: 2)
        monkeypatch.setattr(processes, "rank", lambda rank=rank: rank)
        with StopSignals() as interrupt, pytest.raises(StoppedBySignal), interrupt.postponed():
            train_room.train_epochs(run, interrupt)
    assert checkpoint.load(tmp_path / "train_weights" / "tmodel_00_3.pt")["batch"] == 12
    stop_after = None
    monkeypatch.setattr(processes, "world_size", lambda: 1)
    train_room.train_model(config)
    assert "processes: the checkpoint says 2, now 1" in capsys.readouterr().out
    pairs = len(start_run(replace(config, model_folder="./other")).data.train)
    assert sorted(seen) == list(range(pairs))


def test_error_in_one_process_ends_all_with_its_message(tmp_path):
    source = write_number_pairs(tmp_path, count=100)
    settings = {**SETTINGS, "datasource": source, "device": "cuda:7"}
    process = start(2, tmp_path / "run", settings)
    out, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "device (cuda:7) is one GPU, but torchrun started 2 processes" in err
    assert not list((tmp_path / "run").rglob("*.pt"))


# --- Two machines ---


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, encoding="utf-8")


@pytest.fixture
def two_machines():
    """Two network namespaces with a cable between them; the value is their names and addresses."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and the command ip")
    mark = os.getpid() % 10_000
    names = [f"mt{mark}a", f"mt{mark}b"]
    addresses = [f"10.77.{mark % 250}.{i}" for i in (1, 2)]
    try:
        for name in names:
            if ip("netns", "add", name).returncode:
                pytest.skip("this machine does not let us make a network namespace")
        ip("link", "add", names[0], "type", "veth", "peer", "name", names[1])
        for name, address in zip(names, addresses, strict=True):
            ip("link", "set", name, "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", name)
            ip("-n", name, "link", "set", name, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield list(zip(names, addresses, strict=True))
    finally:
        for name in names:
            ip("netns", "del", name)


def test_two_machines_train_like_two_processes_even_if_the_network_fails(
    tmp_path, whole, two_machines
):
    source, expected = whole
    agents = []
    for name, address in two_machines:
        folder = tmp_path / name
        folder.mkdir()
        environment = {
            **os.environ, "GLOO_SOCKET_IFNAME": name, "TP_SOCKET_IFNAME": name,
            "HF_HOME": str(folder / "cache"),
        }  # fmt: skip
        command = [
            "ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run",
            "--nnodes=2", "--nproc_per_node=1", "--rdzv_backend=c10d", "--rdzv_id=one",
            f"--rdzv_endpoint={two_machines[0][1]}:29400", f"--local_addr={address}",
            f"--rdzv_conf=is_host={int(name == two_machines[0][0])}",
            str(ROOT / "train.py"), *flags({**LONGER, "datasource": source}),
        ]  # fmt: skip
        log = open(folder / "log", "w")
        agents.append(
            subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        )

    def logs():
        return "\n".join((tmp_path / name / "log").read_text() for name, _ in two_machines)

    try:
        folders = [tmp_path / name / "train_weights" for name, _ in two_machines]
        second = "tmodel_01.pt"
        while not any((folder / second).exists() for folder in folders):
            assert all(agent.poll() is None for agent in agents), logs()
            time.sleep(0.02)
        name = two_machines[1][0]
        ip("-n", name, "link", "set", name, "down")
        time.sleep(3)
        assert all(agent.poll() is None for agent in agents), logs()
        assert not any((folder / "tmodel_07.pt").exists() for folder in folders)
        ip("-n", name, "link", "set", name, "up")
        codes = [agent.wait(timeout=240) for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    assert codes == [0, 0], logs()
    (written,) = [folder for folder in folders if folder.exists()]
    assert same_weights(checkpoint.load(written / "tmodel_07.pt"), expected)


@pytest.mark.parametrize(
    ("device", "number", "outcome"),
    [("cuda", "1", 1), ("cpu", "3", None), ("cuda", "2", ValueError), ("mps", "3", None)],
)
def test_each_process_takes_its_own_gpu_only_if_the_run_computes_on_gpus(
    monkeypatch, device, number, outcome
):
    taken = []
    monkeypatch.setattr(processes, "_are_joined", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setenv("LOCAL_RANK", number)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    if outcome is ValueError:
        words = "started 4 processes on a machine with 2 GPUs: --nproc_per_node=2, or --device cpu"
        with pytest.raises(ValueError, match=words):
            processes.take_own_gpu(torch.device(device))
    else:
        processes.take_own_gpu(torch.device(device))
    assert taken == ([outcome] if outcome == 1 else [])
