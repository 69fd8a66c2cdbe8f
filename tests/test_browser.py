"""TensorBoard as people see it: served from a run that was resumed, opened in a real browser."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from conftest import small_config, write_number_pairs

from train import train_model

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --window-size=1400,2400 "
    "--virtual-time-budget=15000"
).split()


@contextlib.contextmanager
def served(logdir):
    """Serve a folder of events; the value is the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = "import sys; from tensorboard.main import run_main; sys.exit(run_main())"
    flags = ("--logdir", str(logdir), "--port", str(port), "--load_fast", "false")
    with subprocess.Popen(
        [sys.executable, "-c", command, *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(600):
                with contextlib.suppress(urllib.error.URLError):
                    if ask(address, "runs"):
                        break
                time.sleep(0.1)
            yield address
        finally:
            server.terminate()


def ask(address, path, **values):
    with urllib.request.urlopen(f"{address}/data/{path}?{urlencode(values)}") as answer:
        return json.load(answer)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_curves_samples_and_pictures_of_a_resumed_run_are_shown_once(tmp_path):
    config = small_config(write_number_pairs(tmp_path, count=200), num_epochs=2)
    train_model(config)
    train_model(replace(config, num_epochs=3))
    with served("runs") as address:
        assert ask(address, "runs") == ["tmodel"]
        of_run = {"run": "tmodel"}
        points = ask(address, "plugin/scalars/scalars", tag="val/bleu", **of_run)
        steps = [step for _, step, _ in points]
        assert len(steps) == 3 and steps == sorted(set(steps))
        tables = ask(address, "plugin/text/text", tag="val/samples/text_summary", **of_run)
        assert [each["step"] for each in tables] == steps
        # The server's own row around a table of a head and five samples.
        assert all(each["text"].count("<tr>") == 1 + 1 + 5 for each in tables)
        pictures = ask(address, "plugin/images/images", tag="val/attention", sample=0, **of_run)
        assert [each["step"] for each in pictures] == steps
        page = subprocess.run(
            [CHROMIUM, *QUIET, f"--user-data-dir={tmp_path / 'chromium'}", "--dump-dom",
             f"{address}/#timeseries"],
            capture_output=True, encoding="utf-8", timeout=120, check=True,
        ).stdout  # fmt: skip
    page = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    shown = [
        "train /grad_norm", "train /loss", "train /lr", "train /tokens_per_second",
        "val /attention", "val /bleu", "val /cer", "val /chrf", "val /loss", "val /wer",
    ]  # fmt: skip
    places = [words.find(name) for name in shown]
    assert -1 not in places, dict(zip(shown, places, strict=True))
    assert places == sorted(places)
    assert all(words.count(name) == 1 for name in shown)
    assert "train 4 cards" in words and "val 6 cards" in words
