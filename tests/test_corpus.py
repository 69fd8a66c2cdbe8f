"""Every kind of source gives the same clean pairs, and every mistake one line."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, small_config, write_number_pairs

from config import get_weights_folder
from corpus import pairs as corpus
from corpus.pairs import cap_pairs, fingerprint, load_pairs, split_pairs
from dataset import form_batches
from phrasebook import sentences as phrasebook
from training import data as run_data
from training.data import get_ds, tokenizer_paths

PAIRS = [("The house.", "La casa."), ("It rains.", "Piove."), ("NA", "null"), ('"Yes"', '"Sì"')]


def texts(pairs):
    return list(zip(pairs["src_text"], pairs["tgt_text"], strict=True))


def write_text_pair(folder, pairs, name="train", langs=("en", "it")):
    for lang, side in zip(langs, zip(*pairs, strict=True), strict=True):
        (folder / f"{name}.{lang}").write_text("".join(f"{text}\n" for text in side), "utf-8")
    return str(folder / name)


def write_file(folder, kind):
    """Write PAIRS as a file of that kind; returns its path."""
    path = folder / f"pairs.{kind}"
    rows = [{"en": en, "it": it} for en, it in PAIRS]
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"translation": row}) + "\n" for row in rows), "utf-8")
    elif kind == "json":
        path.write_text(json.dumps(rows), "utf-8")
    elif kind == "csv":
        import csv

        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["it", "en"])
            writer.writeheader()
            writer.writerows(rows)
    elif kind == "tsv":
        lines = ["en\tit", *("\t".join(pair) for pair in PAIRS)]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    elif kind == "parquet":
        from datasets import Dataset

        Dataset.from_list([{"id": "0", "translation": row} for row in rows]).to_parquet(str(path))
    return str(path)


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_a_file_of_any_kind_gives_its_pairs_by_language(tmp_path, kind):
    path = write_file(tmp_path, kind)
    assert texts(load_pairs(path, "en", "it")) == PAIRS
    assert texts(load_pairs(path, "it", "en")) == [(it, en) for en, it in PAIRS]


def test_two_text_files_give_their_pairs(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    assert texts(load_pairs(prefix, "en", "it")) == PAIRS
    assert texts(load_pairs(prefix, "it", "en")) == [(it, en) for en, it in PAIRS]


def test_text_files_may_be_compressed(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    (tmp_path / "train.it.gz").write_bytes(gzip.compress((tmp_path / "train.it").read_bytes()))
    (tmp_path / "train.it").unlink()
    assert texts(load_pairs(prefix, "en", "it")) == PAIRS


def test_lines_end_at_a_newline_only(tmp_path):
    pairs = [("one\u2028still one\x0cone", "uno\x85uno"), ("two\rtwo", "due")]
    prefix = write_text_pair(tmp_path, pairs)
    # Control characters are blanks.
    cleaned = [("one\u2028still one one", "uno uno"), ("two two", "due")]
    assert texts(load_pairs(prefix, "en", "it")) == cleaned


def test_windows_line_ends_and_a_byte_order_mark_are_no_text(tmp_path):
    (tmp_path / "train.en").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "train.it").write_bytes(b"uno\r\ndue\r\n")
    assert texts(load_pairs(str(tmp_path / "train"), "en", "it")) == [
        ("one", "uno"),
        ("two", "due"),
    ]


def test_text_is_composed_and_trimmed(tmp_path):
    pairs = [("  caf\N{LATIN SMALL LETTER E}\u0301\u00a0", "\u00a0bar ")]
    ((src, tgt),) = texts(load_pairs(write_text_pair(tmp_path, pairs), "en", "it"))
    assert (src, tgt) == ("café", "bar") and unicodedata.is_normalized("NFC", src)


def test_a_pair_with_an_empty_side_is_dropped_as_a_pair_and_counted(tmp_path, capsys):
    pairs = [("a", "x"), ("", "y"), ("c", "z"), ("d", " \u00a0"), ("", "")]
    prefix = write_text_pair(tmp_path, pairs)
    assert texts(load_pairs(prefix, "en", "it")) == [("a", "x"), ("c", "z")]
    assert "5 pairs, en -> it, 3 with an empty side dropped" in capsys.readouterr().out


def test_a_missing_side_in_json_is_an_empty_side(tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    rows = [{"en": "a", "it": "x"}, {"en": "c"}, {"en": None, "it": "y"}]
    path.write_text("".join(json.dumps({"translation": row}) + "\n" for row in rows), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("a", "x")]
    assert "2 with an empty side dropped" in capsys.readouterr().out


def test_the_fingerprint_follows_the_texts(tmp_path):
    one, again, other = (
        fingerprint(load_pairs(write_text_pair(tmp_path, pairs, name), "en", "it"))
        for name, pairs in (("a", PAIRS), ("b", PAIRS), ("c", [*PAIRS[:-1], ('"Yes"', "Sì")]))
    )
    assert one == again != other


def test_the_count_of_dropped_pairs_is_told_again_from_the_cache(tmp_path, capsys):
    prefix = write_text_pair(tmp_path, [("a", "x"), ("", "y")])
    for _ in range(2):
        load_pairs(prefix, "en", "it")
        assert "1 with an empty side dropped" in capsys.readouterr().out


def test_a_changed_file_is_noticed(tmp_path):
    prefix = write_text_pair(tmp_path, [("a", "x")])
    assert texts(load_pairs(prefix, "en", "it")) == [("a", "x")]
    write_text_pair(tmp_path, [("a", "y")])
    assert texts(load_pairs(prefix, "en", "it")) == [("a", "y")]


def test_the_phrasebook_goes_both_ways():
    pairs = load_pairs("phrasebook", "it", "en", "validation")
    assert texts(load_pairs("phrasebook", "en", "it", "validation"))[0][::-1] == texts(pairs)[0]


# --- What a user can get wrong: one line each, with what to do ---


def refused(source, *words, langs=("en", "it")):
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        load_pairs(str(source), *langs)
    message = str(error.value)
    assert "\n" not in message and all(str(word) in message for word in words), message


def test_unequal_line_counts_stop_with_both_numbers(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    with open(f"{prefix}.it", "a", encoding="utf-8") as file:
        file.write("one more\n")
    refused(prefix, "4 lines", "has 5")


def test_a_missing_half_is_named(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    refused(prefix, "train.en is there", "train.fr is not", langs=("en", "fr"))


def test_naming_one_text_file_explains_prefixes(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    refused(f"{prefix}.en", f"prefix: {prefix}")


def test_a_folder_of_text_files_explains_prefixes(tmp_path):
    write_text_pair(tmp_path, PAIRS)
    refused(tmp_path, f"{tmp_path}/train.en")


@pytest.mark.parametrize("source", ["/no/such/place", "./train", "pairs.jsonl", "no/such/place"])
def test_a_path_that_is_not_there_is_not_sought_on_the_hub(source):
    refused(source, source, "not there" if source != "no/such/place" else "there")


def test_a_cut_json_line_is_named_by_file_and_number(tmp_path):
    path = tmp_path / "pairs.jsonl"
    good = json.dumps({"translation": {"en": "a", "it": "x"}}) + "\n"
    path.write_text(good + good + good[:20] + "\n" + good, "utf-8")
    refused(path, path, "line 3")


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path):
    path = tmp_path / "pairs.parquet"
    path.write_bytes(b"no parquet")
    refused(path, path, "cannot be read")


def test_a_file_without_the_languages_names_its_columns(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("english,italian\na,x\n", "utf-8")
    refused(path, "english, italian")
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"translation": {"en": "a", "fr": "x"}}) + "\n", "utf-8")
    refused(path, "has a it", '"fr": "x"')


def test_text_that_is_not_utf_8_is_named(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS)
    (tmp_path / "train.it").write_bytes("perché\n".encode("latin-1") * 4)
    refused(prefix, "train.it, line 1, byte 6: 0xe9 is not UTF-8")


def test_control_characters_are_blanks_and_a_nul_ends_nothing(tmp_path):
    prefix = write_text_pair(tmp_path, [("a\x00b", "\x1b[0mx\x07"), ("\x00", "y"), ("c", "z")])
    assert texts(load_pairs(prefix, "en", "it")) == [("a b", "[0mx"), ("c", "z")]


def test_json_takes_numbers_for_text_and_null_or_nothing_for_none(tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    rows = [{"en": 5, "it": 0.5}, {"en": None, "it": "x"}, {"it": "x"}, {"en": "a\nb", "it": "c"}]
    path.write_text("".join(json.dumps({"translation": row}) + "\n\n" for row in rows), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("5", "0.5"), ("a b", "c")]
    assert "4 pairs, en -> it, 2 with an empty side dropped" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"translation": {"en": "c", "i', "is not JSON"),
        ("[1, 2]", "is a JSON list"),
        ('{"translation": "c"}', "translation must hold a text a language, not 'c'"),
        ("[" * 10000, "is not JSON"),
    ],
)
def test_a_json_line_that_is_no_pair_is_named_by_file_and_number(tmp_path, line, words):
    path = tmp_path / "pairs.jsonl"
    good = json.dumps({"translation": {"en": "a", "it": "b"}})
    path.write_text(f"{good}\n{good}\n{line}", "utf-8")
    refused(path, f"{path}, line 3", words)


@pytest.mark.parametrize("kind", ["text", "jsonl"])
def test_a_line_of_100_mb_is_dropped_in_bounded_memory(tmp_path, kind):
    line = b"word " * (20 * 2**20)
    if kind == "text":
        (tmp_path / "train.en").write_bytes(b"one\n" + line + b"\nthree\n")
        (tmp_path / "train.it").write_bytes(b"uno\ndue\ntre\n")
        source = tmp_path / "train"
    else:
        source = tmp_path / "train.jsonl"
        small = b'{"en": "one", "it": "uno"}\n'
        source.write_bytes(small + b'{"en": "' + line + b'", "it": "x"}\n' + small)
    code = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
import datasets
from corpus.pairs import load_pairs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(load_pairs({str(source)!r}, "en", "it")) == 2
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    told, megabytes = process.stdout.splitlines()
    assert "3 pairs, en -> it, 1 over 20,000 characters dropped" in told
    assert float(megabytes) < 80


def test_empty_files_are_refused(tmp_path):
    for name in ("train.en", "train.it", "pairs.jsonl"):
        (tmp_path / name).touch()
    refused(tmp_path / "train", "are empty")
    refused(tmp_path / "pairs.jsonl", "is empty")


def test_a_cut_gzip_file_is_named(tmp_path):
    prefix = write_text_pair(tmp_path, PAIRS * 100)
    packed = gzip.compress((tmp_path / "train.it").read_bytes())
    (tmp_path / "train.it").unlink()
    for content in (packed[: len(packed) // 2], b"no gzip"):
        (tmp_path / "train.it.gz").write_bytes(content)
        refused(prefix, "train.it.gz is not a whole gzip file")


@pytest.mark.parametrize("row", [{"translation": ["a", "b"]}, {"translation": 5}])
def test_a_translation_that_holds_no_languages_is_refused(tmp_path, row):
    for name, text in (("a.json", json.dumps([row])), ("a.jsonl", json.dumps(row))):
        (tmp_path / name).write_text(text, "utf-8")
        refused(tmp_path / name, "translation must hold a text a language")


def test_a_hub_folder_with_a_broken_description_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("---\nconfigs: [a: b: c\n---\n", "utf-8")
    (tmp_path / "a.jsonl").write_text('{"en": "a", "it": "b"}\n', "utf-8")
    refused(tmp_path, "cannot be loaded")


def test_a_json_line_with_more_than_its_pair_keeps_the_pair(tmp_path):
    path = tmp_path / "pairs.jsonl"
    row = {"translation": {"en": "a", "it": "b"}, "more": "x" * 100_000}
    path.write_text(json.dumps(row), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("a", "b")]


def test_a_translation_column_of_plain_text_is_refused(tmp_path):
    (tmp_path / "pairs.csv").write_text("translation\n\"{'en': 'a'}\"\n", "utf-8")
    refused(tmp_path / "pairs.csv", "translation must hold a text a language")


def test_no_pair_with_text_is_refused(tmp_path):
    refused(write_text_pair(tmp_path, [("", "x")]), "no pair with text on both sides")


def test_the_phrasebook_refuses_other_languages():
    refused("phrasebook", "en and it", "de", langs=("en", "de"))


def test_a_set_that_needs_a_script_is_refused(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "old.py").write_text("import datasets")
    refused(tmp_path / "old", "needs a loading script", "--datasource")


@pytest.mark.parametrize("name", ["opus_books", "Helsinki-NLP/opus_books", "nobody"])
def test_without_hub_and_cache_the_ways_on_are_told(name):
    refused(name, name, "hub cannot be reached", "python train.py demo", "--datasource")


# --- A set laid out like the hub's ---


def test_the_splits_of_a_hub_set_are_validated_and_tested_on(tmp_path, capsys):
    from datasets import Dataset

    for split, word in (("train", "one"), ("validation", "two"), ("test", "three")):
        rows = [{"translation": {"en": f"{word} {i}", "it": "uno"}} for i in range(3)]
        Dataset.from_list(rows).to_parquet(str(tmp_path / "set" / f"{split}-0-of-1.parquet"))
    source = str(tmp_path / "set")
    config = small_config(source, validsource=source, testsource=source)
    data = get_ds(config, None, tokenizer_paths(config))
    words = [each.texts("src_text")[0][:3] for each in (data.train, data.valid, data.test)]
    assert words == ["one", "two", "thr"]
    assert "of default, its validation split, en -> it" in capsys.readouterr().out
    for split in ("validation", "test"):
        (tmp_path / "set" / f"{split}-0-of-1.parquet").unlink()
    assert texts(load_pairs(source, "en", "it", "test"))[0][0] == "one 0"


def test_the_phrasebook_has_nothing_to_test_on():
    with pytest.raises(ValueError, match="no test pairs, but train, validation"):
        load_pairs("phrasebook", "en", "it", "test")


def test_a_hub_set_serves_both_directions_of_its_pair(shared_data, capsys):
    folder = str(shared_data / "hub_layout")
    forward = load_pairs(folder, "en", "de")
    assert "3,000 pairs of de-en, en -> de" in capsys.readouterr().out
    backward = load_pairs(folder, "de", "en")
    assert texts(backward)[:5] == [pair[::-1] for pair in texts(forward)[:5]]
    assert " the " in " ".join(forward["src_text"][:50])


def test_a_pair_that_a_hub_set_lacks_lists_those_it_has(shared_data):
    refused(shared_data / "hub_layout", "en-zh", "zh-en", "de-en, en-it", langs=("en", "zh"))


def test_real_messes_load_with_their_drops_counted(shared_data, capsys):
    load_pairs(str(shared_data / "debian_mo_en_it" / "all.jsonl"), "en", "it")
    load_pairs(str(shared_data / "opennmt_demo_en_de" / "train"), "en", "de")
    out = capsys.readouterr().out
    assert "62,141 pairs" in out and "10,000 pairs" in out and out.count("empty side dropped") == 2


def test_json_arrays_of_translations_load(shared_data):
    path = str(shared_data / "iwslt17_de_en" / "validation.json")
    assert len(load_pairs(path, "en", "de")) == 888


def test_a_cached_hub_set_is_found_by_its_short_name(shared_data):
    import datasets

    # What the library keeps of a folder is what it keeps of a hub set, under another name.
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


# --- One rule for rows of any kind ---

BOTH_FORMS = [
    ({"translation": {"en": "a", "it": "b"}, "en": "no", "it": "no"}, ("a", "b")),
    ({"translation": {"en": "a", "it": None}, "en": None, "it": "c"}, ("a", "c")),
    ({"translation": None, "en": "d", "it": "e"}, ("d", "e")),
    ({"translation": {"en": "f", "it": "g"}, "en": None, "it": None}, ("f", "g")),
]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_a_text_inside_translation_comes_before_a_column_and_a_column_fills_in(tmp_path, kind):
    path, rows = tmp_path / f"pairs.{kind}", [row for row, _ in BOTH_FORMS]
    if kind == "parquet":
        from datasets import Dataset

        Dataset.from_list(rows).to_parquet(str(path))
    else:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_text(lines if kind == "jsonl" else json.dumps(rows), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [pair for _, pair in BOTH_FORMS]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "csv", "tsv"])
def test_columns_may_be_named_for_their_sides(tmp_path, kind):
    path = tmp_path / f"pairs.{kind}"
    if kind in ("csv", "tsv"):
        path.write_text("tgt_text,src_text\nb,a\n".replace(",", ",\t"[kind == "tsv"]), "utf-8")
    elif kind == "parquet":
        from datasets import Dataset

        Dataset.from_list([{"src_text": "a", "tgt_text": "b"}]).to_parquet(str(path))
    else:
        path.write_text('{"src_text": "a", "tgt_text": "b"}', "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("a", "b")]


def test_dates_and_decimals_of_a_parquet_file_are_the_text_that_they_show(tmp_path):
    import datetime
    import decimal

    import pyarrow
    import pyarrow.parquet

    columns = {
        "en": pyarrow.array([datetime.date(2024, 1, 31), None]),
        "it": pyarrow.array([decimal.Decimal("1.50"), decimal.Decimal("2.00")]),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "pairs.parquet")
    pairs = load_pairs(str(tmp_path / "pairs.parquet"), "en", "it")
    assert texts(pairs) == [("2024-01-31", "1.50")]


# --- What a .json file may hold ---


@pytest.mark.parametrize("name", ["pairs.json", "pairs.jsonl"])
def test_numbers_and_halves_of_characters_in_json_are_text(tmp_path, capsys, name):
    number = "9" * 5000
    path = tmp_path / name
    rows = [
        f'{{"en": {number}, "it": 1.50}}',
        '{"en": "\\ud800a", "it": -0}',
        '{"en": NaN, "it": 1}',
    ]
    text = "\n".join(rows) if name == "pairs.jsonl" else f"[{','.join(rows)}]"
    path.write_text(text, "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [(number, "1.50"), ("\ufffda", "-0")]
    assert "3 pairs, en -> it, 1 with an empty side dropped" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        '[{"en": "a", "it": "b"},\n {"en": "c", "it": "d"}]\n',
        '\ufeff\n\n[\n{"en": "a",\n"it": "b"} ,\r\n{"en": "c", "it": "d"}\n]',
        '{"en": "a", "it": "b"}\n\n{"en": "c", "it": "d"}',
        '{"en": "a",\n "it": "b"}\n{\n"en": "c", "it": "d"}\n',
    ],
)
def test_a_json_file_is_an_array_or_objects_one_after_the_other(tmp_path, text):
    path = tmp_path / "pairs.json"
    for name, content in (
        ("pairs.json", text.encode()),
        ("a.json.gz", gzip.compress(text.encode())),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert texts(load_pairs(str(path), "en", "it")) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"en": "a", "it": "b"},\n\n 5]', "line 3, is a JSON str, not an object"),
        ('[{"en": "a", "it": "b"},\n{"translation": "c"}]', "line 2: translation must hold"),
        ('[{"en": "a", "it": "b"}\n{"en": "c"}]', "line 2, is not JSON: Expecting ',' delimiter"),
        ('[{"en": "a",\n "it": "b"},\n', "line 2, is not JSON: Expecting value at character 13"),
        ('[{"en": "a", "it": "b"}]\n]', "line 2, is not JSON: Extra data at character 1"),
        ('{"en": "a", "it": "b"}\n{"en": "c', "line 2, is not JSON"),
        ("[" * 100_000, "line 1, is not JSON"),
        ("[]", "has no JSON object"),
        ("\n\n", "has no JSON object, only blank lines"),
        ('[{"en": "a"}]', "has a it"),
        ('{"data": [{"en": "a", "it": "b"}]}', "has a en"),
    ],
)
def test_a_json_file_of_no_pairs_is_refused_by_line(tmp_path, text, words):
    path = tmp_path / "pairs.json"
    path.write_text(text, "utf-8")
    refused(path, path, words)


def test_json_lines_that_are_all_blank_are_refused(tmp_path):
    (tmp_path / "pairs.jsonl").write_text("\n \n\r\n", "utf-8")
    refused(tmp_path / "pairs.jsonl", "pairs.jsonl has no JSON object, only blank lines")


# --- The split ---


def numbered(tmp_path, n=500):
    pairs = [(f"source {i % (n // 2)}", f"target {i}") for i in range(n)]
    return load_pairs(write_text_pair(tmp_path, pairs), "en", "it")


def test_no_source_of_validation_is_trained_on(tmp_path):
    train, valid = split_pairs(numbered(tmp_path), seed=0)
    assert not set(train["src_text"]) & set(valid["src_text"])
    assert len(valid) == 50 and len(train) == 450


def test_the_split_is_a_function_of_seed_and_texts(tmp_path):
    pairs = numbered(tmp_path)
    first, again, other = (set(split_pairs(pairs, seed)[1]["tgt_text"]) for seed in (0, 0, 1))
    assert first == again != other
    shuffled = pairs.shuffle(seed=7)
    assert set(split_pairs(shuffled, 0)[1]["tgt_text"]) == first


def test_one_source_cannot_be_split(tmp_path):
    pairs = load_pairs(write_text_pair(tmp_path, [("a", "x"), ("a", "y")]), "en", "it")
    with pytest.raises(ValueError, match="one distinct source"):
        split_pairs(pairs, 0)


def test_two_sources_give_one_to_each_side(tmp_path):
    pairs = load_pairs(write_text_pair(tmp_path, [("a", "x"), ("b", "y")]), "en", "it")
    assert [len(side) for side in split_pairs(pairs, 0)] == [1, 1]


def test_a_cap_draws_the_same_pairs_each_time(tmp_path):
    pairs = numbered(tmp_path)
    capped = texts(cap_pairs(pairs, 20, seed=0))
    assert len(capped) == 20 and capped == texts(cap_pairs(pairs, 20, seed=0))
    assert capped != texts(pairs)[:20] and len(cap_pairs(pairs, 1000, seed=0)) == 500


def test_a_cap_draws_by_its_seed_each_pair_once_and_keeps_their_order(tmp_path):
    pairs = numbered(tmp_path)
    places = [texts(pairs).index(pair) for pair in texts(cap_pairs(pairs, 400, seed=0))]
    assert len(places) == 400 and places == sorted(set(places))
    assert texts(cap_pairs(pairs, 20, seed=0)) != texts(cap_pairs(pairs, 20, seed=1))


def test_the_phrasebook_has_its_own_pairs_to_validate_on():
    pairs = load_pairs("phrasebook", "en", "it", "validation")
    assert texts(pairs) == list(phrasebook.write_pairs("validation"))


def test_a_folder_laid_out_like_a_hub_set_serves_both_directions(tmp_path):
    row = {"translation": {"de": "Ja.", "en": "Yes."}}
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    (tmp_path / "set" / "README.md").write_text(
        "---\nconfigs:\n- config_name: de-en\n  data_files: train.jsonl\n---\n", "utf-8"
    )
    for langs, pair in ((("de", "en"), ("Ja.", "Yes.")), (("en", "de"), ("Yes.", "Ja."))):
        assert texts(load_pairs(str(tmp_path / "set"), *langs)) == [pair]


# --- Several sources ---


def test_several_sources_are_one_corpus_with_weights(tmp_path, capsys):
    first = write_text_pair(tmp_path, [("a", "x"), ("", "y"), ("b", "y")], "first")
    second = write_text_pair(tmp_path, [("c", "z")], "second")
    pairs = load_pairs(f"{first},{second}:3", "en", "it")
    assert texts(pairs) == [("a", "x"), ("b", "y"), ("c", "z")]
    assert pairs["weight"][:] == [1, 1, 3]
    printed = capsys.readouterr().out
    assert "first: 3 pairs, en -> it, 1 with an empty side dropped" in printed
    assert "second: 1 pairs" in printed
    assert texts(load_pairs(f"{first}:1", "en", "it")) == texts(load_pairs(first, "en", "it"))
    for wrong in (f"{first},,{second}", ","):
        with pytest.raises(ValueError, match="datasource .* has an empty name"):
            load_pairs(wrong, "en", "it")
    for weight in ("0", "101", "1.5", "", "two"):
        with pytest.raises(ValueError, match=f"a whole number, 1 to 100, not '{weight}'"):
            load_pairs(f"{first},{second}:{weight}", "en", "it")


def test_an_epoch_takes_a_pair_as_often_as_its_weight_and_validation_once(tmp_path):
    first = write_text_pair(tmp_path, [(f"a{i}", "x") for i in range(40)], "first")
    second = write_text_pair(tmp_path, [(f"b{i}", "y") for i in range(20)], "second")
    config = small_config(f"{first},{second}:3", seq_len=30)
    data = get_ds(config, None, tokenizer_paths(config))
    assert get_weights_folder(config) == Path("first_second_weights")
    counts = Counter(data.train.texts("src_text"))
    assert {text[0]: count for text, count in counts.items()} == {"a": 1, "b": 3}
    assert all(counts[text] == (1 if text[0] == "a" else 3) for text in counts)
    held_out = data.valid.texts("src_text")
    assert len(held_out) == len(set(held_out)) == 6 and not set(held_out) & set(counts)
    other = get_ds(small_config(f"{first},{second}:2", seq_len=30), None, tokenizer_paths(config))
    assert other.fingerprint != data.fingerprint
    batches = form_batches(data.train.src_lens, data.train.tgt_lens, 60, seed=(0, 0))
    assert len(np.concatenate(batches)) == len(data.train) == sum(counts.values())


def test_a_path_that_is_there_is_one_source_whatever_its_name(tmp_path):
    pairs = [(f"one {i}", f"uno {i}") for i in range(4)]
    (tmp_path / "a, b:3").mkdir()
    (tmp_path / "x,y").mkdir()
    one = write_text_pair(tmp_path / "a, b:3", pairs[:1], "v1,2")
    two = write_text_pair(tmp_path / "x,y", pairs[1:2], "train:2")
    plain = write_text_pair(tmp_path, pairs[2:3], "train")
    table = tmp_path / "x,y" / "c,d:9.csv"
    table.write_text(f"en,it\n{pairs[3][0]},{pairs[3][1]}\n", "utf-8")
    for source, pair in zip((one, two, plain, str(table)), pairs, strict=True):
        loaded = load_pairs(source, "en", "it")
        assert texts(loaded) == [pair] and "weight" not in loaded.column_names
    loaded = load_pairs(f"{one}:3,{plain},{two},{two}:5,{table}:2", "en", "it")
    assert texts(loaded) == [pairs[0], pairs[2], pairs[1], pairs[1], pairs[3]]
    assert loaded["weight"][:] == [3, 1, 1, 5, 2]


def test_many_sources_may_be_named_at_once(tmp_path):
    prefix = write_text_pair(tmp_path, [("a", "x")])
    assert len(load_pairs(",".join([prefix] * 100), "en", "it")) == 100


def test_a_pair_with_a_side_of_invisible_characters_is_dropped_and_counted(tmp_path, capsys):
    pairs = [("a", "\u200b"), ("\u00ad \ufeff", "x"), ("\u2060", "\u3164"), ("b\u200bc", "y")]
    prefix = write_text_pair(tmp_path, pairs)
    assert texts(load_pairs(prefix, "en", "it")) == [("b\u200bc", "y")]
    assert "4 pairs, en -> it, 3 with an empty side dropped" in capsys.readouterr().out


# --- Corpora of many parts ---


def test_a_corpus_of_many_parts_is_the_same_as_one_of_a_single_part(tmp_path, monkeypatch):
    config = small_config(write_number_pairs(tmp_path, count=250))
    one = get_ds(config, None, tokenizer_paths(config))
    monkeypatch.setattr(corpus, "PART", 40)
    many = get_ds(config, None, tokenizer_paths(config))
    assert many.fingerprint == one.fingerprint
    for name in ("train", "valid"):
        whole, parts = getattr(one, name), getattr(many, name)
        everything = range(len(whole))
        assert parts.__getitems__(everything) == whole.__getitems__(everything)
        assert parts.texts("src_text") == whole.texts("src_text")
        np.testing.assert_array_equal(parts.tgt_lens, whole.tgt_lens)


def test_preparation_that_is_interrupted_keeps_the_parts_that_are_done(tmp_path, monkeypatch):
    from datasets import Dataset

    monkeypatch.setattr(corpus, "PART", 40)
    config = small_config(write_number_pairs(tmp_path, count=250, seed=7))
    map_rows = Dataset.map

    def map_until_tired(rows, *args, **kwargs):
        if kwargs["desc"] == "tokenising training, part 4 of 6":
            raise KeyboardInterrupt
        return map_rows(rows, *args, **kwargs)

    monkeypatch.setattr(Dataset, "map", map_until_tired)
    with pytest.raises(KeyboardInterrupt):
        get_ds(config, None, tokenizer_paths(config))
    done = {path: path.stat().st_mtime_ns for path in cached_files()}
    monkeypatch.setattr(Dataset, "map", map_rows)
    data = get_ds(config, None, tokenizer_paths(config))
    assert {path: path.stat().st_mtime_ns for path in done} == done
    made = [path for path in cached_files() if path not in done]
    assert len(made) == 3 + 1  # of training from the fourth on, and of validation
    assert len(data.train) > 200


def cached_files():
    return [*Path(os.environ["HF_HOME"]).rglob("cache-*.arrow")]


def test_tokenizers_learn_from_a_share_of_a_large_corpus(tmp_path, monkeypatch, capsys):
    config = small_config(write_number_pairs(tmp_path, count=250))
    monkeypatch.setattr(run_data, "MOST_FOR_TOKENIZERS", 3)
    data = get_ds(config, None, tokenizer_paths(config))
    assert "tokenizers are trained on 3 of" in capsys.readouterr().out
    assert data.train.tokenizer_src.size < 4 + 10  # special tokens, and not all ten words
