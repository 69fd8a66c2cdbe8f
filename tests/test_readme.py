"""The README says what is there: its commands parse, its flags and files exist."""

import re
import shlex
import subprocess
import sys
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
from translation.translator import Options

README = (ROOT / "README.md").read_text("utf-8")
SCRIPTS = {
    "translate.py": Options,
    "export.py": export.Options,
    "benchmark.py": benchmark.Options,
    "curves.py": curves.Options,
}
COMMANDS = sorted(
    {
        match.strip()
        for match in re.findall(
            r"python ((?:train|translate|benchmark|export|curves)\.py[^`\n|&<#]*)", README
        )
        if "--help" not in match
    }
)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_parses(command):
    script, *arguments = shlex.split(command)
    if script == "train.py":
        parse_arguments(arguments)
    else:
        tyro.cli(SCRIPTS[script], args=arguments)


def test_the_commands_were_found():
    assert {"train.py", "train.py demo", "translate.py"} <= set(COMMANDS) and len(COMMANDS) > 6


def test_each_flag_exists():
    kinds = (Config, *SCRIPTS.values())
    known = {field.name for kind in kinds for field in fields(kind)}
    known |= {"help", "index-url", "dist", "logdir", "tokenize", "depth"}  # of pip, git and others
    known |= {flag.strip("-") for flag in get_args_parser()._option_string_actions}  # torchrun's
    assert set(re.findall(r"--([a-z][a-z_-]+)", README)) <= known


def test_each_preset_is_in_the_table():
    assert all(f"`python train.py {preset}" in README for preset in PRESETS if preset != "base")


def test_the_table_of_files_is_complete():
    table = README.partition("## Files")[2].partition("##")[0]
    named = set(re.findall(r"`((?:\w+/)?\w+\.py)`", table))
    files = [*ROOT.glob("*.py"), *ROOT.glob("[!.]*/*.py")]
    there = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.parent.name != "tests" and path.name != "__init__.py"
    }
    assert named == there


def test_nothing_is_left_to_fill_in():
    assert not re.search(r"@[A-Z]+@|TODO", README)


def test_the_code_is_as_ruff_has_it():
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, str(ROOT)]
        process = subprocess.run(command, capture_output=True, text=True)
        assert process.returncode == 0, process.stdout


def test_the_tests_it_names_exist():
    rooms = [path.read_text("utf-8") for path in (ROOT / "tests").glob("test_*.py")]
    named = set(re.findall(r"`(test_\w+)`", README))
    assert len(named) > 10
    assert all(any(f"def {name}(" in room for room in rooms) for name in named)
    assert all((ROOT / "tests" / name).is_file() for name in re.findall(r"test_\w+\.py", README))


def test_the_pages_it_names_exist():
    for page in re.findall(r"docs/[\w.]+", README):
        assert (ROOT / page).is_file()
    assert Path(ROOT / "LICENSE").read_text("utf-8").startswith("MIT License")


def test_imports_between_packages_go_one_way():
    above = {
        "phrasebook": {"corpus", "training", "translation", "benchmarks"},
        "corpus": {"training", "translation", "benchmarks"},
        "translation": {"training", "benchmarks"},
        "training": {"benchmarks"},
    }
    for package, others in above.items():
        for path in (ROOT / package).glob("*.py"):
            found = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text("utf-8"), re.MULTILINE)
            assert not others & set(found), path
