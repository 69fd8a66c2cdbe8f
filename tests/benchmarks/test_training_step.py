"""The benchmark of a training step compares equal work."""

import torch

from benchmarks import inputs, peers, training_step
from config import Config

CPU = torch.device("cpu")
TINY = dict(d_model=16, N=1, h=2, d_ff=32, seq_len=350, shared_vocab=True)


def test_batches_count_their_target_tokens():
    for batch in inputs.phrasebook_batches(300, 3):
        assert batch.tokens == (batch.tgt_out != inputs.PAD).sum() == len(batch.target_positions)
        assert max(batch.src.numel(), batch.tgt_in.numel()) <= 300
        assert (batch.tgt_in[:, 0] == inputs.SOS).all()
        assert torch.equal(batch.tgt_in[:, 1:], batch.tgt_out[:, :-1].where(
            batch.tgt_out[:, :-1] != inputs.EOS, batch.tgt_in[:, 1:]
        ))  # fmt: skip


def test_matrix_products_of_a_step_are_recorded_and_repeated(monkeypatch):
    monkeypatch.setattr(inputs, "VOCABULARY", 50)
    run = training_step.new_run(Config(**TINY, dropout=0.0), "fp32", CPU)
    batch = inputs.phrasebook_batches(300, 1)[0]
    with training_step.MatrixProducts() as products:
        training_step.train_update(run, [batch])
    # Encoder 4, decoder 7, projection 1; each once forward, and twice backward.
    linear = [call for call in products.calls if call[0].overloadpacket.__name__ != "bmm"]
    assert len(linear) == 3 * (4 + 7 + 1)
    products.again()()


def test_peer_has_our_size_and_learns(monkeypatch):
    monkeypatch.setattr(inputs, "VOCABULARY", 50)
    config = Config(**TINY, dropout=0.0)
    ours, peer = (training_step.new_run(config, "fp32", CPU) for _ in range(2))
    size = sum(p.numel() for p in ours.model.parameters())
    peer.model = training_step.TorchTransformer(config, peer.model)
    assert sum(p.numel() for p in peer.model.parameters()) == size
    peer.optimizer = torch.optim.Adam(peer.model.parameters(), lr=1e-2, fused=True)
    batch = inputs.phrasebook_batches(300, 1)[0]

    def loss():
        with torch.no_grad():
            logits = peer.model(batch.src, batch.src_mask, batch.tgt_in)
            return peers.cross_entropy_sum(logits, batch.tgt_out, inputs.PAD).item()

    before = loss()
    for _ in range(5):
        training_step.plain_step(peer, batch, inputs.PAD)
    assert loss() < before


def test_the_original_way_pads_eight_pairs_to_350():
    batch = inputs.phrasebook_batches(300, 1)[0]
    padded = training_step.padded_as_in_the_original(batch, inputs.PAD)
    assert {ids.shape for ids in (padded.src, padded.tgt_in, padded.tgt_out)} == {(8, 350)}
    assert padded.tokens == (batch.tgt_out[:8] != inputs.PAD).sum() == len(padded.target_positions)
    assert torch.equal(padded.src_mask[:, 0, 0], padded.src != inputs.PAD)
