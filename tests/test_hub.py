"""What the dataset hub and its cache cannot give is said in one line, with the way on."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import ROOT, write_number_pairs
from test_corpus import refused

from corpus.pairs import load_pairs


@contextmanager
def hub_that_answers(status, code):
    """Serve a hub on this machine that refuses each file and set; yields its address and its log.

    `code` is what the hub says in the header X-Error-Code.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.path == "/" else status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def load_elsewhere(source, folder, **environment):
    """Load a source in a process of its own, in `folder`; returns the last line that it prints."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from corpus.pairs import load_pairs
from corpus.hub import checked_cache
try:
    with checked_cache():
        load_pairs({source!r}, "en", "it")
except (OSError, ValueError) as error:
    print(error)
"""
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "XDG_")) and "proxy" not in key.lower()
    }
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "HF_HOME": str(folder / "home"), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()[-1]


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_set_is_told_with_the_way_in(tmp_path, status):
    with hub_that_answers(status, "GatedRepo") as (address, _):
        message = load_elsewhere("nobody/gated", tmp_path, HF_ENDPOINT=address)
    assert message.startswith(
        f"nobody/gated is a gated set: accept its terms on {address}/datasets"
    )
    assert "hf auth login" in message and "HF_TOKEN" in message


@pytest.mark.parametrize("name", ["nobody/private", "nobody/aggregated-pairs"])
def test_a_set_that_is_not_there_may_be_a_private_one(tmp_path, name):
    with hub_that_answers(401, "RepoNotFound") as (address, _):
        message = load_elsewhere(name, tmp_path, HF_ENDPOINT=address)
    assert "neither a file, a folder nor a set on the hub that you may read" in message
    assert "hf auth login" in message and "python train.py demo" in message


@pytest.mark.parametrize(
    ("name", "value", "is_offline"),
    [
        ("HF_HUB_OFFLINE", "0", False),
        ("HF_HUB_OFFLINE", "False", False),
        ("HF_DATASETS_OFFLINE", "no", False),
        ("HF_HUB_OFFLINE", "off", False),
        ("HF_HUB_OFFLINE", "", False),
        ("HF_HUB_OFFLINE", "yes", True),
        ("HF_DATASETS_OFFLINE", "1", True),
    ],
)
def test_offline_is_what_the_libraries_take_for_it(tmp_path, name, value, is_offline):
    with hub_that_answers(404, "RepoNotFound") as (address, asked):
        settings = {"HF_ENDPOINT": address, name: value}
        message = load_elsewhere("nobody/nothing", tmp_path, **settings)
    assert ("cannot be reached" in message, not asked) == (is_offline, is_offline), message


def test_without_network_the_cached_pairs_of_a_set_are_listed(tmp_path):
    import datasets

    # What the library keeps of a folder is what it keeps of a hub set, under another name.
    (tmp_path / "some_set").mkdir()
    configs = ""
    for pair in ("de-en", "en-it"):
        en_first = {"translation": dict.fromkeys(pair.split("-"), "x")}
        (tmp_path / "some_set" / f"{pair}.jsonl").write_text(json.dumps(en_first), "utf-8")
        configs += f"- config_name: {pair}\n  data_files: {pair}.jsonl\n"
    (tmp_path / "some_set" / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", "utf-8")
    for pair in ("de-en", "en-it"):
        datasets.load_dataset(str(tmp_path / "some_set"), pair)
    cache = Path(datasets.config.HF_DATASETS_CACHE)
    (cache / "some_set").rename(cache / "someone___some_set")
    (cache / "someone___some_set" / "en-es").mkdir()  # of a download that did not end
    there, missing = "with de-en, en-it, not with", "hub cannot be reached"
    refused("someone/some_set", f"{there} en-fr or fr-en", missing, langs=("en", "fr"))
    refused("someone/some_set", f"{there} fr-en or en-fr", missing, langs=("fr", "en"))
    refused("someone/else", "nor in the cache", missing, langs=("en", "fr"))


@pytest.mark.parametrize("name", ["HF_HOME", "HF_DATASETS_CACHE"])
def test_no_folder_named_for_a_missing_home_is_made(tmp_path, name):
    source = write_number_pairs(tmp_path, count=20)
    before = sorted(tmp_path.iterdir())
    message = load_elsewhere(source, tmp_path, **{name: "~no_such_user/cache"})
    assert "is in no home folder" in message and "HF_HOME=PATH" in message
    assert sorted(tmp_path.iterdir()) == before


def test_a_cache_that_cannot_be_written_is_told_with_the_way_out(tmp_path):
    source = write_number_pairs(tmp_path, count=20)
    (tmp_path / "file").touch()  # no folder can be made in it, by nobody
    message = load_elsewhere(source, tmp_path, HF_HOME=str(tmp_path / "file" / "cache"))
    assert "cannot be written" in message and "HF_HOME=PATH" in message


def test_another_file_that_cannot_be_read_is_no_matter_of_the_cache(tmp_path, monkeypatch):
    from corpus.hub import checked_cache

    with pytest.raises(FileNotFoundError, match="nothing.en"), checked_cache():
        open(tmp_path / "nothing.en")
    with pytest.raises(FileNotFoundError), checked_cache():
        load_pairs(str(tmp_path / "nothing"), "en", "it")
