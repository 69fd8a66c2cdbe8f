"""Each kind of source gives the same pairs, and each mistake one line that says what to do."""

import json

import pytest
from conftest import PAIRS, refused, texts, write_file, write_text_pair

from corpus.pairs import load_pairs
from phrasebook.sentences import write_pairs


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_a_file_of_any_kind_gives_its_pairs_by_language(tmp_path, kind):
    path = write_file(tmp_path, kind)
    assert texts(load_pairs(path, "en", "it")) == PAIRS
    assert texts(load_pairs(path, "it", "en")) == [(it, en) for en, it in PAIRS]


def test_the_phrasebook_loads_in_both_directions():
    pairs = load_pairs("phrasebook", "it", "en", "validation")
    assert texts(load_pairs("phrasebook", "en", "it", "validation"))[0][::-1] == texts(pairs)[0]


def test_the_phrasebook_has_a_validation_split():
    pairs = load_pairs("phrasebook", "en", "it", "validation")
    assert texts(pairs) == list(write_pairs("validation"))


# --- Errors ---


def test_a_missing_text_file_is_named(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    refused(prefix, "train.en exists", "train.fr does not", langs=("en", "fr"))


def test_naming_one_text_file_suggests_the_prefix(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    refused(f"{prefix}.en", f"prefix: {prefix}")


def test_a_folder_of_text_files_suggests_the_prefix(tmp_path):
    write_text_pair(tmp_path, PAIRS)
    refused(tmp_path, f"{tmp_path}/train.en")


@pytest.mark.parametrize("source", ["/no/such/place", "./train", "pairs.jsonl", "no/such/place"])
def test_a_missing_path_is_not_looked_up_on_the_hub(source):
    refused(source, source, "does not exist")


def test_a_parquet_file_with_other_content_is_refused(tmp_path):
    path = tmp_path / "pairs.parquet"
    path.write_bytes(b"no parquet")
    refused(path, path, "cannot be read")


def test_a_file_without_the_languages_is_refused_with_its_columns(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("english,italian\na,x\n", "utf-8")
    refused(path, "english, italian")
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"translation": {"en": "a", "fr": "x"}}) + "\n", "utf-8")
    refused(path, "has a text for it", '"fr": "x"')


def test_a_translation_column_of_plain_text_is_refused(tmp_path):
    (tmp_path / "pairs.csv").write_text("translation\n\"{'en': 'a'}\"\n", "utf-8")
    refused(tmp_path / "pairs.csv", "translation must contain one text per language")


def test_empty_files_are_refused(tmp_path):
    for name in ("train.en", "train.it", "pairs.jsonl"):
        (tmp_path / name).touch()
    refused(tmp_path / "train", "are empty")
    refused(tmp_path / "pairs.jsonl", "is empty")


def test_the_phrasebook_refuses_other_languages():
    refused("phrasebook", "en and it", "de", langs=("en", "de"))


def test_the_phrasebook_has_no_test_split():
    with pytest.raises(ValueError, match="no test split; it has train, validation"):
        load_pairs("phrasebook", "en", "it", "test")
