"""Attention pictures use a font that has their characters, or say once what is missing."""

import io
import warnings

import pytest
import torch

from translation import fonts
from translation.attention import draw

PRIVATE = "\U000f1234\U000f1235"  # no font has them until a test makes one


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(fonts, "_family_of", {})
    monkeypatch.setattr(fonts, "_noted", [])


def make_font(path, family, text):
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in ((0, 700), (500, 700), (500, 0)):
        pen.lineTo(point)
    pen.closePath()
    names = [".notdef", *(f"u{ord(mark):x}" for mark in text)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(mark): f"u{ord(mark):x}" for mark in text})
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=800, sTypoDescender=-200)
    builder.setupPost()
    builder.save(path)


def save(src_tokens, tgt_tokens):
    weights = torch.rand(2, len(tgt_tokens), len(src_tokens))
    figure = draw(weights, src_tokens, tgt_tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO())
    return [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_characters_without_a_font_are_reported_once_and_drawn_as_boxes(capsys):
    assert save([f"a{PRIVATE}", "b"], ["c$d"]) == ["a□□", "b"]
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "no font on this machine has some characters" in told
    save([PRIVATE, "\U000f1236"], ["x"])
    assert capsys.readouterr().err == ""


def test_a_font_that_has_the_characters_is_used(tmp_path, monkeypatch, capsys):
    from matplotlib import font_manager

    make_font(tmp_path / "a.ttf", "Private One", PRIVATE[0])
    make_font(tmp_path / "b.ttf", "Private Two", PRIVATE)
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", list(manager.ttflist))
    for name in ("a.ttf", "b.ttf"):
        manager.addfont(tmp_path / name)
    texts, families = fonts.drawable([f"a{PRIVATE}"])
    assert texts == [f"a{PRIVATE}"] and families[-1:] == ["Private Two"]
    assert save([f"a{PRIVATE}", "b"], ["c"]) == [f"a{PRIVATE}", "b"]
    assert capsys.readouterr().err == ""


def test_no_font_is_searched_for_what_the_default_font_has(monkeypatch):
    monkeypatch.setattr(fonts, "_installed", lambda: pytest.fail("the fonts are searched"))
    assert save(["perché", "мир", "▁a", "naïve"], ["x", "$y$"])[1] == "мир"
