"""The model is the paper's: equal to torch.nn's, causal, blind to padding."""

import pytest
import torch
from torch import nn

import model as model_module
from dataset import causal_mask, padding_mask
from model import (
    Dropout,
    KeyValueCache,
    MultiHeadAttentionBlock,
    PositionalEncoding,
    attention,
    build_transformer,
    dropout_scale,
    is_formula_faster,
)
from training.update import seed_update

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
def test_model_equals_torch_transformer_with_the_same_weights(norm):
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


def test_ids_in_padding_change_no_logit():
    model = make_model()
    src, src_mask, tgt = make_batch()
    changed = src.masked_fill(src == PAD, 5)
    torch.testing.assert_close(
        model(changed, src_mask, tgt), model(src, src_mask, tgt), atol=1e-6, rtol=0
    )


def test_more_padding_changes_no_logit():
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


def test_state_dict_has_each_weight_under_a_stable_name():
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


def test_input_that_is_too_long_names_both_lengths():
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


@pytest.mark.parametrize("mask_of", [None, "padding", "causal"])
def test_plain_attention_formula_equals_the_fast_kernel(mask_of):
    torch.manual_seed(0)
    queries, keys, values = torch.randn(2, 4, 5, 8), *torch.randn(2, 2, 4, 5, 8)
    mask = {
        None: None,
        "padding": padding_mask(torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 1, 1]]), 1),
        "causal": causal_mask(5),
    }[mask_of]
    fast, nothing = attention(queries, keys, values, mask)
    plain, weights = attention(queries, keys, values, mask, return_weights=True)
    assert nothing is None and weights.shape == (2, 4, 5, 5)
    torch.testing.assert_close(plain, fast, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    if mask is not None:
        assert (weights.masked_select(~mask.expand_as(weights)) == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_in_training_equals_the_fast_kernel_with_its_gradients(
    dtype, is_causal, monkeypatch
):
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 6, 8).to(dtype).requires_grad_() for _ in range(3)]
    mask = (
        None
        if is_causal
        else padding_mask(torch.tensor([[2, 5, 6, 7, 9, 3], [2, 8, 3] + [1] * 3]), 1)
    )
    found = []
    for is_faster in (True, False):
        monkeypatch.setattr(model_module, "is_formula_faster", lambda *_, f=is_faster: f)
        x, _ = attention(*inputs, mask, is_causal)
        assert x.dtype == (torch.float32 if is_faster else dtype)
        found.append([x.float(), *torch.autograd.grad(x.float().square().sum(), inputs)])
    tolerance = {} if dtype == torch.float32 else {"atol": 0.1, "rtol": 0.05}
    for formula, kernel in zip(*found, strict=True):
        torch.testing.assert_close(formula, kernel, **tolerance)


def test_only_training_on_a_cpu_takes_the_formula():
    queries = torch.zeros(1, 1, 2, 4)
    assert is_formula_faster(queries, 0.1) and is_formula_faster(queries.bfloat16(), 0.0)
    assert not is_formula_faster(queries, 0.0)
    assert not is_formula_faster(queries.to("meta"), 0.1)
    with torch.no_grad():
        assert not is_formula_faster(queries.bfloat16(), 0.0)


def test_one_product_for_all_maps_equals_one_for_each():
    torch.manual_seed(0)
    block = MultiHeadAttentionBlock(8, 2, 0.0)
    for each in block.parameters():
        torch.nn.init.normal_(each)
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    for arguments in ((x,), (x, memory)):
        with torch.no_grad():
            separate = block(*arguments)
        torch.testing.assert_close(block(*arguments), separate, atol=1e-5, rtol=1e-5)


def test_asking_for_weights_changes_no_hidden_state():
    torch.manual_seed(0)
    model = build_transformer(20, 20, 9, 9, 16, 2, 4, 0.0, 32).eval()
    src, tgt = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 1, 1]]), torch.tensor([[2, 9], [2, 5]])
    src_mask = padding_mask(src, 1)
    encoder_output, weights = model.encode(src, src_mask), []
    with_weights = model.decode(encoder_output, src_mask, tgt, weights=weights)
    without = model.decode(encoder_output, src_mask, tgt)
    torch.testing.assert_close(with_weights, without, atol=1e-5, rtol=1e-5)
    assert [each.shape for each in weights] == [(2, 4, 2, 5)] * 2


# --- Dropout ---


