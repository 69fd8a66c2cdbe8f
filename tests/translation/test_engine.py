"""CTranslate2 translates like our own decoding."""

import shutil

import pytest
import torch
from conftest import answers, run_script, small_config, write_number_pairs

from checkpoint import WeightsFolder
from export import Options, export
from training.start import start_run
from translate import load_translator
from translation.options import Options as TranslateOptions

LINES = ["one two three", "ten", "four four nine eight", "", "seven six five four three two"]


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--beam_size", "4", "--format", "tsv"],
        ["--beam_size", "5", "--n_best", "3", "--format", "jsonl", "--alpha", "1"],
    ],
)
def test_engine_gives_the_same_lines_with_the_same_flags(trained, exported, flags):
    def numbers_apart(text):
        words = text.replace('"', " ").replace(",", " ").replace("}", " ").split()
        texts, numbers = [], []
        for word in words:
            try:
                numbers.append(float(word))
            except ValueError:
                texts.append(word)
        return texts, numbers

    ours, theirs = (
        numbers_apart(answers(trained, weights, *flags)) for weights in ("train_weights", exported)
    )
    assert ours[0] == theirs[0] and len(ours[0]) > 12
    assert theirs[1] == pytest.approx(ours[1], abs=2e-3)


def test_engine_obeys_the_rules(trained, exported):
    flags = ("--beam_size", "3", "--min_length", "9", "--no_repeat_ngram", "2", "--ban_unknown")
    for weights in ("train_weights", exported):
        for line in answers(trained, weights, *flags).splitlines():
            words = line.split()
            assert not words or len(words) >= 9
            pairs = list(zip(words, words[1:], strict=False))
            assert len(set(pairs)) == len(pairs) and "[UNK]" not in words


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tie_embeddings", ["none", "target", "all"])
def test_every_kind_of_model_decodes_equally_in_the_engine(tmp_path, norm, tie_embeddings):
    pytest.importorskip("ctranslate2")
    config = small_config(
        write_number_pairs(tmp_path, count=60),
        norm=norm,
        tie_embeddings=tie_embeddings,
        shared_vocab=tie_embeddings == "all",
        N=2,
    )
    run = start_run(config)
    torch.manual_seed(0)
    for parameter in run.model.parameters():  # nothing of a fresh model is to be like another
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    run.curves = type("", (), {"flush": lambda self: None})()
    run.save(WeightsFolder.of(config).best)
    folder = tmp_path / "exported"
    export(Options(str(folder), weights="train_weights"))
    results = []
    for weights in ("train_weights", str(folder)):
        options = TranslateOptions(weights=weights, beam_size=3, n_best=3, format="jsonl")
        translator = load_translator(options)
        lines = [translator.split(line, 1) for line in LINES if line]
        results.append([line for found in translator.translate(lines) for line in found])
    ours, theirs = results
    assert [each.text for each in ours] == [each.text for each in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.log_probability == pytest.approx(b.log_probability, abs=5e-3)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("run.json", None),
        ("run.json", "[]"),
        ("run.json", "[" * 100_000),
        ("model.bin", "cut"),
        ("config.json", "cut"),
        ("target_vocabulary.json", '["a"]'),
        ("tokenizer_tgt.json", "{}"),
    ],
)
def test_damaged_exported_folder_is_refused_in_one_line(exported, tmp_path, file, text):
    shutil.copytree(exported, tmp_path / "odd")
    (tmp_path / "odd" / file).unlink()
    if text is not None:
        (tmp_path / "odd" / file).write_text(text, "utf-8")
    process = run_script("translate.py", "one", "--weights", tmp_path / "odd", check=False)
    assert process.returncode == 1 and process.stdout == ""
    assert len(process.stderr.splitlines()) == 1 and "odd" in process.stderr
