"""Query-side fine-tuning: its loss, what it skips, what it leaves as it was, and that it survives being killed."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime import files
from eadpr.search import query_side
from eadpr.search.config import Encode, QuerySide
from eadpr.search.encode import encode
from eadpr.search.query_side import QuerySideInputs, Ranker, fine_tune, marginal_loss, measure
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Fold, Question, SetMember
from eadpr.training.encoder import Encoders, load, settings_of
from eadpr.training.state import TrainingState
from tests.killed import assert_goes_on
from tests.small_collection import stages
from tests.training_toy import MACHINE, NAMES, SETTINGS, write_all

pytestmark = pytest.mark.usefixtures("one_thread")

ENCODE = Encode(shard_passages=16, window_passages=16, token_budget=1024)
TUNING = QuerySide(
    seed=3, sets=None, epochs=3, batch_size=4, top_k=30, learning_rate=3e-3, warmup_steps=0, adam_beta1=0.9,
    adam_beta2=0.999, adam_eps=1e-8, weight_decay=0.01, max_grad_norm=1.0, dropout=0.1, attention_dropout=0.1,
    validation_questions=100,
)  # fmt: skip


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A random encoder with its vectors; the roles of questions are those of the training's examples."""
    folder = write_all(tmp_path_factory.mktemp("toy"))
    roles = [Fold(f"q{i}", "validation" if i % 4 == 3 else "train", 0) for i in range(len(NAMES))]
    tables.write(folder / "positives" / "folds.parquet", Fold, roles)
    members = [SetMember("toy", "odd" if i % 2 else "even", f"q{i}") for i in range(len(NAMES))]
    members += [SetMember("toy", "three", f"q{i}") for i in range(len(NAMES)) if i % 4 > 1]
    tables.write(folder / "records" / "question_sets.parquet", SetMember, members)
    encode(folder / "records/passages.parquet", folder / "base", folder / "vectors", settings=ENCODE, hardware=MACHINE)
    return folder


def inputs_of(toy: Path) -> QuerySideInputs:
    return QuerySideInputs(toy / "records", toy / "positives", toy / "base", toy / "vectors")


def tune(toy: Path, out: Path, inputs: QuerySideInputs | None = None, **changes) -> int:
    """Into `out/model` and `out/log`."""
    settings = TUNING.model_copy(update=changes)
    return fine_tune(inputs or inputs_of(toy), out / "model", out / "log", settings=settings, hardware=MACHINE)


def metrics(out: Path) -> dict:
    return json.loads((out / "log" / "metrics.json").read_text())


def test_a_share_below_the_smallest_has_no_gradient():
    scores = torch.tensor([[0.0, -30.0]], requires_grad=True)
    loss = marginal_loss(scores, torch.tensor([[False, True]]))
    loss.backward()
    assert (loss.item(), scores.grad.abs().sum()) == (pytest.approx(-math.log(1e-7)), 0)


@given(data=st.data())
def test_loss_and_gradient_equal_a_naive_loop(data):
    count, top_k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    draw = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    values = draw.normal(0, 3, (count, top_k))
    right = draw.random((count, top_k)) < 0.4
    right[:, 0] |= ~right.any(1)
    absent = draw.random((count, top_k)) < 0.2
    values[absent & ~right] = -np.inf
    fast, slow = (torch.tensor(values, dtype=torch.float64, requires_grad=True) for _ in range(2))
    loss = marginal_loss(fast, torch.from_numpy(right))
    total = torch.zeros((), dtype=torch.float64)
    for i in range(count):
        share = sum(slow[i, k].exp() for k in range(top_k) if right[i, k]) / sum(slow[i, k].exp() for k in range(top_k))
        total = total - torch.log(torch.clamp(share, 1e-7, 1))
    torch.testing.assert_close(loss, total / count)
    loss.backward()
    (total / count).backward()
    torch.testing.assert_close(fast.grad, slow.grad, atol=1e-9, rtol=1e-6)


