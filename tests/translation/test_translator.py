"""Text in, text out: pieces, batches, unknown words."""

import json
import re
from dataclasses import replace

import pytest
import torch
from conftest import say, translate

import checkpoint
from config import config_from_dict
from corpus.lines import file_lines
from corpus.tokenizer import get_saved_tokenizers
from dataset import BilingualDataset
from model import build_transformer
from training.validation import run_validation
from translate import translate_file
from translation.decode import beam_search
from translation.options import Options

WEIGHTS = "train_weights"


@pytest.mark.parametrize("token", ["[EOS]", "[PAD]", "[SOS]", "[UNK]"])
def test_control_tokens_in_a_sentence_are_words(translator, token):
    pieces = translator.split(f"one {token} two", 1)
    tokenizer = translator.tokenizers.src
    control = {tokenizer.sos_id, tokenizer.eos_id, tokenizer.pad_id}
    assert not control & set(pieces[0].ids)
    (text,) = say(translator, f"one {token} two")
    assert not any(name in text for name in ("[EOS]", "[PAD]", "[SOS]"))


def test_translation_does_not_depend_on_other_sentences(translator):
    texts = ["one", "two three four five six seven", "", "nine ten", "four one", "six"] * 3
    assert say(translator, *texts) == [say(translator, text)[0] for text in texts]
    assert say(translator, *texts[::-1]) == say(translator, *texts)[::-1]


def test_validation_and_translator_give_the_same_text(trained, translator):
    from datasets import Dataset

    state = checkpoint.load(trained / WEIGHTS / "tmodel_best.pt")
    config = config_from_dict(state["config"])
    tokenizers = get_saved_tokenizers(state)
    sources = ["one two", "nine", "zebra four", "ten ten ten ten ten ten ten"]
    pairs = Dataset.from_dict({"src_text": sources, "tgt_text": ["x"] * len(sources)})
    dataset = BilingualDataset(pairs, tokenizers, config.seq_len)
    model = build_transformer(*(t.size for t in tokenizers), **config.model_arguments())
    model.load_state_dict(state["model"])
    predicted = run_validation(model, dataset, config, torch.device("cpu"))[2]
    assert predicted == say(translator, *sources)


def test_long_text_is_split_into_its_sentences(translator):
    # The model takes 14 tokens.
    text = "one two three. " * 8
    pieces = translator.split(text, 1)
    assert len(pieces) == 8
    assert say(translator, text) == [" ".join(say(translator, "one two three.") * 8)]


def test_longest_sentence_that_fits_is_not_cut(translator, capsys):
    longest = translator.config.seq_len - 2
    assert len(translator.split("one " * longest, 1)) == 1
    assert capsys.readouterr().err == ""
    assert len(translator.split("one " * (longest + 1), 7)) == 2
    told = f"line 7 has a sentence of {longest + 1} tokens, the model takes {longest}"
    assert told in capsys.readouterr().err


def test_output_that_reaches_its_limit_is_reported(translator, capsys, monkeypatch):
    bias = translator.model.projection.linear.bias
    with torch.no_grad():
        before = bias.clone()
        bias[translator.tokenizers.tgt.eos_id] = -1e4
        say(translator, "one")
        bias.copy_(before)
    assert "line 1: the translation was cut at its limit, 16 tokens" in capsys.readouterr().err