def drop_ones(p, count=400_000, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return dropout_scale(torch.ones(count, dtype=dtype), p)


@pytest.mark.parametrize("p", [0.001, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rate_and_scale_are_those_of_the_probability(p, dtype):
    dropped = drop_ones(p, dtype=dtype)
    kept = dropped != 0
    spread = (p * (1 - p) / len(dropped)) ** 0.5
    assert abs(kept.float().mean().item() - (1 - p)) < 5 * spread + 2**-16
    assert set(dropped.unique().tolist()) == {0.0, dropped.max().item()}
    assert dropped.max().item() == pytest.approx(1 / (1 - p), rel=5e-3)
    assert dropped.float().mean().item() == pytest.approx(1, abs=5 * spread / (1 - p) + 5e-3)


def test_each_number_is_dropped_by_itself():
    kept = (drop_ones(0.5) != 0).float() - 0.5
    for distance in (1, 2, 3, 4, 8, 64, 1000):  # four share a word of random bits
        correlation = (kept[:-distance] * kept[distance:]).mean().item() * 4
        assert abs(correlation) < 5 / len(kept) ** 0.5


def test_gradient_passes_kept_numbers_with_the_same_scale():
    x = torch.randn(1001, requires_grad=True)
    torch.manual_seed(0)
    y = Dropout(0.3).train()(x)
    y.sum().backward()
    torch.testing.assert_close(y, x * x.grad)
    assert (x.grad == 0).any() and x.grad.max().item() == pytest.approx(1 / 0.7, rel=1e-4)


def test_seed_determines_dropout_and_each_call_draws_again():
    assert torch.equal(drop_ones(0.1, 1000), drop_ones(0.1, 1000))
    assert not torch.equal(drop_ones(0.1, 1000), drop_ones(0.1, 1000, seed=1))
    torch.manual_seed(0)
    assert not torch.equal(*(dropout_scale(torch.ones(1000), 0.1) for _ in range(2)))
    masks = []
    for key in [(0, 1, 0), (0, 2, 0), (1, 1, 0), (0, 1, 1)]:  # seed, step, rank
        seed_update(*key)
        masks.append(dropout_scale(torch.ones(1000), 0.1))
    assert all(not torch.equal(a, b) for i, a in enumerate(masks) for b in masks[:i])


def test_layers_drop_independently():
    model = build_transformer(9, 9, 9, 9, d_model=32, N=2, h=2, dropout=0.5, d_ff=64).train()
    masks = []
    for layer in (*model.encoder.layers, *model.decoder.layers):
        dropout = layer.feed_forward.dropout
        dropout.register_forward_hook(
            lambda _, inputs, named, output: masks.append(output != named["residual"]),
            with_kwargs=True,
        )
    src = torch.randint(4, 9, (4, 9))
    model(src, torch.ones(4, 1, 1, 9, dtype=torch.bool), src)
    assert len(masks) == 4
    assert all(not torch.equal(a, b) for i, a in enumerate(masks) for b in masks[:i])


def test_nothing_is_dropped_by_chance_zero_or_outside_training():
    x = torch.randn(50)
    assert torch.equal(Dropout(0.0).train()(x), x) and torch.equal(Dropout(0.5).eval()(x), x)
    assert not torch.equal(Dropout(0.5).train()(x), x)


def test_almost_certain_dropout_is_finite():
    assert drop_ones(0.9999999).isfinite().all()


def test_a_cache_holds_what_was_appended_and_selected():
    torch.manual_seed(0)
    cache = KeyValueCache()
    expected = [torch.empty(3, 2, 0, 4)] * 2
    for token in range(3 * KeyValueCache.ROOM):
        added = torch.randn(2, 3, 2, 1, 4)
        cache.append(*added)
        expected = [torch.cat(pair, dim=2) for pair in zip(expected, added, strict=True)]
        if token in (0, 5, 6, 20, KeyValueCache.ROOM + 7):
            rows = torch.tensor([2, 0, 2])
            cache.select(rows)
            expected = [each[rows] for each in expected]
        assert cache.length == token + 1
        assert torch.equal(cache.keys, expected[0]) and torch.equal(cache.values, expected[1])


def test_to_add_a_token_to_a_cache_copies_no_other():
    cache = KeyValueCache()
    for _ in range(2):
        cache.append(*torch.randn(2, 1, 1, 1, 4))
    place = cache.keys.data_ptr()
    for _ in range(KeyValueCache.ROOM):
        cache.append(*torch.randn(2, 1, 1, 1, 4))
    assert cache.keys.data_ptr() == place
