"""A run that is stopped at random instants of every phase ends as one that never was."""

import subprocess
import sys

import pytest
from conftest import ROOT

KILLS = 8  # one a phase, beside the other signals; more by hand


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_run_killed_at_random_moments_ends_as_one_never_stopped(kind):
    script = [sys.executable, str(ROOT / "tests" / "stops.py"), kind]
    process = subprocess.run([*script, "--kills", str(KILLS)], capture_output=True, text=True)
    print(process.stdout)
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"{3 * KILLS} stops hit: " in process.stdout and "all equal" in process.stdout
