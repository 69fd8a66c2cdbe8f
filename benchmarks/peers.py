"""What we measure against: other implementations, and the matrix products of a step alone."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.inputs import EOS, PAD, SOS
from config import Config
from dataset import Batch, padding_mask
from model import Transformer
from training.loss import cross_entropy_sum
from training.run import Run
from translation.engine import import_ctranslate2, to_spec


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` with our embeddings and projection."""

    def __init__(self, config: Config, ours: Transformer) -> None:
        super().__init__()
        assert config.inner_dropout is None, "torch.nn.Transformer has one dropout for all"
        self.ours = ours  # for its embeddings and projection; its layers are not used
        sizes = (config.d_model, config.h, config.d_ff, config.dropout)
        options = dict(batch_first=True, norm_first=config.norm == "pre")
        # Built from its parts, because nn.Transformer warns about nested tensors with pre-norm.
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **options),
            config.N,
            nn.LayerNorm(config.d_model),
            enable_nested_tensor=False,
        )
        self.layers = nn.Transformer(
            config.d_model, config.h, num_decoder_layers=config.N, dim_feedforward=config.d_ff,
            dropout=config.dropout, custom_encoder=encoder, **options,
        )  # fmt: skip
        ours.encoder, ours.decoder = nn.Identity(), nn.Identity()

    def forward(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        padding = ~src_mask[:, 0, 0]
        size = tgt.size(1)
        x = self.layers(
            self.ours.src_pos(self.ours.src_embed(src)),
            self.ours.tgt_pos(self.ours.tgt_embed(tgt)),
            tgt_mask=torch.ones(size, size, dtype=torch.bool, device=tgt.device).triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.ours.project(x)


def import_transformers() -> ModuleType:
    """Return the optional library; raises ValueError with the pip command if it is missing."""
    try:
        import transformers
    except ImportError:
        raise ValueError(
            "transformers is not installed: pip install -r requirements-dev.txt"
        ) from None
    return transformers


class Marian(nn.Module):
    """`MarianMTModel` of Hugging Face's transformers, with the sizes of ours.

    It is the original's post-norm, and its embeddings and projection are its own.
    """

    def __init__(self, config: Config, ours: Transformer) -> None:
        super().__init__()
        assert config.inner_dropout is None, "the peers have one dropout for all"
        transformers = import_transformers()
        src_vocab_size = ours.src_embed.embedding.num_embeddings
        tgt_vocab_size = ours.tgt_embed.embedding.num_embeddings
        self.model = transformers.MarianMTModel(
            transformers.MarianConfig(
                vocab_size=src_vocab_size,
                decoder_vocab_size=tgt_vocab_size,
                share_encoder_decoder_embeddings=False,
                tie_word_embeddings=False,
                d_model=config.d_model,
                encoder_layers=config.N,
                decoder_layers=config.N,
                encoder_attention_heads=config.h,
                decoder_attention_heads=config.h,
                encoder_ffn_dim=config.d_ff,
                decoder_ffn_dim=config.d_ff,
                activation_function="relu",
                dropout=config.dropout,
                attention_dropout=config.dropout,
                activation_dropout=config.dropout,
                max_position_embeddings=config.seq_len,
                scale_embedding=True,
                use_cache=False,
                pad_token_id=PAD,
                eos_token_id=EOS,
                decoder_start_token_id=SOS,
            )
        )

    def forward(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        return self.model(
            input_ids=src, attention_mask=src_mask[:, 0, 0].long(), decoder_input_ids=tgt
        ).logits


def plain_step(run: Run, batch: Batch, pad_id: int) -> None:
    """Do an update like tutorials: all logits at once, one mean loss, clipping, step."""
    precision = run.precision
    with torch.autocast(run.device.type, precision, enabled=precision != torch.float32):
        logits = run.model(batch.src, batch.src_mask, batch.tgt_in)
        loss = cross_entropy_sum(logits, batch.tgt_out, pad_id, 0.1) / batch.tokens
    loss.backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)


class MatrixProducts(TorchDispatchMode):
    """Records all matrix products, forward and backward, and can repeat them alone."""

    OPERATORS = ("mm", "addmm", "bmm", "baddbmm")

    def __init__(self) -> None:
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function.overloadpacket.__name__ in self.OPERATORS:
            kinds = [(a.shape, a.stride(), a.dtype, a.device) for a in arguments]
            self.calls.append((function, kinds))
        return function(*arguments, **(options or {}))

    def again(self) -> Callable[[], None]:
        """Return a function that repeats the recorded products, on random numbers."""
        made = {}
        for _, kinds in self.calls:
            for shape, stride, dtype, device in kinds:
                tensor = torch.empty_strided(shape, stride, dtype=dtype, device=device)
                made[shape, stride, dtype] = tensor.normal_()
        calls = [(f, [made[kind[:3]] for kind in kinds]) for f, kinds in self.calls]

        def work() -> None:
            for function, arguments in calls:
                function(*arguments)

        return work


def padded_as_in_the_original(batch: Batch, pad_id: int) -> Batch:
    """Return the first 8 pairs of a batch, padded to 350 tokens like in the original tutorial."""
    padded = {
        name: nn.functional.pad(ids, (0, 350 - ids.size(1)), value=pad_id)
        for name in ("src", "tgt_in", "tgt_out")
        for ids in [getattr(batch, name)[:8]]
    }
    positions = (padded["tgt_out"] != pad_id).flatten().nonzero().flatten()
    mask = padding_mask(padded["src"], pad_id)
    return replace(
        batch, src_mask=mask, target_positions=positions, tokens=len(positions), **padded
    )


def decode_without_cache(
    model: Transformer, src: Tensor, src_mask: Tensor, sos_id: int, length: int
) -> list[list[int]]:
    """Decode greedily like tutorials: all target tokens again at each step."""
    encoder_output = model.encode(src, src_mask)
    tgt = src.new_full((len(src), 1), sos_id)
    for _ in range(length):
        x = model.decode(encoder_output, src_mask, tgt)
        tgt = torch.cat([tgt, model.project(x[:, -1:]).argmax(-1)], dim=1)
    return tgt[:, 1:].tolist()


class CTranslate2:
    """CTranslate2 on the CPU with the same weights and number of threads.

    `vocabulary` has the entries by id. Raises ValueError if the library is not installed.
    """

    def __init__(
        self, model: Transformer, config: Config, vocabulary: list[str], compute_type: str
    ) -> None:
        self.vocabulary = vocabulary
        self.ids = {token: i for i, token in enumerate(vocabulary)}
        with tempfile.TemporaryDirectory() as folder:
            to_spec(model, config, vocabulary, vocabulary).save(folder)
            self.engine = import_ctranslate2().Translator(
                folder,
                device="cpu",
                intra_threads=torch.get_num_threads(),
                compute_type=compute_type,
            )

    def decode(self, src: Tensor, length: int, beam_size: int) -> list[list[int]]:
        """Return exactly `length` tokens for each row of src (B, S), which has no padding."""
        results = self.engine.translate_batch(
            [[self.vocabulary[i] for i in row[1:-1]] for row in src.tolist()],
            beam_size=beam_size,
            min_decoding_length=length,
            max_decoding_length=length,
        )
        return [[self.ids[token] for token in each.hypotheses[0]] for each in results]
