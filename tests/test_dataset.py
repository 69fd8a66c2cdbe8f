"""Batches hold each pair once, waste little, and hide what must be hidden."""

import json

import numpy as np
import pytest
import torch
from datasets import Dataset

from corpus.tokenizer import TokenizerPair, tokenizer_from_json
from corpus.vocabulary import build_tokenizer
from dataset import (
    BilingualDataset,
    causal_mask,
    form_batches,
    padded_length,
    padding_mask,
    source_batches,
)

PAIRS = [("one two", "uno due tre"), ("one", "uno"), ("two one two one", "due"), ("two", "due tre")]


def make_dataset(pairs=PAIRS, seq_len=20, tokenizers=None):
    sides = list(zip(*pairs, strict=True))
    if tokenizers is None:
        tokenizers = [build_tokenizer(list(texts), "word", 100, 1) for texts in sides]
    rows = Dataset.from_dict({"src_text": sides[0], "tgt_text": sides[1]})
    return BilingualDataset(rows, TokenizerPair(*tokenizers), seq_len)


def random_lens(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    src = rng.integers(3, 40, n)
    return src, np.clip(src + rng.integers(-5, 6, n), 2, None)


def test_causal_mask_allows_a_position_and_those_before():
    mask = causal_mask(3)
    assert mask.dtype == torch.bool and mask.shape == (1, 1, 3, 3)
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_padding_mask_hides_only_padding():
    mask = padding_mask(torch.tensor([[5, 6, 1], [5, 1, 1]]), pad_id=1)
    assert mask.dtype == torch.bool and mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_an_item_is_shifted_by_one_between_input_and_output():
    dataset = make_dataset()
    src, tgt = dataset.tokenizers.src, dataset.tokenizers.tgt
    item = dataset[0]
    assert item["src"] == [src.sos_id, *src.encode("one two"), src.eos_id]
    assert item["tgt_in"] == [tgt.sos_id, *tgt.encode("uno due tre")]
    assert item["tgt_out"] == [*tgt.encode("uno due tre"), tgt.eos_id]
    assert (dataset.src_lens[0], dataset.tgt_lens[0]) == (4, 4)


def test_batch_is_padded_to_its_longest_and_counts_target_tokens():
    dataset = make_dataset()
    batch = dataset.batch([0, 1])
    assert batch.src.shape == (2, 4) and batch.tgt_in.shape == batch.tgt_out.shape == (2, 4)
    assert batch.src_mask[:, 0, 0].tolist() == [[True] * 4, [True, True, True, False]]
    assert batch.tokens == 4 + 2
    assert batch.indices == [0, 1]


def test_each_side_is_padded_by_its_own_pad_id():
    tokenizer_src = build_tokenizer(["one two"], "word", 100, 1)
    tokenizer_tgt = swap_ids(build_tokenizer(["uno due tre"], "word", 100, 1), "[UNK]", "[PAD]")
    dataset = make_dataset(tokenizers=(tokenizer_src, tokenizer_tgt))
    batch = dataset.batch([0, 1])
    assert batch.src[1].tolist()[-1] == tokenizer_src.pad_id == 1
    assert batch.tgt_in[1].tolist()[-2:] == batch.tgt_out[1].tolist()[-2:] == [0, 0]
    assert tokenizer_tgt.pad_id == 0


def swap_ids(tokenizer, one, other):
    """Return a tokenizer in which two tokens have each other's id."""
    state = json.loads(tokenizer.to_json())
    vocabulary = state["model"]["vocab"]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    for token in state["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    state["added_tokens"].sort(key=lambda token: token["id"])
    return tokenizer_from_json(json.dumps(state), "swapped")


def test_pair_that_just_fits_is_kept_and_a_longer_one_is_reported(capsys):
    # Two tokens around the source, one before the target.
    words = [" ".join(["one"] * n) for n in (13, 14, 15, 16)]
    dataset = make_dataset([(text, "uno") for text in words], seq_len=16)
    assert dataset.src_lens.tolist() == [15, 16]
    assert "2 of 4 pairs" in capsys.readouterr().out
    dataset = make_dataset([("one", text.replace("one", "uno")) for text in words], seq_len=16)
    assert dataset.tgt_lens.tolist() == [14, 15, 16]
    assert "--seq_len 17 keeps them all" in capsys.readouterr().out


def test_items_after_a_dropped_pair_keep_their_texts():
    dataset = make_dataset([("one " * 30, "uno"), ("two", "due")], seq_len=10)
    assert len(dataset) == 1
    assert dataset.texts("src_text") == ["two"]
    assert dataset[0]["src"][1:-1] == dataset.tokenizers.src.encode("two")


def test_error_for_only_long_pairs_names_the_length_that_keeps_them():
    with pytest.raises(ValueError, match=r"seq_len \(4\).*--seq_len 12"):
        make_dataset([("one " * 10, "uno")], seq_len=4)


def test_control_tokens_in_the_corpus_do_not_become_ids():
    dataset = make_dataset([("one [PAD] two [EOS]", "uno [SOS]")])
    item = dataset[0]
    src = dataset.tokenizers.src
    assert [item["src"].count(i) for i in (src.sos_id, src.eos_id, src.pad_id)] == [1, 1, 0]


@pytest.mark.parametrize("seed", [None, (3, 1)])
@pytest.mark.parametrize("batch_size", [None, 7])
def test_every_pair_is_in_one_batch_within_the_budget(seed, batch_size):
    src, tgt = random_lens()
    batches = form_batches(src, tgt, 256, batch_size, seed)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(src)))
    for batch in batches:
        longest = padded_length(max(src[batch].max(), tgt[batch].max()))
        assert len(batch) == 1 or len(batch) * longest <= 256
        assert batch_size is None or len(batch) <= batch_size


