"""Cached results are reused while their code is the same. Errors of the cache name a remedy."""

import ast
import shutil

import pytest
from conftest import ROOT, load_elsewhere, write_number_pairs

from corpus import cache
from corpus.cache import CODE_OF, code_version
from corpus.pairs import load_pairs


def imported_files(name):
    """Return our files that a file imports at module level, except those for type hints."""
    tree = ast.parse((ROOT / name).read_text("utf-8"))
    modules = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            modules += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    files = {f"{module.replace('.', '/')}.py" for module in modules}
    return {file for file in files if (ROOT / file).is_file()}


@pytest.mark.parametrize("result", [name for name in CODE_OF])
def test_a_list_in_code_of_is_exactly_what_its_module_imports(result):
    module, *_ = CODE_OF[result]
    found, new = set(), {module}
    # `corpus/cache.py` does not affect results, and `dataset.py` does not depend on how pairs load.
    without = {"corpus/cache.py"}
    while new:
        found |= new
        new = {file for each in new for file in imported_files(each)} - found - without
    assert set(CODE_OF[result]) == found


def copy_of_the_code(folder, monkeypatch):
    for name in {name for names in CODE_OF.values() for name in names}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    monkeypatch.setattr(cache, "ROOT", folder)


def changed_by(edit):
    """Return the results whose version an edit of the code changes."""
    code_version.cache_clear()
    before = {result: code_version(result) for result in CODE_OF}
    edit()
    code_version.cache_clear()
    after = {result: code_version(result) for result in CODE_OF}
    code_version.cache_clear()
    return {result for result in CODE_OF if before[result] != after[result]}


def test_an_edit_changes_only_the_versions_of_results_that_depend_on_it(tmp_path, monkeypatch):
    copy_of_the_code(tmp_path, monkeypatch)

    def edit(name, old, new):
        path = tmp_path / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    of_words = changed_by(lambda: edit("phrasebook/lexicon.py", '"""', '""" '))
    assert of_words == {"phrasebook"}
    of_most = changed_by(lambda: edit("corpus/tokenizer.py", "MAX_CHARS = 20_000", "MAX_CHARS = 9"))
    assert of_most == {"text files", "json", "table", "cleaning", "encoding"}
    of_tables = changed_by(lambda: edit("corpus/tables.py", '"""', '""" '))
    assert of_tables == {"table"}


def test_a_changed_code_version_cleans_the_pairs_again(tmp_path, monkeypatch, capfd):
    (tmp_path / "a.en").write_text("one\n", "utf-8")
    (tmp_path / "a.it").write_text("uno\n", "utf-8")
    prefix = str(tmp_path / "a")
    first, again = (load_pairs(prefix, "en", "it").cache_files for _ in range(2))
    assert first == again
    monkeypatch.setattr("corpus.cleaning.code_version", lambda result: "another")
    assert load_pairs(prefix, "en", "it").cache_files != first


# --- Errors of the cache ---


@pytest.mark.parametrize("name", ["HF_HOME", "HF_DATASETS_CACHE"])
def test_an_unknown_home_folder_is_an_error_and_creates_no_folder(tmp_path, name):
    source = write_number_pairs(tmp_path, count=20)
    before = sorted(tmp_path.iterdir())
    message = load_elsewhere(source, tmp_path, **{name: "~no_such_user/cache"})
    assert "is in an unknown home folder" in message and "HF_HOME=PATH" in message
    assert sorted(tmp_path.iterdir()) == before


def test_a_cache_that_cannot_be_written_is_reported_with_a_remedy(tmp_path):
    source = write_number_pairs(tmp_path, count=20)
    (tmp_path / "file").touch()  # nobody, not even root, can create a folder in it
    message = load_elsewhere(source, tmp_path, HF_HOME=str(tmp_path / "file" / "cache"))
    assert "cannot be written" in message and "HF_HOME=PATH" in message


def test_errors_of_other_files_pass_the_cache_check_unchanged(tmp_path, monkeypatch):
    from corpus.cache import checked_cache

    with pytest.raises(FileNotFoundError, match="nothing.en"), checked_cache():
        open(tmp_path / "nothing.en")
    with pytest.raises(FileNotFoundError), checked_cache():
        load_pairs(str(tmp_path / "nothing"), "en", "it")
