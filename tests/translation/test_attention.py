"""Weights of cross-attention, and their heat maps."""

import pytest
import torch
from conftest import run_script

from corpus.vocabulary import build_tokenizer
from dataset import padding_mask
from model import build_transformer
from translate import load_translator
from translation.attention import cross_attention, draw, tokens_of
from translation.options import Options as TranslateOptions


def test_cross_attention_has_a_weight_for_each_source_token():
    torch.manual_seed(0)
    model = build_transformer(20, 20, 9, 9, 16, 2, 4, 0.0, 32).eval()
    src = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 1, 1]])
    tgt = torch.tensor([[2, 9, 4], [2, 5, 6]])
    mask = padding_mask(src, 1)
    weights = cross_attention(model, src, mask, tgt)
    assert weights.shape == (2, 2, 4, 3, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 4, 3))
    assert (weights[:, 1, :, :, 3:] == 0).all() and (weights[:, 1, :, :, :3] > 0).all()


@pytest.mark.parametrize(("heads", "size"), [(1, 5), (4, 12), (8, 40)])
def test_heat_map_has_a_panel_per_head_and_every_token_on_its_axes(heads, size):
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
    ).tokenizers.src
    ids = [tokenizer.sos_id, *tokenizer.encode("one two"), tokenizer.eos_id]
    assert tokens_of(tokenizer, ids) == ["[SOS]", "one", "two", "[EOS]"]
    bytewise = build_tokenizer(["one two"], "bpe", 300, 1)
    entries = [bytewise.vocabulary()[i] for i in bytewise.encode("\x16é")]
    assert tokens_of(bytewise, bytewise.encode("\x16é")) == entries


def test_one_picture_is_saved_for_each_sentence(trained, tmp_path):
    weights = trained / "train_weights"
    flags = ("--weights", weights, "--attention")
    run_script("translate.py", "one two three", *flags, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    run_script("translate.py", *flags, tmp_path / "all", "--heads", "each", stdin="one\ntwo\n")
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["0001.png", "0002.png"]
    (tmp_path / "in.txt").write_text("one\n\nthree four\n", "utf-8")
    run_script("translate.py", *flags, tmp_path / "file", "--input", tmp_path / "in.txt")
    assert sorted(path.name for path in (tmp_path / "file").iterdir()) == ["0001.png", "0003.png"]