def test_pair_over_the_budget_has_its_own_batch():
    batches = form_batches(np.array([5, 50, 5]), np.array([5, 5, 5]), 20)
    assert [sorted(batch.tolist()) for batch in batches] == [[0, 2], [1]]


def test_batches_are_a_function_of_seed_and_epoch():
    src, tgt = random_lens()

    def batches(seed, epoch):
        return [batch.tolist() for batch in form_batches(src, tgt, 256, seed=(seed, epoch))]

    assert batches(0, 1) == batches(0, 1)
    assert batches(0, 1) != batches(0, 2) and batches(0, 1) != batches(1, 1)
    # Not only the order of the batches changes, but who is together.
    assert sorted(map(sorted, batches(0, 1))) != sorted(map(sorted, batches(0, 2)))


def test_less_than_6_percent_of_real_batches_is_padding(shared_data):
    for folder, langs in (("multi30k", ("en", "de")), ("tatoeba_en_it", ("en", "it"))):
        lens = []
        for lang in langs:
            path = shared_data / folder / f"train.{lang}"
            texts = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
            tokenizer = build_tokenizer(texts, "word", 30000, 2)
            lens.append(np.array([len(ids) for ids in tokenizer.encode_batch(texts)]))
        src, tgt = lens[0] + 2, lens[1] + 1
        padded = sum(
            len(batch) * (padded_length(src[batch].max()) + padded_length(tgt[batch].max()))
            for batch in form_batches(src, tgt, 4096, seed=(0, 0))
        )
        assert (src.sum() + tgt.sum()) / padded > 0.94


def test_sources_to_translate_come_with_their_places_and_masks():
    tokenizer = make_dataset().tokenizers.src
    sources = [tokenizer.encode(text) for text in ("two one two", "one", "", "two two")]
    seen = []
    for indices, src, src_mask in source_batches(sources, tokenizer, batch_tokens=8):
        for i, ids, mask in zip(indices, src.tolist(), src_mask[:, 0, 0].tolist(), strict=True):
            real = [token for token, shown in zip(ids, mask, strict=True) if shown]
            assert real == [tokenizer.sos_id, *sources[i], tokenizer.eos_id]
            seen.append(i)
    assert sorted(seen) == [0, 1, 2, 3]


def test_the_source_is_masked_by_its_own_pad_id():
    tokenizer_src = build_tokenizer(["one two"], "word", 100, 1)
    tokenizer_tgt = swap_ids(build_tokenizer(["uno due tre"], "word", 100, 1), "[UNK]", "[PAD]")
    dataset = make_dataset(tokenizers=(tokenizer_src, tokenizer_tgt))
    batch = dataset.batch([0, 1])
    assert batch.src_mask[:, 0, 0].tolist() == [[True] * 4, [True, True, True, False]]


def test_a_batch_fills_its_budget_to_the_last_token():
    lens = np.array([5, 5, 5, 5])
    assert [len(batch) for batch in form_batches(lens, lens, 10)] == [2, 2]


def test_batches_with_a_seed_are_not_sorted_by_length():
    src, tgt = random_lens()
    for seed, by_length in ((None, True), ((0, 0), False)):
        batches = form_batches(src, tgt, 256, seed=seed)
        longest = [padded_length(max(src[b].max(), tgt[b].max())) for b in batches]
        assert (longest == sorted(longest)) is by_length


