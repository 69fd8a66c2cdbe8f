"""Sets from the dataset hub, its cache and folders like it. Errors are one line with a remedy."""

import json
import shutil
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import load_elsewhere, refused, texts

from corpus.pairs import load_pairs


@contextmanager
def hub_that_answers(status, code):
    """Serve a local hub that refuses each file and set. Yield its address and the requested paths.

    `code` is the value of the header X-Error-Code.
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


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_set_is_reported_with_the_way_to_get_access(tmp_path, status):
    with hub_that_answers(status, "GatedRepo") as (address, _):
        message = load_elsewhere("nobody/gated", tmp_path, HF_ENDPOINT=address)
    assert message.startswith(
        f"nobody/gated is a gated set: accept its terms on {address}/datasets"
    )
    assert "hf auth login" in message and "HF_TOKEN" in message


@pytest.mark.parametrize("name", ["nobody/private", "nobody/aggregated-pairs"])
def test_the_message_for_an_unknown_set_mentions_private_sets(tmp_path, name):
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
def test_offline_settings_are_read_as_the_libraries_read_them(tmp_path, name, value, is_offline):
    with hub_that_answers(404, "RepoNotFound") as (address, asked):
        settings = {"HF_ENDPOINT": address, name: value}
        message = load_elsewhere("nobody/nothing", tmp_path, **settings)
    assert ("cannot be reached" in message, not asked) == (is_offline, is_offline), message


def test_without_network_the_cached_pairs_of_a_set_are_listed(tmp_path):
    import datasets

    # The library caches a folder in the same way as a hub set, under another name.
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
    (cache / "someone___some_set" / "en-es").mkdir()  # of an incomplete download
    there, missing = "with de-en, en-it, not with", "hub cannot be reached"
    refused("someone/some_set", f"{there} en-fr or fr-en", missing, langs=("en", "fr"))
    refused("someone/some_set", f"{there} fr-en or en-fr", missing, langs=("fr", "en"))
    refused("someone/else", "nor in the cache", missing, langs=("en", "fr"))


# --- A folder laid out like a hub set ---


def test_a_folder_laid_out_like_a_hub_set_loads_in_both_directions(tmp_path):
    row = {"translation": {"de": "Ja.", "en": "Yes."}}
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    (tmp_path / "set" / "README.md").write_text(
        "---\nconfigs:\n- config_name: de-en\n  data_files: train.jsonl\n---\n", "utf-8"
    )
    for langs, pair in ((("de", "en"), ("Ja.", "Yes.")), (("en", "de"), ("Yes.", "Ja."))):
        assert texts(load_pairs(str(tmp_path / "set"), *langs)) == [pair]


def test_a_hub_set_loads_in_both_directions_of_its_pair(shared_data, capsys):
    folder = str(shared_data / "hub_layout")
    forward = load_pairs(folder, "en", "de")
    assert "3,000 pairs of de-en, en -> de" in capsys.readouterr().out
    backward = load_pairs(folder, "de", "en")
    assert texts(backward)[:5] == [pair[::-1] for pair in texts(forward)[:5]]
    assert " the " in " ".join(forward["src_text"][:50])


def test_an_unknown_language_pair_lists_the_pairs_of_the_hub_set(shared_data):
    refused(shared_data / "hub_layout", "en-zh", "zh-en", "de-en, en-it", langs=("en", "zh"))


def test_a_hub_folder_with_a_broken_description_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("---\nconfigs: [a: b: c\n---\n", "utf-8")
    (tmp_path / "a.jsonl").write_text('{"en": "a", "it": "b"}\n', "utf-8")
    refused(tmp_path, "cannot be loaded")


def test_a_set_that_needs_a_script_is_refused(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "old.py").write_text("import datasets")
    refused(tmp_path / "old", "needs a loading script", "--datasource")


# --- Without a network ---


def test_a_cached_hub_set_is_found_by_its_short_name(shared_data):
    import datasets

    # The library caches a folder in the same way as a hub set, under another name.
    datasets.load_dataset(str(shared_data / "hub_layout"), "de-en", split="train")
    cache = Path(datasets.config.HF_DATASETS_CACHE)
    hub_name = cache / "Helsinki-NLP___opus_books"
    shutil.copytree(cache / "hub_layout", hub_name)
    for path in hub_name.rglob("hub_layout-train.arrow"):
        path.rename(path.with_name("opus_books-train.arrow"))
    for path in hub_name.rglob("dataset_info.json"):
        path.write_text(path.read_text("utf-8").replace("hub_layout", "opus_books"), "utf-8")
    for langs in (("en", "de"), ("de", "en")):
        assert len(load_pairs("opus_books", *langs)) == 3000
    refused("opus_books", "hub cannot be reached", langs=("en", "zh"))
    shutil.rmtree(hub_name)


@pytest.mark.parametrize("name", ["opus_books", "Helsinki-NLP/opus_books", "nobody"])
def test_without_hub_and_cache_the_message_names_alternatives(name):
    refused(name, name, "hub cannot be reached", "python train.py demo", "--datasource")
