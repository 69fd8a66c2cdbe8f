"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), leaves first, model last.

Dimension letters in shapes: B sentences, S source tokens, T target tokens, Q queries, K keys,
D = d_model, h heads, V vocabulary. Masks are boolean, True = may attend, and broadcast to
(B, h, Q, K). A `tgt_mask` of None means causal.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dropout import Dropout

Norm = Literal["pre", "post"]


class InputEmbeddings(nn.Module):
    """Look token ids up as vectors, scaled by sqrt(d_model) (section 3.4)."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.embedding = nn.Embedding(vocab_size, d_model)
        # With this spread the scaled vectors have unit variance, about that of the positions added
        # to them, and the same matrix serves as a projection with logits of unit variance.
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.embedding(x) * self.scale  # (B, T) -> (B, T, D)


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
        """Encode the positions `start` to `start + T`; ValueError past the end of the table."""
        end = start + x.size(1)
        if end > self.table.size(0):
            raise ValueError(f"{end} tokens are more than seq_len ({self.table.size(0)})")
        return self.dropout(x + self.table[start:end])


class KeyValueCache:
    """The keys and values that one attention has computed, (B, h, K, D / h) each."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> None:
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in their order."""
        self.keys, self.values = self.keys[rows], self.values[rows]


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
    ) -> Tensor:
        """Let each position of x attend to `memory`, or to x itself when there is none.

        x is (B, Q, D), memory (B, K, D), the result (B, Q, D). With a cache, self-attention adds
        the keys and values of x to those before; a memory's are computed once and kept.
        """
        if cache is None:
            keys, values = self.keys_and_values(x if memory is None else memory)
        else:
            if memory is None:
                cache.append(*self.keys_and_values(x))
            elif cache.keys is None:
                cache.append(*self.keys_and_values(memory))
            keys, values = cache.keys, cache.values
        x = F.scaled_dot_product_attention(
            self.split_heads(self.w_q(x)),
            keys,
            values,
            attn_mask=mask,
            # The function drops whatever the module's mode is.
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
        )  # (B, h, Q, D / h)
        return self.w_o(x.transpose(1, 2).flatten(2))  # (B, Q, D)

    def weights(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the weights (B, h, Q, K) of `forward`, for looking at; it does not make them."""
        queries, (keys, _) = self.split_heads(self.w_q(x)), self.keys_and_values(memory)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.size(-1))
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(dim=-1)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.split_heads(self.w_k(memory)), self.split_heads(self.w_v(memory))

    def split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)  # (B, K, D) -> (B, h, K, D / h)


