"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), leaves first, model last.

Dimension letters in shapes: B sentences, S source tokens, T target tokens, Q queries, K keys,
D = d_model, h heads, V vocabulary. Masks are boolean, True = may attend, and broadcast to
(B, h, Q, K). A `tgt_mask` of None means causal.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class ModelSizes:
    """The sizes and dropout rates that all layers of a Transformer share (table 3).

    Raises ValueError if heads do not divide the width, or for an unknown `norm`.
    """

    d_model: int  # width of embeddings and layers
    N: int  # layers in the encoder, and in the decoder
    h: int  # attention heads
    d_ff: int  # inner width of the feed-forward blocks
    dropout: float  # of embeddings and of each sublayer's output
    inner_dropout: float  # of attention weights, and inside the feed-forward blocks
    norm: Literal["pre", "post"]  # layer normalisation before each sublayer, or after

    def __post_init__(self) -> None:
        if self.d_model % self.h:
            raise ValueError(f"h ({self.h}) must divide d_model ({self.d_model})")
        if self.norm not in ("pre", "post"):
            raise ValueError(f"norm ({self.norm!r}) must be pre or post")


class Dropout(nn.Module):
    """Set each number to zero with probability p in training, and scale up the others."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Return x, of any shape, with a share p of its numbers dropped; add `residual` to it."""
        if not self.training or self.p == 0:
            return x if residual is None else residual + x
        return drop(x, self.p, residual)


def drop(x: Tensor, p: float, residual: Tensor | None = None) -> Tensor:
    """Return x with a share p of its numbers set to zero and the others scaled, plus `residual`."""
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        scale = dropout_scale(x, p)
        return x * scale if residual is None else torch.addcmul(residual, x, scale)
    x = F.dropout(x, p)
    return x if residual is None else residual + x


def dropout_scale(x: Tensor, p: float) -> Tensor:
    """Return the factors with which dropout multiplies x on a CPU: 0 or 1 / (1 - p).

    The factor of a number depends on 16 random bits, drawn from torch's generator. `F.dropout`
    draws one Bernoulli variable after the other: 8.7 ns a number against 2.3 ns here, the
    multiplication included. p is rounded to a multiple of 1 / 65,536, and the scale is that of the
    rounded p.
    """
    dropped = min(round(p * 2**16), 2**16 - 1)  # of the 2**16 patterns of bits
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    scale = torch.empty(x.shape, dtype=x.dtype)
    return torch.ge(bits, dropped - 2**15, out=scale).mul_(2**16 / (2**16 - dropped))


class InputEmbeddings(nn.Module):
    """Map token ids to embeddings, scaled by sqrt(d_model) (section 3.4)."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.embedding = nn.Embedding(vocab_size, d_model)
        # Scaled embeddings then have unit variance, about that of the positions added to them.
        # The same matrix also serves as a projection, with logits of unit variance.
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the embeddings (B, T, D) of ids (B, T)."""
        return self.embedding(x) * self.scale


