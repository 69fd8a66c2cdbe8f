"""Text comes back as it went in; control tokens are never made from text."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from conftest import small_config, write_number_pairs
from tokenizers import models, pre_tokenizers

import checkpoint
from config import get_weights_file_path
from corpus.tokenizer import (
    SPECIAL_TOKENS,
    build_tokenizer,
    clean_text,
    load_tokenizer,
    tokenizer_from_json,
)
from train import train_model
from training.data import get_ds, tokenizer_paths

TEXTS = [
    "don't stop, ten-year-old!",
    'She said: "The house is big." Then she left.',
    "l'amico dell'uomo è là, no?",
    "press [EOS] to stop [PAD] now [SOS] or [UNK].",
]
STRANGE = [
    "don't stop — café 🤗.",
    "a  b\tc\nd",
    "日本語 と ไทย",
    "\x00\x1b[0m",
    "▁x ￭ @@",
    "e\u0301",
]


def build(kind, texts=TEXTS, vocab_size=400, min_frequency=1):
    return build_tokenizer(texts, kind, vocab_size, min_frequency)


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_known_text_comes_back_exactly(kind, text):
    tokenizer = build(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", STRANGE)
def test_bpe_brings_back_any_text(text):
    tokenizer = build("bpe")
    assert tokenizer.decode(tokenizer.encode(text)) == clean_text(text)


def test_bpe_never_needs_the_unknown_token():
    tokenizer = build("bpe", vocab_size=5)
    for text in STRANGE:
        assert tokenizer.unk_id not in tokenizer.encode(text)


def test_real_text_comes_back_exactly(shared_data):
    lines = (shared_data / "multi30k" / "train.de").read_text(encoding="utf-8").split("\n")[:5000]
    for kind in ("word", "bpe"):
        tokenizer = build(kind, lines, vocab_size=30000)
        for line in lines:
            back = tokenizer.decode(tokenizer.encode(line))
            text = clean_text(line)
            assert back == (" ".join(text.split()) if kind == "word" else text)


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_a_control_token_in_a_text_is_text(kind, token):
    tokenizer = build(kind)
    for again in (tokenizer, tokenizer_from_json(tokenizer.to_json(), "again")):
        ids = again.encode(f"stop {token} now")
        assert not {again.pad_id, again.sos_id, again.eos_id, again.unk_id} & set(ids)
        assert again.decode(ids) == f"stop {token} now"


def test_unknown_words_stay_visible_and_are_named():
    tokenizer = build("word")
    text = "she quaffs big, absinthe!"
    assert tokenizer.unknown_words(text) == ["quaffs", "absinthe"]
    assert tokenizer.decode(tokenizer.encode(text)) == "she [UNK] big, [UNK]!"


def test_a_word_is_the_same_after_a_blank_a_quote_or_an_apostrophe():
    tokenizer = build("word", ["l'amico amico", '"amico"'])
    amico = tokenizer.encode("amico")
    for text in ("un amico", 'un "amico', "l'amico", "(amico)"):
        assert set(amico) < set(tokenizer.encode(text))


def test_a_word_below_the_minimum_frequency_is_unknown():
    tokenizer = build("word", ["the cat", "the dog"], min_frequency=2)
    assert tokenizer.unknown_words("the cat") == ["cat"]


def test_decoding_stops_at_the_first_end_and_shows_no_control_tokens():
    tokenizer = build("word")
    ids = tokenizer.encode("The house")
    padded = [tokenizer.sos_id, *ids, tokenizer.eos_id, *ids, tokenizer.pad_id]
    assert tokenizer.decode(padded) == "The house"


def test_nothing_is_nothing():
    for kind in ("word", "bpe"):
        tokenizer = build(kind)
        assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""


def test_the_special_tokens_come_first_and_the_size_is_the_real_one():
    for kind in ("word", "bpe"):
        tokenizer = build(kind, vocab_size=30000)
        ids = (tokenizer.unk_id, tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id)
        assert ids == (0, 1, 2, 3)
        assert tokenizer.size == len(tokenizer.backend.get_vocab()) < 30000


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_two_builds_of_the_same_text_are_equal(kind):
    assert build(kind).to_json() == build(kind).to_json()


def test_a_stored_tokenizer_comes_back(tmp_path):
    path = tmp_path / "tokenizer_en.json"
    tokenizer = build("word")
    path.write_text(tokenizer.to_json(), "utf-8")
    assert load_tokenizer(path).to_json() == tokenizer.to_json()
    with pytest.raises(FileNotFoundError, match="no tokenizer .*nothing.json"):
        load_tokenizer(tmp_path / "nothing.json")


def test_truncation_and_padding_of_a_stored_tokenizer_are_not_used():
    backend = tokenizers.Tokenizer.from_str(build("word").to_json())
    backend.enable_truncation(2)
    backend.enable_padding(length=9, pad_id=1, pad_token="[PAD]")
    tokenizer = tokenizer_from_json(backend.to_str(), "cutting.json")
    assert tokenizer.decode(tokenizer.encode("don't stop")) == "don't stop"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'unigram'.*word or bpe"):
        build("unigram")


@pytest.mark.parametrize("text", ["", "{", '{"version": "1.0"}', "no json"])
def test_a_damaged_file_is_refused_by_name(text):
    with pytest.raises(ValueError, match="tokenizer_en.json is not a tokenizer file"):
        tokenizer_from_json(text, "tokenizer_en.json")


def foreign(vocabulary):
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer_from_json(backend.to_str(), "foreign.json")


def test_a_missing_special_token_is_named():
    with pytest.raises(ValueError, match=r"foreign.json has no \[EOS\]"):
        foreign({"[UNK]": 0, "[PAD]": 1, "[SOS]": 2, "a": 3})


def test_ids_beyond_the_vocabulary_are_refused():
    with pytest.raises(ValueError, match="id 9.*5 entries"):
        foreign({"[UNK]": 0, "[PAD]": 1, "[SOS]": 2, "[EOS]": 3, "a": 9})


def test_a_foreign_tokenizer_cannot_make_control_tokens_of_text():
    tokenizer = foreign({"[UNK]": 0, "[PAD]": 1, "[SOS]": 2, "[EOS]": 3, "a": 4})
    assert tokenizer.encode("a [EOS] [PAD] a") == [4, 0, 0, 4]


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("standard", None),
        ("sos_eos_swapped", None),
        ("pad0_typo_ESO", "EOS"),
        ("no_specials", "UNK"),
    ],
)
def test_tokenizers_that_tutorials_saved_load_or_are_refused(shared_data, name, missing):
    path = shared_data / "tokenizers" / name / "tokenizer_en.json"
    if missing:
        with pytest.raises(ValueError, match=rf"\[{missing}\]"):
            tokenizer_from_json(path.read_text(encoding="utf-8"), name)
        return
    tokenizer = tokenizer_from_json(path.read_text(encoding="utf-8"), name)
    expected = {"standard": (2, 3), "sos_eos_swapped": (3, 2)}[name]
    assert (tokenizer.sos_id, tokenizer.eos_id) == expected


def test_a_joiner_typed_in_a_text_joins_nothing():
    tokenizer = build("word", ["a ■ b"])
    assert tokenizer.decode(tokenizer.encode("a ￭ b")) == "a ■ b"


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_what_is_seen_less_than_the_minimum_frequency_takes_no_entry(kind):
    sizes = [build(kind, ["house house tree"], min_frequency=n).size for n in (1, 2, 3)]
    assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize(("kind", "size"), [("word", 9), ("bpe", 270)])
def test_a_vocabulary_has_no_more_entries_than_asked(kind, size):
    assert build(kind, vocab_size=size).size == size


def test_a_bpe_word_is_the_same_at_the_start_and_after_a_blank():
    tokenizer = build("bpe", ["house the house"])
    house = tokenizer.encode("house")
    assert tokenizer.encode("the house")[-len(house) :] == house


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_composed_and_decomposed_letters_are_the_same(kind):
    tokenizer = build(kind, ["caf\u00e9"])
    assert tokenizer.encode("cafe\u0301") == tokenizer.encode("caf\u00e9")
    assert not tokenizer.unknown_words("cafe\u0301")


def test_a_run_goes_on_with_tokenizer_files_that_were_moved_or_written_anew(tmp_path, capsys):
    (tmp_path / "old").mkdir()
    for lang, text in (("en", "one two three"), ("it", "uno due")):
        path = tmp_path / "old" / f"own_{lang}.json"
        path.write_text(build("word", [text]).to_json(), "utf-8")
    old = str(tmp_path / "old" / "own_{0}.json")
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1, tokenizer_file=old)
    train_model(config)
    (tmp_path / "old").rename(tmp_path / "new")
    new = str(tmp_path / "new" / "own_{0}.json")
    moved = replace(config, num_epochs=2, tokenizer_file=new)
    train_model(moved)
    assert f"tokenizer_file: the checkpoint says {old}, you say {new}" in capsys.readouterr().out
    # In the weights folder under the usual name, with blanks between the same entries.
    for lang in ("en", "it"):
        text = (tmp_path / "new" / f"own_{lang}.json").read_text("utf-8")
        indented = json.dumps(json.loads(text), indent=4)
        Path("train_weights", f"tokenizer_{lang}.json").write_text(indented, "utf-8")
    usual = replace(config, num_epochs=3, tokenizer_file="tokenizer_{0}.json")
    train_model(usual)
    assert checkpoint.load(get_weights_file_path(config, 2))["epoch"] == 3


@pytest.mark.parametrize("name", ["elsewhere/own_{0}.json", "tokenizer_{0}.json"])
def test_a_run_is_refused_tokenizer_files_with_other_content_or_none(tmp_path, name):
    config = small_config(write_number_pairs(tmp_path, count=60), num_epochs=1)
    config = replace(config, tokenizer_file=str(tmp_path / "own_{0}.json"))
    for lang, text in (("en", "one two three"), ("it", "uno due")):
        (tmp_path / f"own_{lang}.json").write_text(build("word", [text]).to_json(), "utf-8")
    train_model(config)
    other = replace(config, num_epochs=2, tokenizer_file=name)
    path = Path(*Path(name).parts[:-1] or ("train_weights",), Path(name).name)
    with pytest.raises(ValueError, match=r"own_\{0\}.json, you say .*, and there is no .*_en.json"):
        train_model(other)
    path.parent.mkdir(exist_ok=True)
    for lang in ("en", "it"):
        shutil.copy(tmp_path / "own_it.json", str(path).format(lang))
    with pytest.raises(ValueError, match="tokenizer_file: .* of 7 entries, than .*, of 6"):
        train_model(other)


def test_a_text_of_invisible_characters_alone_is_empty():
    import regex  # which sacrebleu brings; it knows Unicode's own list

    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    invisible = [chr(i) for i in range(0x110000) if ignorable.fullmatch(chr(i))]
    assert len(invisible) > 4000
    for letter in [*invisible, "\u2800", "\ufff9"]:
        assert clean_text(letter) == "" == clean_text(f" {letter}\t\u00a0{letter}\n"), hex(
            ord(letter)
        )


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "क्\u200dष",
        "👩\u200d👧",
        "❤\ufe0f",
        "\u200eabc\u200b",
        "co\u00adoperate",
        "\u0600",  # ARABIC NUMBER SIGN is a format character that is seen
        "1",
        "\u0301",
    ],
)
def test_invisible_characters_beside_visible_ones_stay(text):
    assert clean_text(text) == text


# --- Unknown tokens at the start of a run ---


def told_unknown(tmp_path, capsys, train, valid, **changes):
    """Return what a run prints about unknown tokens when it trains and validates on pairs."""
    for name, pairs in (("train", train), ("valid", valid)):
        for lang, side in zip(("en", "it"), zip(*pairs, strict=True), strict=True):
            (tmp_path / f"{name}.{lang}").write_text("".join(f"{x}\n" for x in side), "utf-8")
    source = changes.pop("datasource", str(tmp_path / "train"))
    config = small_config(source, validsource=str(tmp_path / "valid"), **changes)
    get_ds(config, None, tokenizer_paths(config))
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if "unknown tokens" in line or "are unknown" in line]


@pytest.mark.parametrize("changes", [{}, {"streaming": True, "pool_size": 3}])
def test_the_share_of_unknown_tokens_is_told_by_side_where_there_are_any(tmp_path, capsys, changes):
    train = [("one two", "uno due"), ("three", "tre"), ("four five six", "sei")]
    valid = [("one seven two three four", "uno"), ("two six five one", "due sette due tre uno sei")]
    assert told_unknown(tmp_path, capsys, train, valid, **changes) == [
        "unknown tokens: training 0.0% (en), 0.0% (it); validation 11.1% (en), 14.3% (it)"
    ]
    assert told_unknown(tmp_path, capsys, train, train, **changes) == []


def test_unknown_tokens_count_as_often_as_their_pair_is_trained_on(tmp_path, capsys):
    for lang, text in (("en", "rare one"), ("it", "uno")):
        (tmp_path / f"rare.{lang}").write_text(f"{text}\n", "utf-8")
    settings = {"datasource": f"{tmp_path / 'train'},{tmp_path / 'rare'}:6", "min_frequency": 2}
    pairs = [("one one", "uno uno")] * 4
    told, remedy = told_unknown(tmp_path, capsys, pairs, pairs, **settings)
    assert "training 30.0% (en), 0.0% (it); validation 0.0% (en), 0.0% (it)" in told
    assert "--tokenizer bpe" in remedy


@pytest.mark.parametrize(
    ("text", "other"),
    [("我们去看电影吧", "他昨天没有来。"), ("今日は雨です", "猫が好きだ。"), ("ฉันรักคุณ", "แมวดำ")],
)
def test_words_without_blanks_are_unknown_and_sub_words_are_the_remedy(
    tmp_path, capsys, text, other
):
    train = [(f"house {i}", "".join(rotated(text, i))) for i in range(len(text))]
    valid = [("house 1", other)]
    lines = told_unknown(tmp_path, capsys, train, valid, min_frequency=2)
    assert "training" in lines[0] and "100.0% (it); validation" in lines[0]
    assert len(lines) == 2 and "--tokenizer bpe" in lines[1]
    settings = {"tokenizer": "bpe", "seq_len": 60, "model_folder": "./other"}
    assert told_unknown(tmp_path, capsys, train, valid, **settings) == []


def rotated(text, i):
    return text[i:] + text[:i]
