"""Golden values (design 6, methods.md 6), a naive loop, and one test per mask that fails without it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.training.losses import Masks, dpr_loss, flipped_loss, loss_terms

# methods.md 6, columns there [p1 h1 d1 p2 h2 d2]; here [p1 p2 | h1 h2 | d1 d2]
GOLDEN = torch.tensor([[2.0, 1.0, 1.5, 0.5, 0.2, 0.4], [0.3, 0.6, 0.1, 1.8, 1.1, 1.4]], dtype=torch.float64)
SCORES = GOLDEN[:, [0, 3, 1, 4, 2, 5]]
WITHOUT_HARD = GOLDEN[:, [0, 3, 2, 5]]


def all_masks(count: int, hard: int) -> Masks:
    """Nothing missing, nothing masked."""
    negatives = torch.ones(count, count * (1 + hard), dtype=torch.bool)
    negatives[:, :count].fill_diagonal_(False)
    distractors = torch.ones(count, count, dtype=torch.bool)
    return Masks(negatives, distractors, distractors[:1].clone(), torch.zeros(0, dtype=torch.bool))


def terms(scores, masks, *, form="paper", lambda_=1.0, tau1=1.0, tau2=1.0):
    return loss_terms(scores, masks, form=form, lambda_=lambda_, tau1=tau1, tau2=tau2)


@pytest.mark.parametrize(
    ("lambda_", "dpr", "total"), [(0.0, 0.633381, 2.114800), (0.2, 0.698890, 2.180309), (1.0, 0.924931, 2.406350)]
)
def test_paper_golden(lambda_, dpr, total):
    found = terms(SCORES, all_masks(2, 1), lambda_=lambda_)
    expected = [total, dpr, 0.493546, 0.987873, 0.0, 0.0]
    assert [t.item() for t in found] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("lambda_", "dpr", "total"), [(0.0, 0.201413, 1.197182), (0.2, 0.300697, 1.296465), (1.0, 0.621266, 1.617034)]
)
def test_paper_golden_without_hard_negatives(lambda_, dpr, total):
    found = terms(WITHOUT_HARD, all_masks(2, 0), lambda_=lambda_)
    assert [t.item() for t in found] == pytest.approx([total, dpr, 0.493546, 0.502222, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("lambda_", "dpr", "total"),
    [(0.0, 0.600711, 3.0446689), (0.2, 0.627927, 3.0718849), (1.0, 0.837780, 3.2817380)],
)
def test_reference_golden(lambda_, dpr, total):
    """Totals of the official class run on these scores; terms re-computed (methods.md 6)."""
    found = terms(SCORES, all_masks(2, 1), form="reference", lambda_=lambda_)
    assert found.total.item() == pytest.approx(total, abs=2e-7)
    assert [t.item() for t in found[1:]] == pytest.approx([dpr, 0.805498, 0.857659, 0.780802, 0.0], abs=1.5e-6)


def test_reference_golden_without_hard_negatives():
    found = terms(WITHOUT_HARD, all_masks(2, 0), form="reference", lambda_=0.0)
    assert found.total.item() == pytest.approx(2.1389802, abs=2e-7)


def test_the_reference_form_counts_what_is_masked_as_1():
    """Exponentials of q1: p1 4, p2 3, h1 7, h2 5, d1 7, d2 2; of q2: 3 6 2 7 7 5. q1 has neither hard negative nor
    distractor, and p1 is no negative of q2."""
    scores = torch.tensor([[4.0, 3, 7, 5, 7, 2], [3, 6, 2, 7, 7, 5]], dtype=torch.float64).log()
    masks = all_masks(2, 1)
    masks.negatives_QN[:, 2] = masks.distractors_QQ[:, 0] = masks.contrast_CQ[0, 0] = False
    masks.negatives_QN[1, 0] = False
    found = terms(scores, masks, form="reference", lambda_=2.0)
    dpr = (math.log((4 + 3 + 4) / 4) + math.log((6 + 5**2 + 4) / 6)) / 2
    plain = (math.log((4 + 3 + 5 + 3) / 4) + math.log((6 + 7 + 4) / 6)) / 2
    expected = [dpr, math.log((6 + 5 + 4) / 6), math.log((5 + 5) / 5), plain, 0.0]
    assert [t.item() for t in found[1:]] == pytest.approx(expected)


def test_l_dpr_can_be_left_out():
    """PiCL's L_cpp + L_chn alone (004, Table 4)."""
    found = loss_terms(SCORES, all_masks(2, 1), form="paper", lambda_=0.0, weight=0.0, tau1=1.0, tau2=1.0)
    assert found.total.item() == pytest.approx(0.493546 + 0.987873, abs=2e-6)


