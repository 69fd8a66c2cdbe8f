"""The model is the paper's: equal to torch.nn's, causal, blind to padding."""

import pytest
import torch
from torch import nn

from dataset import causal_mask, padding_mask
from model import MultiHeadAttentionBlock, PositionalEncoding, build_transformer

SRC_VOCAB, TGT_VOCAB, PAD = 23, 29, 0


def make_model(**changes):
    torch.manual_seed(1)
    sizes = dict(d_model=16, N=2, h=4, dropout=0.0, d_ff=32)
    model = build_transformer(SRC_VOCAB, TGT_VOCAB, 12, 11, **{**sizes, **changes})
    with torch.no_grad():  # biases and norms start at 0 and 1, where a mix-up would not show
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def make_batch():
    """Three pairs; the second and third source end in padding."""
    generator = torch.Generator().manual_seed(2)
    src = torch.randint(1, SRC_VOCAB, (3, 7), generator=generator)
    tgt = torch.randint(1, TGT_VOCAB, (3, 6), generator=generator)
    src[1, 5:] = PAD
    src[2, 2:] = PAD
    return src, padding_mask(src, PAD), tgt


def copy_attention(ours, theirs):
    with torch.no_grad():
        parts = (ours.w_q, ours.w_k, ours.w_v)
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.w_o.state_dict())


def copy_layer(ours, theirs, norms):
    copy_attention(ours.self_attention.sublayer, theirs.self_attn)
    if hasattr(ours, "cross_attention"):
        copy_attention(ours.cross_attention.sublayer, theirs.multihead_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.sublayer.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.sublayer.w_2.state_dict())
    for name, residual in norms.items():
        getattr(theirs, name).load_state_dict(getattr(ours, residual).norm.state_dict())


def copy_to_torch(model, norm):
    """Return torch.nn's encoder and decoder with the weights of ours."""
    sizes = dict(dim_feedforward=32, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    finals = [nn.LayerNorm(16) if norm == "pre" else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 4, **sizes), 2, finals[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, **sizes), 2, finals[1])
    for ours, theirs in zip(model.encoder.layers, encoder.layers, strict=True):
        copy_layer(ours, theirs, {"norm1": "self_attention", "norm2": "feed_forward"})
    for ours, theirs in zip(model.decoder.layers, decoder.layers, strict=True):
        norms = {"norm1": "self_attention", "norm2": "cross_attention", "norm3": "feed_forward"}
        copy_layer(ours, theirs, norms)
    if norm == "pre":
        finals[0].load_state_dict(model.encoder.norm.state_dict())
        finals[1].load_state_dict(model.decoder.norm.state_dict())
    return encoder.eval(), decoder.eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_equals_torch_transformer_with_the_same_weights(norm):
    model = make_model(norm=norm)
    src, src_mask, tgt = make_batch()
    encoder, decoder = copy_to_torch(model, norm)
    padding = src == PAD  # torch.nn's True means hidden
    with torch.no_grad():
        memory = encoder(model.src_pos(model.src_embed(src)), src_key_padding_mask=padding)
        expected = decoder(
            model.tgt_pos(model.tgt_embed(tgt)),
            memory,
            tgt_mask=~causal_mask(tgt.size(1))[0, 0],
            memory_key_padding_mask=padding,
        )
        encoded = model.encode(src, src_mask)
        torch.testing.assert_close(encoded[~padding], memory[~padding], atol=1e-5, rtol=0)
        decoded = model.decode(encoded, src_mask, tgt)
        torch.testing.assert_close(decoded, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("tgt_mask", [None, causal_mask(6)])
def test_future_tokens_do_not_change_past_logits(tgt_mask):
    model = make_model()
    src, src_mask, tgt = make_batch()
    before = model(src, src_mask, tgt, tgt_mask)
    for position in range(1, tgt.size(1)):
        changed = tgt.clone()
        changed[:, position:] = (changed[:, position:] + 1) % TGT_VOCAB
        after = model(src, src_mask, changed, tgt_mask)
        torch.testing.assert_close(after[:, :position], before[:, :position], atol=1e-6, rtol=0)
        assert not torch.allclose(after[:, position], before[:, position])


def test_no_mask_and_a_causal_mask_give_the_same_logits():
    model = make_model()
    src, src_mask, tgt = make_batch()
    causal = model(src, src_mask, tgt, causal_mask(tgt.size(1)))
    torch.testing.assert_close(model(src, src_mask, tgt), causal, atol=1e-6, rtol=0)


def test_what_stands_in_padding_changes_nothing():
    model = make_model()
    src, src_mask, tgt = make_batch()
    changed = src.masked_fill(src == PAD, 5)
    torch.testing.assert_close(
        model(changed, src_mask, tgt), model(src, src_mask, tgt), atol=1e-6, rtol=0
    )


def test_more_padding_changes_nothing():
    model = make_model()
    src, src_mask, tgt = make_batch()
    longer = nn.functional.pad(src, (0, 4), value=PAD)
    torch.testing.assert_close(
        model(longer, padding_mask(longer, PAD), tgt), model(src, src_mask, tgt), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tie_embeddings", ["none", "target"])
def test_every_parameter_gets_a_gradient(norm, tie_embeddings):
    model = make_model(norm=norm, tie_embeddings=tie_embeddings).train()
    src, src_mask, tgt = make_batch()
    model(src, src_mask, tgt).square().sum().backward()
    for name, parameter in model.named_parameters():
        # A bias of all keys shifts every score of a query alike, which softmax does not see.
        if not name.endswith("w_k.bias"):
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_embeddings_are_scaled_by_the_root_of_d_model():
    embed = make_model().src_embed
    ids = torch.tensor([[3, 4]])
    torch.testing.assert_close(embed(ids), embed.embedding.weight[ids] * 4.0)


def test_positions_are_the_papers_sines_and_cosines():
    table = PositionalEncoding(6, 50, 0.0).table
    for position in (0, 1, 49):
        for i in range(3):
            angle = torch.tensor(position / 10000 ** (2 * i / 6))
            torch.testing.assert_close(table[position, 2 * i], torch.sin(angle), atol=1e-5, rtol=0)
            torch.testing.assert_close(
                table[position, 2 * i + 1], torch.cos(angle), atol=1e-5, rtol=0
            )


def test_positions_move_with_the_model_but_are_not_saved():
    model = make_model()
    assert not any("table" in key for key in model.state_dict())
    assert "tgt_pos.table" in dict(model.named_buffers())
    assert model.to("meta").tgt_pos.table.is_meta


def test_the_state_holds_each_weight_once_by_a_lasting_name():
    keys = set(make_model(N=1).state_dict())
    assert "encoder.layers.0.self_attention.sublayer.w_q.weight" in keys
    assert "decoder.layers.0.cross_attention.norm.bias" in keys
    assert "projection.linear.weight" in keys


def test_tying_saves_exactly_the_shared_matrices():
    def count(tie_embeddings):
        torch.manual_seed(0)
        model = build_transformer(29, 29, 8, 8, 16, 1, 2, 0.0, 32, tie_embeddings=tie_embeddings)
        return sum(parameter.numel() for parameter in model.parameters())

    assert count("none") - count("target") == 29 * 16
    assert count("none") - count("all") == 2 * 29 * 16


def test_tying_two_vocabularies_is_refused_with_both_sizes():
    with pytest.raises(ValueError, match="23.*29"):
        make_model(tie_embeddings="all")


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"h \(3\) must divide d_model \(16\)"):
        MultiHeadAttentionBlock(16, 3, 0.0)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match=r"d_model \(15\) must be even"):
        make_model(d_model=15, h=3)