class PositionalEncoding(nn.Module):
    """Add sines and cosines of the position to the embeddings (section 3.5)."""

    def __init__(self, d_model: int, seq_len: int, dropout: float) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model ({d_model}) must be even: positions are sine and cosine")
        self.dropout = Dropout(dropout)
        position = torch.arange(seq_len).unsqueeze(1)  # (seq_len, 1)
        rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.empty(seq_len, d_model)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add the positions from `start` on to x (B, T, D).

        Raises ValueError for more positions than `seq_len`.
        """
        end = start + x.size(1)
        if end > self.table.size(0):
            raise ValueError(f"{end} tokens are more than seq_len ({self.table.size(0)})")
        x = x + self.table[start:end]
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            # Residuals and norms in the precision of the products: half the memory to pass through,
            # and no casts. Norms still sum in fp32.
            x = x.to(torch.get_autocast_dtype("cpu"))
        return self.dropout(x)


class KeyValueCache:
    """The keys and values that one attention block has computed, without their gradients.

    Their memory has room for further tokens, so that to add one copies no other.
    """

    ROOM = 16  # tokens

    def __init__(self) -> None:
        self.length = 0  # tokens, K
        # (B, room, h, D / h): all tokens of a row lie together, which is fastest to select.
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    @property
    def keys(self) -> Tensor:
        """The keys of all tokens so far (B, h, K, D / h)."""
        return self._keys[:, : self.length].transpose(1, 2)

    @property
    def values(self) -> Tensor:
        """The values of all tokens so far (B, h, K, D / h)."""
        return self._values[:, : self.length].transpose(1, 2)

    def append(self, keys: Tensor, values: Tensor) -> None:
        """Add the keys and values of further tokens, (B, h, tokens, D / h) each."""
        keys, values = (each.detach().transpose(1, 2) for each in (keys, values))
        start, end = self.length, self.length + keys.size(1)
        if start == 0:
            self._keys, self._values = keys, values
        else:
            if end > self._keys.size(1):
                every = torch.arange(len(keys), device=keys.device)
                self._copy_rows(every, room=end + self.ROOM)
            self._keys[:, start:end] = keys
            self._values[:, start:end] = values
        self.length = end

    def select(self, rows: Tensor) -> None:
        """Keep the given rows (rows,) of the batch, in their order."""
        self._copy_rows(rows, room=self.length + self.ROOM)

    def _copy_rows(self, rows: Tensor, room: int) -> None:
        def copy(x: Tensor) -> Tensor:
            new = x.new_empty(len(rows), room, *x.shape[2:])
            torch.index_select(x[:, : self.length], 0, rows, out=new[:, : self.length])
            return new

        self._keys, self._values = copy(self._keys), copy(self._values)


def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the scaled dot-product attention (B, h, Q, D / h), and its weights (B, h, Q, K).

    Queries are (B, h, Q, D / h), keys and values (B, h, K, D / h) (section 3.2.1). The fast kernels
    do not compute the weights: without `return_weights` they are None.
    """
    if not return_weights and not is_formula_faster(queries, dropout):
        x = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
        )
        return x, None
    B, h, Q, size = queries.shape
    K = keys.size(2)
    with torch.autocast(queries.device.type, enabled=False):
        q, k, v = (x.float().reshape(B * h, -1, size) for x in (queries, keys, values))
        bias = q.new_zeros(1, Q, K) if mask is None else q.new_zeros(mask.shape)
        lowest = torch.finfo(bias.dtype).min  # not -inf: a row of padding alone would be NaN
        if is_causal:
            bias = bias.fill_(lowest).triu(1)
        elif mask is not None:
            bias = bias.masked_fill_(~mask, lowest).expand(B, h, -1, K).flatten(0, 1)
        weights = torch.baddbmm(bias, q, k.mT, alpha=size**-0.5).softmax(dim=-1)
        x = ((drop(weights, dropout) if dropout else weights) @ v).unflatten(0, (B, h))
    return x, weights.unflatten(0, (B, h)) if return_weights else None


def is_formula_faster(queries: Tensor, dropout: float) -> bool:
    """Return whether attention is faster as a plain formula in fp32 than by torch's own kernels.

    In training on a CPU it is with dropout (30 % for 100 tokens), and in bf16 (10 to 25 %, forward
    and backward). There torch's fused kernel takes 5 times as long for 15 tokens.
    """
    in_training = queries.device.type == "cpu" and torch.is_grad_enabled()
    return in_training and (dropout > 0 or queries.dtype == torch.bfloat16)


