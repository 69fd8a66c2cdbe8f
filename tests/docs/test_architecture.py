"""docs/architecture.md is true: its names, order, formulas, shapes and differences."""

import functools
import importlib
import inspect
import math
import re
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import ROOT
from torch import nn

import model as model_room
from checkpoint import Progress
from config import Config
from corpus.vocabulary import build_tokenizer
from dataset import Batch, causal_mask, form_batches, padding_mask
from model import (
    FeedForwardBlock,
    InputEmbeddings,
    KeyValueCache,
    ModelSizes,
    MultiHeadAttentionBlock,
    PositionalEncoding,
    ResidualConnection,
    build_transformer,
    dropout_scale,
)
from training import validation
from training.loss import cross_entropy_sum
from training.update import learning_rate, train_update
from translation import translator
from translation.decode import greedy_decode
from translation.options import Options

DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MATH = re.findall(r"```math\n(.*?)\n```", DOCUMENT, re.DOTALL)
CODE = re.findall(r"```python\n(.*?)\n```", DOCUMENT, re.DOTALL)
NAMED = [
    (name, room.replace("/", "."))
    for name, room in re.findall(r"`([\w.]+)`\s+in\s+`([\w/]+)\.py`", DOCUMENT)
]
_, *_PARTS, _LAST = re.split(r"^## (?=\d|Where)", DOCUMENT, flags=re.MULTILINE)
PARTS = dict(part.split("\n", 1) for part in _PARTS)
DIFFERENCES = dict(re.findall(r"^- \*\*(.+?):\*\* ((?:.|\n  )+)", _LAST, re.MULTILINE))
SIZES = {
    letter: int(n)
    for letter, n in re.findall(r"\b(\w+) = (\d+)[,.]", DOCUMENT.split("```python")[0])
}
SIZES |= {"Q": SIZES["T"], "K": SIZES["S"]}
PAD, SOS, EOS = 1, 2, 3

quoted_formulas, quoted_differences = [], []


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """On a busy machine several threads wait for each other longer than so little work takes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def quoting(quotes, document, registry):
    registry.extend(quotes)

    def mark(test):
        @functools.wraps(test)
        def checked(*args, **kwargs):
            for quote in quotes:
                assert quote in document
            return test(*args, **kwargs)

        return checked

    return mark


def formula(*texts):
    """Mark the test that computes formulas; the document must hold them as they stand here."""
    return quoting(texts, MATH, quoted_formulas)


def difference(title):
    """Mark the test that shows a difference from the paper, by its title in the document."""
    return quoting([title], DIFFERENCES, quoted_differences)


# --- The formulas once more, with nothing of ours but the weights ---


def layer_norm(norm, x):
    mean = x.sum(-1, keepdim=True) / x.size(-1)
    variance = (x - mean).square().sum(-1, keepdim=True) / x.size(-1)
    return norm.weight * (x - mean) / (variance + norm.eps).sqrt() + norm.bias


def linear(layer, x, rows=slice(None)):
    return x @ layer.weight[rows].T + layer.bias[rows]


def attend(q, k, v, may):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~may, -math.inf).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def multi_head(block, x, y, may):
    """may is (B or 1, Q or 1, K), as each head is computed alone."""
    heads = []
    width = x.size(-1) // block.h
    for i in range(block.h):
        rows = slice(i * width, (i + 1) * width)
        maps = (block.w_q, x), (block.w_k, y), (block.w_v, y)
        heads.append(attend(*(linear(layer, z, rows) for layer, z in maps), may))
    return linear(block.w_o, torch.cat(heads, dim=-1))


def feed_forward(block, x):
    return linear(block.w_2, linear(block.w_1, x).clamp(min=0))


def residual(connection, x, f, norm):
    if norm == "pre":
        return x + f(layer_norm(connection.norm, x))
    return layer_norm(connection.norm, x + f(x))


def layer(block, x, may, norm, e=None, may_e=None):
    own, cross, ff = (
        block.self_attention,
        getattr(block, "cross_attention", None),
        block.feed_forward,
    )
    x = residual(own, x, lambda y: multi_head(own.sublayer, y, y, may), norm)
    if e is not None:
        x = residual(cross, x, lambda y: multi_head(cross.sublayer, y, e, may_e), norm)
    return residual(ff, x, lambda y: feed_forward(ff.sublayer, y), norm)


# --- Small things to compute on ---


def stir(module):
    """Move biases and norms away from 0 and 1, where a mix-up would not show."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return module.eval()


