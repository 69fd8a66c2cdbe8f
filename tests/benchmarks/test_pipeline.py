"""The start is measured through the scripts."""

import json

from conftest import run_script


def test_start_is_measured_through_the_scripts(tmp_path):
    file = tmp_path / "figures.json"
    run_script("benchmark.py", "start", "--repeats", "1", "--json", file)
    rows = json.loads(file.read_text())["start"]
    # What they are is the machine's affair, and other work's on it.
    assert rows["first update, cold cache"]["times import"] > 0
    assert rows["a translation"]["times import"]["median"] > 0