def test_text_that_fits_stays_in_one_piece(translator):
    longest = translator.config.seq_len - 2
    for tokens in (2, longest):  # a word and a full stop are two tokens
        assert len(translator.split("one. " * (tokens // 2), 1)) == 1


@pytest.mark.parametrize("mark", ".!?;:")
def test_long_text_is_split_after_any_mark_that_ends_a_sentence(translator, mark):
    assert len(translator.split(f"one two three{mark} " * 8, 1)) == 8


def test_cut_line_is_reported_with_its_number(translator, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("translate.CHUNK", 2)
    (tmp_path / "in.txt").write_text("\n\n\n" + "one. two. " * 8 + "\nthree\n", "utf-8")
    bias = translator.model.projection.linear.bias
    with torch.no_grad():
        before = bias.clone()
        bias[translator.tokenizers.tgt.eos_id] = -1e4
        source = tmp_path / "in.txt"
        translate_file(translator, source, file_lines(source), tmp_path / "out.txt")
        bias.copy_(before)
    notes = capsys.readouterr().err
    told = {int(number) for number in re.findall(r"line (\d+): the translation was cut", notes)}
    assert told == {4, 5}


def test_unknown_words_of_a_file_are_counted(translator, capsys, tmp_path):
    (tmp_path / "in.txt").write_text("one zebra\nlion two\ntwo\n", "utf-8")
    source = tmp_path / "in.txt"
    translate_file(translator, source, file_lines(source), tmp_path / "out.txt")
    assert f"2 unknown words in {tmp_path / 'in.txt'}" in capsys.readouterr().err


def test_batches_keep_the_token_budget(translator):
    sizes = []
    hook = translator.model.encoder.register_forward_hook(
        lambda _, args, __: sizes.append(args[0].shape[:2].numel())
    )
    options = replace(translator.options, batch_tokens=8)
    say(replace(translator, options=options), *["one two"] * 5)
    hook.remove()
    assert sizes == [4, 8, 8]


def test_validation_may_use_a_beam(trained, monkeypatch):
    from datasets import Dataset

    state = checkpoint.load(trained / WEIGHTS / "tmodel_best.pt")
    config = replace(config_from_dict(state["config"]), beam_size=3)
    tokenizers = get_saved_tokenizers(state)
    pairs = Dataset.from_dict({"src_text": ["one two", "ten"], "tgt_text": ["uno due", "dieci"]})
    dataset = BilingualDataset(pairs, tokenizers, config.seq_len)
    model = build_transformer(*(t.size for t in tokenizers), **config.model_arguments())
    model.load_state_dict(state["model"])
    sizes = []

    def note(*args, beam_size, **kwargs):
        sizes.append(beam_size)
        return beam_search(*args, beam_size=beam_size, **kwargs)

    monkeypatch.setattr("training.validation.beam_search", note)
    predicted = run_validation(model, dataset, config, torch.device("cpu"))[2]
    assert predicted == ["uno due", "dieci"] and set(sizes) == {3}


def test_translation_begins_with_the_prefix(translator):
    for search in ({}, {"beam_size": 3}, {"sample": True}):
        told = replace(translator, options=Options(prefix="dieci uno", **search))
        assert all(text.startswith("dieci uno") for text in say(told, "one two three", "five"))
    for prefix, message in (
        ("uno " * 16, "--prefix has 16 tokens, and may have at most 15"),
        ("uno zebra", "unknown words: zebra"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(translator, options=Options(prefix=prefix)).check_prefix()


def test_unknown_words_are_replaced_by_attention(translator, monkeypatch):
    """The model is made to say [UNK] only, and to look at a word of our choice."""
    tokenizer = translator.tokenizers.tgt
    unknown = [*[tokenizer.unk_id] * 2, tokenizer.eos_id]
    monkeypatch.setattr(
        "translation.translator.greedy_decode", lambda _, src, *args, **kw: [unknown for _ in src]
    )
    weights = torch.zeros(1, 1, 2, 3, 5)  # of two heads; one alone would look elsewhere
    weights[..., 0, 2], weights[..., 1, 3] = 0.6, 0.6  # two, three
    weights[:, :, 0, 0, 1] = 0.9
    weights[..., 0] = 0.95  # [SOS] is no word to copy
    monkeypatch.setattr("translation.attention.cross_attention", lambda *_: weights)
    plain = replace(translator, options=Options())
    assert say(plain, "one two three") == ["[UNK] [UNK]"]
    copying = replace(translator, options=Options(replace_unknown=True))
    for text, copied in (("one two three", "two three"), ("zebra two three", "zebra zebra")):
        [[found]] = copying.translate([copying.split(text, 1)])
        assert (found.text, found.copied) == (copied, tuple(copied.split()))


def test_unknown_words_are_replaced_by_the_real_attention_and_listed(translator, trained):
    copying = replace(translator, options=Options(replace_unknown=True, format="jsonl"))
    bias = translator.model.projection.linear.bias
    before = bias.detach().clone()
    with torch.no_grad():
        bias[translator.tokenizers.tgt.unk_id] = 1e4
    try:
        [[found]] = copying.translate([copying.split("five two zebra", 1)])
        [[known]] = copying.translate([copying.split("five two", 1)])
    finally:
        with torch.no_grad():
            bias.copy_(before)
    assert set(found.copied) == {"zebra"} and set(known.copied) <= {"five", "two"}
    assert known.text == " ".join(known.copied)
    row = json.loads(translate(trained, "--format", "jsonl", "five two").stdout)
    assert row["hypotheses"][0]["copied"] == []
