"""`loss.scale` and the similarity of an encoder: every score that a loss sees, against naive loops, and the search."""

import json
import math

import numpy as np
import pytest
import torch

from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode, Faiss, Retrieve
from eadpr.search.encode import encode
from eadpr.search.retrieve import retrieve
from eadpr.storage import tables
from eadpr.storage.records import Passage, Question, Ranked, SetMember
from eadpr.training import contrastive, forward
from eadpr.training.arm import ArmInputs, ArmSettings, prepare_encoders, train_arm
from eadpr.training.config import Loss
from eadpr.training.encoder import Encoders, TextEncoder, load, load_pair, settings_of
from tests.training_toy import DPR, EADPR, MACHINE, PLAIN, SETTINGS, TRAIN, batcher_of, series, with_placebos, write_all

pytestmark = pytest.mark.usefixtures("one_thread")

COSINE = SETTINGS.model_copy(update={"similarity": "cosine"})
WEIGHTS = {"lambda": 0.3, "dpr": 0.8, "tau1": 0.7, "tau2": 1.5}
PARTS = {"lambda": 0.0, "dpr": 0.0, "tau1": 0.0, "tau2": 0.0}
LOSSES = [Loss.model_validate(PLAIN | changes) for changes in (
    WEIGHTS, WEIGHTS | {"balance": "placebo", "placebo": 0.5}, WEIGHTS | {"balance": "both", "placebo": 0.5},
    PARTS | {"dpr": 1.0}, PARTS | {"tau1": 1.0}, PARTS | {"tau2": 1.0}, PARTS | {"placebo": 1.0},
    PARTS | {"tau1": 1.0, "balance": "placebo"}, PARTS | {"tau1": 1.0, "balance": "both"},
    WEIGHTS | {"form": "reference", "dpr": 1.0}, WEIGHTS | {"stop_gradient": "symmetric"},
    WEIGHTS | {"stop_gradient": "passage"}, WEIGHTS | {"anchor": "passage", "lambda": 0.0},
)]  # fmt: skip


@pytest.fixture(scope="module")
def placed(toy, tmp_path_factory):
    """The collection with placebos."""
    return with_placebos(toy, tmp_path_factory.mktemp("placed"))