def test_a_step_of_a_cosine_model_sees_its_scale_as_a_naive_loop_does(toy, tmp_path):
    """Vectors are taken as they are stored; the normalised question alone is learnt from."""
    folder = write_all(tmp_path, SETTINGS.model_copy(update={"similarity": "cosine"}))
    store = PassageStore(toy / "records/passages.parquet")
    encode(store.path, folder / "base", folder / "vectors", settings=ENCODE, hardware=MACHINE)
    stored, encoder = Vectors(folder / "vectors"), load(folder / "base", "question")
    encoder.settings = encoder.settings.model_copy(update={"scale": 5.0})
    assert np.linalg.norm(stored.take(np.arange(len(store))), axis=1) == pytest.approx(np.ones(len(store)), abs=1e-3)
    rows = list(tables.rows(toy / "records/questions.parquet", Question))[:3]
    questions = rows, encoder.question_ids([q.question for q in rows])
    task = query_side.make_task(questions, questions, Ranker(stored, store, 10), TUNING, MACHINE)
    values = task.backward(TrainingState(Encoders(encoder, encoder), TUNING), [0, 1, 2])
    gradients = [p.grad for p in encoder.parameters()]
    encoder.zero_grad()
    losses, passages = [], torch.from_numpy(stored.take(np.arange(len(store)))).float()
    for question, ids in zip(*questions, strict=True):
        mean = encoder.model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0)
        scores = [5.0 * (mean / mean.norm()) @ passage for passage in passages]
        best = sorted(range(len(scores)), key=lambda row: -scores[row].item())[:10]
        right = [scores[row].exp() for row in best if question.answers[0] in store.texts([row])[0]]
        if right:
            losses.append(-torch.log(sum(right) / sum(scores[row].exp() for row in best)))
    assert len(losses) == 3 - values["skipped"] > 0
    (sum(losses) / len(losses)).backward()
    assert values["loss"] == pytest.approx((sum(losses) / len(losses)).item(), rel=1e-5)
    torch.testing.assert_close(gradients, [p.grad for p in encoder.parameters()], atol=1e-5, rtol=1e-3)


def test_questions_whose_answers_no_text_can_hold_are_not_asked(toy, tmp_path):
    rows = list(tables.rows(toy / "records/questions.parquet", Question))
    rows[3] = rows[3]._replace(answers=["yes"], answer_kind="yes-no")
    rows[7] = rows[7]._replace(answers=[])
    tables.write(tmp_path / "questions.parquet", Question, rows)
    inputs, encoder = inputs_of(toy)._replace(records=tmp_path), load(toy / "base", "question")
    questions = query_side._read_role(inputs, "validation", encoder, TUNING)
    assert [question.id for question in questions[0]] == [f"q{i}" for i in range(11, len(rows), 4)]
    assert questions[1] == encoder.question_ids([question.question for question in questions[0]])
    two = TUNING.model_copy(update={"validation_questions": 2})
    assert len(query_side._read_role(inputs, "validation", encoder, two)[0]) == 2


def test_only_questions_of_the_named_sets_are_asked(toy):
    """All validation questions are odd, so that they are taken where the sets hold none."""
    encoder = load(toy / "base", "question")
    even, odd = (TUNING.model_copy(update={"sets": [f"toy/{name}"]}) for name in ("even", "odd"))
    questions, _ = query_side._read_role(inputs_of(toy), "train", encoder, even)
    assert [question.id for question in questions] == [f"q{i}" for i in range(len(NAMES)) if not i % 2]
    validated = [query_side._read_role(inputs_of(toy), "validation", encoder, conf)[1] for conf in (even, odd, TUNING)]
    assert validated[0] == validated[1] == validated[2]