def make_model(**changes):
    torch.manual_seed(1)
    sizes = dict(src_seq_len=9, tgt_seq_len=9, d_model=8, N=2, h=2, dropout=0.0, d_ff=12)
    return stir(build_transformer(11, 13, **{**sizes, **changes}))


def make_batch():
    src = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, PAD, PAD]])
    tgt_in = torch.tensor([[2, 4, 9, 6], [2, 10, 5, PAD]])
    tgt_out = torch.tensor([[4, 9, 6, 3], [10, 5, 3, PAD]])
    real = torch.tensor([0, 1, 2, 3, 4, 5, 6])
    return Batch([0, 1], src, padding_mask(src, PAD), tgt_in, tgt_out, real, tokens=7)


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def assert_equal(ours, expected):
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


# --- Names and order ---


def test_every_name_said_to_be_in_a_module_is_there():
    assert len(NAMED) > 20
    for name, room in NAMED:
        place = importlib.import_module(room)
        for part in name.split("."):
            assert hasattr(place, part), f"{name} in {room}.py"
            place = getattr(place, part)
        if inspect.isroutine(place) or inspect.isclass(place):
            assert place.__module__ == room, f"{name} is only imported in {room}.py"


def test_every_public_class_and_function_of_the_model_is_named():
    public = {
        name
        for name, value in vars(model_room).items()
        if getattr(value, "__module__", "") == "model" and not name.startswith("_")
    }
    assert public - {name for name, room in NAMED if room == "model"} == set()


def test_the_parts_come_in_the_papers_order():
    assert [re.sub(r" \([\d., ]+\)", "", title) for title in PARTS] == [
        "1. Embeddings and their scale",
        "2. Positions",
        "3. Attention and masks",
        "4. Feed-forward",
        "5. Residual and layer norm",
        "6. Encoder",
        "7. Decoder",
        "8. Projection",
        "9. Label smoothing",
        "10. Warm-up",
        "11. Decoding with a key/value cache",
    ]
    assert re.findall(r"^### (.+?)(?: \(.*)?$", PARTS["3. Attention and masks (3.2)"], re.M) == [
        "Scaled dot product",
        "Heads",
        "Padding mask",
        "Causal mask",
        "Cross-attention",
    ]


def test_each_part_has_a_formula_a_place_one_reason_and_shapes():
    for title, text in PARTS.items():
        assert "```python" in text or title.startswith("10."), f"{title} has no shapes"
        _, *subparts = text.split("\n### ")
        for part in subparts or [text]:
            assert "```math" in part and "\n- Here: " in part, title
            (reason,) = re.findall(r"^- Why: ((?:.|\n  )+)", part, re.MULTILINE)
            sentences = 1 + reason.count(". ") + reason.count(".\n") - reason.endswith(".\n")
            assert reason.strip().endswith(".") and sentences <= 2, title


# --- Formulas ---


def test_every_formula_of_the_document_is_computed_here():
    assert quoted_formulas == MATH


@formula(r"\mathrm{Embed}(x) = \sqrt{D}\, W_x")
def test_embeddings_are_rows_scaled_by_the_root_of_the_width():
    embed = InputEmbeddings(8, 11)
    expected = torch.stack([embed.embedding.weight[x] * 8**0.5 for x in (4, 7, 4)])
    assert_equal(embed(torch.tensor([[4, 7, 4]])), expected[None])


def dropped_on_cpu(x):
    return x * dropout_scale(x, 0.5)


@formula(
    r"\mathrm{PE}(p, 2i) = \sin\left(\frac{p}{10000^{2i/D}}\right)",
    r"\mathrm{PE}(p, 2i + 1) = \cos\left(\frac{p}{10000^{2i/D}}\right)",
)
def test_positions_are_sines_and_cosines_added_before_dropout():
    expected = torch.empty(7, 8)
    for p in range(7):
        for i in range(4):
            expected[p, 2 * i] = math.sin(p / 10000 ** (2 * i / 8))
            expected[p, 2 * i + 1] = math.cos(p / 10000 ** (2 * i / 8))
    x = random(2, 7, 8)
    positions = PositionalEncoding(8, 7, dropout=0.5)
    torch.manual_seed(4)
    dropped = positions(x)
    torch.manual_seed(4)
    assert_equal(dropped, dropped_on_cpu(x + expected))
    assert_equal(positions.eval()(x), x + expected)


