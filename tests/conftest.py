"""Shared by all tests: the project on the path, a cache of its own, and small pieces to test on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory):
    """Keep the user's dataset cache out of the tests, and the tests out of it."""
    os.environ["HF_HOME"] = str(tmp_path_factory.mktemp("hf_home"))
    os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def shared_data():
    """Real parallel text, where the project lies beside some."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real parallel text beside the project")
    return folder


def run_script(name, *arguments, stdin=None, check=True, **kwargs):
    """Run a script of the project as a user does; returns the finished process."""
    process = subprocess.run(
        [sys.executable, str(ROOT / name), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        **kwargs,
    )
    if check:
        assert process.returncode == 0, process.stdout + process.stderr
    return process