@pytest.fixture
def in_double(monkeypatch):
    """All of a step in float64, so that a gradient is the same to 1e-9 and no rounding hides a mistake."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def direction(encoder: TextEncoder, ids: list[int]) -> torch.Tensor:
    """Return the mean state of a text, of length 1."""
    states = encoder.model(input_ids=torch.tensor(ids)[None]).last_hidden_state[0]
    mean = sum(states) / len(states)
    return mean / (mean * mean).sum().sqrt()


def nll(target: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    return -torch.log(target.exp() / (target.exp() + sum(other.exp() for other in others)))


def mean(values: list[torch.Tensor]) -> torch.Tensor | float:
    return sum(values) / len(values) if values else 0.0


def naive_loss(questions, passages, batch, loss: Loss, scale: float) -> torch.Tensor:
    """The loss of a batch, question by question; `questions` and `passages` are lists of vectors."""
    questions = [v.detach() for v in questions] if loss.stop_gradient == "question" else questions
    fixed = loss.stop_gradient in ("passage", "symmetric")
    columns = [passages[row].detach() if fixed else passages[row] for row in batch.columns_P.tolist()]
    count, masks = len(questions), batch.masks
    wide = masks.negatives_QN.shape[1]
    s = [[scale * (question.double() * column.double()).sum() for column in columns] for question in questions]
    has = masks.distractors_QQ.diagonal().tolist()
    dpr, hn, pp, placebos, plain, flipped = [], [], [], [], [], []
    for i in range(count):
        positive, distractor = s[i][i], s[i][wide + i]
        negatives = [s[i][n] for n in range(wide) if masks.negatives_QN[i, n]]
        others = [s[i][wide + j] for j in range(count) if j != i and masks.distractors_QQ[i, j]]
        flipped.append(nll(positive, [s[j][i] for j in range(count) if masks.negatives_QN[j, i]]))
        if loss.form == "reference":  # what is masked stays as e^0
            inside = [s[i][n] if masks.negatives_QN[i, n] else 0 * positive for n in range(count) if n != i]
            hard, zeros = wide - count, [0 * positive]
            dpr.append(nll(positive, [*inside, *zeros * (hard + count - 1), distractor * has[i] * loss.lambda_]))
            every = [s[i][n] if masks.negatives_QN[i, n] else 0 * positive for n in range(wide) if n != i]
            plain.append(nll(positive, [*every, *zeros * count]))
            if has[i]:
                hn.append(nll(positive, [*zeros * (wide - 1 + count - 1), distractor]))
                apart = [s[i][wide + j] if masks.distractors_QQ[i, j] else 0 * positive for j in range(count) if j != i]
                pp.append(nll(distractor, [*inside, *zeros * (hard + 1), *apart]))
            continue
        dpr.append(
            nll(positive, negatives + ([distractor + math.log(loss.lambda_)] if has[i] and loss.lambda_ else []))
        )
        targets = {"none": [positive], "placebo": ["placebo"], "both": [positive, "placebo"]}[loss.balances]
        targets = [s[i][wide + count + i] if target == "placebo" else target for target in targets]
        compared = [nll(t, [distractor]) for t, true in zip(targets, masks.contrast_CQ[:, i], strict=True) if true]
        hn += [mean(compared)] if compared else []
        if has[i]:
            pp.append(nll(distractor, negatives + others))
        if len(masks.placebos_Q) and masks.placebos_Q[i]:
            placebos.append(nll(s[i][wide + count + i], negatives))
    first = flipped if loss.anchor == "passage" else dpr
    total = loss.dpr * mean(first) + loss.tau1 * mean(hn) + loss.tau2 * mean(pp) + mean(plain)
    return total + (loss.placebo * mean(placebos) if loss.placebo else 0)


def naive_total(encoders: Encoders, batch, loss: Loss, scale: float) -> torch.Tensor:
    questions = [direction(encoders.question, ids) for ids in batch.questions]
    passages = [direction(encoders.passage, ids) for ids in batch.passages]
    total = naive_loss(questions, passages, batch, loss, scale)
    if loss.stop_gradient != "symmetric":
        return total
    plain = {"lambda": 0.0, "tau1": 0.0, "tau2": 0.0, "anchor": "passage", "stop_gradient": "question"}
    back = Loss.model_validate(loss.model_dump() | plain)
    return (total + naive_loss(questions, passages, batch, back, scale)) / 2


def started(folder, loss: Loss, *, shared: bool = False, cached: bool = False) -> tuple[Encoders, ArmSettings]:
    train = TRAIN.model_copy(
        update={"dropout": 0.0, "attention_dropout": 0.0, "gradient_cache": 60 if cached else None}
    )
    settings = ArmSettings(loss, train, COSINE.model_copy(update={"shared": shared}), MACHINE)
    return prepare_encoders(Encoders(*load_pair(folder / "base", settings.encoder)), settings), settings


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_a_step_by_cosine_and_scale_equal_a_naive_loop(placed, loss, cached):
    """20 is the scale of cosine; each comparison of `both` weighs half."""
    encoders, settings = started(placed, loss, shared=cached, cached=cached)
    for encoder in encoders:
        encoder.double()
    batch = batcher_of(placed, placebos=loss.needs_placebos, balance=loss.balances).sampled(0, size=5, seed=2)
    terms = contrastive.add_gradient(encoders, batch, settings, share=1.0)
    parameters = list(dict.fromkeys(p for encoder in encoders for p in encoder.parameters()))
    found = [p.grad for p in parameters]
    for parameter in parameters:
        parameter.grad = None
    expected = naive_total(encoders, batch, loss, 20.0)
    expected.backward()
    assert terms[0].item() == pytest.approx(expected.item(), rel=1e-9)
    for gradient, parameter in zip(found, parameters, strict=True):
        assert (gradient is None) == (parameter.grad is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, parameter.grad, atol=1e-9, rtol=1e-9)
    assert any(gradient is not None and gradient.abs().max() > 1e-3 for gradient in found)


def test_a_scale_of_one_changes_no_bit():
    questions, passages = torch.randn(3, 8), torch.randn(4, 8)
    found = forward.BatchVectors(questions, passages, torch.tensor([3, 0, 1, 2]), 1.0).scores()
    assert torch.equal(found, (questions @ passages.T)[:, [3, 0, 1, 2]])
    twice = forward.BatchVectors(questions, passages, torch.tensor([3, 0, 1, 2]), 2.0).scores()
    assert torch.equal(twice, 2 * found)


def test_validation_sees_the_scale_in_its_loss_and_not_in_its_ranks(toy):
    measured = {}
    for scale in ("auto", 20.0, 3.0):
        encoders, settings = started(toy, DPR.model_copy(update={"scale": scale}))
        batcher = batcher_of(toy, distractors=False)
        measured[scale] = contrastive.validate(encoders, batcher, range(4), settings)
        with torch.no_grad():
            expected = naive_total(encoders, batcher.first(range(4)), DPR, 3.0 if scale == 3.0 else 20.0).item()
        assert measured[scale].nll == pytest.approx(expected, rel=1e-5)
    assert measured["auto"] == measured[20.0]
    assert len({round(values.nll, 3) for values in measured.values()}) == 2
    assert len({values.average_rank for values in measured.values()}) == 1


def train(folder, out, init, *, scale, settings=SETTINGS) -> list[float]:
    """The losses of two steps into `out/model` and `out/log`."""
    inputs = ArmInputs(folder / "records", folder / "examples", init)
    loss = EADPR.model_copy(update={"scale": scale})
    changes = {"steps": 2, "dropout": 0.0, "attention_dropout": 0.0, "learning_rate": 1e-9}
    train_arm(
        inputs, out / "model", out / "log", ArmSettings(loss, TRAIN.model_copy(update=changes), settings, MACHINE)
    )
    return series(out, "train/loss")


def test_a_model_keeps_the_scale_that_it_was_trained_with_and_only_where_it_is_unusual(toy, tmp_path):
    by_dot = train(toy, tmp_path / "dot", toy / "base", scale="auto")
    assert "scale" not in json.loads((tmp_path / "dot/model/encoder.json").read_text())
    assert train(toy, tmp_path / "one", toy / "base", scale=1.0) == by_dot
    assert files.tree_sha256(tmp_path / "one") == files.tree_sha256(tmp_path / "dot")
    seven = train(toy, tmp_path / "seven", toy / "base", scale=7.0, settings=COSINE)
    assert settings_of(tmp_path / "seven/model").scale == 7.0
    again = train(toy, tmp_path / "again", tmp_path / "seven/model", scale="auto", settings=COSINE)
    assert again == pytest.approx(seven, rel=1e-4)
    assert settings_of(tmp_path / "again/model").scale == 7.0
    usual = train(toy, tmp_path / "usual", tmp_path / "seven/model", scale=20.0, settings=COSINE)
    assert settings_of(tmp_path / "usual/model").loss_scale == 20.0
    assert len({round(losses[0], 3) for losses in (by_dot, seven, usual)}) == 3
    train(toy, tmp_path / "back", tmp_path / "seven/model", scale="auto", settings=SETTINGS)
    assert settings_of(tmp_path / "back/model").loss_scale == 1.0, "of dot products again"


def test_retrieve_ranks_by_the_cosine_of_raw_vectors(tmp_path):
    folder = write_all(tmp_path / "toy", COSINE.model_copy(update={"shared": True}))
    passages, questions = folder / "records/passages.parquet", folder / "records/questions.parquet"
    with pytest.MonkeyPatch.context() as patch:  # longer vectors for every other passage, which no cosine sees
        patch.setattr("eadpr.training.encoder.normalize", lambda vectors, dim: vectors)
        raw = load(folder / "base", "passage")
        rows = list(tables.rows(passages, Passage))
        ids = raw.passage_ids([row.title for row in rows], [row.text for row in rows])
        asked = list(tables.rows(questions, Question))
        with torch.no_grad():
            vectors = forward.encode(raw, ids, MACHINE).double().numpy()
            wanted = forward.encode(raw, raw.question_ids([q.question for q in asked]), MACHINE).double().numpy()
    assert np.ptp(np.linalg.norm(vectors, axis=1)) > 0.1, "dot products and cosines differ"
    norms = np.linalg.norm(wanted, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    cosine = wanted @ vectors.T / norms
    options = Encode(shard_passages=64, window_passages=64, token_budget=2048)
    encode(passages, folder / "base", folder / "vectors", settings=options, hardware=MACHINE)
    members = [SetMember("toy", "test", question.id) for question in asked]
    tables.write(folder / "records/question_sets.parquet", SetMember, members)
    settings = Retrieve(
        depth=len(rows), index="exact", faiss=Faiss(search="", candidates=128, train_passages=64, seed=0)
    )
    sets = Sets(train=[], evaluate=["toy/test"], annotator=[])
    paths = (folder / "records", folder / "base", folder / "vectors", folder / "ranking")
    assert retrieve(*paths, settings=settings, sets=sets, hardware=MACHINE) == len(asked)
    row_of, question_of = ({record.id: i for i, record in enumerate(records)} for records in (rows, asked))
    order: dict[int, list[int]] = {}
    for hit in tables.rows(folder / "ranking/evaluate.parquet", Ranked):
        i, row = question_of[hit.question_id], row_of[hit.passage_id]
        assert hit.score == pytest.approx(cosine[i, row], abs=2e-4)  # vectors are kept in float16
        order.setdefault(i, []).append(row)
    assert len(order) == len(asked)
    for i, ranked in order.items():
        assert sorted(ranked) == list(range(len(rows)))
        assert (np.diff(cosine[i, ranked]) < 4e-4).all()
