"""Options of translate.py that cannot be combined are refused."""

import pytest
from conftest import translate

from translation.options import Options

WEIGHTS = "train_weights"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--n_best", 3, "--format", "tsv"], "n_best (3) must be at most beam_size (1)"),
        (["--n_best", 2, "--beam_size", 4], "n_best (2) needs --format tsv or jsonl"),
        (["--beam_size", 0], "beam_size (0) must be at least 1"),
        (["--alpha", -1], "alpha (-1.0) must be in [0, 10]"),
        (["--alpha", 1000], "alpha (1000.0) must be in [0, 10]"),
        (["--beam_size", 10**11], "beam_size (100000000000) must be at most 1000"),
        (["--bootstrap"], "--bootstrap needs --reference"),
        (["--heads", "each"], "--heads each needs --attention"),
        (["--attention", "x.jpg"], "--attention x.jpg must end in one of .png .pdf .svg"),
        (["--attention", "no/x.png"], "the folder of --attention no/x.png does not exist"),
        (["--average", 2, "--weights", f"{WEIGHTS}/tmodel_28.pt"], "--average 2 takes a folder"),
        (["--target", "x"], "--target x needs --input"),
        (["--reference", "x"], "--reference x needs --input"),
    ],
)
def test_options_that_cannot_be_combined_are_refused(trained, flags, words):
    process = translate(trained, "one", *flags, check=False)
    assert process.returncode != 0 and "Traceback" not in process.stderr
    assert " ".join(words.split()) in " ".join(process.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": 0.5}, "need --sample"),
        ({"sample": True, "beam_size": 4}, "--sample draws, --beam_size 4 searches"),
        ({"sample": True, "temperature": 0.0}, r"temperature \(0.0\) must be in"),
        ({"sample": True, "top_k": -1}, r"top_k \(-1\) must be at least 0"),
    ],
)
def test_sampling_options_that_cannot_be_combined_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Options(**wrong)
