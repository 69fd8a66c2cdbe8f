"""README and documentation are true: commands parse; flags, files, links and tests exist."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import tyro
from conftest import ROOT
from torch.distributed.run import get_args_parser

import benchmark
import curves
import export
from config import PRESETS, Config
from train import parse_arguments
from translation.options import Options

README = (ROOT / "README.md").read_text("utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
SCRIPTS = {
    "translate.py": Options,
    "export.py": export.Options,
    "benchmark.py": benchmark.Options,
    "curves.py": curves.Options,
}
COMMANDS = sorted(
    {
        match.strip()
        for text in PAGES.values()
        for match in re.findall(
            r"python ((?:train|translate|benchmark|export|curves)\.py[^`\n|&<#]*)", text
        )
        if "--help" not in match
    }
)


def anchors(text):
    """Return the anchors that GitHub gives the headings of a page."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_parses(command):
    script, *arguments = shlex.split(command)
    if script == "train.py":
        parse_arguments(arguments)
    else:
        tyro.cli(SCRIPTS[script], args=arguments)


def test_the_commands_were_found():
    assert {"train.py", "train.py demo", "translate.py"} <= set(COMMANDS) and len(COMMANDS) > 20


def test_readme_has_at_most_250_lines():
    assert len(README.splitlines()) <= 250


def test_each_flag_exists():
    kinds = (Config, *SCRIPTS.values())
    known = {field.name for kind in kinds for field in fields(kind)}
    known |= {"help", "index-url", "dist", "logdir", "tokenize", "depth"}  # of pip, git and others
    known |= {"kills"}  # of tests/stops.py
    known |= {flag.strip("-") for flag in get_args_parser()._option_string_actions}  # torchrun's
    for name, text in PAGES.items():
        assert set(re.findall(r"--([a-z][a-z_-]+)", text)) <= known, name


def test_each_preset_is_in_the_table():
    assert all(f"`python train.py {preset}`" in README for preset in PRESETS if preset != "base")


def test_table_of_places_is_complete():
    table = README.partition("## Where things are")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `([\w/.]+)`", table, re.MULTILINE))
    packages = {f"{path.parent.name}/" for path in ROOT.glob("*/__init__.py")}
    scripts = {path.name for path in ROOT.glob("*.py")}
    assert named == scripts | packages | {"tests/", "docs/"}


def test_each_file_and_folder_that_is_named_exists():
    for page, text in PAGES.items():
        for name in re.findall(r"`((?:\w+/)+\w+\.(?:py|md))`", text):
            if not name.startswith(("data/", "multi30k")):
                assert (ROOT / name).is_file(), f"{name} in {page}"


def test_each_link_leads_to_a_page_and_a_heading():
    found = 0
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if target.startswith("http"):
                continue
            name, _, anchor = target.partition("#")
            path = (ROOT / page).parent / name if name else ROOT / page
            assert path.is_file(), f"{target} in {page}"
            if anchor:
                assert anchor in anchors(path.read_text("utf-8")), f"{target} in {page}"
            found += 1
    assert found > 60


def test_each_page_is_linked_from_the_readme():
    assert all(f"]({page})" in README for page in PAGES if page.startswith("docs/"))


def test_nothing_is_left_to_fill_in():
    for text in PAGES.values():
        assert not re.search(r"@[A-Z]+@|TODO", text)


def test_tests_that_are_named_exist():
    rooms = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    text = "\n".join(PAGES.values())
    named = set(re.findall(r"`(test_\w+)`", text)) - {"test_2016_flickr"}  # a test set
    assert len(named) > 10
    missing = [n for n in named if not any(f"def {n}(" in room for room in rooms.values())]
    assert not missing
    assert set(re.findall(r"test_\w+\.py", text)) <= rooms.keys()


def test_licence_is_mit():
    assert Path(ROOT / "LICENSE").read_text("utf-8").startswith("MIT License")