def test_too_long_an_input_names_both_lengths():
    model = make_model()
    src = torch.ones(1, 13, dtype=torch.long)
    with pytest.raises(ValueError, match=r"13 tokens .* seq_len \(12\)"):
        model.encode(src, padding_mask(src, PAD))


def test_dropout_works_in_training_only():
    model = make_model(dropout=0.5)
    src, src_mask, tgt = make_batch()
    torch.testing.assert_close(model(src, src_mask, tgt), model(src, src_mask, tgt))
    model.train()
    assert not torch.allclose(model(src, src_mask, tgt), model(src, src_mask, tgt))


def test_attention_without_dropout_elsewhere_still_drops_weights():
    block = MultiHeadAttentionBlock(8, 2, 0.5).train()
    x = torch.randn(2, 5, 8)
    assert not torch.allclose(block(x), block(x))
    torch.testing.assert_close(block.eval()(x), block(x))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoding_step_by_step_over_the_cache_equals_decoding_at_once(norm):
    model = make_model(norm=norm)
    src, src_mask, tgt = make_batch()
    encoded = model.encode(src, src_mask)
    at_once = model.decode(encoded, src_mask, tgt)
    cache = model.new_cache()
    # A prefix of two tokens first, then one by one.
    steps = [model.decode(encoded, src_mask, tgt[:, :2], cache=cache)]
    steps += [model.decode(encoded, src_mask, tgt[:, i : i + 1], cache=cache) for i in range(2, 6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), at_once, atol=1e-5, rtol=0)
    assert cache.length == 6


def test_padding_alone_gives_no_nan():
    model = make_model()
    src = torch.full((1, 4), PAD)
    with torch.no_grad():
        logits = model(src, padding_mask(src, PAD), torch.ones(1, 3, dtype=torch.long))
    assert torch.isfinite(logits).all()


def test_half_precision_is_finite_with_masks():
    model = make_model()
    src, src_mask, tgt = make_batch()
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            assert torch.isfinite(model(src, src_mask, tgt)).all()
