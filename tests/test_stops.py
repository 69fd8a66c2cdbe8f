"""A run that is stopped at random moments of every phase ends as one that never was."""

import subprocess
import sys

import pytest
from conftest import ROOT

PHASES = 8


# SIGTERM and SIGINT in each phase, and with word tokenizers SIGKILL too; more by hand.
@pytest.mark.parametrize(("kind", "kills"), [("word", PHASES), ("bpe", 0)])
def test_run_killed_at_random_moments_ends_as_one_never_stopped(kind, kills):
    script = [sys.executable, str(ROOT / "tests" / "stops.py"), kind]
    process = subprocess.run([*script, "--kills", str(kills)], capture_output=True, text=True)
    print(process.stdout)
    assert process.returncode == 0, process.stdout + process.stderr
    stops = 2 * PHASES + kills
    assert f"{stops} stops hit: " in process.stdout and "all equal" in process.stdout