class FeedForwardBlock(nn.Module):
    """Two linear maps with a ReLU between them, at each position alone (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.dropout(F.relu(self.w_1(x))))  # (B, T, D)


class ResidualConnection(nn.Module):
    """A sublayer with the residual around it and its layer normalisation (sections 3.1 and 5.4).

    "post" is the paper's norm(x + sublayer(x)); "pre" is x + sublayer(norm(x)), which trains
    without a careful warm-up.
    """

    def __init__(self, sublayer: nn.Module, d_model: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"norm ({norm!r}) must be pre or post")
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        """Apply the sublayer to x (B, T, D); what follows x is handed to the sublayer."""
        if self.pre:
            return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
        return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))


class EncoderBlock(nn.Module):
    """One layer of the encoder: self-attention, then feed-forward (section 3.1)."""

    def __init__(
        self, d_model: int, h: int, dropout: float, d_ff: int, norm: Norm, inner_dropout: float
    ) -> None:
        super().__init__()
        attention = MultiHeadAttentionBlock(d_model, h, inner_dropout)
        feed_forward = FeedForwardBlock(d_model, d_ff, inner_dropout)
        self.self_attention = ResidualConnection(attention, d_model, dropout, norm)
        self.feed_forward = ResidualConnection(feed_forward, d_model, dropout, norm)

    def forward(self, x: Tensor, src_mask: Tensor) -> Tensor:
        x = self.self_attention(x, mask=src_mask)
        return self.feed_forward(x)  # (B, S, D)


class Encoder(nn.Module):
    """N encoder layers; with pre-norm, one more normalisation at the end."""

    def __init__(
        self,
        d_model: int,
        N: int,
        h: int,
        dropout: float,
        d_ff: int,
        norm: Norm,
        inner_dropout: float,
    ) -> None:
        super().__init__()
        sizes = (d_model, h, dropout, d_ff, norm, inner_dropout)
        self.layers = nn.ModuleList(EncoderBlock(*sizes) for _ in range(N))
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(self, x: Tensor, src_mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, src_mask)
        return self.norm(x)  # (B, S, D)


class DecoderBlock(nn.Module):
    """One layer of the decoder: self-attention, cross-attention, feed-forward (section 3.1)."""

    def __init__(
        self, d_model: int, h: int, dropout: float, d_ff: int, norm: Norm, inner_dropout: float
    ) -> None:
        super().__init__()
        self_attention = MultiHeadAttentionBlock(d_model, h, inner_dropout)
        cross_attention = MultiHeadAttentionBlock(d_model, h, inner_dropout)
        feed_forward = FeedForwardBlock(d_model, d_ff, inner_dropout)
        self.self_attention = ResidualConnection(self_attention, d_model, dropout, norm)
        self.cross_attention = ResidualConnection(cross_attention, d_model, dropout, norm)
        self.feed_forward = ResidualConnection(feed_forward, d_model, dropout, norm)

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor,
        src_mask: Tensor,
        tgt_mask: Tensor | None,
        is_causal: bool,
        cache: tuple[KeyValueCache, KeyValueCache] = (None, None),
    ) -> Tensor:
        x = self.self_attention(x, mask=tgt_mask, is_causal=is_causal, cache=cache[0])
        x = self.cross_attention(x, encoder_output, mask=src_mask, cache=cache[1])
        return self.feed_forward(x)  # (B, T, D)


class DecoderCache:
    """What the decoder has computed for the target tokens so far, for decoding one by one."""

    def __init__(self, N: int) -> None:
        self.layers = [(KeyValueCache(), KeyValueCache()) for _ in range(N)]

    @property
    def length(self) -> int:
        """Number of target tokens already decoded."""
        keys = self.layers[0][0].keys
        return 0 if keys is None else keys.size(2)

    def select(self, rows: Tensor, of_memory: bool = True) -> None:
        """Keep the given rows of the batch, in their order; of self-attention alone on request."""
        for self_attention, cross_attention in self.layers:
            self_attention.select(rows)
            if of_memory:
                cross_attention.select(rows)


class Decoder(nn.Module):
    """N decoder layers; with pre-norm, one more normalisation at the end."""

    def __init__(
        self,
        d_model: int,
        N: int,
        h: int,
        dropout: float,
        d_ff: int,
        norm: Norm,
        inner_dropout: float,
    ) -> None:
        super().__init__()
        sizes = (d_model, h, dropout, d_ff, norm, inner_dropout)
        self.layers = nn.ModuleList(DecoderBlock(*sizes) for _ in range(N))
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor,
        src_mask: Tensor,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        # One query alone may attend to all that is cached before it. For several, the flag alone
        # lets the fast kernels serve; it may not be combined with a mask.
        is_causal = tgt_mask is None and x.size(1) > 1
        caches = [(None, None)] * len(self.layers) if cache is None else cache.layers
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            x = layer(x, encoder_output, src_mask, tgt_mask, is_causal, layer_cache)
        return self.norm(x)  # (B, T, D)


class ProjectionLayer(nn.Module):
    """Map vectors to logits over the target vocabulary (section 3.4)."""

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_model, vocab_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)  # (B, T, D) -> (B, T, V)


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
    ) -> Tensor:
        """Decode target ids (B, T) into (B, T, D); a tgt_mask of None means causal.

        With a cache (`new_cache`), tgt holds only what follows the tokens decoded before: any
        number of tokens at first, then one at a time.
        """
        start = 0 if cache is None else cache.length
        assert start == 0 or tgt.size(1) == 1, (
            "the causal flag is wrong for a later group of tokens"
        )
        x = self.tgt_pos(self.tgt_embed(tgt), start)
        return self.decoder(x, encoder_output, src_mask, tgt_mask, cache)

    def project(self, x: Tensor) -> Tensor:
        """Return the logits (B, T, V) of decoded vectors (B, T, D)."""
        return self.projection(x)

    def forward(
        self, src: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor | None = None
    ) -> Tensor:
        """Return the logits (B, T, V) of the token that follows each target token."""
        return self.project(self.vectors(src, src_mask, tgt, tgt_mask))

    def vectors(
        self, src: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor | None = None
    ) -> Tensor:
        """Return the vectors (B, T, D) that `project` makes logits of."""
        return self.decode(self.encode(src, src_mask), src_mask, tgt, tgt_mask)

    @property
    def tgt_seq_len(self) -> int:
        """The most target tokens that the model has positions for."""
        return self.tgt_pos.table.size(0)

    def new_cache(self) -> DecoderCache:
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
    norm: Norm = "pre",
    tie_embeddings: Literal["none", "target", "all"] = "none",
    inner_dropout: float | None = None,
) -> Transformer:
    """Build a Transformer with fresh weights: Xavier for the linear maps, normal embeddings.

    The defaults are the paper's base model (table 3). Tied embeddings (section 3.4) share one
    matrix between target embeddings and projection ("target"), or with the source's too ("all").
    `inner_dropout` is of attention weights and inside the feed-forward: as `dropout` when None.
    Raises ValueError when the vocabularies to be shared differ in size.
    """
    if tie_embeddings not in ("none", "target", "all"):
        raise ValueError(f"tie_embeddings ({tie_embeddings!r}) must be none, target or all")
    if tie_embeddings == "all" and src_vocab_size != tgt_vocab_size:
        raise ValueError(
            f"tie_embeddings (all) needs one vocabulary: "
            f"the source has {src_vocab_size} entries, the target {tgt_vocab_size}"
        )
    if inner_dropout is None:
        inner_dropout = dropout
    layers = (d_model, N, h, dropout, d_ff, norm, inner_dropout)
    model = Transformer(
        InputEmbeddings(d_model, src_vocab_size),
        InputEmbeddings(d_model, tgt_vocab_size),
        PositionalEncoding(d_model, src_seq_len, dropout),
        PositionalEncoding(d_model, tgt_seq_len, dropout),
        Encoder(*layers),
        Decoder(*layers),
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
