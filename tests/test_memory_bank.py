"""MDR's memory bank: what it holds, what it is a negative of, the loss against a naive loop, and its training."""

import json
from collections import deque

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime import files
from eadpr.storage.passages import PassageStore
from eadpr.training.encoder import load, load_pair
from eadpr.training.forward import Encoders, encoded
from eadpr.training.losses import loss_terms
from eadpr.two_hops import memory
from eadpr.two_hops.config import MemoryBank
from eadpr.two_hops.memory import EMPTY, Memory, follow, rows_of, with_memory
from tests.killed import assert_goes_on
from tests.multihop_toy import TWO_HOP, write_all
from tests.test_multihop_training import ONE, batcher_of, naive
from tests.test_multihop_training import train as train_hops
from tests.training_toy import MACHINE, series, with_placebos

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("toy"))


def train(toy, out, *, size=20, momentum=0.9, **changes) -> int:
    bank = MemoryBank(size=size, momentum=momentum)
    return train_hops(toy, out, two_hop=TWO_HOP.model_copy(update={"memory": bank}), **changes)


def filled(rows: list[int], size: int, dim: int = 3) -> Memory:
    """With random vectors of the passages `rows`."""
    bank = Memory(size, dim)
    bank.push(torch.randn(len(rows), dim, generator=torch.Generator().manual_seed(1)), torch.tensor(rows))
    return bank


@given(st.integers(1, 7), st.lists(st.integers(0, 12), max_size=6))
def test_it_holds_the_last_passages(size, counts):
    bank, naive, number = Memory(size, 1), deque(maxlen=size), 0
    for count in counts:
        rows = torch.arange(number, number + count)
        bank.push(rows[:, None].float(), rows)
        naive.extend(rows.tolist())
        number += count
    held = [row for row in bank.rows_K.tolist() if row != EMPTY]
    assert sorted(held) == list(naive)
    both = zip(bank.vectors_KD.tolist(), bank.rows_K.tolist(), strict=True)
    assert [vector for (vector,), row in both if row >= 0] == held


def test_no_gradient_goes_through_it():
    bank = Memory(2, 1)
    bank.push(torch.ones(1, 1, requires_grad=True), torch.tensor([3]))
    assert not bank.vectors_KD.requires_grad


def test_a_passage_is_no_negative_of_the_queries_it_answers():
    """Two questions with the passages 1, 2 and 3, 4 at their hops; the last place is empty."""
    bank = filled([1, 2, 3, 4, 5], 6)
    assert bank.negatives(torch.tensor([1, 3, 2, 4])).int().tolist() == [
        [0, 0, 1, 1, 1, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 0, 1, 1, 1, 0],
        [1, 1, 1, 0, 1, 0],
    ]


def test_rows_are_those_of_the_first_passages_of_a_batch(toy):
    """Positives of both hops, then hard negatives, each once; what follows are distractors."""
    store = PassageStore(toy / "records" / "passages.parquet")
    batcher = batcher_of(toy)
    for number in range(4):
        batch = batcher.sampled(number, size=3, seed=1)
        rows, positives = (found.tolist() for found in rows_of(batch))
        assert positives == [rows[i] for i in batch.columns_P[:6]]
        assert sorted(set(batch.columns_P[:12].tolist())) == list(range(len(rows)))
        _, encoder = load_pair(toy / "base", ONE)
        titles, texts = (of(rows) for of in (store.titles, store.texts))
        assert [ids.tolist() for ids in batch.passages[: len(rows)]] == encoder.passage_ids(titles, texts)


def test_rows_of_positives_that_questions_share(toy):
    """q0 and q8 ask after the same firm."""
    batcher = batcher_of(toy)
    names = batcher.examples.question_ids[::2]
    _, positives_Q = rows_of(batcher.first([names.index("q0"), names.index("q8")]))
    store = PassageStore(toy / "records" / "passages.parquet")
    assert store.ids(positives_Q.tolist()) == ["w0", "w8", "f0", "f0"]


def test_the_loss_is_that_of_a_naive_loop_over_queries_and_the_bank(toy):
    batch = batcher_of(toy, mask=False).sampled(0, size=3, seed=1)
    _, positives_Q = rows_of(batch)
    positives = positives_Q.tolist()
    stored = [*positives, *(row for row in range(30) if row not in positives)][:20]
    encoders = Encoders(*load_pair(toy / "base", ONE))
    bank = filled(stored, 24, dim=encoders.passage.dim)
    with torch.no_grad():
        vectors = encoded(encoders, batch, MACHINE)
        found, masks = with_memory(vectors, batch.masks, bank, positives_Q)
        remembered = (vectors.questions_QD @ bank.vectors_KD.T).double()
        total_scores = found.scores().double()
    has = masks.distractors_LQQ[0].diagonal().tolist()

    def allowed(i: int, k: int) -> bool:
        answers = [positives[i], positives[i + 3]] if i < 3 else [positives[i]]
        return k < len(stored) and stored[k] not in answers

    weights = {"lambda_": 0.7, "tau1": 0.5, "tau2": 2.0}
    of_bank = [[remembered[i, k] for k in range(24) if allowed(i, k)] for i in range(6)]
    hops, questions = [0, 0, 0, 1, 1, 1], [0, 1, 2] * 2
    expected = naive(vectors.scores().double(), hops, questions, has, **weights, remembered=of_bank)
    assert loss_terms(total_scores, masks, form="paper", **weights).total.item() == pytest.approx(expected, rel=1e-6)
    empty, unchanged = with_memory(vectors, batch.masks, Memory(4, encoders.passage.dim), positives_Q)
    both = ((empty, unchanged), (vectors, batch.masks))
    one, two = (loss_terms(v.scores(), m, form="paper", **weights).total.item() for v, m in both)
    assert one == pytest.approx(two, rel=1e-6)