@pytest.mark.parametrize(
    ("device", "is_pinned", "in_background"),
    [("cuda", True, True), ("cuda", False, False), ("mps", False, False), ("mps", True, False),
     ("cpu", False, False)],
)  # fmt: skip
def test_only_a_copy_from_pinned_memory_to_cuda_is_asynchronous(
    monkeypatch, device, is_pinned, in_background
):
    # No such device is needed: what counts is how the copy is asked for.
    dataset = make_dataset()
    batch = dataset.collate([dataset[0], dataset[1]])
    asked = []

    def to(tensor, device, non_blocking=False):
        asked.append((str(device), non_blocking))
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: is_pinned)
    batch.to(torch.device(device))
    assert asked == [(device, in_background)] * 5


def test_padding_adds_at_most_an_eighth_and_leaves_few_lengths():
    lengths = np.arange(1, 351)
    padded = padded_length(lengths)
    assert (padded >= lengths).all() and (padded <= lengths * 9 / 8).all()
    assert padded[:16].tolist() == lengths[:16].tolist()
    assert len(set(padded.tolist())) == 16 + 8 * 4 + 3
    assert (padded_length(padded) == padded).all()


def test_the_longest_length_decides_how_many_pairs_a_batch_has():
    src, tgt = random_lens(20_000)
    longest = padded_length(np.maximum(src, tgt))
    batches = form_batches(src, tgt, 1000, seed=(0, 0))
    shapes = {(len(batch), int(longest[batch].max())) for batch in batches}
    sizes = {length: size for size, length in shapes}
    assert len(batches) > 400 and len(shapes) <= len(sizes) + 1  # the last one may be smaller
    assert all(size <= 16 or size % 2 == 0 for size in sizes.values())


def batch_of_lists(dataset, indices):
    """The same batch as `BilingualDataset.batch`, from lists of ids, one by one."""
    items = [dataset[index] for index in indices]

    def pad(name, pad_id):
        rows = [item[name] for item in items]
        length = min(int(padded_length(max(map(len, rows)))), dataset.seq_len)
        return torch.tensor([row + [pad_id] * (length - len(row)) for row in rows])

    src_pad_id, tgt_pad_id = dataset.pad_ids
    src, tgt_in, tgt_out = (
        pad("src", src_pad_id),
        pad("tgt_in", tgt_pad_id),
        pad("tgt_out", tgt_pad_id),
    )
    positions = (tgt_out != tgt_pad_id).flatten().nonzero().flatten()
    return [indices, src, padding_mask(src, src_pad_id), tgt_in, tgt_out, positions, len(positions)]


@pytest.mark.parametrize("seq_len", [17, 40])
def test_batches_from_arrays_equal_those_from_lists(seq_len):
    rng = np.random.default_rng(0)
    pairs = [
        (" ".join(rng.choice(["one", "two"], n)), " ".join(rng.choice(["uno", "due"], m)))
        for n, m in rng.integers(1, 35, (300, 2))
    ]
    dataset = make_dataset(pairs, seq_len)
    batches = form_batches(dataset.src_lens, dataset.tgt_lens, 150, seed=(0, 0))
    assert len(batches) > 4
    for indices in batches:
        batch = dataset.batch(indices)
        names = ("indices", "src", "src_mask", "tgt_in", "tgt_out", "target_positions", "tokens")
        for name, expected in zip(names, batch_of_lists(dataset, indices.tolist()), strict=True):
            found = getattr(batch, name)
            assert torch.equal(found, expected) if torch.is_tensor(found) else found == expected


def test_a_loader_of_items_gives_the_same_batches():
    dataset = make_dataset()
    loader = torch.utils.data.DataLoader(dataset, batch_size=3, collate_fn=dataset.collate)
    assert [batch.indices for batch in loader] == [[0, 1, 2], [3]]
    assert torch.equal(next(iter(loader)).src, dataset.batch([0, 1, 2]).src)


def test_ids_are_memory_mapped_and_a_cut_file_is_written_again(tmp_path):
    tokenizers = [
        build_tokenizer(list(texts), "word", 100, 1) for texts in zip(*PAIRS, strict=True)
    ]
    sides = list(zip(*PAIRS, strict=True))
    Dataset.from_dict({"src_text": sides[0], "tgt_text": sides[1]}).save_to_disk(tmp_path / "rows")
    rows = Dataset.load_from_disk(tmp_path / "rows")

    def items():
        dataset = BilingualDataset(rows, TokenizerPair(*tokenizers), 20)
        assert not dataset.src_ids.flags.owndata and not dataset.src_ids.flags.writeable
        return [dataset[i] for i in range(len(dataset))]

    before = items()
    files = list((tmp_path / "rows").glob("ids-*.bin"))
    assert len(files) == 2 and before == [make_dataset()[i] for i in range(len(PAIRS))]
    for file in files:
        file.write_bytes(file.read_bytes()[:-4])
    assert items() == before
