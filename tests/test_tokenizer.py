"""Text comes back as it went in; control tokens are never made from text."""

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from tokenizer import (
    SPECIAL_TOKENS,
    build_tokenizer,
    clean_text,
    load_tokenizer,
    tokenizer_from_json,
)

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
