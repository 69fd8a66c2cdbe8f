"""The scores are what their libraries' authors mean by them, on one scale."""

from typing import get_args

import pytest
import sacrebleu

from config import Monitor
from translation.metrics import METRICS, Metric, Score, report, score

TARGET = ["The cat sat on the mat.", "There is a house on the hill, isn't there?", "Yes."]
PREDICTED = ["The cat sat on a mat.", "There is a house at the hill, is there?", "Yes."]


def test_a_perfect_translation_scores_100_and_0():
    scores = score(TARGET, TARGET, "en")
    assert scores["bleu"].value == pytest.approx(100) and scores["chrf"].value == pytest.approx(100)
    assert scores["cer"].value == scores["wer"].value == 0


def test_bleu_and_chrf_are_sacrebleus_on_plain_text():
    scores = score(PREDICTED, TARGET, "en")
    assert scores["bleu"].value == pytest.approx(sacrebleu.corpus_bleu(PREDICTED, [TARGET]).score)
    assert scores["chrf"].value == pytest.approx(sacrebleu.corpus_chrf(PREDICTED, [TARGET]).score)
    assert 0 < scores["bleu"].value < 100


def test_the_signature_names_tokenization_smoothing_and_version():
    signature = score(PREDICTED, TARGET, "en").signature
    assert "tok:13a" in signature and "smooth:exp" in signature
    assert f"version:{sacrebleu.__version__}" in signature


def test_a_detached_full_stop_counts_as_the_same_word():
    assert score(["the mat ."], ["the mat."], "en")["wer"].value == 100 * 2 / 2
    assert score(["the mat . " * 3], ["the mat. " * 3], "en")["bleu"].value == pytest.approx(100)


def test_error_rates_count_over_the_whole_set_in_percent():
    # One edit in the two target characters and four in the eight: by sentence 50 and 50.
    scores = score(["ab", "xxxxcdef"], ["aa", "abcdcdef"], "en")
    assert scores["cer"].value == pytest.approx(100 * 5 / 10)
    scores = score(["a b c d"], ["a"], "en")
    assert scores["wer"].value == pytest.approx(300)


def test_prediction_comes_first():
    assert score(["a b"], ["a b c d"], "en")["wer"].value == pytest.approx(50)


def test_scores_are_of_the_corpus_not_a_mean_over_sentences():
    predicted = ["the quick brown fox jumps over the lazy dog", "no word is right in here at all"]
    target = [
        "the quick brown fox jumps over the lazy dog",
        "every token differs from that one now",
    ]
    scores = score(predicted, target, "en")
    assert scores["bleu"].value == pytest.approx(sacrebleu.corpus_bleu(predicted, [target]).score)
    singly = [score([p], [t], "en")["bleu"].value for p, t in zip(predicted, target, strict=True)]
    assert abs(scores["bleu"].value - sum(singly) / 2) > 1


def test_an_empty_prediction_is_scored():
    scores = score([""], ["a b"], "en")
    assert scores["wer"].value == 100 and scores["bleu"].value == 0


def test_languages_without_blanks_are_scored_by_their_own_tokens():
    for lang in ("zh", "zh-CN", "zh_tw"):
        assert score(["我喜欢你的猫"], ["我喜欢你的狗"], lang)["bleu"].value > 30


@pytest.mark.parametrize(("predicted", "target"), [([], []), (["a"], [""]), (["a"], ["a", "b"])])
def test_what_cannot_be_scored_is_refused(predicted, target):
    with pytest.raises(ValueError):
        score(predicted, target, "en")


def test_prediction_comes_first_in_both_error_rates():
    scores = score(["a b"], ["a b c d"], "en")
    assert scores["wer"].value == pytest.approx(100 * 2 / 4) and scores[
        "cer"
    ].value == pytest.approx(100 * 4 / 7)


def test_error_rates_are_no_mean_over_sentences():
    scores = score(["x", "a b c"], ["a", "a b c"], "en")
    assert scores["cer"].value == pytest.approx(100 * 1 / 6) and scores[
        "wer"
    ].value == pytest.approx(100 * 1 / 4)


def test_scores_are_case_sensitive():
    scores = score(["the cat sat on the mat."], ["The cat sat on the mat."], "en")
    assert (
        scores["bleu"].value < 100
        and scores["chrf"].value < 100
        and scores["wer"].value > 0
        and scores["cer"].value > 0
    )


# A sentence of 17 to 27 characters without blanks, and the same with one or two characters changed.
UNSPACED = {
    "cmn": ("我昨天在图书馆借了两本关于历史的书。", "我昨天在图书馆借了三本关于历史的书。"),
    "zho_Hans": ("我昨天在图书馆借了两本关于历史的书。", "我昨天在图书馆借了三本关于历史的书。"),
    "yue_Hant": ("我琴日喺圖書館借咗兩本歷史書。", "我琴日喺圖書館借咗三本歷史書。"),
    "jpn": ("昨日は図書館で本を二冊借りました。", "昨日は図書館で本を三冊借りました。"),
    "jpn_Jpan": ("昨日は図書館で本を二冊借りました。", "昨日は図書館で本を三冊借りました。"),
    "tha": ("เมื่อวานฉันยืมหนังสือสองเล่ม", "เมื่อวานฉันยืมหนังสือสามเล่ม"),
    "km": ("ម្សិលមិញខ្ញុំបានខ្ចីសៀវភៅពីរ", "ម្សិលមិញខ្ញុំបានខ្ចីសៀវភៅបី"),
    "lo": ("ມື້ວານນີ້ຂ້ອຍຢືມປຶ້ມສອງຫົວ", "ມື້ວານນີ້ຂ້ອຍຢືມປຶ້ມສາມຫົວ"),
    "my": ("မနေ့ကစာအုပ်နှစ်အုပ်ငှားခဲ့တယ်", "မနေ့ကစာအုပ်သုံးအုပ်ငှားခဲ့တယ်"),
    "bod_Tibt": ("ཁ་སང་ངས་དཔེ་ཆ་གཉིས་གཡར་པ་ཡིན།", "ཁ་སང་ངས་དཔེ་ཆ་གསུམ་གཡར་པ་ཡིན།"),
}