@formula(
    r"\mathrm{Attention}(q, k, v, m) = "
    r"\mathrm{softmax}\left(\frac{q k^\top}{\sqrt{D/h}} + m\right) v"
)
def test_attention_is_a_softmax_of_scaled_products_under_the_mask():
    block = MultiHeadAttentionBlock(8, 1, dropout=0.0)
    for projection in (block.w_q, block.w_k, block.w_v, block.w_o):
        nn.init.eye_(projection.weight)
        nn.init.zeros_(projection.bias)
    x, y = random(2, 4, 8), random(2, 5, 8)
    may = random(2, 1, 4, 5) > 0
    may[..., 0] = True
    assert_equal(block(x, y, mask=may), attend(x, y, y, may[:, 0]))


@formula(
    r"\mathrm{head}_i = \mathrm{Attention}"
    r"(x W^Q_i + b^Q_i,\; y W^K_i + b^K_i,\; y W^V_i + b^V_i,\; m)",
    r"\mathrm{MultiHead}(x, y, m) = [\mathrm{head}_1; \dots; \mathrm{head}_h]\, W^O + b^O",
)
def test_heads_are_attentions_on_slices_of_the_projections():
    block = stir(MultiHeadAttentionBlock(12, 3, dropout=0.0))
    x, y = random(2, 4, 12), random(2, 5, 12)
    may = random(2, 1, 4, 5) > 0
    may[..., 0] = True
    assert_equal(block(x, y, mask=may), multi_head(block, x, y, may[:, 0]))
    everywhere = torch.ones(1, 1, 1, dtype=torch.bool)
    assert_equal(block(x), multi_head(block, x, x, everywhere))


@formula(r"\mathrm{may}_{b, j} = [\mathrm{src}_{b, j} \ne \mathrm{pad}]")
def test_padding_mask_hides_padding_from_attention():
    src = make_batch().src
    expected = [[token != PAD for token in row] for row in src.tolist()]
    assert padding_mask(src, PAD)[:, 0, 0].tolist() == expected


@formula(r"\mathrm{may}_{i, j} = [j \le i]")
def test_causal_mask_and_flag_hide_later_tokens():
    expected = torch.tensor([[j <= i for j in range(4)] for i in range(4)])
    assert torch.equal(causal_mask(4)[0, 0], expected)
    block = stir(MultiHeadAttentionBlock(8, 2, dropout=0.0))
    x = random(2, 4, 8)
    assert_equal(block(x, is_causal=True), multi_head(block, x, x, expected))


@formula(r"\mathrm{Cross}(x, e) = \mathrm{MultiHead}(x, e, m_{\mathrm{src}})")
def test_cross_attention_takes_keys_and_values_from_the_encoder():
    block = make_model().decoder.layers[0].cross_attention
    x, e, mask = random(2, 4, 8), random(2, 5, 8), make_batch().src_mask
    expected = residual(
        block, x, lambda y: multi_head(block.sublayer, y, e, mask[:, 0]), norm="pre"
    )
    assert_equal(block(x, e, mask=mask), expected)


@formula(r"\mathrm{FFN}(x) = \max(0, x W_1 + b_1)\, W_2 + b_2")
def test_the_feed_forward_is_two_maps_with_a_maximum_between():
    block = stir(FeedForwardBlock(8, 12, dropout=0.0))
    x = random(2, 4, 8)
    assert_equal(block(x), feed_forward(block, x))


@formula(
    r"R_f(x) = x + \mathrm{Dropout}(f(\mathrm{LayerNorm}(x)))",
    r"R_f(x) = \mathrm{LayerNorm}(x + \mathrm{Dropout}(f(x)))",
    r"\mathrm{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta",
)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_residual_adds_the_dropped_sublayer_and_normalises_where_it_says(norm):
    sizes = ModelSizes(8, N=1, h=2, d_ff=8, dropout=0.5, inner_dropout=0.5, norm=norm)
    connection = stir(ResidualConnection(nn.Linear(8, 8), sizes)).train()
    x = random(2, 4, 8)
    torch.manual_seed(5)
    ours = connection(x)
    torch.manual_seed(5)
    f = connection.sublayer
    assert_equal(ours, residual(connection, x, lambda y: dropped_on_cpu(linear(f, y)), norm))