class MultiHeadAttentionBlock(nn.Module):
    """Scaled dot-product attention in h heads (sections 3.2.1 and 3.2.2)."""

    def __init__(self, d_model: int, h: int, dropout: float) -> None:
        super().__init__()
        if d_model % h:
            raise ValueError(f"h ({h}) must divide d_model ({d_model})")
        self.h = h
        self.dropout = dropout
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Let each position of x (B, Q, D) attend to `memory` (B, K, D), or without one to x.

        Returns (B, Q, D). With a cache, self-attention adds the keys and values of x to those of
        the tokens before; those of `memory` are computed once. If a list `weights` is given, the
        attention weights (B, h, Q, K) are appended to it.
        """
        if cache is None and memory is None:
            queries, keys, values = self.in_heads(x, self.w_q, self.w_k, self.w_v)
        else:
            [queries] = self.in_heads(x, self.w_q)
            if cache is None:
                keys, values = self.in_heads(memory, self.w_k, self.w_v)
            else:
                if memory is None or cache.length == 0:
                    source = x if memory is None else memory
                    cache.append(*self.in_heads(source, self.w_k, self.w_v))
                keys, values = cache.keys, cache.values
        attended, found = attention(
            queries,
            keys,
            values,
            mask,
            is_causal,
            # The kernel applies dropout in evaluation mode, too.
            self.dropout if self.training else 0.0,
            return_weights=weights is not None,
        )
        if weights is not None:
            weights.append(found)
        # (B, h, Q, D / h) -> (B, Q, D)
        attended = attended.transpose(1, 2).to(queries.dtype, memory_format=torch.contiguous_format)
        return self.w_o(attended.flatten(2))

    def in_heads(self, x: Tensor, *maps: nn.Linear) -> list[Tensor]:
        """Return what each linear map makes of x (B, T, D), in heads: (B, h, T, D / h) each.

        In training one product computes all: that is faster for many tokens, and few tokens are not
        worth a copy of the weights.
        """
        if torch.is_grad_enabled() and len(maps) > 1:
            weight = torch.cat([each.weight for each in maps])
            bias = torch.cat([each.bias for each in maps])
            projected = F.linear(x, weight, bias).chunk(len(maps), dim=-1)
        else:
            projected = [each(x) for each in maps]
        return [each.unflatten(-1, (self.h, -1)).transpose(1, 2) for each in projected]


class FeedForwardBlock(nn.Module):
    """Two linear maps with a ReLU between them, at each position separately (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position of x (B, T, D)."""
        return self.w_2(self.dropout(F.relu(self.w_1(x))))


class ResidualConnection(nn.Module):
    """A sublayer with a residual connection and layer normalisation (sections 3.1 and 5.4).

    "post" is the paper's norm(x + sublayer(x)); "pre" is x + sublayer(norm(x)), which trains
    without a careful warm-up.
    """

    def __init__(self, sublayer: nn.Module, sizes: ModelSizes) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(sizes.d_model)
        self.dropout = Dropout(sizes.dropout)
        self.pre = sizes.norm == "pre"

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        """Apply the sublayer to x (B, T, D); further arguments go to the sublayer."""
        if self.pre:
            return self.dropout(self.sublayer(self.norm(x), *args, **kwargs), residual=x)
        return self.norm(self.dropout(self.sublayer(x, *args, **kwargs), residual=x))


class EncoderBlock(nn.Module):
    """One layer of the encoder: self-attention, then feed-forward (section 3.1)."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self_attention = MultiHeadAttentionBlock(sizes.d_model, sizes.h, sizes.inner_dropout)
        feed_forward = FeedForwardBlock(sizes.d_model, sizes.d_ff, sizes.inner_dropout)
        self.self_attention = ResidualConnection(self_attention, sizes)
        self.feed_forward = ResidualConnection(feed_forward, sizes)

    def forward(self, x: Tensor, src_mask: Tensor) -> Tensor:
        """Encode x (B, S, D) under src_mask (B, 1, 1, S)."""
        x = self.self_attention(x, mask=src_mask)
        return self.feed_forward(x)


class Encoder(nn.Module):
    """N encoder layers; pre-norm adds a layer normalisation at the end."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderBlock(sizes) for _ in range(sizes.N))
        self.norm = nn.LayerNorm(sizes.d_model) if sizes.norm == "pre" else nn.Identity()

    def forward(self, x: Tensor, src_mask: Tensor) -> Tensor:
        """Encode x (B, S, D) under src_mask (B, 1, 1, S)."""
        for layer in self.layers:
            x = layer(x, src_mask)
        return self.norm(x)


class DecoderBlock(nn.Module):
    """One layer of the decoder: self-attention, cross-attention, feed-forward (section 3.1)."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self_attention = MultiHeadAttentionBlock(sizes.d_model, sizes.h, sizes.inner_dropout)
        cross_attention = MultiHeadAttentionBlock(sizes.d_model, sizes.h, sizes.inner_dropout)
        feed_forward = FeedForwardBlock(sizes.d_model, sizes.d_ff, sizes.inner_dropout)
        self.self_attention = ResidualConnection(self_attention, sizes)
        self.cross_attention = ResidualConnection(cross_attention, sizes)
        self.feed_forward = ResidualConnection(feed_forward, sizes)

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor,
        src_mask: Tensor,
        tgt_mask: Tensor | None,
        is_causal: bool,
        cache: tuple[KeyValueCache | None, KeyValueCache | None] = (None, None),
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Decode x (B, T, D) with encoder_output (B, S, D); appends cross-attention to `weights`.

        `cache` has the keys and values of self-attention and of cross-attention.
        """
        x = self.self_attention(x, mask=tgt_mask, is_causal=is_causal, cache=cache[0])
        x = self.cross_attention(x, encoder_output, mask=src_mask, cache=cache[1], weights=weights)
        return self.feed_forward(x)


class DecoderCache:
    """The keys and values of all decoder layers, to decode one token at a time."""

    def __init__(self, N: int) -> None:
        self.layers = [(KeyValueCache(), KeyValueCache()) for _ in range(N)]

    @property
    def length(self) -> int:
        """The number of target tokens already decoded."""
        return self.layers[0][0].length

    def select(self, rows: Tensor, of_memory: bool = True) -> None:
        """Keep the given rows (rows,) of the batch, in their order.

        `of_memory=False` leaves cross-attention as it is, if each row keeps its source sentence.
        """
        for self_attention, cross_attention in self.layers:
            self_attention.select(rows)
            if of_memory:
                cross_attention.select(rows)


class Decoder(nn.Module):
    """N decoder layers; pre-norm adds a layer normalisation at the end."""

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderBlock(sizes) for _ in range(sizes.N))
        self.norm = nn.LayerNorm(sizes.d_model) if sizes.norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor,
        src_mask: Tensor,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Decode x (B, T, D) with encoder_output (B, S, D), as `Transformer.decode` says."""
        # A single query may attend to all cached tokens. Several queries take the causal flag: the
        # fast kernels need it, and it cannot be combined with a mask.
        is_causal = tgt_mask is None and x.size(1) > 1
        caches = [(None, None)] * len(self.layers) if cache is None else cache.layers
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            x = layer(x, encoder_output, src_mask, tgt_mask, is_causal, layer_cache, weights)
        return self.norm(x)


class ProjectionLayer(nn.Module):
    """Map hidden states to logits over the target vocabulary (section 3.4)."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_model, vocab_size)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits (..., V) of hidden states x (..., D)."""
        return self.linear(x)


class Transformer(nn.Module):
    """The encoder-decoder of figure 1."""

    def __init__(
        self,
        src_embed: InputEmbeddings,
        tgt_embed: InputEmbeddings,
        src_pos: PositionalEncoding,
        tgt_pos: PositionalEncoding,
        encoder: Encoder,
        decoder: Decoder,
        projection: ProjectionLayer,
    ) -> None:
        super().__init__()
        self.src_embed = src_embed
        self.tgt_embed = tgt_embed
        self.src_pos = src_pos
        self.tgt_pos = tgt_pos
        self.encoder = encoder
        self.decoder = decoder
        self.projection = projection

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """Encode source ids (B, S) under src_mask (B, 1, 1, S) into (B, S, D)."""
        return self.encoder(self.src_pos(self.src_embed(src)), src_mask)

    def decode(
        self,
        encoder_output: Tensor,
        src_mask: Tensor,
        tgt: Tensor,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Decode target ids (B, T) into hidden states (B, T, D); a tgt_mask of None means causal.

        With a cache (`new_cache`), tgt holds only the tokens that follow those decoded before: any
        number of tokens at first, then one at a time. If a list `weights` is given, each layer
        appends its cross-attention weights (B, h, T, S) to it.
        """
        start = 0 if cache is None else cache.length
        assert start == 0 or tgt.size(1) == 1, (
            "with a cache that is not empty, decode one token at a time"
        )
        x = self.tgt_pos(self.tgt_embed(tgt), start)
        return self.decoder(x, encoder_output, src_mask, tgt_mask, cache, weights)

    def project(self, x: Tensor) -> Tensor:
        """Return the logits (..., V) of hidden states x (..., D)."""
        return self.projection(x)

    def forward(
        self, src: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor | None = None
    ) -> Tensor:
        """Return the logits (B, T, V) of the token that follows each target token."""
        return self.project(self.hidden_states(src, src_mask, tgt, tgt_mask))

    def hidden_states(
        self, src: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor | None = None
    ) -> Tensor:
        """Return the decoder's hidden states (B, T, D), which `project` maps to logits."""
        return self.decode(self.encode(src, src_mask), src_mask, tgt, tgt_mask)

    @property
    def tgt_seq_len(self) -> int:
        """The number of target positions that the model has."""
        return self.tgt_pos.table.size(0)

    def new_cache(self) -> DecoderCache:
        """Return an empty cache for `decode`."""
        return DecoderCache(len(self.decoder.layers))


def build_transformer(
    src_vocab_size: int,
    tgt_vocab_size: int,
    src_seq_len: int,
    tgt_seq_len: int,
    d_model: int = 512,
    N: int = 6,
    h: int = 8,
    dropout: float = 0.1,
    d_ff: int = 2048,
    norm: Literal["pre", "post"] = "pre",
    tie_embeddings: Literal["none", "target", "all"] = "none",
    inner_dropout: float | None = None,
) -> Transformer:
    """Build a Transformer with fresh weights: Xavier for the linear maps, normal embeddings.

    The defaults are the paper's base model (table 3). Tied embeddings (section 3.4) share one
    matrix between target embeddings and projection ("target"), or with the source's too ("all").
    `inner_dropout` of None means the same as `dropout`. Raises ValueError for sizes that do not
    fit, and if vocabularies to be shared differ in size.
    """
    if tie_embeddings not in ("none", "target", "all"):
        raise ValueError(f"tie_embeddings ({tie_embeddings!r}) must be none, target or all")
    if tie_embeddings == "all" and src_vocab_size != tgt_vocab_size:
        raise ValueError(
            f"tie_embeddings (all) needs one vocabulary: "
            f"the source has {src_vocab_size} entries, the target {tgt_vocab_size}"
        )
    inner_dropout = dropout if inner_dropout is None else inner_dropout
    sizes = ModelSizes(d_model, N, h, d_ff, dropout, inner_dropout, norm)
    model = Transformer(
        InputEmbeddings(d_model, src_vocab_size),
        InputEmbeddings(d_model, tgt_vocab_size),
        PositionalEncoding(d_model, src_seq_len, dropout),
        PositionalEncoding(d_model, tgt_seq_len, dropout),
        Encoder(sizes),
        Decoder(sizes),
        ProjectionLayer(d_model, tgt_vocab_size),
    )
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    if tie_embeddings != "none":
        model.projection.linear.weight = model.tgt_embed.embedding.weight
    if tie_embeddings == "all":
        model.src_embed.embedding.weight = model.tgt_embed.embedding.weight
    return model
