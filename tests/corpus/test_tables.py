"""Tables keep their cells as written. An error names the wrong line."""

import csv
import gzip
import io
import json
import re

import pytest
from conftest import load_measured, refused, small_config, texts
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from corpus import tables
from corpus.pairs import load_pairs
from corpus.tokenizer import clean_text
from training.streaming import read_pools


def loaded(source, langs=("en", "it")):
    """Return the pairs of a source, and check that a stream of it has the same pairs."""
    pairs = texts(load_pairs(str(source), *langs))
    config = small_config(
        str(source), validsource="v", streaming=True, lang_src=langs[0], lang_tgt=langs[1]
    )
    assert [pair for pool, _, _ in read_pools(config) for pair in texts(pool)] == pairs
    return pairs


def refused_both_ways(source, *words, langs=("en", "it")):
    refused(source, *words, langs=langs)
    config = small_config(
        str(source), validsource="v", streaming=True, lang_src=langs[0], lang_tgt=langs[1]
    )
    with pytest.raises(ValueError) as error:
        list(read_pools(config))
    assert all(str(word) in str(error.value) for word in words), error.value


def write(path, text):
    path.write_bytes(text.encode())
    return path


# --- Cells are text ---

WRITTEN = ["0012", "1.50", "NA", "null", "nan", "True", "2024-01-31", "1e5", "9" * 5000, "None"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl", "parquet"])
@pytest.mark.parametrize("pairs", [[("0012", "1.50"), ("007", "2")], [(x, x) for x in WRITTEN]])
def test_texts_that_look_like_other_types_stay_unchanged(tmp_path, suffix, pairs):
    path = tmp_path / f"pairs.{suffix}"
    if suffix == "parquet":
        from datasets import Dataset

        Dataset.from_list([{"en": en, "it": it} for en, it in pairs]).to_parquet(str(path))
    elif suffix == "json":
        path.write_text(json.dumps([{"en": en, "it": it} for en, it in pairs]), "utf-8")
    elif suffix == "jsonl":
        lines = (json.dumps({"en": en, "it": it}) + "\n" for en, it in pairs)
        path.write_text("".join(lines), "utf-8")
    else:
        mark = {"csv": ",", "tsv": "\t"}[suffix]
        write(path, "".join(f"{mark.join(pair)}\n" for pair in [("en", "it"), *pairs]))
    assert loaded(path) == pairs


def test_numbers_in_the_middle_of_a_large_table_stay_unchanged(tmp_path):
    words, numbers = [("a house", "una casa")] * 10_000, [("0012", "1.50")] * 10_000
    pairs = [*words, *numbers, *words]
    path = write(tmp_path / "a.csv", "".join(f"{en},{it}\n" for en, it in [("en", "it"), *pairs]))
    assert texts(load_pairs(str(path), "en", "it")) == pairs


@pytest.mark.parametrize("mark", [",", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_lone_carriage_return_does_not_end_a_row(tmp_path, mark, end):
    suffix = "csv" if mark == "," else "tsv"
    rows = [f"en{mark}it", f"one\rtwo{mark}uno\rdue", f"\rthree{mark}tre\r", f"four{mark}quattro"]
    path = write(tmp_path / f"pairs.{suffix}", end.join(rows) + end)
    assert loaded(path) == [("one two", "uno due"), ("three", "tre"), ("four", "quattro")]


def test_quoted_csv_cells_may_contain_commas_line_ends_and_quotes(tmp_path):
    path = write(
        tmp_path / "pairs.csv",
        '"it",en\r\n"a,b\nc\r\n\r\nd","say ""x"", y"\r\n5" disk,4"\r\n\r\n"",""""\r\n',
    )
    assert loaded(path) == [('say "x", y', "a,b c d"), ('4"', '5" disk')]


def test_quotation_marks_in_a_tsv_are_text(tmp_path):
    path = write(tmp_path / "pairs.tsv", 'en\tit\n"Go!\t"Vai!"\n""\t"a\n')
    assert loaded(path) == [('"Go!', '"Vai!"'), ('""', '"a')]


def test_a_nul_and_unicode_line_separators_stay_inside_a_cell(tmp_path):
    path = write(tmp_path / "pairs.csv", "en,it\na\x00b,x\u2028y\x0cz\x1ew\x85v\n")
    assert loaded(path) == [("a b", clean_text("x\u2028y z w v"))]


@settings(
    max_examples=400, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.lists(st.sampled_from(['"', ",", "\n", "a", " b ", "\r\n", "x", "é", '""']), max_size=30))
@example(['"', "a", '"', '"', "\n", "b", '"', ",", "x"])
@example(['"', "a", "\r\n", '"', "x", '"', ",", "\n"])
def test_rows_are_split_as_the_csv_module_does(tmp_path, pieces):
    text = "".join(pieces)
    path = write(tmp_path / "pairs.csv", text)
    text = text.replace("\r\n", "\n")  # all line ends inside a cell are read as "\n"
    try:
        expected = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            list(tables._split_csv(path))
    else:
        rows = [cells for _, cells in tables._split_csv(path)]
        assert rows == [row for row in expected if len(row) > 1 or "".join(row).strip(" ")]


# --- Columns ---


def test_a_header_may_name_the_languages_in_any_order_and_case(tmp_path):
    path = write(tmp_path / "a.tsv", "id\tIT \tnote\ten\n7\tuno\tx\tone\n")
    assert loaded(path) == [("one", "uno")]
    path = write(tmp_path / "a.csv", "translation,it,note,en\nrubbish,uno,x,one\n")
    assert loaded(path) == [("one", "uno")]


@pytest.mark.parametrize("suffix", ["txt", "tsv", "txt.gz", "tsv.gz"])
@pytest.mark.parametrize(
    "columns",
    [
        ("{}", "{}"),
        ("{}", "{}", "CC-BY 2.0 (France) Attribution: tatoeba.org #2877272 (CM)"),
        ("1276", "{}", "4369", "{}"),
    ],
)
def test_downloads_without_a_header_load_with_a_message(tmp_path, capsys, suffix, columns):
    pairs = [("Go.", "Vai."), ('Say "hi".', 'Di\' "ciao".'), ("12", "12")]
    text = "".join("\t".join(columns).format(*pair) + "\n" for pair in pairs)
    path = tmp_path / f"ita.{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    assert loaded(path) == pairs
    first, second = (i for i, cell in enumerate(columns, 1) if cell == "{}")
    assert (
        f"{path}, line 1, names no columns, so column {first} of {len(columns)} is taken as en and "
        f"column {second} as it; the first pair is 'Go.' -> 'Vai.'\n"
    ) in capsys.readouterr().out
    assert loaded(path, ("it", "en")) == pairs  # by the requested order of the languages


def test_real_pairs_of_tatoeba_load_like_a_download(tmp_path, shared_data):
    sides = [
        (shared_data / "tatoeba_en_it" / f"train.{lang}").read_text("utf-8").split("\n")[:3000]
        for lang in ("en", "it")
    ]
    lines = [f"{en}\t{it}\tCC-BY 2.0 #{i}" for i, (en, it) in enumerate(zip(*sides, strict=True))]
    path = write(tmp_path / "ita.txt", "\n".join(lines))
    assert loaded(path) == [tuple(map(clean_text, pair)) for pair in zip(*sides, strict=True)]


def test_a_header_of_source_and_target_is_recognized_with_a_message(tmp_path, capsys):
    for name, mark in (("a.tsv", "\t"), ("a.csv", ","), ("a.txt", "\t")):
        lines = [mark.join(cells) for cells in (("id", "Source", "Target"), ("7", "Go", "Vai"))]
        assert loaded(write(tmp_path / name, "\n".join(lines))) == [("Go", "Vai")]
        said = "line 1, names source and target, taken as en and it; the first pair is 'Go' -> 'V"
        assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("en\tit\nGo.\tVai.\tCC-BY\n", ["line 2: 3 fields, and line 1 has 2"]),
        ("Go.\tVai.\tCC-BY\nGo\tVai\n", ["line 2: 2 fields, and line 1 has 3"]),
        ("\n\nGo.\tVai.\n\nGo\n", ["line 5: 1 fields, and line 3 has 2", "delete one line"]),
        ("en\tfr\nGo.\tVa.\n", ["line 1, must name en and it once each, and names it 0 times"]),
        ("en\tit\ten\na\tb\tc\n", ["names en 2 times: en, it, en"]),
        ("a\n\n", ["line 1, names no columns", "the line has a"]),
        ("1\teng\tGo.\n", ["line 1, names no columns", "name the columns in a first line"]),
        ("Go.\tVai.\tx\ty\n", ["line 1, names no columns", "the line has Go., Vai., x, y"]),
        ("1\ta\t2\tb\tc\n", ["line 1, names no columns"]),
        ("id\ttranslation\n1\ta\n", ["line 1: translation must contain one text per language"]),
        ("en\tit\n", ["line 1, names the columns, and no row follows it"]),
        ("\n\nen\tit\n\n", ["line 3, names the columns, and no row follows it"]),
        ("en\tit\rone\tuno\r", ["line 1, must name en and it once each", "en, it one, uno"]),
        ("", ["is empty"]),
        ("\n \n\r\n", ["has no row, only blank lines"]),
        ("\ufeff", ["has no row, only blank lines"]),
    ],
)
def test_a_table_without_pairs_is_reported_by_line(tmp_path, text, words):
    refused_both_ways(write(tmp_path / "pairs.tsv", text), tmp_path / "pairs.tsv", *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("en,it\n\nOne, two,Uno\n", ["line 3: 3 fields, and line 1 has 2", "quotation marks"]),
        ('en,it\n"a\nb",c\nd\n', ["line 4: 1 fields"]),
        ('en,it\na,b\n"c,d\n' + "e,f\n" * 5, ["line 3: a quotation mark", "needs one at its end"]),
        ("Go.,Vai.\na,b\n", ["line 1, must name the columns, en and it", "it names Go., Vai."]),
        ('"a\nb",c\n', ["it names a b, c"]),
        ("en,it\r", ["line 1, names the columns, and no row follows it"]),
        ("en\rit,it,en\r", ["line 1, names the columns, and no row follows it"]),
        ("en,it", ["line 1, names the columns, and no row follows it"]),
    ],
)
def test_a_csv_without_pairs_is_reported_by_line(tmp_path, text, words):
    refused_both_ways(write(tmp_path / "pairs.csv", text), tmp_path / "pairs.csv", *words)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.json", "a.jsonl"])
