"""Encoding, decoding and loading tokenizers. Text is never encoded as control tokens."""

import pytest
import tokenizers
from conftest import small_tokenizer
from tokenizers import models, pre_tokenizers

from corpus.tokenizer import SPECIAL_TOKENS, clean_text, load_tokenizer, tokenizer_from_json


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_a_control_token_in_a_text_is_ordinary_text(kind, token):
    tokenizer = small_tokenizer(kind)
    for again in (tokenizer, tokenizer_from_json(tokenizer.to_json(), "again")):
        ids = again.encode(f"stop {token} now")
        assert not {again.pad_id, again.sos_id, again.eos_id, again.unk_id} & set(ids)
        assert again.decode(ids) == f"stop {token} now"


def test_unknown_words_are_decoded_as_unk_and_listed():
    tokenizer = small_tokenizer("word")
    text = "she quaffs big, absinthe!"
    assert tokenizer.unknown_words(text) == ["quaffs", "absinthe"]
    assert tokenizer.decode(tokenizer.encode(text)) == "she [UNK] big, [UNK]!"


def test_decoding_stops_at_the_first_eos_and_shows_no_control_tokens():
    tokenizer = small_tokenizer("word")
    ids = tokenizer.encode("The house")
    padded = [tokenizer.sos_id, *ids, tokenizer.eos_id, *ids, tokenizer.pad_id]
    assert tokenizer.decode(padded) == "The house"


def test_empty_text_has_no_ids_and_no_ids_are_empty_text():
    for kind in ("word", "bpe"):
        tokenizer = small_tokenizer(kind)
        assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""


def test_a_stored_tokenizer_loads_unchanged(tmp_path):
    path = tmp_path / "tokenizer_en.json"
    tokenizer = small_tokenizer("word")
    path.write_text(tokenizer.to_json(), "utf-8")
    assert load_tokenizer(path).to_json() == tokenizer.to_json()
    with pytest.raises(FileNotFoundError, match="no tokenizer .*nothing.json"):
        load_tokenizer(tmp_path / "nothing.json")


def test_truncation_and_padding_of_a_stored_tokenizer_are_not_used():
    backend = tokenizers.Tokenizer.from_str(small_tokenizer("word").to_json())
    backend.enable_truncation(2)
    backend.enable_padding(length=9, pad_id=1, pad_token="[PAD]")
    tokenizer = tokenizer_from_json(backend.to_str(), "cutting.json")
    assert tokenizer.decode(tokenizer.encode("don't stop")) == "don't stop"


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


def test_a_foreign_tokenizer_does_not_encode_text_as_control_tokens():
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
def test_tokenizers_saved_by_tutorials_load_or_are_refused(shared_data, name, missing):
    path = shared_data / "tokenizers" / name / "tokenizer_en.json"
    if missing:
        with pytest.raises(ValueError, match=rf"\[{missing}\]"):
            tokenizer_from_json(path.read_text(encoding="utf-8"), name)
        return
    tokenizer = tokenizer_from_json(path.read_text(encoding="utf-8"), name)
    expected = {"standard": (2, 3), "sos_eos_swapped": (3, 2)}[name]
    assert (tokenizer.sos_id, tokenizer.eos_id) == expected


def test_a_text_of_only_invisible_characters_is_empty():
    import regex  # a dependency of sacrebleu, which has the list of Unicode

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
        "\u0600",  # ARABIC NUMBER SIGN is a visible format character
        "1",
        "\u0301",
    ],
)
def test_invisible_characters_beside_visible_ones_stay(text):
    assert clean_text(text) == text