def test_top_1_rises_on_fixed_vectors(toy, tmp_path):
    assert tune(toy, tmp_path, epochs=20, dropout=0.0, attention_dropout=0.0) == 60
    question, stored = load(tmp_path / "model", "question"), Vectors(toy / "vectors")
    questions = list(tables.rows(toy / "records/questions.parquet", Question))
    ranker = Ranker(stored, PassageStore(toy / "records/passages.parquet"), 40)
    top1 = {}
    for name, encoder in (("before", load(toy / "base", "question")), ("after", question)):
        vectors = query_side.embed(encoder, encoder.question_ids([q.question for q in questions]))
        top1[name] = measure(ranker(vectors, questions)[1])["top1"]
    assert top1["after"] > top1["before"] + 0.2, top1
    logged = metrics(tmp_path)
    assert logged["validation"]["average_rank"] < logged["validation_before"]["average_rank"]
    assert (logged["steps"], logged["questions"]) == (60, 15)


def test_word_embeddings_and_the_passage_encoder_stay(toy, tmp_path, monkeypatch):
    ranks = iter([4.0, 3.0, 2.0, 1.0])
    monkeypatch.setattr(query_side, "measure", lambda _: {"average_rank": next(ranks)})
    tune(toy, tmp_path)
    assert metrics(tmp_path)["kept_step"] == 9
    base, tuned = (load(folder, "question") for folder in (toy / "base", tmp_path / "model"))
    both = zip(base.named_parameters(), tuned.parameters(), strict=True)
    changed = {name for (name, a), b in both if not torch.equal(a, b)}
    same = {name for name, _ in base.named_parameters()} - changed
    kinds = {n for n in same if n.endswith("token_type_embeddings.weight")}
    assert same == {"model.embeddings.word_embeddings.weight"} | kinds
    old_sha, new_sha = (files.tree_sha256(folder / "passage_encoder") for folder in (toy / "base", tmp_path / "model"))
    assert (old_sha, settings_of(tmp_path / "model")) == (new_sha, SETTINGS)


def test_a_batch_without_answers_teaches_nothing(toy):
    encoder, store = load(toy / "base", "question"), PassageStore(toy / "records/passages.parquet")
    rows = [Question("n", "n?", ["nowhere to be found"], "string", *[None] * 4)] * 2
    questions = rows, encoder.question_ids([question.question for question in rows])
    task = query_side.make_task(questions, questions, Ranker(Vectors(toy / "vectors"), store, 5), TUNING, MACHINE)
    assert task.backward(TrainingState(Encoders(encoder, encoder), TUNING), [0, 1]) == {"skipped": 2.0}
    assert all(parameter.grad is None for parameter in encoder.parameters())


@pytest.mark.parametrize("step", [1, 3, 4, 6])
def test_a_run_that_died_at_any_step_ends_with_the_same_bytes(toy, tmp_path, monkeypatch, step):
    def train(out):
        tune(toy, out, epochs=2)

    assert_goes_on(train, "query_side", at=step, steps=6, folder=tmp_path, monkeypatch=monkeypatch)


def test_what_cannot_be_learnt_from_is_refused(toy, tmp_path):
    folds = list(tables.rows(toy / "positives/folds.parquet", Fold))
    without = inputs_of(toy)._replace(positives=tmp_path)
    tables.write(tmp_path / "folds.parquet", Fold, [fold for fold in folds if fold.role == "train"])
    with pytest.raises(ValueError, match=r"folds\.parquet: no question of role validation has an answer"):
        tune(toy, tmp_path, without)
    with pytest.raises(ValueError, match=r"is (nan|inf|not finite); lower query_side\.learning_rate"):
        tune(toy, tmp_path, learning_rate=1e38, max_grad_norm=1e30)


def test_stage(toy, tmp_path):
    config = tmp_path / "query_side.json"
    files.write_json(config, {"query_side": TUNING.model_dump(), "machine": MACHINE.model_dump()})
    paths = {"config": config} | inputs_of(toy)._asdict() | {"out": tmp_path / "model", "log": tmp_path / "log"}
    done = stages(("query_side", {f"--{name}": path for name, path in paths.items()}, tmp_path / "cache"))
    assert (done.returncode, done.stdout) == (0, "query_side: 9 steps\n"), done.stderr
