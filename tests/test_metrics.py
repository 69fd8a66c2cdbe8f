"""The scores are what their libraries' authors mean by them, on one scale."""

import pytest
import sacrebleu

from metrics import score

TARGET = ["The cat sat on the mat.", "There is a house on the hill, isn't there?", "Yes."]
PREDICTED = ["The cat sat on a mat.", "There is a house at the hill, is there?", "Yes."]


def test_a_perfect_translation_scores_100_and_0():
    scores = score(TARGET, TARGET, "en")
    assert scores.bleu == pytest.approx(100) and scores.chrf == pytest.approx(100)
    assert scores.cer == scores.wer == 0


def test_bleu_and_chrf_are_sacrebleus_on_plain_text():
    scores = score(PREDICTED, TARGET, "en")
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(PREDICTED, [TARGET]).score)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(PREDICTED, [TARGET]).score)
    assert 0 < scores.bleu < 100


def test_the_signature_names_tokenization_smoothing_and_version():
    signature = score(PREDICTED, TARGET, "en").signature
    assert "tok:13a" in signature and "smooth:exp" in signature
    assert f"version:{sacrebleu.__version__}" in signature


def test_a_detached_full_stop_counts_as_the_same_word():
    assert score(["the mat ."], ["the mat."], "en").wer == 100 * 2 / 2
    assert score(["the mat . " * 3], ["the mat. " * 3], "en").bleu == pytest.approx(100)


def test_error_rates_count_over_the_whole_set_in_percent():
    # One edit in the two target characters and four in the eight: by sentence 50 and 50.
    scores = score(["ab", "xxxxcdef"], ["aa", "abcdcdef"], "en")
    assert scores.cer == pytest.approx(100 * 5 / 10)
    scores = score(["a b c d"], ["a"], "en")
    assert scores.wer == pytest.approx(300)


def test_prediction_comes_first():
    assert score(["a b"], ["a b c d"], "en").wer == pytest.approx(50)


def test_scores_are_of_the_corpus_not_a_mean_over_sentences():
    predicted = ["the quick brown fox jumps over the lazy dog", "no word is right in here at all"]
    target = [
        "the quick brown fox jumps over the lazy dog",
        "every token differs from that one now",
    ]
    scores = score(predicted, target, "en")
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(predicted, [target]).score)
    singly = [score([p], [t], "en").bleu for p, t in zip(predicted, target, strict=True)]
    assert abs(scores.bleu - sum(singly) / 2) > 1


def test_an_empty_prediction_is_scored():
    scores = score([""], ["a b"], "en")
    assert scores.wer == 100 and scores.bleu == 0


def test_languages_without_blanks_are_scored_by_their_own_tokens():
    for lang in ("zh", "zh-CN", "zh_tw"):
        assert score(["我喜欢你的猫"], ["我喜欢你的狗"], lang).bleu > 30


@pytest.mark.parametrize(("predicted", "target"), [([], []), (["a"], [""]), (["a"], ["a", "b"])])
def test_what_cannot_be_scored_is_refused(predicted, target):
    with pytest.raises(ValueError):
        score(predicted, target, "en")


def test_prediction_comes_first_in_both_error_rates():
    scores = score(["a b"], ["a b c d"], "en")
    assert scores.wer == pytest.approx(100 * 2 / 4) and scores.cer == pytest.approx(100 * 4 / 7)


def test_error_rates_are_no_mean_over_sentences():
    scores = score(["x", "a b c"], ["a", "a b c"], "en")
    assert scores.cer == pytest.approx(100 * 1 / 6) and scores.wer == pytest.approx(100 * 1 / 4)


def test_case_counts():
    scores = score(["the cat sat on the mat."], ["The cat sat on the mat."], "en")
    assert scores.bleu < 100 and scores.chrf < 100 and scores.wer > 0 and scores.cer > 0
