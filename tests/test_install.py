"""The requirements have floors, CI has one exact set, and both agree with the promised Pythons.

The tests read the files and the metadata of the installed libraries: with the constraints
installed they check the constraints, with the lowest versions installed they check the floors.
"""

import ast
import re
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.metadata import distribution as installed

import pytest
import torch
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from device import get_precision

README = (ROOT / "README.md").read_text("utf-8")
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"


def lines_of(name):
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def requirements_of(name):
    """Return the requirements of a file by name; a comment after one stays out."""
    lines = [line.partition(" #")[0] for line in lines_of(name) if not line.startswith("-r ")]
    return {canonicalize_name((row := Requirement(line)).name): row for line in lines}


RUN = requirements_of("requirements.txt")
ALL = {**RUN, **requirements_of("requirements-dev.txt")}


def floor_of(requirement):
    (floor,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return floor


def promised_pythons():
    """Return the Python versions that the README promises, as `3.10`."""
    first, last = re.search(r"Python 3\.(\d+) to 3\.(\d+)", README).groups()
    return [f"3.{minor}" for minor in range(int(first), int(last) + 1)]


def constraints_for(python):
    """Return the constraints for a version of Python: by name, a list of exact versions."""
    rows = {}
    for line in lines_of("constraints.txt"):
        row = Requirement(line)
        full = f"{python}.0"
        if row.marker is None or row.marker.evaluate(
            {"python_version": python, "python_full_version": full}
        ):
            (pin,) = row.specifier
            assert pin.operator == "==" and "*" not in pin.version, line
            rows.setdefault(canonicalize_name(row.name), []).append(pin.version)
    return rows


def version_of(name):
    """Return the installed version of a library without its build, or None."""
    try:
        return installed(name).version.partition("+")[0]
    except PackageNotFoundError:
        return None


def admits(name, python):
    """Tell whether the installed version of a library runs on a version of Python."""
    needed = installed(name).metadata["Requires-Python"]
    # Its newest release, because a library may refuse early ones (networkx: != 3.14.1).
    return needed is None or SpecifierSet(needed).contains(f"{python}.99")


def test_each_requirement_has_a_floor_and_no_ceiling_without_a_reason():
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in lines_of(name):
            if line.startswith("-r "):
                continue
            requirement, _, reason = line.partition(" #")
            operators = sorted(each.operator for each in Requirement(requirement).specifier)
            assert operators == [">="] or (operators.count(">=") == 1 and reason), line


def test_the_development_requirements_include_the_others():
    assert "-r requirements.txt" in lines_of("requirements-dev.txt")


@pytest.mark.parametrize("python", promised_pythons())
def test_each_requirement_has_one_constraint_in_its_range_on_each_python(python):
    constraints = constraints_for(python)
    assert all(len(versions) == 1 for versions in constraints.values()), constraints
    assert ALL.keys() <= constraints.keys()
    for name, requirement in ALL.items():
        (version,) = constraints[name]
        assert requirement.specifier.contains(version), (name, version)


def test_an_installed_constraint_supports_every_python_that_it_covers():
    checked = 0
    for python in promised_pythons():
        for name, (version,) in constraints_for(python).items():
            if version_of(name) == version:
                assert admits(name, python), f"{name} {version} does not run on Python {python}"
                checked += 1
    if not checked:
        pytest.skip("no constraint is installed")


def test_an_installed_floor_supports_the_lowest_python():
    lowest = promised_pythons()[0]
    at_floor = [
        name
        for name, requirement in ALL.items()
        if (version := version_of(name))
        and SpecifierSet(f"=={floor_of(requirement)}").contains(version)
    ]
    for name in at_floor:
        assert admits(name, lowest), f"{name} {version_of(name)} does not run on Python {lowest}"
    if not at_floor:
        pytest.skip("no library is installed in its lowest version")


def test_ruff_checks_the_code_for_the_lowest_python():
    (target,) = re.findall(r'target-version = "py3(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert promised_pythons()[0] == f"3.{target}"


def test_the_constraints_cover_every_dependency_of_the_requirements():
    """Follows the metadata of the installed libraries, as pip does."""
    constraints = constraints_for(RUNNING)
    if any(constraints.get(name) != [version_of(name)] for name in ALL):
        pytest.skip("other versions than the constraints are installed")
    seen, left = set(), [(name, frozenset(row.extras)) for name, row in ALL.items()]
    while left:
        name, extras = left.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for row in map(Requirement, requires(name) or ()):
            environments = [{"extra": extra} for extra in ("", *extras)]
            if not row.marker or any(map(row.marker.evaluate, environments)):
                needed = canonicalize_name(row.name)
                # torch pins CUDA's libraries itself, and its CPU build has none.
                if name != "torch" or needed in constraints:
                    left.append((needed, frozenset(row.extras)))
    brought = {name for name, _ in seen}
    assert len(brought) > len(ALL)
    assert brought <= constraints.keys()
    assert {name: [version_of(name)] for name in brought} == {
        name: constraints[name] for name in brought
    }


def code_files():
    """Return the source files at the top and in its packages, without the tests."""
    files = [*ROOT.glob("*.py"), *ROOT.glob("[!.]*/*.py")]
    return [path for path in files if path.parent.name != "tests"]


def imported(source):
    """Return the libraries that a source file imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_each_library_that_the_code_imports_is_required():
    files = code_files()
    ours = {path.stem for path in files if path.parent == ROOT} | {
        path.parent.name for path in files
    }
    names = {name for path in files for name in imported(path.read_text("utf-8"))}
    known = packages_distributions()
    foreign = names - ours - set(sys.stdlib_module_names)
    libraries = {canonicalize_name(known.get(name, [name])[0]) for name in foreign}
    # The settings and the errors of the `datasets` library are those of its own requirements.
    of_datasets = {canonicalize_name(Requirement(row).name) for row in requires("datasets")}
    with_datasets = {"huggingface-hub", "pyarrow"}
    assert with_datasets <= of_datasets
    optional = {
        "ctranslate2",
        "safetensors",
        "transformers",
    }  # their messages say how to install them
    assert libraries - with_datasets - optional == RUN.keys()


def test_ci_and_the_readme_install_the_constraints_and_run_the_tests():
    command = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    install, _, run = command.partition(" && ")
    assert install == "pip install -r requirements-dev.txt -c constraints.txt"
    assert run.startswith("python -m pytest ")
    assert command in README.splitlines()


def test_auto_precision_is_fp32_where_torch_does_not_report_what_the_cpu_can_do(monkeypatch):
    """torch 2.8, the floor, does not."""
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert get_precision("auto", torch.device("cpu")) == torch.float32
    assert get_precision("bf16", torch.device("cpu")) == torch.bfloat16