def test_invalid_utf_8_is_reported_by_file_line_and_byte(tmp_path, name):
    lines = {"csv": ["en,it", "{},x"], "json": ['[{{"en": "o", "it": "p"}},', '{{"en":"{}"}}]']}
    mended = {"jsonl": ['{{"en": "o", "it": "p"}}', '{{"en": "{}"}}']}
    lines |= mended | {kind: ["en\tit", "{}\tx"] for kind in ("tsv", "txt")}
    text = "\n".join(lines[name.partition(".")[2]]).format("perché")
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1"))
    byte = text.splitlines()[1].index("é") + 1
    refused_both_ways(path, f"{path}, line 2, byte {byte}: 0xe9 is not UTF-8")


def test_a_text_file_without_tabs_suggests_the_prefix(tmp_path):
    path = write(tmp_path / "notes.txt", "one\ntwo\n")
    prefix = tmp_path / "notes"
    refused_both_ways(path, "has no TAB in its first line", f"prefix: {prefix} for {prefix}.en and")
    refused(write(tmp_path / "void.txt", ""), "is empty")


# --- Size ---


@pytest.mark.parametrize("name", ["a.csv", "b.csv", "c.tsv"])
def test_a_row_of_100_mb_is_dropped_in_bounded_memory(tmp_path, name):
    mark = b"\t" if name == "c.tsv" else b","
    long = b'"%s"' % (b"word, " * (17 * 2**20)) if name == "b.csv" else b"word " * (20 * 2**20)
    path = tmp_path / name
    rows = [(b"en", b"it"), (b"one", b"uno"), (long, b"due"), (b"x" * 30_000, b"y"), (b"4", b"q")]
    path.write_bytes(b"\n".join(mark.join(row) for row in rows))
    printed, megabytes = load_measured(path)
    assert "4 pairs, en -> it, 2 over 20,000 characters dropped" in printed
    assert megabytes < 80


@pytest.mark.parametrize("tail", ["a,b\n" * 300_000, "word " * 250_000])
def test_an_open_quotation_in_a_large_file_is_refused(tmp_path, tail):
    path = write(tmp_path / "a.csv", 'en,it\nx,"y\n' + tail + '",z\n')
    refused(path, f"{path}, line 2: a quotation mark", "1,048,576 characters")
