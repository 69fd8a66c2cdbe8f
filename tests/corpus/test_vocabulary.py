"""The two kinds of tokenizers that are built from texts."""

import pytest
from conftest import TEXTS, small_tokenizer

from corpus.tokenizer import clean_text

STRANGE = [
    "don't stop — café 🤗.",
    "a  b\tc\nd",
    "日本語 と ไทย",
    "\x00\x1b[0m",
    "▁x ￭ @@",
    "e\u0301",
]


@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_known_text_is_decoded_exactly(kind, text):
    tokenizer = small_tokenizer(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", STRANGE)
def test_bpe_decodes_any_text_exactly(text):
    tokenizer = small_tokenizer("bpe")
    assert tokenizer.decode(tokenizer.encode(text)) == clean_text(text)


def test_bpe_never_uses_the_unknown_token():
    tokenizer = small_tokenizer("bpe", vocab_size=5)
    for text in STRANGE:
        assert tokenizer.unk_id not in tokenizer.encode(text)


def test_real_text_is_decoded_exactly(shared_data):
    lines = (shared_data / "multi30k" / "train.de").read_text(encoding="utf-8").split("\n")[:5000]
    for kind in ("word", "bpe"):
        tokenizer = small_tokenizer(kind, lines, vocab_size=30000)
        for line in lines:
            back = tokenizer.decode(tokenizer.encode(line))
            text = clean_text(line)
            assert back == (" ".join(text.split()) if kind == "word" else text)


def test_a_word_has_the_same_id_after_a_blank_a_quote_or_an_apostrophe():
    tokenizer = small_tokenizer("word", ["l'amico amico", '"amico"'])
    amico = tokenizer.encode("amico")
    for text in ("un amico", 'un "amico', "l'amico", "(amico)"):
        assert set(amico) < set(tokenizer.encode(text))


def test_a_bpe_word_has_the_same_ids_at_the_start_and_after_a_blank():
    tokenizer = small_tokenizer("bpe", ["house the house"])
    house = tokenizer.encode("house")
    assert tokenizer.encode("the house")[-len(house) :] == house


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_composed_and_decomposed_letters_have_the_same_ids(kind):
    tokenizer = small_tokenizer(kind, ["caf\u00e9"])
    assert tokenizer.encode("cafe\u0301") == tokenizer.encode("caf\u00e9")
    assert not tokenizer.unknown_words("cafe\u0301")


def test_a_joiner_in_a_text_is_replaced():
    tokenizer = small_tokenizer("word", ["a ■ b"])
    assert tokenizer.decode(tokenizer.encode("a ￭ b")) == "a ■ b"


def test_a_word_below_the_minimum_frequency_is_unknown():
    tokenizer = small_tokenizer("word", ["the cat", "the dog"], min_frequency=2)
    assert tokenizer.unknown_words("the cat") == ["cat"]


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_the_vocabulary_omits_what_is_rarer_than_the_minimum_frequency(kind):
    sizes = [small_tokenizer(kind, ["house house tree"], min_frequency=n).size for n in (1, 2, 3)]
    assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize(("kind", "size"), [("word", 9), ("bpe", 270)])
def test_a_vocabulary_has_at_most_the_requested_entries(kind, size):
    assert small_tokenizer(kind, vocab_size=size).size == size


def test_the_special_tokens_come_first_and_size_counts_the_real_entries():
    for kind in ("word", "bpe"):
        tokenizer = small_tokenizer(kind, vocab_size=30000)
        ids = (tokenizer.unk_id, tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id)
        assert ids == (0, 1, 2, 3)
        assert tokenizer.size == len(tokenizer.backend.get_vocab()) < 30000


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_two_builds_of_the_same_text_are_equal(kind):
    assert small_tokenizer(kind).to_json() == small_tokenizer(kind).to_json()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'unigram'.*word or bpe"):
        small_tokenizer("unigram")
