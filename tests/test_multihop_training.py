"""Batches of two hops, their loss against a naive loop, and their training."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Distractor, Example
from eadpr.training.encoder import load_pair
from eadpr.training.example_set import read_examples
from eadpr.training.forward import EncodedBatch
from eadpr.training.losses import Masks, hn_loss, loss_terms
from eadpr.two_hops.batches import HopBatcher, hop_masks, pair_hops
from eadpr.two_hops.hops import second_ids, without_question_mark
from eadpr.two_hops.train import ArmInputs, ArmSettings, train_multihop
from tests.killed import assert_goes_on
from tests.multihop_toy import SETTINGS, TWO_HOP, write_all
from tests.training_toy import BALANCED, DPR, EADPR, MACHINE, TRAIN, series, with_placebos

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.two_hops]

ONE = SETTINGS.model_copy(update={"shared": True})


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("toy"))


def train(toy: Path, out: Path, *, loss=EADPR, two_hop=TWO_HOP, settings=SETTINGS, **changes) -> int:
    """Train into `out/model` and `out/log`."""
    sections = ArmSettings(loss, TRAIN.model_copy(update=changes), settings, MACHINE)
    inputs = ArmInputs(toy / "records", toy / "examples", toy / "base")
    return train_multihop(inputs, out / "model", out / "log", sections, two_hop)


def hops_of(toy: Path, role: str = "train", *, distractors: bool = True, placebos: bool = False):
    store = PassageStore(toy / "records" / "passages.parquet")
    loss = (BALANCED if placebos else EADPR) if distractors else DPR
    examples = read_examples(toy / "examples", toy / "records", store, role, loss, {})
    return pair_hops(examples, toy / "records", store), store


def batcher_of(
    toy: Path, *, hard: int = 1, mask: bool = True, distractors: bool = True, balance: str = "none", size: int = 4
) -> HopBatcher:
    hops, store = hops_of(toy, distractors=distractors, placebos=balance != "none")
    loss = EADPR.model_copy(update={"mask_false_negatives": mask, "balance": balance})
    train = TRAIN.model_copy(update={"hard_negatives": hard, "batch_size": size})
    encoders = load_pair(toy / "base", ONE)
    return HopBatcher(hops, store, encoders, loss, train, query_tokens=TWO_HOP.query_tokens)


def test_hops_stand_side_by_side_in_their_order(toy, tmp_path):
    hops, store = hops_of(toy)
    pairs = list(zip(*[iter(store.ids(hops.examples.positives))] * 2, strict=True))
    assert pairs[:3] == [("w0", "f0"), ("w1", "f1"), ("w2", "f2")]
    assert pairs[-3:] == [("w0", "w1"), ("w2", "w3"), ("w4", "w5")]
    assert hops.unordered.tolist() == [False] * 15 + [True] * 3
    assert all(a == b for a, b in zip(hops.examples.questions[::2], hops.examples.questions[1::2], strict=True))
    assert hops.left_out == 0
    rows = list(tables.rows(toy / "examples/examples.parquet", Example))
    tables.write(tmp_path / "examples.parquet", Example, rows[::-1])
    turned = read_examples(tmp_path, toy / "records", store, "train", DPR, {})
    same = pair_hops(turned, toy / "records", store).examples
    assert same.positives.tolist() == hops.examples.positives.tolist()
    tables.write(tmp_path / "examples.parquet", Example, [row for row in rows if row.positive not in ("w1", "f2")])
    examples = read_examples(tmp_path, toy / "records", store, "train", DPR, {})
    fewer = pair_hops(examples, toy / "records", store)
    # Of q1, q2, q10 and q18 one hop is no example, as of c0, which compares w0 and w1.
    assert (len(fewer.unordered), fewer.left_out, fewer.unordered.tolist().count(True)) == (13, 5, 2)


def test_the_mark_at_the_end_of_a_question_is_no_part_of_a_query(toy):
    queries = [without_question_mark(text) for text in ("who? ", "who?", "who", "?", "a? b")]
    assert queries == ["who", "who", "who", "", "a? b"]
    question, _ = load_pair(toy / "base", ONE)
    inputs = second_ids(question, ["who?"], ["one two"], 16)
    assert inputs[0].tolist() == question.tokenizer("who?", "one two")["input_ids"]  # one mark is stripped, not two
    assert [len(ids) for ids in second_ids(question, ["who"], ["one two " * 90], 9)] == [9]
    with pytest.raises(ValueError, match=r"two_hop.query_tokens must not exceed the 512 positions .* found 513"):
        second_ids(question, ["who"], ["a"], 513)


def test_masks_between_the_hops_of_a_question():
    """Two questions, so rows and columns a1 b1 a2 b2, then a hard negative beside each but b1, then distractors; b2 has
    none.

    Before, each row has all but its own positive and what is taken for a false negative: another positive of its
    question, and the hard negative beside its other hop where that holds an answer."""
    negatives = ~torch.cat([torch.eye(4), torch.zeros(4, 4)], dim=1).bool()
    distractors = torch.ones(4, 4, dtype=torch.bool)
    distractors[:, 3] = False
    negatives[:, 5] = False
    negatives[2, 0] = distractors[2, 0] = negatives[2, 4] = negatives[1, 7] = False
    negatives[3, 4] = False  # of another question, so it stays one
    masks = Masks(negatives, distractors, torch.ones(1, 4, dtype=torch.bool), torch.tensor([True] * 3 + [False]))
    changed, restored = hop_masks(masks)
    assert changed.placebos_Q is masks.placebos_Q
    assert restored == 4
    expected = [[0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 1, 0, 1, 0, 1, 1], [1, 1, 0, 1, 1, 0, 1, 1], [1, 1, 1, 0, 0, 0, 1, 1]]
    assert changed.negatives_QN.int().tolist() == expected
    assert changed.distractors_QQ.int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0]]


def texts_of(batcher: HopBatcher, rows) -> list[str]:
    decode = batcher.inputs._encoder.tokenizer.decode
    return [decode(ids, skip_special_tokens=True).strip() for ids in rows]


def test_a_batch_holds_both_queries_and_the_distractors_of_their_own_hop(toy):
    batcher = batcher_of(toy)
    batch = batcher.first([0, 1])
    questions = texts_of(batcher, batch.questions)
    assert questions[:2] == ["where was the firm of alman founded", "where was the firm of alster founded"]
    for first, second, text in zip(questions[:2], questions[2:], ("alman works for", "alster works for"), strict=True):
        assert second.startswith(first)
        assert text in second
        assert "fond of walks" in second  # whole
    columns = [texts_of(batcher, batch.passages)[i] for i in batch.columns_P.tolist()]
    assert ["works for" in text for text in columns[:4]] == [True, True, False, False]
    assert columns[4:8] == [f"{n} {n} wrote letters." for n in ("alman", "alster", "alster", "alvik")]
    # The last two are distractors of hop 2; that of the first question is missing, so its column is the positive's.
    assert [text.split(".")[0] for text in columns[8:]] == [
        "alman is fond of walks", "alster is fond of walks", "ardco was founded in aron", "belltec has many customers",
    ]  # fmt: skip
    assert batch.masks.distractors_QQ.diagonal().tolist() == [True, True, False, True]
    assert (batch.counts["without_distractor"], batch.counts["truncated"]) == (1, 0)
    negatives = batch.masks.negatives_QN
    assert [bool(negatives[cell]) for cell in ((0, 2), (1, 3), (2, 0), (3, 1))] == [False, False, True, True]
    assert (batch.counts["masked"], int((~negatives).sum())) == (0, 4 + 2)


def test_false_negatives_of_other_questions_are_masked_and_counted(toy):
    """q0 and q8 ask after the same firm: f0 is the second passage of both, and neither's negative."""
    batcher = batcher_of(toy)
    names = batcher.examples.question_ids[::2]
    batch = batcher.first([names.index("q0"), names.index("q8")])
    assert [ids.tolist() for ids in batch.passages].count(batch.passages[int(batch.columns_P[2])].tolist()) == 1
    negatives = batch.masks.negatives_QN[:, :4].int().tolist()
    assert negatives == [[0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    # Columns of f0 of the other question, from both rows of each; and q8's distractor of f0 for both rows of q0.
    assert batch.counts["masked"] == 4 + 2
    assert batcher_of(toy, mask=False).first([names.index("q0"), names.index("q8")]).counts["masked"] == 0


def test_own_hard_negatives_are_negatives_of_both_hops(toy):
    """c0 has n0 beside hop 1, which holds its answer; with one hop a question's own hard negatives are never masked."""
    batcher = batcher_of(toy)
    batch = batcher.first([batcher.examples.question_ids[::2].index("c0")])
    assert batch.masks.negatives_QN.int().tolist() == [[0, 0, 1, 1], [1, 0, 1, 1]]
    assert batch.counts["masked"] == 0
    assert batcher_of(toy, hard=0).first([0]).masks.negatives_QN.int().tolist() == [[0, 0], [1, 0]]


def test_only_comparisons_are_turned_and_only_some_times(toy):
    batcher = batcher_of(toy)
    hops, _ = hops_of(toy)
    length = len(hops.unordered)
    orders: dict[str, set[str]] = {}
    for number in range(8 * (length // TRAIN.batch_size)):
        batch, again = batcher.sampled(number), batcher.sampled(number)
        assert [q.tolist() for q in again.questions] == [q.tolist() for q in batch.questions]
        for first, second in zip(*np.split(np.array(texts_of(batcher, batch.questions), object), 2), strict=True):
            orders.setdefault(first, set()).add(second)
    counts = {query: len(seconds) for query, seconds in orders.items()}
    assert {n for query, n in counts.items() if "older" in query} == {2}
    assert {n for query, n in counts.items() if "older" not in query} == {1}


def naive(scores, hop_of, question_of, has, lambda_, tau1, tau2) -> float:
    """MDR's two losses with EADPR's terms, query by query; columns are positives, hard negatives, distractors."""
    queries = len(hop_of)
    hard = scores.shape[1] - 2 * queries
    dpr, hn, pp = [], [], []
    for i in range(queries):

        def other_hop(j, i=i):
            return hop_of[i] == 0 and question_of[j] == question_of[i]  # of hop 2, which hop 1 does not count

        positive, pseudo = scores[i, i].exp(), scores[i, queries + hard + i].exp()
        negatives = [scores[i, j].exp() for j in range(queries) if j != i and not other_hop(j)]
        negatives += [scores[i, queries + h].exp() for h in range(hard)]
        apart = [scores[i, queries + hard + j].exp() for j in range(queries) if j != i and has[j] and not other_hop(j)]
        dpr.append(-(positive / (positive + sum(negatives) + lambda_ * has[i] * pseudo)).log())
        if has[i]:
            hn.append(-(positive / (positive + pseudo)).log())
            pp.append(-(pseudo / (pseudo + sum(negatives) + sum(apart))).log())
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    return float(mean(dpr) + tau1 * mean(hn) + tau2 * mean(pp))


def test_the_loss_is_that_of_a_naive_loop_over_queries(toy):
    batch = batcher_of(toy, mask=False).first([0, 1, 15])
    encoders = load_pair(toy / "base", ONE)
    with torch.no_grad():
        scores = EncodedBatch(encoders, batch, MACHINE).scores().double()
    has = batch.masks.distractors_QQ.diagonal().tolist()
    assert has == [True, True, True, False, True, True]
    weights = {"lambda_": 0.7, "tau1": 0.5, "tau2": 2.0}
    total = loss_terms(scores, batch.masks, form="paper", **weights).total.item()
    assert total == pytest.approx(naive(scores, [0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, has, **weights), rel=1e-9)


def test_each_hop_has_the_placebo_of_its_own_passage(toy, tmp_path):
    """The first question has none at hop 1, and no distractor at hop 2."""
    folder = with_placebos(toy, tmp_path / "toy")
    rows = list(tables.rows(folder / "examples/examples.parquet", Example))
    tables.write(folder / "examples/examples.parquet", Example, rows[::-1])
    batcher = batcher_of(folder, balance="placebo", size=18)
    batch = batcher.first([0, 1])
    columns = [texts_of(batcher, batch.passages)[i] for i in batch.columns_P.tolist()]
    sentences = ["alster works for belltec.", "ardco was founded in aron.", "belltec was founded in belm."]
    assert columns[-4:] == [columns[0], *sentences]
    assert batch.masks.contrast_CQ.tolist() == [[False, True, False, True]]
    assert (batch.counts["without_placebo"], batch.counts["without_distractor"], batch.counts["truncated"]) == (1, 1, 0)
    train(folder, tmp_path, loss=BALANCED, steps=1, batch_size=18, dropout=0.0, attention_dropout=0.0)
    batch = batcher.sampled(0)
    scores = EncodedBatch(load_pair(toy / "base", ONE), batch, MACHINE).scores()
    expected = hn_loss(scores, batch.masks, balance="placebo").item()
    assert series(tmp_path, "train/hn") == pytest.approx([expected], rel=1e-5)
    metrics = json.loads((tmp_path / "log" / "metrics.json").read_text())
    assert (metrics["without_placebo"], metrics["without_distractor"]) == (1, 1)
    assert min(series(tmp_path, "train/placebo")) > 0


def test_it_learns_both_hops_with_one_encoder(toy, tmp_path):
    assert train(toy, tmp_path, steps=60, batch_size=8, validate_every=30, dropout=0.0, attention_dropout=0.0) == 60
    loss, ranks = series(tmp_path, "train/loss"), series(tmp_path, "validation/average_rank")
    assert sum(loss[-10:]) / 10 < 0.6 * loss[0]
    sides = [tmp_path / "model" / f"{side}_encoder" / "model.safetensors" for side in ("question", "passage")]
    assert files.sha256(sides[0]) == files.sha256(sides[1])
    metrics = json.loads((tmp_path / "log" / "metrics.json").read_text())
    assert (metrics["steps"], metrics["questions"], metrics["left_out"], metrics["without_negatives"]) == (60, 18, 0, 0)
    assert (metrics["without_distractor"], metrics["truncated"]) == (1, 0)
    assert metrics["validation"]["average_rank"] == ranks[-1]
    train(toy, tmp_path / "none", steps=0)
    assert ranks[-1] < series(tmp_path / "none", "validation/average_rank")[0]


def test_a_training_that_died_ends_with_the_same_bytes(toy, tmp_path, monkeypatch):
    def run(out: Path) -> None:
        train(toy, out, steps=4, keep="best", validate_every=2)

    assert_goes_on(run, "train", at=3, steps=4, folder=tmp_path, monkeypatch=monkeypatch)


def test_what_cannot_be_trained_on_is_refused(toy, tmp_path):
    folder = write_all(tmp_path / "own")
    rows = list(tables.rows(folder / "examples/examples.parquet", Example))
    tables.write(folder / "examples/distractors.parquet", Distractor, [])
    with pytest.raises(ValueError, match="holds no distractors, but the loss needs them"):
        train(folder, tmp_path)
    firsts = list({row.question_id: row for row in reversed(rows)}.values())
    tables.write(folder / "examples/examples.parquet", Example, firsts)
    with pytest.raises(ValueError, match=r"no question with both hops \(18 lack one\)"):
        train(folder, tmp_path)
    with pytest.raises(ValueError, match="keep: best needs validation questions"):
        train(toy, tmp_path, keep="best", validation_questions=0)
    assert not (tmp_path / "model").exists()
