"""The losses for other trainers: those of the pipeline, on scores and in sentence-transformers."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from eadpr.library.losses import EvidenceLoss, cached, evidence_loss
from eadpr.training.batches import ColumnBlocks
from eadpr.training.losses import loss_terms, make_masks
from tests.repository import ROOT
from tests.small_collection import WORDS, write_model

pytestmark = pytest.mark.library
YES, NO = torch.tensor([True, True]), torch.tensor([False, False])


def test_the_papers_loss_by_hand():
    # One negative each, that of the other; the second question has no distractor.
    scores = torch.tensor([[2.0, 1.0, 0.0, 9.0], [0.0, 3.0, 9.0, 9.0]])
    terms = evidence_loss(scores, torch.tensor([True, False]))
    first = math.log(math.e**2 + math.e + 1) - 2
    assert terms.dpr.item() == pytest.approx((first + math.log(1 + math.e**3) - 3) / 2, rel=1e-6)
    assert terms.hn.item() == pytest.approx(math.log(math.e**2 + 1) - 2, rel=1e-6)
    assert terms.pp.item() == pytest.approx(math.log(1 + math.e), rel=1e-6)
    assert terms.total.item() == pytest.approx((terms.dpr + terms.hn + terms.pp).item())


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 2), st.sampled_from(["none", "placebo", "both"]))
def test_equal_to_the_pipelines(seed, count, hard, balance):
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray:
        return rng.random(shape) < 0.6

    blocks = 2 + hard + (balance != "none")
    scores = torch.tensor(rng.normal(size=(count, blocks * count)))
    has, placebos, alike, own_hard = some(count), some(count), some(count), some(count * hard)
    present = np.concatenate([np.ones(count, bool), own_hard, has])
    false_QP = some(count, len(present))
    contrasts = [has] * (balance != "placebo") + [has & placebos & ~alike] * (balance != "none")
    keys = [[0 if exists else None for exists in block] for block in (own_hard, has, placebos)]
    columns = ColumnBlocks([0] * count, *keys[:2], keys[2] if balance != "none" else [])
    masks = make_masks(*map(torch.tensor, (columns.present_P, false_QP, np.array(contrasts), placebos)))
    weights = {"lambda_": 0.5, "tau1": 0.7, "tau2": 0.3, "balance": balance, "placebo": 0.2 * (balance != "none")}
    terms = evidence_loss(
        scores,
        torch.tensor(has),
        torch.tensor(placebos) if balance != "none" else None,
        present_P=torch.tensor(present[:-count]),
        false_QP=torch.tensor(false_QP),
        alike_Q=torch.tensor(alike),
        **weights,
    )
    expected = loss_terms(scores, masks, form="paper", **weights)
    assert torch.allclose(torch.stack(terms), torch.stack(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("columns", "settings", "match"), [
    (5, {}, "2 questions and 5 columns"), (2, {}, "2 questions and 2 columns"),
    (4, {"placebos_Q": YES}, "4 columns; expected 2 each"),
    (4, {"balance": "both"}, "need columns of placebos"), (4, {"placebo": 1.0}, "need columns of placebos"),
    (4, {"balance": "placebos"}, "balance is 'placebos', expected one of "),
])  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(columns, settings, match):
    with pytest.raises(ValueError, match=match):
        evidence_loss(torch.zeros(2, columns), YES, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("library") / "model") / "passage_encoder"


@pytest.fixture
def model(folder):
    return SentenceTransformer(str(folder), device="cpu")


def texts(*words: int) -> str:
    return " ".join(WORDS[i] for i in words)


QUESTIONS, POSITIVES = [texts(0, 1), texts(2, 3)], [texts(4, 5, 6), texts(7, 8)]
NEGATIVES, DISTRACTORS = [texts(9), texts(3, 9)], [texts(4, 6), texts(8)]
PLACEBOS = [texts(5, 6), texts(7)]
ROWS = [QUESTIONS, POSITIVES, NEGATIVES, DISTRACTORS, PLACEBOS]


def features(model: SentenceTransformer, *columns: list[str]) -> list[dict[str, torch.Tensor]]:
    return [model.preprocess(column) for column in columns]


def vectors(model: SentenceTransformer, column: list[str]) -> torch.Tensor:
    return model(model.preprocess(column))["sentence_embedding"]


def test_in_sentence_transformers_it_is_that_of_the_scores(model):
    loss = EvidenceLoss(model, similarity="dot", tau1=0.5)
    questions, *passages = (vectors(model, column) for column in ROWS)
    expected = evidence_loss(questions @ torch.cat(passages).T, YES, YES, tau1=0.5)
    assert loss(features(model, *ROWS)).item() == pytest.approx(expected.total.item(), abs=1e-6)
    assert EvidenceLoss(model).similarity == "dot", "as the model's own"
    cosine = EvidenceLoss(model, similarity="cosine")
    questions, *passages = (torch.nn.functional.normalize(vectors(model, column), dim=1) for column in ROWS)
    expected = evidence_loss(20 * questions @ torch.cat(passages).T, YES, YES)
    assert cosine(features(model, *ROWS)).item() == pytest.approx(expected.total.item(), abs=1e-5)


def masks_of(model: SentenceTransformer, **columns: list[str]) -> dict[str, list]:
    masks = EvidenceLoss(model, tuple(columns)).text_masks(features(model, *columns.values()))
    return {name: mask.tolist() for name, mask in masks.items()}


def test_missing_texts_are_empty_or_the_positives_own(model):
    positive, columns = POSITIVES[0], {"question": QUESTIONS, "positive": POSITIVES}
    masks = masks_of(model, **columns, negative=["", texts(9)], distractor=[positive, texts(8)])
    assert (masks["distractors_Q"], masks["present_P"]) == ([False, True], [True, True, False, True])
    masks = masks_of(model, **columns, negative=[positive, texts(9)], distractor=["", texts(8)])
    assert (masks["distractors_Q"], masks["present_P"]) == ([False, True], [True, True, False, True])
    loss = EvidenceLoss(model, ("question", "positive", "negative", "negative"))
    masks = loss.text_masks(features(model, QUESTIONS, POSITIVES, NEGATIVES, ["", texts(9)]))
    assert masks["present_P"].tolist() == [True, True, True, False, True, True], "question by question"


BEHIND = [texts(1, 2) + " ", {"positive": f"{texts(1)} ", "negative": f"{texts(3)} ", "distractor": f"{texts(1)} "}]


@pytest.mark.parametrize("missing", [["", ""], POSITIVES])
@pytest.mark.parametrize("prompts", BEHIND)
def test_a_missing_text_is_missing_behind_a_prompt(model, prompts, missing):
    names = ("question", "positive", "negative", "distractor")
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(QUESTIONS, POSITIVES, [missing[0], texts(9)], [texts(8), missing[1]], strict=True)
    ]
    collated = SentenceTransformerDataCollator(preprocess_fn=model.preprocess, prompts=prompts)(rows)
    inputs = [
        {key.removeprefix(f"{name}_"): value for key, value in collated.items() if key.startswith(f"{name}_")}
        for name in names
    ]
    masks = EvidenceLoss(model, names).text_masks(inputs)
    assert masks["distractors_Q"].tolist() == [True, False]
    assert masks["present_P"].tolist() == [True, True, False, True]


def test_a_model_of_no_vectors_or_without_a_tokenizer_of_transformers_is_refused(folder):
    static = SentenceTransformer(modules=[StaticEmbedding(Tokenizer(WordLevel({"a": 0}, "a")), embedding_dim=2)])
    scores = CrossEncoder(str(folder), device="cpu")
    refused = {static: "no tokenizer of transformers", scores: "a Cross.*`eadpr.evidence_loss`"}
    for model, match in refused.items():
        with pytest.raises(ValueError, match=match):
            EvidenceLoss(model)


def test_unknown_words_are_text(model):
    masks = masks_of(model, question=QUESTIONS, positive=POSITIVES, distractor=["zzz", ""])
    assert masks["distractors_Q"] == [True, False]


def test_a_positive_of_a_question_is_none_of_its_negatives(model):
    """Another question may have it too, another row of the question, or the row itself as a negative."""
    shared = {"question": QUESTIONS, "positive": [POSITIVES[0]] * 2, "negative": [texts(9), POSITIVES[0]]}
    masks = masks_of(model, **shared, distractor=DISTRACTORS)
    assert masks["false_QP"] == [[True, True, False, True, True, True]] * 2
    twice = {"question": [QUESTIONS[0]] * 2, "positive": POSITIVES}
    assert masks_of(model, **twice, distractor=DISTRACTORS)["false_QP"] == [[True] * 4] * 2
    apart = masks_of(model, question=QUESTIONS, positive=POSITIVES, distractor=DISTRACTORS)
    assert apart["false_QP"] == [[True, False] * 2, [False, True] * 2]
    assert masks_of(model, **twice, negative=[POSITIVES[1], texts(9)])["present_P"] == [True, True, False, True]


def test_distractor_and_placebo_of_one_text_are_not_compared(model):
    columns = {"question": QUESTIONS, "positive": POSITIVES, "distractor": DISTRACTORS}
    assert masks_of(model, **columns, placebo=[DISTRACTORS[0], PLACEBOS[1]])["alike_Q"] == [True, False]


@pytest.mark.parametrize(("roles", "match"), [
    (("question", "distractor"), "positive stands 0 times"),
    (("question", "positive", "placebo", "placebo"), "placebo stands 2 times"),
    (("question", "positive", "hard"), "hard stands 1 times"),
])  # fmt: skip
def test_roles_are_checked(model, roles, match):
    with pytest.raises(ValueError, match=match):
        EvidenceLoss(model, roles)


def test_columns_and_numbers_are_checked(model, folder):
    with pytest.raises(ValueError, match="3 columns, but roles names 5"):
        EvidenceLoss(model)(features(model, *ROWS[:3]))
    with pytest.raises(ValueError, match="similarity 'euclidean': expected cosine or dot"):
        EvidenceLoss(model, similarity="euclidean")
    with pytest.raises(ValueError, match="similarity 'dot': expected meanmaxsim or maxsim"):
        EvidenceLoss(MultiVectorEncoder(str(folder), device="cpu"), similarity="dot")


def gradients(model, loss: torch.nn.Module, *columns: list[str]) -> tuple[float, list[torch.Tensor]]:
    model.zero_grad()
    value = loss(features(model, *columns or ROWS), None)
    value.backward()
    return value.item(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_the_cached_loss_has_the_same_gradients(model):
    loss = EvidenceLoss(model, similarity="dot")
    value, expected = gradients(model, loss)
    cached_value, cached_gradients = gradients(model, cached(loss, mini_batch_size=1))
    assert cached_value == pytest.approx(value, rel=1e-6)  # of float32
    assert len(cached_gradients) == len(expected) > 10
    for gradient, plain in zip(cached_gradients, expected, strict=True):
        torch.testing.assert_close(gradient, plain, rtol=1e-4, atol=1e-5)


def test_matryoshka_wraps_it(model):
    loss = EvidenceLoss(model, similarity="cosine")
    masks, columns = loss.text_masks(features(model, *ROWS)), [vectors(model, column) for column in ROWS]
    expected = sum(loss.of_vectors([column[:, :size] for column in columns], masks).item() for size in (16, 8))
    value = MatryoshkaLoss(model, loss, [16, 8])(features(model, *ROWS), None).item()
    assert value == pytest.approx(expected, abs=1e-4)


def page_code() -> list[str]:
    page = (ROOT / "docs" / "howto" / "sentence-transformers.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def best_matches(question: torch.Tensor, passage: torch.Tensor) -> float:
    return sum(max(float(query @ token) for token in passage) for query in question)


@pytest.mark.parametrize(("similarity", "scale"), [("maxsim", 1), ("meanmaxsim", 20)])
def test_late_interaction_is_the_loss_of_the_tokens_best_matches(folder, similarity, scale):
    model = MultiVectorEncoder(str(folder), device="cpu", similarity_fn_name=similarity)
    columns = [QUESTIONS, POSITIVES, NEGATIVES, ["", texts(9, 4)], DISTRACTORS, PLACEBOS]
    questions, positives, first, second, *others = (model.encode(column) for column in columns)
    passages = [*positives, first[0], second[0], first[1], second[1], *others[0], *others[1]]
    scores = torch.tensor([[best_matches(question, passage) for passage in passages] for question in questions])
    if similarity == "meanmaxsim":
        scores /= torch.tensor([[len(question)] for question in questions])
    present = torch.tensor([True, True, True, False, True, True])
    expected = evidence_loss(scale * scores, YES, YES, present_P=present).total.item()
    loss = EvidenceLoss(model, ("question", "positive", "negative", "negative", "distractor", "placebo"))
    value, plain = gradients(model, loss, *columns)
    assert value == pytest.approx(expected, abs=1e-5)
    cached_value, in_parts = gradients(model, cached(loss, mini_batch_size=1), *columns)
    assert cached_value == pytest.approx(value, rel=1e-6)
    assert len(in_parts) == len(plain) > 10
    for gradient, whole in zip(in_parts, plain, strict=True):
        torch.testing.assert_close(gradient, whole, rtol=1e-4, atol=1e-5)


def test_the_pages_code_trains_a_model(folder, tmp_path):
    names = {"MODEL": str(folder), "OUT": str(tmp_path / "trained"), "HAS_DISTRACTOR": YES, "HAS_PLACEBO": YES}
    names["SCORES"] = torch.randn(2, 6).requires_grad_()
    exec(compile("\n".join(page_code()), "page", "exec"), names)
    base, trained = (SentenceTransformer(str(path), device="cpu") for path in (folder, tmp_path / "trained"))
    base_tokens = MultiVectorEncoder(str(folder), device="cpu")
    for before, after in ((base, trained), (base_tokens, names["colbert"])):
        changed = [not torch.equal(*pair) for pair in zip(before.parameters(), after.parameters(), strict=True)]
        assert sum(changed) > len(changed) / 2
    assert names["SCORES"].grad.any()


def test_the_readmes_code_runs(folder, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {"MODEL": str(folder)}
    exec(compile(code, "README", "exec"), names)
    table, best = capsys.readouterr().out.rsplit("\n", 2)[:2]
    assert "\n| mine " in table
    assert best in ("Ada was born in London.", "She wrote a program.")
    assert names["loss"].roles == ("question", "positive", "distractor", "placebo")
    assert "2304.03031" in names["loss"].citation
