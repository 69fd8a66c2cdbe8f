"""`--replace_unknown` copies each part of the source once, whatever tokenizer a user brings."""

import pytest
import tokenizers
import torch
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from config import Config
from corpus.tokenizer import SPECIAL_TOKENS, TokenizerPair, tokenizer_from_json
from corpus.vocabulary import build_tokenizer
from model import build_transformer
from translation.decode import Hypothesis
from translation.options import Options
from translation.translator import Translator

TEXTS = ["the rich cat of the city sat", "in the city of munich rich cats sat"] * 20
UNKNOWN = ["in Zürich the cat", "Öüä rich ÜÄö", "ßß xÿx cat", "catßcat ü", "in the ü cat"]


def train(model, trainer, pre_tokenizer, decoder, normalizer=None, **options):
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer, backend.decoder = pre_tokenizer, decoder
    if normalizer:
        backend.normalizer = normalizer
    shared = {"vocab_size": 60, "special_tokens": list(SPECIAL_TOKENS), "show_progress": False}
    backend.train_from_iterator(TEXTS, trainer(**shared, **options))
    return tokenizer_from_json(backend.to_str(), "somebody's")


def unigram(split=True):
    meta = pre_tokenizers.Metaspace(split=split)
    options = {"unk_token": "[UNK]"}
    return train(models.Unigram(), trainers.UnigramTrainer, meta, decoders.Metaspace(), **options)


def bpe(pre_tokenizer, decoder, fuse_unk=False, **marks):
    model = models.BPE(unk_token="[UNK]", fuse_unk=fuse_unk, **marks)
    return train(model, trainers.BpeTrainer, pre_tokenizer, decoder, **marks)


def llama_like():
    backend = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=60, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    backend.train_from_iterator(TEXTS, trainer)
    return tokenizer_from_json(backend.to_str(), "somebody's")


def word_piece():
    model = models.WordPiece(unk_token="[UNK]")
    pre_tokenizer = pre_tokenizers.Whitespace()
    return train(model, trainers.WordPieceTrainer, pre_tokenizer, decoders.WordPiece())


META, WHITE = pre_tokenizers.Metaspace(), pre_tokenizers.Whitespace()
SUFFIX, PREFIX = {"end_of_word_suffix": "</w>"}, {"continuing_subword_prefix": "##"}
TOKENIZERS = {
    "Unigram": unigram,
    "Unigram without words": lambda: unigram(split=False),
    "BPE": lambda: bpe(META, decoders.Metaspace()),
    "BPE with fused unknowns": lambda: bpe(META, decoders.Metaspace(), fuse_unk=True),
    "BPE with a suffix": lambda: bpe(WHITE, decoders.BPEDecoder(), **SUFFIX),
    "BPE with a prefix": lambda: bpe(WHITE, decoders.WordPiece(), **PREFIX),
    "BPE without words": llama_like,
    "WordPiece": word_piece,
    "our words": lambda: build_tokenizer(TEXTS, "word", 400, 1),
}


def unknown_parts(tokenizer, text):
    ids = tokenizer.encode(text)
    parts = tokenizer.parts_of(text)
    return [part for part, i in zip(parts, ids, strict=True) if i == tokenizer.unk_id]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_text_with_its_unknown_parts_restored_is_the_text(kind):
    tokenizer = TOKENIZERS[kind]()
    for text in UNKNOWN:
        parts = unknown_parts(tokenizer, text)
        assert parts
        assert tokenizer.decode_with(tokenizer.encode(text), parts) == text


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_word_with_several_unknown_parts_is_named_once(kind):
    tokenizer = TOKENIZERS[kind]()
    assert tokenizer.unknown_words("in Zürich the ÖüÖ cat Zürich") == ["Zürich", "ÖüÖ", "Zürich"]


def test_an_unknown_token_that_is_a_word_takes_the_word_of_a_part():
    source, target = TOKENIZERS["BPE"](), TOKENIZERS["our words"]()
    parts = unknown_parts(source, "in Zürich")
    assert [source.copy_of(part) for part in parts] == ["Z", "ü"]
    assert [target.copy_of(part) for part in parts] == ["Zürich", "Zürich"]


def test_byte_level_parts_give_their_word_as_it_is_in_the_text():
    source = build_tokenizer(TEXTS, "bpe", 300, 1)
    assert {part.word for part in source.parts_of("in Zürich")} == {"in", "Zürich"}


def test_unknown_punctuation_beside_a_word_is_copied_alone():
    tokenizer = TOKENIZERS["our words"]()
    assert [part.text for part in unknown_parts(tokenizer, "in Zürich€ the ¿cat")] == [
        "Zürich", "€", "¿",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "our words"])
def test_a_translation_that_repeats_its_source_has_each_unknown_part_once(kind, monkeypatch):
    tokenizer, text = TOKENIZERS[kind](), "in Zürich the cat"
    config = Config(seq_len=60, d_model=16, N=1, h=2, d_ff=16)
    sizes = (tokenizer.size, tokenizer.size)
    model = build_transformer(*sizes, **config.model_arguments()).eval()
    options = Options(replace_unknown=True)
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    translator = Translator(model, tokenizers, config, torch.device("cpu"), options)
    piece = translator.split(text, 1)[0]
    ids = [*piece.ids, tokenizer.eos_id]
    # Each token of the translation looks at the same token of the source, after its [SOS].
    weights = torch.eye(len(ids), len(ids) + 1).roll(1, dims=1)
    monkeypatch.setattr(
        "translation.attention.cross_attention", lambda *_: weights[None, None, None]
    )
    found = translator.to_translation(piece, Hypothesis(ids, 0.0, 0.0))
    assert found.text == text
    assert "".join(found.copied) in ("Zürich", "Zü", "Zür")


def test_a_real_tokenizer_covers_each_letter_of_a_word_once(shared_data):
    path = shared_data / "tokenizers" / "bpe" / "tokenizer_en.json"
    tokenizer = tokenizer_from_json(path.read_text("utf-8"), "bpe")
    parts = tokenizer.parts_of("unbelievably 漢字x")
    assert "".join(part.text for part in parts) == "unbelievably漢字x"
    assert {part.word for part in parts} == {"unbelievably", "漢字x"}