def test_the_flipped_loss_is_the_plain_one_on_the_transposed_scores():
    scores = torch.randn(5, 15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    masks = all_masks(5, 1)
    masks.negatives_QN[1, 3] = False
    transposed = torch.cat([scores[:, :5].T, scores[:, 10:]], dim=1)
    own = all_masks(5, 0)
    own.negatives_QN[3, 1] = False
    assert flipped_loss(scores, masks).item() == pytest.approx(dpr_loss(transposed, own, 0.0).item(), abs=1e-12)
    found = loss_terms(scores, masks, form="paper", lambda_=0.0, tau1=0.0, tau2=0.0, anchor="passage")
    assert found.total.item() == pytest.approx(flipped_loss(scores, masks).item())


def test_the_flipped_loss_by_hand():
    """Passages against questions: s = 2 over (2, 0.3), s = 1.8 over (1.8, 0.5)."""
    expected = (math.log(1 + math.exp(0.3 - 2.0)) + math.log(1 + math.exp(0.5 - 1.8))) / 2
    assert flipped_loss(SCORES, all_masks(2, 1)).item() == pytest.approx(expected)


def test_a_question_that_the_passage_answers_is_no_negative_of_the_flipped_loss():
    masks = all_masks(2, 1)
    masks.negatives_QN[0, 1] = False
    alone = math.log(1 + math.exp(0.3 - 2.0)) / 2
    assert flipped_loss(SCORES, masks).item() == pytest.approx(alone)


def naive(scores, masks, lambda_):
    """Design 6 written out: loops, exponentials, no log-sum-exp."""
    count, columns = masks.negatives_QN.shape
    s = scores.exp().tolist()
    dpr, hn, pp = [], [], []
    for i in range(count):
        negatives = sum(s[i][c] for c in range(columns) if masks.negatives_QN[i, c])
        positive, distractor = s[i][i], s[i][columns + i]
        has = bool(masks.distractors_QQ[i, i])
        dpr.append(-math.log(positive / (positive + negatives + lambda_ * has * distractor)))
        if masks.contrast_CQ[0, i]:
            hn.append(-math.log(positive / (positive + distractor)))
        if has:
            others = sum(s[i][columns + j] for j in range(count) if j != i and masks.distractors_QQ[i, j])
            pp.append(-math.log(distractor / (distractor + negatives + others)))
    return [sum(x) / len(x) if x else 0.0 for x in (dpr, hn, pp)]


@st.composite
def batches(draw):
    count, hard = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scores = torch.randn(count, count * (2 + hard), generator=generator, dtype=torch.float64) * 3

    def some(*shape):
        return torch.rand(*shape, generator=generator) < draw(st.sampled_from([0.3, 0.8, 1.0]))

    negatives = some(count, count * (1 + hard))
    negatives[:, :count].fill_diagonal_(False)
    distractors = some(count, count)
    contrast = distractors.diagonal() & some(1, count)
    masks = Masks(negatives, distractors, contrast, torch.zeros(0, dtype=torch.bool))
    return scores, masks, draw(st.sampled_from([0, 0.2, 1.0]))


@given(batches())
def test_equals_the_naive_loop(batch):
    scores, masks, lambda_ = batch
    found = terms(scores, masks, lambda_=lambda_)
    assert [t.item() for t in found[1:4]] == pytest.approx(naive(scores, masks, lambda_), abs=1e-9)


@st.composite
def batches_with_placebos(draw):
    scores, masks, _ = draw(batches())
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    has = torch.rand(len(scores), generator=generator) < draw(st.sampled_from([0.3, 1.0]))
    placebos = torch.randn(len(scores), len(scores), generator=generator, dtype=torch.float64) * 3
    balance = draw(st.sampled_from(["none", "placebo", "both"]))
    of_placebos = masks.contrast_CQ & has & (torch.rand(len(scores), generator=generator) < 0.8)
    rows = {"none": [masks.contrast_CQ], "placebo": [of_placebos], "both": [masks.contrast_CQ, of_placebos]}[balance]
    masks = masks._replace(placebos_Q=has, contrast_CQ=torch.cat(rows))
    return torch.cat([scores, placebos], dim=1), masks, balance


@given(batches_with_placebos())
def test_terms_with_placebos_equal_the_naive_loop(batch):
    scores, masks, balance = batch
    count, negatives = len(scores), masks.negatives_QN
    dpr, _, pp = naive(scores[:, :-count], masks, 0.7)
    s, of_pairs, of_placebos = scores.exp().tolist(), [], []
    for i in range(count):
        placebo, distractor = s[i][len(s[i]) - count + i], s[i][negatives.shape[1] + i]
        above = {"none": [s[i][i]], "placebo": [placebo], "both": [s[i][i], placebo]}[balance]
        pairs = [-math.log(x / (x + distractor)) for x, has in zip(above, masks.contrast_CQ[:, i], strict=True) if has]
        of_pairs += [sum(pairs) / len(pairs)] if pairs else []
        if masks.placebos_Q[i]:
            others = sum(s[i][c] for c in range(negatives.shape[1]) if negatives[i, c])
            of_placebos.append(-math.log(placebo / (placebo + others)))
    hn = sum(of_pairs) / max(1, len(of_pairs))
    own = sum(of_placebos) / max(1, len(of_placebos))
    scores.requires_grad_()
    weights = {"lambda_": 0.7, "tau1": 0.5, "tau2": 2.0, "placebo": 0.3}
    found = loss_terms(scores, masks, form="paper", balance=balance, **weights)
    expected = [dpr + 0.5 * hn + 2 * pp + 0.3 * own, dpr, hn, pp, 0, own]
    assert [t.item() for t in found] == pytest.approx(expected, abs=1e-9)
    found.total.backward()
    assert scores.grad.isfinite().all()


@given(batches(), st.sampled_from(["paper", "reference"]))
def test_gradients_are_finite_whatever_is_masked(batch, form):
    scores, masks, lambda_ = batch
    scores.requires_grad_()
    terms(scores, masks, lambda_=lambda_, form=form).total.backward()
    assert scores.grad.isfinite().all()


@given(batches(), st.sampled_from(["paper", "reference"]), st.randoms(use_true_random=False))
def test_order_of_questions_does_not_matter(batch, form, random):
    scores, masks, lambda_ = batch
    count = len(scores)
    hard = scores.shape[1] // count - 2
    order = list(range(count))
    random.shuffle(order)
    middle = [count + i * hard + h for i in order for h in range(hard)]
    columns = [*order, *middle, *(count * (1 + hard) + i for i in order)]
    shuffled = Masks(
        masks.negatives_QN[order][:, columns[:-count]],
        masks.distractors_QQ[order][:, order],
        masks.contrast_CQ[:, order],
        masks.placebos_Q,
    )
    before, after = (
        terms(s, m, lambda_=lambda_, form=form) for s, m in ((scores, masks), (scores[order][:, columns], shuffled))
    )
    assert [t.item() for t in after] == pytest.approx([t.item() for t in before], abs=1e-9)


def test_a_question_without_distractor_stays_in_dpr_only():
    masks = all_masks(2, 1)
    masks.distractors_QQ[:, 0] = False
    masks.contrast_CQ[0, 0] = False
    absent = SCORES.clone()
    absent[:, 4] = 77.0  # whatever stands in a missing column
    found = terms(absent, masks, lambda_=1.0)
    assert [t.item() for t in found[1:4]] == pytest.approx(naive(SCORES, masks, 1.0), abs=1e-9)
    assert found.hn.item() == pytest.approx(math.log1p(math.exp(1.4 - 1.8)), abs=1e-9)
