"""An exported model says what ours says."""

import json
import math
import shutil

import pytest
import torch
from conftest import run_script, small_config, write_number_pairs

import checkpoint
from config import get_weights_file_path
from corpus.tokenizer import build_tokenizer
from dataset import padding_mask
from export import Options, export
from model import build_transformer
from training.start import start_run
from translate import load_translator
from translation.attention import cross_attention, draw, tokens_of
from translation.trained import load_trained
from translation.translator import Options as TranslateOptions

LINES = ["one two three", "ten", "four four nine eight", "", "seven six five four three two"]


def answers(trained, weights, *flags):
    lines = "".join(f"{line}\n" for line in LINES)
    return run_script("translate.py", "--weights", weights, *flags, stdin=lines, cwd=trained).stdout


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    pytest.importorskip("ctranslate2")
    folder = tmp_path_factory.mktemp("exported") / "model"
    export(Options(str(folder), weights=str(trained / "train_weights")))
    return folder


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--beam_size", "4", "--format", "tsv"],
        ["--beam_size", "5", "--n_best", "3", "--format", "jsonl", "--alpha", "1"],
    ],
)
def test_the_engine_gives_the_same_lines_by_the_same_flags(trained, exported, flags):
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


def test_the_engine_obeys_the_rules_too(trained, exported):
    flags = ("--beam_size", "3", "--min_length", "9", "--no_repeat_ngram", "2", "--ban_unknown")
    for weights in ("train_weights", exported):
        for line in answers(trained, weights, *flags).splitlines():
            words = line.split()
            assert not words or len(words) >= 9
            pairs = list(zip(words, words[1:], strict=False))
            assert len(set(pairs)) == len(pairs) and "[UNK]" not in words


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tie_embeddings", ["none", "target", "all"])
def test_every_kind_of_model_decodes_alike_in_the_engine(tmp_path, norm, tie_embeddings):
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
    run.save(get_weights_file_path(config, "best"))
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


@pytest.mark.parametrize("quantization", ["int8", "bfloat16"])
def test_a_smaller_model_still_translates(trained, exported, tmp_path, quantization):
    folder = tmp_path / "small"
    weights = str(trained / "train_weights")
    export(Options(str(folder), weights=weights, quantization=quantization))
    sizes = [(f / "model.bin").stat().st_size for f in (folder, exported)]
    assert sizes[0] < sizes[1]
    assert answers(trained, folder) == answers(trained, "train_weights")


def test_the_exported_folder_is_enough_as_its_readme_says(exported, monkeypatch, capsys):
    monkeypatch.chdir(exported)
    code = (exported / "README.md").read_text("utf-8").replace("    ", "")
    exec(code.replace("a sentence", "one two three"), {})
    assert capsys.readouterr().out == "uno due tre\n"


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
def test_a_damaged_exported_folder_is_refused_in_one_line(exported, tmp_path, file, text):
    shutil.copytree(exported, tmp_path / "odd")
    (tmp_path / "odd" / file).unlink()
    if text is not None:
        (tmp_path / "odd" / file).write_text(text, "utf-8")
    process = run_script("translate.py", "one", "--weights", tmp_path / "odd", check=False)
    assert process.returncode == 1 and process.stdout == ""
    assert len(process.stderr.splitlines()) == 1 and "odd" in process.stderr


def test_an_export_touches_nothing_beside_its_folder(trained, tmp_path):
    (tmp_path / "x.tmp").mkdir()
    weights = str(trained / "train_weights")
    export(Options(str(tmp_path / "x"), format="safetensors", weights=weights))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.tmp"]


def test_checkpoints_of_two_runs_are_not_averaged(trained, tmp_path):
    path = trained / "train_weights" / "tmodel_28.pt"
    other = checkpoint.load(trained / "train_weights" / "tmodel_29.pt")
    checkpoint.save(tmp_path / "other.pt", {**other, "data": "abc"})
    with pytest.raises(ValueError, match="other.pt is of another run than .*tmodel_28.pt"):
        checkpoint.average([path, tmp_path / "other.pt"])


def test_safetensors_come_back_as_the_model(trained, tmp_path):
    load_file = pytest.importorskip("safetensors.torch").load_file
    weights = str(trained / "train_weights")
    export(Options(str(tmp_path / "x"), format="safetensors", weights=weights))
    trained = load_trained(weights)
    model, config = trained.model, trained.config
    src, tgt = trained.tokenizer_src, trained.tokenizer_tgt
    settings = json.loads((tmp_path / "x" / "config.json").read_text())
    assert settings["d_model"] == config.d_model
    again = build_transformer(src.size, tgt.size, **config.model_arguments())
    again.load_state_dict(load_file(tmp_path / "x" / "model.safetensors"))
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)