@formula(
    r"\mathrm{Layer}(x) = R_{\mathrm{FFN}}(R_{\mathrm{self}}(x))",
    r"\mathrm{Encoder}(x) = "
    r"\mathrm{LayerNorm}(\mathrm{Layer}_N(\cdots \mathrm{Layer}_1(x)))",
)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_encoder_is_its_layers_and_with_pre_norm_one_more_norm(norm):
    encoder = make_model(norm=norm).encoder
    mask = make_batch().src_mask
    x = expected = random(2, 5, 8)
    for block in encoder.layers:
        expected = layer(block, expected, mask[:, 0], norm)
    if norm == "pre":
        expected = layer_norm(encoder.norm, expected)
    assert_equal(encoder(x, mask), expected)


@formula(
    r"\mathrm{Layer}(x, e) = R_{\mathrm{FFN}}(R_{\mathrm{cross}}(R_{\mathrm{self}}(x), e))",
    r"\mathrm{Decoder}(x, e) = "
    r"\mathrm{LayerNorm}(\mathrm{Layer}_N(\cdots \mathrm{Layer}_1(x, e) \cdots, e))",
)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_decoder_is_its_layers_and_with_pre_norm_one_more_norm(norm):
    decoder = make_model(norm=norm).decoder
    mask = make_batch().src_mask
    x = expected = random(2, 4, 8)
    e = random(2, 5, 8) * 2
    for block in decoder.layers:
        expected = layer(block, expected, causal_mask(4)[0], norm, e, mask[:, 0])
    if norm == "pre":
        expected = layer_norm(decoder.norm, expected)
    assert_equal(decoder(x, e, mask), expected)


@formula(r"z = x W^\top + b, \quad p = \mathrm{softmax}(z)")
def test_the_projection_gives_logits_whose_softmax_the_loss_takes():
    projection = make_model().projection
    x = random(1, 1, 8)
    z = projection(x)
    assert_equal(z[0, 0], x[0, 0] @ projection.linear.weight.T + projection.linear.bias)
    p = z[0, 0].exp() / z[0, 0].exp().sum()
    assert_equal(cross_entropy_sum(z, torch.tensor([[6]]), PAD), -p[6].log())


