"""The structure of the code: who imports whom, docstrings, private names of libraries, style."""

import ast
import importlib
import subprocess
import sys

import pytest
import torch
from conftest import ROOT

PACKAGES = ("phrasebook", "corpus", "translation", "training", "benchmarks")
SCRIPTS = ("train", "translate", "export", "curves", "benchmark")
FILES = {
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path
    for path in (*ROOT.glob("*.py"), *(p for name in PACKAGES for p in ROOT.glob(f"{name}/*.py")))
    if path.name != "__init__.py"
}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in FILES.items()}


def imported(nodes):
    """Return the modules of ours that some statements import."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name for name in names if name in FILES}
    return found


def at_start(name):
    """Return what a module imports when it is imported."""
    return imported(TREES[name].body)


def anywhere(name):
    return imported(ast.walk(TREES[name]))


def test_no_import_circle():
    def visit(name, path):
        assert name not in path, " -> ".join([*path, name])
        for other in at_start(name):
            visit(other, [*path, name])

    for name in FILES:
        visit(name, [])


# Who must not know whom, even inside a function.
FORBIDDEN = {
    "config": set(FILES) - {"config"},
    "model": set(FILES) - {"model"},
    "device": set(FILES) - {"device"},
    "dataset": {"model", "corpus.pairs", "corpus.sources", "corpus.hub", *SCRIPTS},
    "checkpoint": {"model", "dataset", *SCRIPTS},
    **{script: set(SCRIPTS) - {script} for script in SCRIPTS},
}
ABOVE = {
    "phrasebook": ("corpus", "translation", "training", "benchmarks"),
    "corpus": ("translation", "training", "benchmarks"),
    "translation": ("training", "benchmarks"),
    "training": ("benchmarks",),
    "benchmarks": (),
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_imports_go_one_way(name):
    package = name.partition(".")[0]
    known = anywhere(name)
    assert not known & FORBIDDEN.get(name, set())
    if package in PACKAGES:
        assert not known & set(SCRIPTS)
        assert not {other for other in known if other.partition(".")[0] in ABOVE[package]}
    elif name not in SCRIPTS and name != "dataset":
        assert not {other for other in known if "." in other}
    if package == "phrasebook":
        assert all(other.startswith("phrasebook.") for other in known)
    if package == "corpus":
        assert not known & {"model", "checkpoint", "config", "dataset"}


def test_translating_loads_of_the_corpus_the_tokenizers_alone():
    code = "import sys, translate; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(process.stdout.split())
    ours = {name for name in loaded if name.partition(".")[0] in ("corpus", "phrasebook")}
    assert ours == {"corpus", "corpus.tokenizer"}
    assert "datasets" not in loaded and "training" not in loaded


def test_the_words_of_the_original_import_from_train():
    train = importlib.import_module("train")
    for name in (
        "get_ds", "get_model", "get_or_build_tokenizer", "greedy_decode", "run_validation",
        "train_model",
    ):  # fmt: skip
        assert callable(getattr(train, name)) and name in train.__all__


@pytest.mark.parametrize("name", sorted(FILES))
def test_everything_public_has_a_docstring(name):
    tree = TREES[name]
    assert ast.get_docstring(tree), "the module"
    missing = []

    def visit(node, inside):
        for child in node.body:
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.name[0] != "_":
                # What every reader of the original knows, and what nn.Module documents.
                known = inside and child.name == "forward" and name != "model"
                if not ast.get_docstring(child) and child.name != "main" and not known:
                    missing.append(inside + child.name)
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{child.name}.")

    visit(tree, "")
    assert not missing


def test_private_names_of_libraries_exist():
    from tensorboard.summary.writer import event_file_writer

    assert event_file_writer._AsyncWriterThread
    adam = torch.optim.Adam([torch.zeros(1, requires_grad=True)], fused=True)
    assert adam._step_supports_amp_scaling
    assert torch.amp.GradScaler._found_inf_per_device


def test_private_names_of_libraries_stand_in_one_function_each():
    for private, name in (
        ("_AsyncWriterThread", "training.tensorboard"),
        ("found_inf", "training.update"),
        ("_found_inf_per_device", "training.update"),
    ):
        assert [each for each, path in FILES.items() if private in path.read_text("utf-8")] == [
            name
        ]
        functions = [
            node.name
            for node in ast.walk(TREES[name])
            if isinstance(node, ast.FunctionDef)
            and any(
                private in (getattr(each, "attr", ""), getattr(each, "name", ""))
                for each in ast.walk(node)
            )
        ]
        assert len(functions) == 1


def test_the_code_is_as_ruff_has_it():
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, str(ROOT)]
        process = subprocess.run(command, capture_output=True, text=True)
        assert process.returncode == 0, process.stdout