def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(trained, tmp_path):
    (tmp_path / "there").mkdir()
    weights = trained / "train_weights"
    for flags, words in (
        (["--output", "there"], "is there already"),
        (["--output", "no/where"], "the folder of --output no/where is not there"),
        (["--output", "x", "--weights", "nothing.pt"], "there is no checkpoint nothing.pt"),
        (["--output", "x", "--format", "safetensors", "--quantization", "int8"], "is for --format"),
    ):
        process = run_script("export.py", "--weights", weights, *flags, check=False)
        assert process.returncode == 1 and words in process.stderr
        assert len(process.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


# --- Attention ---


def test_the_weights_are_those_that_the_model_attends_by():
    torch.manual_seed(0)
    model = build_transformer(20, 20, 9, 9, 16, 2, 4, 0.0, 32).eval()
    src = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 1, 1]])
    tgt = torch.tensor([[2, 9, 4], [2, 5, 6]])
    mask = padding_mask(src, 1)
    weights = cross_attention(model, src, mask, tgt)
    assert weights.shape == (2, 2, 4, 3, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 4, 3))
    assert (weights[:, 1, :, :, 3:] == 0).all() and (weights[:, 1, :, :, :3] > 0).all()
    # What the layer makes of them is what it makes of its values.
    attention = model.decoder.layers[1].cross_attention.sublayer
    x, memory = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    own = attention.weights(x, memory, mask)
    values = attention.keys_and_values(memory)[1]
    expected = attention.w_o((own @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, memory, mask=mask), expected, atol=1e-5, rtol=1e-4)
    assert not model.decoder.layers[0].cross_attention.sublayer._forward_pre_hooks


@pytest.mark.parametrize(("heads", "size"), [(1, 5), (4, 12), (8, 40)])
def test_a_picture_has_a_panel_a_head_and_every_token_on_its_axes(heads, size):
    tokens = [f"${i}" for i in range(size)]
    figure = draw(torch.rand(heads, size, size), tokens, tokens)
    panels = [panel for panel in figure.axes if panel.axison]
    assert len(panels) == heads
    for panel in panels:
        assert len(panel.get_xticklabels()) == len(panel.get_yticklabels()) == size
    figure.canvas.draw()  # no formula in "$"
    labels = [label.get_window_extent() for label in panels[0].get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in zip(labels, labels[1:], strict=False))


def test_tokens_are_shown_as_their_text(trained):
    tokenizer = load_translator(
        TranslateOptions(weights=str(trained / "train_weights"))
    ).tokenizer_src
    ids = [tokenizer.sos_id, *tokenizer.encode("one two"), tokenizer.eos_id]
    assert tokens_of(tokenizer, ids) == ["[SOS]", "one", "two", "[EOS]"]
    bytewise = build_tokenizer(["one two"], "bpe", 300, 1)
    entries = [bytewise.vocabulary()[i] for i in bytewise.encode("\x16é")]
    assert tokens_of(bytewise, bytewise.encode("\x16é")) == entries


def test_pictures_are_saved_one_a_sentence(trained, tmp_path):
    weights = trained / "train_weights"
    flags = ("--weights", weights, "--attention")
    run_script("translate.py", "one two three", *flags, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    run_script("translate.py", *flags, tmp_path / "all", "--heads", "each", stdin="one\ntwo\n")
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["0001.png", "0002.png"]
    (tmp_path / "in.txt").write_text("one\n\nthree four\n", "utf-8")
    run_script("translate.py", *flags, tmp_path / "file", "--input", tmp_path / "in.txt")
    assert sorted(path.name for path in (tmp_path / "file").iterdir()) == ["0001.png", "0003.png"]


# --- The mean of checkpoints ---


def test_the_average_is_the_mean_of_the_weights(trained):
    paths = [trained / "train_weights" / f"tmodel_{i}.pt" for i in (27, 28, 29)]
    states = [checkpoint.load(path)["model"] for path in paths]
    average = checkpoint.average(paths)
    for name, weight in average["model"].items():
        expected = sum(state[name].double() for state in states) / 3
        torch.testing.assert_close(weight, expected.float())
    assert average["epoch"] == 30 and math.isfinite(average["global_step"])
    checkpoint.save(trained / "average.pt", average)
    process = run_script("translate.py", "--weights", trained / "average.pt", "one two")
    by_flag = run_script("translate.py", "--average", 3, "one two", cwd=trained)
    assert process.stdout == by_flag.stdout == "uno due\n"
    assert "tmodel_27.pt, tmodel_28.pt" in by_flag.stderr
    few = run_script("translate.py", "--average", 4, "one", cwd=trained, check=False)
    assert few.returncode == 1 and "has 3 checkpoints of finished epochs" in few.stderr