@formula(
    r"r_{t, j} = (1 - \varepsilon)\,[j = y_t] + \frac{\varepsilon}{V}",
    r"L = -\sum_{t :\, y_t \ne \mathrm{pad}} \; \sum_{j = 1}^{V} r_{t, j} \log p_{t, j}",
)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_label_smoothing_shares_with_all_entries_and_skips_padding(epsilon):
    logits, labels = random(2, 4, 13), make_batch().tgt_out
    log_p = (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()
    expected = 0.0
    for b, row in enumerate(labels.tolist()):
        for t, y in enumerate(row):
            if y != PAD:
                for j in range(13):
                    r = (1 - epsilon) * (j == y) + epsilon / 13
                    expected -= r * log_p[b, t, j].item()
    assert cross_entropy_sum(logits, labels, PAD, epsilon).item() == pytest.approx(
        expected, rel=1e-5
    )
    assert Config().label_smoothing == 0.1


@formula(
    r"\mathrm{rate}(s) = \mathrm{lr} \cdot \min\left(\frac{s}{w}, \sqrt{\frac{w}{s}}\right)",
    r"\mathrm{rate}(s) = D^{-1/2} \cdot \min\left(s^{-1/2},\; s\, w^{-3/2}\right)",
    r"\mathrm{lr} = D^{-1/2}\, w^{-1/2}",
)
def test_the_rate_is_the_papers_when_its_peak_is():
    d, w = 512, 4000
    lr = d**-0.5 * w**-0.5
    assert f"{lr:.1e}" == "7.0e-04" and "that is 7.0e-4, the default `lr` here" in DOCUMENT
    assert Config().lr == 7e-4
    for s in (1, 10, 3999, 4000, 4001, 100_000):
        ours = learning_rate(s, Config(lr=lr, warmup=w), 0)
        assert ours == pytest.approx(lr * min(s / w, math.sqrt(w / s)))
        assert ours == pytest.approx(d**-0.5 * min(s**-0.5, s * w**-1.5))


def update(clip_norm, batches):
    """Do one update by plain descent with a rate of 1; returns all weights before and after."""
    model = make_model().train()
    run = SimpleNamespace(
        total_updates=0,
        config=Config(lr=1.0, warmup=1, clip_norm=clip_norm),
        model=model,
        device=torch.device("cpu"),
        precision=torch.float32,
        scaler=torch.amp.GradScaler("cpu", enabled=False),
        optimizer=torch.optim.SGD(model.parameters(), fused=True),
        progress=Progress(),
        pad_id=PAD,
        pending_updates=[],
    )
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    train_update(run, batches)
    return before, nn.utils.parameters_to_vector(model.parameters()).detach()


@formula(r"g \leftarrow g \cdot \min\left(1, \frac{c}{\lVert g \rVert}\right)")
@pytest.mark.parametrize("clip_norm", [0.01, 1000])
def test_an_update_follows_the_clipped_gradient_of_the_mean_loss(clip_norm):
    model, batch = make_model(), make_batch()
    first = (batch.src[:1], batch.src_mask[:1], batch.tgt_in[:1], batch.tgt_out[:1])
    short = Batch([0], *first, torch.arange(4), tokens=4)
    total = sum(
        cross_entropy_sum(model(each.src, each.src_mask, each.tgt_in), each.tgt_out, PAD, 0.1)
        for each in (batch, short)
    )
    (total / 11).backward()
    g = nn.utils.parameters_to_vector([parameter.grad for parameter in model.parameters()])
    assert 0.01 < g.norm() < 1000
    before, after = update(clip_norm, [batch, short])
    assert_equal(before - after, g * min(1, clip_norm / g.norm()))


@formula(
    r"y_t = \arg\max_j z_{t, j}, \quad "
    r"k_{\le t} = [k_{< t}; k_t], \quad v_{\le t} = [v_{< t}; v_t]"
)
def test_decoding_takes_the_likeliest_token_over_a_growing_cache():
    model, batch = make_model(), make_batch()
    outputs = greedy_decode(model, batch.src, batch.src_mask, sos_id=SOS, eos_id=EOS)
    for row, output in enumerate(outputs):
        src, mask = batch.src[row : row + 1], batch.src_mask[row : row + 1]
        expected = [SOS]
        while expected[-1] != EOS and len(expected) <= 9:
            expected.append(model(src, mask, torch.tensor([expected]))[0, -1].argmax().item())
        assert output == expected[1:]

    block, cache = stir(MultiHeadAttentionBlock(8, 2, dropout=0.0)), KeyValueCache()
    x = random(2, 3, 8)
    for t in range(3):
        block(x[:, t : t + 1], cache=cache)
        keys, values = block.in_heads(x[:, : t + 1], block.w_k, block.w_v)
        assert_equal(cache.keys, keys)
        assert_equal(cache.values, values)


def test_cross_attention_fills_its_cache_once():
    block, cache = stir(MultiHeadAttentionBlock(8, 2, dropout=0.0)), KeyValueCache()
    x, memory = random(2, 1, 8), random(2, 5, 8)
    first = block(x, memory, cache=cache)
    assert_equal(block(x, memory + 1, cache=cache), first)
    assert cache.keys.size(2) == 5


def test_decoding_stops_50_tokens_after_the_source_or_at_the_last_position():
    batch = make_batch()
    for positions, lengths in ((100, [5 + 50, 3 + 50]), (9, [9, 9])):
        model = make_model(tgt_seq_len=positions, N=1)
        nn.init.constant_(model.projection.linear.bias[EOS : EOS + 1], -1e9)
        outputs = greedy_decode(model, batch.src, batch.src_mask, sos_id=SOS, eos_id=EOS)
        assert [len(output) for output in outputs] == lengths


# --- Shapes ---


def to_sizes(letters, **changes):
    """Turn "B, h, D / h" into numbers."""
    sizes = SIZES | changes
    parts = [part for part in letters.split(",") if part.strip()]
    return tuple(eval(part.strip().replace("/", "//"), {}, sizes) for part in parts)


def type_in():
    """Run the document's code line by line; yield what a line gives and its shape in the text."""
    names = {}
    for line in "\n".join(CODE).splitlines():
        code, _, comment = line.partition("  # ")
        exec(line, names)
        stated = re.match(r"\(([^)]*)\) = \(([^)]*)\)", comment)
        if stated:
            values = eval(code.split(" = ")[0], names)
            for value in values if isinstance(values, tuple) else (values,):
                yield line, value, *stated.groups()
    torch.testing.assert_close(names["by_hand"], names["same"])


def test_every_line_of_code_gives_the_shape_beside_it():
    checked = 0
    for line, value, letters, numbers in type_in():
        assert tuple(value.shape) == to_sizes(letters) == to_sizes(numbers), line
        checked += 1
    assert checked > 25
    assert len(set(SIZES.values())) == len(SIZES) - 2, "sizes that are equal hide a mix-up"


def read_tree():
    """Return the lines of the figure: a path, its class, its output's shape, and what follows."""
    (figure,) = re.findall(r"```text\n(.*?)\n```", DOCUMENT, re.DOTALL)
    above, lines = [], []
    for line in figure.splitlines():
        indent, name, kind, shape, rest = re.fullmatch(
            r"( *)(\S+) +(\w+) +-> \((.+?)\) *(.*)", line
        ).groups()
        above = [*above[: len(indent) // 2], name]
        lines.append((".".join(above), kind, shape, rest))
    return lines


def traced_model():
    """Return the document's model and the shape of what each of its modules gave."""
    names = {}
    start = CODE[0].splitlines()
    call = next(i for i, line in enumerate(start) if line.startswith("logits"))
    exec("\n".join(start[:call]), names)
    shapes = {}
    for path, module in names["model"].named_modules():
        module.register_forward_hook(
            lambda module, given, out, path=path: shapes.update({path: tuple(out.shape)})
        )
    with torch.no_grad():  # in training, one product takes the place of several maps
        exec(start[call], names)
    return names["model"], shapes


def test_the_figure_shows_the_class_output_and_weights_of_each_module():
    model, shapes = traced_model()
    for path, kind, shape, rest in read_tree():
        module = model.get_submodule(path)
        assert type(module).__name__ == kind, path
        assert shapes[path] == to_sizes(shape), path
        vocabulary = 11 if path.startswith("src_") else 13
        stated = re.findall(r"(weight|bias) \(([^)]*)\)", rest)
        assert {name: tuple(p.shape) for name, p in module.named_parameters(recurse=False)} == {
            name: to_sizes(letters, V=vocabulary) for name, letters in stated
        }, path


def test_the_figure_leaves_no_weight_out():
    model, _ = traced_model()
    lines = {path: rest for path, _, _, rest in read_tree()}
    for key in model.state_dict():
        path = re.sub(r"layers\.\d+", "layers.0", key).rpartition(".")[0]
        inside = any(
            path.startswith(f"{parent}.") for parent, rest in lines.items() if "inside as" in rest
        )
        assert path in lines or inside, key
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]

    def inside_of(module):
        return {name: value.shape for name, value in module.state_dict().items()}

    for alike in (decoder.self_attention, decoder.cross_attention):
        assert inside_of(alike) == inside_of(encoder.self_attention)
    assert inside_of(decoder.feed_forward) == inside_of(encoder.feed_forward)


# --- Differences from the paper ---


def test_every_difference_in_the_list_is_shown_here():
    assert quoted_differences == list(DIFFERENCES)


def test_the_settings_in_the_list_are_fields_of_the_config_with_their_values():
    names = set(re.findall(r"`(\w+)`", _LAST))
    assert len(names) == 10 and names <= {field.name for field in fields(Config)}
    for text in ("`clip_norm` = 1.", "`batch_tokens` = 2048 "):
        name, value = re.match(r"`(\w+)` = (\d+)", text).groups()
        assert text in _LAST and getattr(Config(), name) == int(value)


@difference("Norm")
def test_normalisation_is_before_the_sublayers_and_after_the_stacks():
    assert Config().norm == "pre"
    for norm, kind in (("pre", nn.LayerNorm), ("post", nn.Identity)):
        model = make_model(norm=norm)
        assert type(model.encoder.norm) is type(model.decoder.norm) is kind
    assert inspect.signature(build_transformer).parameters["norm"].default == "pre"


@difference("Biases")
def test_every_linear_map_has_a_bias():
    maps = [module for module in make_model().modules() if isinstance(module, nn.Linear)]
    # Of two layers: attention and feed-forward in both stacks, cross-attention, projection.
    assert len(maps) == 2 * (4 + 2 + 4 + 4 + 2) + 1
    assert all(module.bias is not None for module in maps)


@difference("Dropout")
def test_dropout_is_on_attention_weights_and_inside_the_feed_forward():
    x = random(2, 4, 8)
    attention = stir(MultiHeadAttentionBlock(8, 2, dropout=0.5))
    assert not torch.equal(attention.train()(x), attention.eval()(x))
    block = stir(FeedForwardBlock(8, 12, dropout=0.5)).train()
    torch.manual_seed(6)
    ours = block(x)
    torch.manual_seed(6)
    inner = dropped_on_cpu(linear(block.w_1, x).clamp(min=0))
    assert_equal(ours, linear(block.w_2, inner))


def test_inner_dropout_is_the_share_of_both_and_as_dropout_where_it_is_not_given():
    for choice, share in ((None, 0.25), (0.0, 0.0), (0.5, 0.5)):
        model = make_model(dropout=0.25, inner_dropout=choice)
        inside = [m for m in model.modules() if isinstance(m, MultiHeadAttentionBlock)]
        assert {attention.dropout for attention in inside} == {share}
        inside = [m for m in model.modules() if isinstance(m, FeedForwardBlock)]
        assert {feed_forward.dropout.p for feed_forward in inside} == {share}
        around = [m for m in model.modules() if isinstance(m, ResidualConnection)]
        assert {connection.dropout.p for connection in around} == {0.25}


@difference("Learning rate")
def test_the_peak_of_the_rate_is_lr_at_the_end_of_warm_up_whatever_the_width():
    assert Config().warmup == 2000
    for d_model in (64, 512):
        config = Config(d_model=d_model)
        rates = [learning_rate(step, config, 0) for step in range(1900, 2100)]
        assert max(rates) == learning_rate(2000, config, 0) == config.lr


@difference("Clipping")
def test_no_clipping_is_a_choice():
    batches = [make_batch()]
    plain, clipped = (update(clip_norm, batches) for clip_norm in (0, 1e-3))
    assert (clipped[0] - clipped[1]).norm() == pytest.approx(1e-3, rel=0.02)
    assert (plain[0] - plain[1]).norm() > 1e-2


@difference("Vocabularies")
def test_vocabularies_and_embeddings_are_separate_by_default():
    assert Config().shared_vocab is False and Config().tie_embeddings == "none"
    for tie_embeddings, matrices in (("none", 3), ("target", 2), ("all", 1)):
        model = build_transformer(13, 13, 9, 9, 8, 1, 2, 0, 12, tie_embeddings=tie_embeddings)
        shared = (
            model.src_embed.embedding.weight,
            model.tgt_embed.embedding.weight,
            model.projection.linear.weight,
        )
        assert len({id(weight) for weight in shared}) == matrices


@difference("Tokens")
def test_tokens_are_whole_words_by_default():
    assert Config().tokenizer == "word"
    texts = ["walking talked"]
    assert len(build_tokenizer(texts, "word", 300, 1).encode("walking")) == 1
    assert len(build_tokenizer(texts, "bpe", 262, 1).encode("walking")) > 1


@difference("Batches")
def test_a_batch_keeps_to_the_budget_by_its_longer_side():
    rng = np.random.default_rng(0)
    src_lens, tgt_lens = rng.integers(3, 40, (2, 1000))
    budget = Config().batch_tokens
    padded = [
        len(batch) * max(src_lens[batch].max(), tgt_lens[batch].max())
        for batch in form_batches(src_lens, tgt_lens, budget)
    ]
    assert max(padded) <= budget and sum(size > 0.9 * budget for size in padded) > len(padded) / 2


@difference("Initial weights")
def test_initial_embeddings_are_normal_and_linear_maps_xavier():
    torch.manual_seed(0)
    model = build_transformer(700, 800, 9, 9, d_model=64, N=1, h=2, d_ff=96)
    for embed in (model.src_embed, model.tgt_embed):
        weight = embed.embedding.weight
        assert weight.std().item() == pytest.approx(64**-0.5, rel=0.03)
        assert (weight.abs() > 2 * weight.std()).float().mean().item() == pytest.approx(0.046, 0.1)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6 / (module.in_features + module.out_features))
            assert 0.99 * bound < module.weight.abs().max().item() <= bound
            assert module.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)
            assert not module.bias.any()


@difference("Positions")
def test_a_sentence_past_the_table_is_refused():
    model = make_model()
    assert model.src_pos(random(1, 9, 8)).size(1) == 9
    with pytest.raises(ValueError, match="seq_len"):
        model.src_pos(random(1, 10, 8))


@difference("Decoding")
def test_validation_and_translation_decode_greedily():
    assert validation.greedy_decode is translator.greedy_decode is greedy_decode
    assert Config().beam_size == Options().beam_size == Options().average == 1