@pytest.mark.parametrize("lang", UNSPACED)
def test_a_language_without_blanks_is_scored_by_characters_under_each_of_its_codes(lang):
    target, predicted = UNSPACED[lang]
    scores = score([predicted], [target], lang)
    assert scores["bleu"].value > 40
    assert 0 < scores["wer"].value < 30  # by blanks it would be 100: the sentence is one word
    assert "unit:char" in scores.signature and "by:code" in scores.signature


@pytest.mark.parametrize("lang", ["xx", "en", "zxx", "und_Latn"])
def test_the_references_script_decides_where_the_code_does_not_fit_it(lang):
    for target, predicted in UNSPACED.values():
        scores = score([predicted], [target], lang)
        assert (
            scores["bleu"].value > 40
            and scores["wer"].value < 30
            and "by:references" in scores.signature
        )
    korean = score(["저는 어제 책을 빌렸습니다."], ["저는 어제 책을 빌렸습니다."], lang)
    assert "tok:char" in korean.signature and "unit:word" in korean.signature


def test_a_romanised_text_is_scored_by_words_whatever_its_code():
    target = ["wo zuotian zai tushuguan jie le liang ben shu"]
    scores = score(["wo zuotian zai tushuguan jie le san ben shu"], target, "zh")
    assert scores["wer"].value == pytest.approx(100 / 9)
    assert "tok:13a" in scores.signature and "by:references" in scores.signature


def test_latin_names_do_not_make_a_chinese_text_a_latin_one():
    target = ["我用 PyTorch 和 Transformer 写程序"]
    assert "tok:zh" in score(target, target, "cmn").signature


def test_languages_with_blanks_keep_their_words_and_their_signature():
    for lang, text in (
        ("en", "a b c d"),
        ("pt-br", "é a b c"),
        ("ru", "я был у врача"),
        ("hi", "मैं घर गया था"),
    ):
        scores = score([text], [text], lang)
        assert "tok:13a" in scores.signature and "unit" not in scores.signature


def test_japanese_with_a_chinese_majority_is_japanese_and_chinese_with_a_kana_is_chinese():
    assert "tok:char" in score(["図書館で本を二冊借用"], ["図書館で本を二冊借用"], "xx").signature
    text = "这家商店名叫の屋，是一家很有名的杂货店"
    assert "tok:zh" in score([text], [text], "xx").signature


@pytest.mark.parametrize("target", [["gatto rosso", "cane nero"], ["sì", "no", "è vero"]])
def test_a_perfect_set_without_4_grams_has_100_and_says_how(target):
    scores = score(target, target, "it")
    assert scores["bleu"].value == pytest.approx(100) and "eff:yes" in scores.signature
    assert score(target[::-1], target, "it")["bleu"].value < 100
    assert any("eff:yes" in line and "100.00" in line for line in report(target, target, "it"))


def test_one_4_gram_in_the_references_is_enough_for_the_standard_order():
    target = ["gatto rosso", "il gatto è rosso"]
    assert "eff:no" in score(target, target, "it").signature
    assert score(target, target, "it")["bleu"].value == pytest.approx(100)


def test_the_report_counts_characters_for_ter_and_wer_without_blanks():
    target, predicted = UNSPACED["tha"]
    lines = report([predicted] * 2, [target] * 2, "tha")
    ter, wer = lines[2], lines[4]
    assert "unit:char|script:Thai|by:code" in ter and "unit:char|script:Thai|by:code" in wer
    assert all(0 < float(line.split(" = ")[1].split()[0]) < 30 for line in (ter, wer))


def test_japanese_without_kana_is_japanese_by_its_code():
    scores = score(["東京大学"], ["東京大学"], "ja")
    assert "tok:char" in scores.signature and "script:Japanese|by:code" in scores.signature


def test_a_new_metric_needs_one_entry_to_be_scored_printed_and_reported(monkeypatch):
    def measure_length(texts):
        value = 100 * len("".join(texts.predicted)) / len("".join(texts.target))
        return Score(value, "chars", f"LEN = {value:.0f}")

    length = Metric("length", "LEN", measure_length, higher_is_better=True)
    monkeypatch.setitem(METRICS, "length", length)
    scores = score(["ab"], ["abcd"], "en")
    assert scores.row()["val/length"] == 50 and str(scores).endswith(", LEN 50.00")
    assert scores.signature.endswith("LEN chars")
    assert report(["ab"], ["abcd"], "en")[-1] == "LEN = 50"


def test_monitor_knows_the_scores_of_a_validation():
    tags = {f"val/{name}" for name, metric in METRICS.items() if metric.in_validation}
    assert set(get_args(Monitor)) == {"val/loss"} | tags
