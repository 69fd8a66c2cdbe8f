"""A long text is cut into its sentences in any script; what is still too long, into parts."""

import time
from dataclasses import replace

import pytest
import torch

from config import Config
from corpus.tokenizer import TokenizerPair
from corpus.vocabulary import build_tokenizer
from model import build_transformer
from translation.options import Options
from translation.segmentation import join, parts_that_fit, sentences
from translation.translator import Translator

SENTENCES = {
    "Chinese": ["今天天气很好。", "我们去公园吧！", "你来吗？！", "他说：", "“我来了。”", "好的。"],
    "Chinese with ASCII marks": ["你来吗?", "好的!", "走吧."],
    "Japanese": ["「今日はいい天気です。」", "公園に行きましょう！", "来ますか？"],
    "Hindi": ["यह एक वाक्य है। ", "यह दूसरा है॥ ", "क्या यह तीसरा है?"],
    "Arabic": ["هذه جملة. ", "هل هذه جملة؟ ", "نعم! "],
    "Urdu": ["یہ ایک جملہ ہے۔ ", "یہ دوسرا ہے۔ ", "کیا؟"],
    "Amharic": ["ይህ ነው። ", "ምን፧ ", "ያ ነው።"],
    "Khmer": ["នេះជាប្រយោគ។ ", "នេះជាប្រយោគទីពីរ៕"],
    "Burmese": ["ဒါက စာကြောင်း။ ", "ဒါက နောက်တစ်ခု။"],
    "Armenian": ["Սա նախադասություն է։ ", "Սա երկրորդն է։"],
    "English": ['He said "no." ', "(It is 3.5 at 10:30!) ", "See example.com... ", "Why?! ", "So"],
    "French": ["« Oui. » ", "Ça va ? ", "Bien ! ", "Au revoir."],
    "German": ["„Ja.“ ", "»Nein!« ", "Gut."],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_end_at_the_marks_of_their_script(language):
    assert sentences("".join(SENTENCES[language])) == SENTENCES[language]


@pytest.mark.parametrize("text", ["3.5", "10：30", "３．５", "a.b", "x!y", "9:30", "没有"])
def test_punctuation_inside_a_word_or_a_number_ends_no_sentence(text):
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two, three four", ["one two, ", "three four"]),
        ("一二三四，五六七八、九十一二", ["一二三四，五六七八、", "九十一二"]),
        ("ཀཀཀཀཀཀ།ཁཁཁཁཁཁ།", ["ཀཀཀཀཀཀ།", "ཁཁཁཁཁཁ།"]),
        ("aaaa bbbb cccc dddd", ["aaaa bbbb ", "cccc dddd"]),
        ("ສະບາຍ ດີຕອນ ເຊົ້າ", ["ສະບາຍ ", "ດີຕອນ ", "ເຊົ້າ"]),
        ("aaaaaaaaaabbbbbbbbbb", ["aaaaaaaaaa", "bbbbbbbbbb"]),
        ("x, aaaaaaaaaabbbbbbbbbb, y", ["x, ", "aaaaaaaaaa", "bbbbbbbbbb", ", ", "y"]),
    ],
)
def test_a_long_sentence_is_cut_at_the_best_place_that_leaves_parts_that_fit(text, parts):
    found = parts_that_fit(text, lambda part: len(part.strip()) <= 10)
    assert "".join(found) == text and all(len(part.strip()) <= 10 for part in found)
    assert found == parts


def test_a_letter_keeps_its_accents_where_that_is_possible():
    text = "e\u0301" * 9
    assert parts_that_fit(text, lambda part: len(part) <= 5) == ["e\u0301e\u0301"] * 4 + ["e\u0301"]
    assert parts_that_fit("e" + "\u0301" * 9, lambda part: len(part) <= 5)[0] == "e" + "\u0301" * 4
    with pytest.raises(ValueError, match="the single character 'e' is too long"):
        parts_that_fit("e", lambda part: False)


@pytest.fixture(scope="module")
def translator():
    """A model of 10 sub-words at most that has learned nothing."""
    torch.manual_seed(0)
    tokenizer = build_tokenizer(["one two three"], "bpe", 300, 1)
    config = Config(seq_len=12, d_model=16, N=1, h=2, d_ff=16, tokenizer="bpe")
    sizes = (tokenizer.size, tokenizer.size)
    model = build_transformer(*sizes, **config.model_arguments()).eval()
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    return Translator(model, tokenizers, config, torch.device("cpu"), Options())


@pytest.mark.parametrize(
    "text",
    [
        "今天天气很好我们去公园吧" * 9,
        "one two three four " * 50,
        "สวัสดีครับวันนี้อากาศดี" * 5,
        "x" * 500,
        "one, two " * 30 + "。" + "三四五六" * 30,
        "👨‍👩‍👧" * 7,
    ],
)
def test_any_text_is_translated_in_pieces_that_fit_the_model(translator, text, capsys):
    pieces = translator.split(text, 3)
    assert all(0 < len(piece.ids) <= 10 for piece in pieces)
    kept = "".join("".join(piece.text.split()) for piece in pieces)
    assert kept == "".join(text.split())
    assert "line 3 has " in capsys.readouterr().err
    assert len(translator.translate([pieces])[0]) == 1


def test_sentences_that_fit_are_not_cut_when_another_is_too_long(translator):
    texts = [piece.text for piece in translator.split("one two. " + "three, " * 20 + "end. x?", 1)]
    assert texts[0] == "one two." and texts[-1] == "x?"


def test_a_character_that_the_model_cannot_take_is_named_by_its_line(translator):
    config = replace(translator.config, seq_len=4)
    with pytest.raises(ValueError, match="line 9: the single character '漢'"):
        replace(translator, config=config).split("漢", 9)


def test_the_longest_line_is_cut_in_seconds(translator):
    start = time.perf_counter()
    for text in ("漢" * 20_000, "ab " * 6_000, "x" * 20_000):
        translator.split(text, 1)
    assert time.perf_counter() - start < 20


def test_translations_are_joined_with_or_without_blanks_by_language():
    assert join(["我来了。", "你走了。"], "zho_Hans") == "我来了。你走了。"
    assert join(["来た。", "行った。"], "xx") == "来た。行った。"
    assert join(["ฉันมา", "คุณไป"], "th") == "ฉันมา คุณไป"
    assert join(["Je viens.", "Tu pars."], "fr") == "Je viens. Tu pars."
    assert join(["", ""], "en") == " "
