"""An exported model says what ours says."""

import json

import pytest
import torch
from conftest import answers, run_script

from export import Options, export
from model import build_transformer
from translation.loading import load_model


@pytest.mark.parametrize("quantization", ["int8", "bfloat16"])
def test_quantized_model_still_translates(trained, exported, tmp_path, quantization):
    folder = tmp_path / "small"
    weights = str(trained / "train_weights")
    export(Options(str(folder), weights=weights, quantization=quantization))
    sizes = [(f / "model.bin").stat().st_size for f in (folder, exported)]
    assert sizes[0] < sizes[1]
    assert answers(trained, folder) == answers(trained, "train_weights")


def test_exported_folder_works_as_its_readme_says(exported, monkeypatch, capsys):
    monkeypatch.chdir(exported)
    code = (exported / "README.md").read_text("utf-8").replace("    ", "")
    exec(code.replace("a sentence", "one two three"), {})
    assert capsys.readouterr().out == "uno due tre\n"


def test_export_touches_nothing_beside_its_folder(trained, tmp_path):
    (tmp_path / "x.tmp").mkdir()
    weights = str(trained / "train_weights")
    export(Options(str(tmp_path / "x"), format="safetensors", weights=weights))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.tmp"]


def test_safetensors_restore_the_model(trained, tmp_path):
    load_file = pytest.importorskip("safetensors.torch").load_file
    weights = str(trained / "train_weights")
    export(Options(str(tmp_path / "x"), format="safetensors", weights=weights))
    trained = load_model(weights)
    model, config = trained.model, trained.config
    src, tgt = trained.tokenizers.src, trained.tokenizers.tgt
    settings = json.loads((tmp_path / "x" / "config.json").read_text())
    assert settings["d_model"] == config.d_model
    again = build_transformer(src.size, tgt.size, **config.model_arguments())
    again.load_state_dict(load_file(tmp_path / "x" / "model.safetensors"))
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)


def test_failed_export_is_one_line_and_leaves_nothing(trained, tmp_path):
    (tmp_path / "there").mkdir()
    weights = trained / "train_weights"
    for flags, words in (
        (["--output", "there"], "exists already"),
        (["--output", "no/where"], "the parent folder of --output no/where does not exist"),
        (["--output", "x", "--weights", "nothing.pt"], "there is no checkpoint nothing.pt"),
        (["--output", "x", "--format", "safetensors", "--quantization", "int8"], "is for --format"),
    ):
        process = run_script("export.py", "--weights", weights, *flags, check=False)
        assert process.returncode == 1 and words in process.stderr
        assert len(process.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