def test_the_bank_stands_before_distractors_and_placebos(toy, tmp_path):
    """L_HN of balanced pairs does not see it; where its places are empty, nothing does."""
    batch = batcher_of(with_placebos(toy, tmp_path), balance="placebo").sampled(0, size=5, seed=1)
    _, positives_Q = rows_of(batch)
    encoders = Encoders(*load_pair(toy / "base", ONE))
    with torch.no_grad():
        vectors = encoded(encoders, batch, MACHINE)
    weights = {"lambda_": 1.0, "tau1": 1.0, "tau2": 1.0, "balance": "placebo", "placebo": 1.0}

    def terms(*found):
        return torch.stack(loss_terms(found[0].scores(), found[1], form="paper", **weights))

    alone = terms(vectors, batch.masks)
    banks = [Memory(4, encoders.passage.dim) for _ in range(2)]
    banks[1].push(vectors.passages_ND[:4], torch.arange(90, 94))  # as of other passages
    empty, full = (terms(*with_memory(vectors, batch.masks, bank, positives_Q)) for bank in banks)
    torch.testing.assert_close(empty, alone)
    assert (full > alone + 1e-4).tolist() == [True, True, False, True, False, True]
    torch.testing.assert_close(full[2], alone[2])


def weights_of(folder, side):
    return load(folder, side).state_dict()


def test_passages_follow_by_their_momentum(toy):
    slow, fast = (load(toy / "base", "passage") for _ in range(2))
    with torch.no_grad():
        for parameter in fast.parameters():
            parameter.add_(1.0)
    before = {name: value.clone() for name, value in slow.named_parameters()}
    follow(slow, fast, 0.9)
    for name, value in slow.named_parameters():
        torch.testing.assert_close(value, before[name] + 0.1)


@pytest.mark.parametrize("momentum", [1.0, 0.5])
def test_the_model_has_two_encoders_of_which_queries_learn(toy, tmp_path, momentum):
    """With a momentum of 1 passages keep the encoder that training began with."""
    assert train(toy, tmp_path, momentum=momentum, steps=3) == 3
    start, question, passage = (
        weights_of(folder, side)
        for folder, side in (
            (toy / "base", "passage"),
            (tmp_path / "model", "question"),
            (tmp_path / "model", "passage"),
        )
    )
    assert all(torch.equal(start[name], passage[name]) for name in start) == (momentum == 1.0)
    assert not all(torch.equal(question[name], passage[name]) for name in start)
    assert json.loads((tmp_path / "model" / "encoder.json").read_text())["shared"] is False


def test_a_step_sees_the_bank_of_the_steps_before(toy, tmp_path, monkeypatch):
    """Both batches of the first step see none; those of the second see what both brought, more than 20 passages."""
    seen = []

    def noted(vectors, masks, bank, positives_Q, inner=memory.with_memory):
        seen.append(int((bank.rows_K == EMPTY).sum()))
        return inner(vectors, masks, bank, positives_Q)

    monkeypatch.setattr(memory, "with_memory", noted)
    train(toy, tmp_path, steps=3, accumulation=2)
    assert (len(seen), seen[:2], seen[2:]) == (6, [20, 20], [0] * 4)
    loss = series(tmp_path, "train/loss")
    seen.clear()
    train(toy, tmp_path / "one", steps=3, size=1)
    assert seen == [1, 0, 0]
    assert series(tmp_path / "one", "train/loss") != loss


def test_what_a_batch_brings_enters_the_bank_once(toy, tmp_path, monkeypatch):
    pushed = []
    monkeypatch.setattr(Memory, "push", lambda bank, vectors, rows: pushed.append(len(rows)))
    train(toy, tmp_path, steps=3, accumulation=2)
    assert len(pushed) == 6


def test_without_places_there_is_no_bank(toy, tmp_path):
    for name, momentum in (("a", 1.0), ("b", 0.5)):
        train(toy, tmp_path / name, size=0, momentum=momentum, steps=2)
    assert files.tree_sha256(tmp_path / "a") == files.tree_sha256(tmp_path / "b")
    sides = [tmp_path / "a" / "model" / f"{side}_encoder" / "model.safetensors" for side in ("question", "passage")]
    assert files.sha256(sides[0]) == files.sha256(sides[1])


@pytest.mark.parametrize("at", [1, 3])
def test_a_training_that_died_goes_on_with_its_bank(toy, tmp_path, monkeypatch, at):
    def run(out) -> None:
        train(toy, out, steps=4, keep="best", validate_every=2, accumulation=2)

    assert_goes_on(run, "train", at=at, steps=4, folder=tmp_path, monkeypatch=monkeypatch)
