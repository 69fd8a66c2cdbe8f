"""The two texts of a row, and rows of JSON files."""

import gzip
import json

import pytest
from conftest import refused, texts

from corpus.pairs import load_pairs


def test_a_missing_side_in_json_is_an_empty_side(tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    rows = [{"en": "a", "it": "x"}, {"en": "c"}, {"en": None, "it": "y"}]
    path.write_text("".join(json.dumps({"translation": row}) + "\n" for row in rows), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("a", "x")]
    assert "2 with an empty side dropped" in capsys.readouterr().out


def test_numbers_in_json_are_text_and_null_is_a_missing_text(tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    rows = [{"en": 5, "it": 0.5}, {"en": None, "it": "x"}, {"it": "x"}, {"en": "a\nb", "it": "c"}]
    path.write_text("".join(json.dumps({"translation": row}) + "\n\n" for row in rows), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("5", "0.5"), ("a b", "c")]
    assert "4 pairs, en -> it, 2 with an empty side dropped" in capsys.readouterr().out


def test_other_fields_of_a_json_line_are_ignored(tmp_path):
    path = tmp_path / "pairs.jsonl"
    row = {"translation": {"en": "a", "it": "b"}, "more": "x" * 100_000}
    path.write_text(json.dumps(row), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("a", "b")]


# --- One rule for rows of any kind ---


BOTH_FORMS = [
    ({"translation": {"en": "a", "it": "b"}, "en": "no", "it": "no"}, ("a", "b")),
    ({"translation": {"en": "a", "it": None}, "en": None, "it": "c"}, ("a", "c")),
    ({"translation": None, "en": "d", "it": "e"}, ("d", "e")),
    ({"translation": {"en": "f", "it": "g"}, "en": None, "it": None}, ("f", "g")),
]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_a_text_in_translation_has_priority_over_a_column(tmp_path, kind):
    path, rows = tmp_path / f"pairs.{kind}", [row for row, _ in BOTH_FORMS]
    if kind == "parquet":
        from datasets import Dataset

        Dataset.from_list(rows).to_parquet(str(path))
    else:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_text(lines if kind == "jsonl" else json.dumps(rows), "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [pair for _, pair in BOTH_FORMS]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "csv", "tsv"])
def test_columns_may_be_named_src_text_and_tgt_text(tmp_path, kind):
    path = tmp_path / f"pairs.{kind}"
    if kind in ("csv", "tsv"):
        path.write_text("tgt_text,src_text\nb,a\n".replace(",", ",\t"[kind == "tsv"]), "utf-8")
    elif kind == "parquet":
        from datasets import Dataset

        Dataset.from_list([{"src_text": "a", "tgt_text": "b"}]).to_parquet(str(path))
    else:
        path.write_text('{"src_text": "a", "tgt_text": "b"}', "utf-8")
    assert texts(load_pairs(str(path), "en", "it")) == [("a", "b")]


def test_dates_and_decimals_of_a_parquet_file_become_text(tmp_path):
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


# --- Content of a .json file ---


@pytest.mark.parametrize("name", ["pairs.json", "pairs.jsonl"])
def test_long_numbers_and_lone_surrogates_in_json_are_text(tmp_path, capsys, name):
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
def test_a_json_file_is_an_array_or_consecutive_objects(tmp_path, text):
    path = tmp_path / "pairs.json"
    for name, content in (
        ("pairs.json", text.encode()),
        ("a.json.gz", gzip.compress(text.encode())),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert texts(load_pairs(str(path), "en", "it")) == [("a", "b"), ("c", "d")]


def test_json_arrays_of_translations_load(shared_data):
    path = str(shared_data / "iwslt17_de_en" / "validation.json")
    assert len(load_pairs(path, "en", "de")) == 888


# --- Errors ---


def test_a_truncated_json_line_is_reported_by_file_and_line(tmp_path):
    path = tmp_path / "pairs.jsonl"
    good = json.dumps({"translation": {"en": "a", "it": "x"}}) + "\n"
    path.write_text(good + good + good[:20] + "\n" + good, "utf-8")
    refused(path, path, "line 3")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"translation": {"en": "c", "i', "is not JSON"),
        ("[1, 2]", "is a JSON list"),
        ('{"translation": "c"}', "translation must contain one text per language, not 'c'"),
        ("[" * 10000, "is not JSON"),
    ],
)
def test_a_json_line_without_a_pair_is_reported_by_file_and_line(tmp_path, line, words):
    path = tmp_path / "pairs.jsonl"
    good = json.dumps({"translation": {"en": "a", "it": "b"}})
    path.write_text(f"{good}\n{good}\n{line}", "utf-8")
    refused(path, f"{path}, line 3", words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"en": "a", "it": "b"},\n\n 5]', "line 3, is a JSON str, not an object"),
        ('[{"en": "a", "it": "b"},\n{"translation": "c"}]', "line 2: translation must contain"),
        ('[{"en": "a", "it": "b"}\n{"en": "c"}]', "line 2, is not JSON: Expecting ',' delimiter"),
        ('[{"en": "a",\n "it": "b"},\n', "line 2, is not JSON: Expecting value at character 13"),
        ('[{"en": "a", "it": "b"}]\n]', "line 2, is not JSON: Extra data at character 1"),
        ('{"en": "a", "it": "b"}\n{"en": "c', "line 2, is not JSON"),
        ("[" * 100_000, "line 1, is not JSON"),
        ("[]", "has no JSON object"),
        ("\n\n", "has no JSON object, only blank lines"),
        ('[{"en": "a"}]', "has a text for it"),
        ('{"data": [{"en": "a", "it": "b"}]}', "has a text for en"),
    ],
)
def test_a_json_file_without_pairs_is_reported_by_line(tmp_path, text, words):
    path = tmp_path / "pairs.json"
    path.write_text(text, "utf-8")
    refused(path, path, words)


def test_a_jsonl_file_of_blank_lines_is_refused(tmp_path):
    (tmp_path / "pairs.jsonl").write_text("\n \n\r\n", "utf-8")
    refused(tmp_path / "pairs.jsonl", "pairs.jsonl has no JSON object, only blank lines")


@pytest.mark.parametrize("row", [{"translation": ["a", "b"]}, {"translation": 5}])
def test_a_translation_that_is_not_a_mapping_is_refused(tmp_path, row):
    for name, text in (("a.json", json.dumps([row])), ("a.jsonl", json.dumps(row))):
        (tmp_path / name).write_text(text, "utf-8")
        refused(tmp_path / name, "translation must contain one text per language")
