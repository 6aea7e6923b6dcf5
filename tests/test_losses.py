"""Golden values (design 6, methods.md 6), and a naive loop with every mask."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.training.losses import Masks, Terms, flipped_loss, loss_terms

# methods.md 6, columns there [p1 h1 d1 p2 h2 d2]; here [p1 p2 | h1 h2 | d1 d2]
GOLDEN = torch.tensor([[2.0, 1.0, 1.5, 0.5, 0.2, 0.4], [0.3, 0.6, 0.1, 1.8, 1.1, 1.4]], dtype=torch.float64)
SCORES = GOLDEN[:, [0, 3, 1, 4, 2, 5]]
WITHOUT_HARD = GOLDEN[:, [0, 3, 2, 5]]


def all_masks(count: int, hard: int) -> Masks:
    """Masks with nothing missing or masked."""
    negatives = torch.ones(count, count * (1 + hard), dtype=torch.bool)
    negatives[:, :count].fill_diagonal_(False)
    distractors = torch.ones(count, count, dtype=torch.bool)
    return Masks(negatives, distractors, distractors[:1].clone(), torch.zeros(0, dtype=torch.bool))


def terms(scores, masks, *, form="paper", lambda_=1.0, tau1=1.0, tau2=1.0):
    return loss_terms(scores, masks, form=form, lambda_=lambda_, tau1=tau1, tau2=tau2)


@pytest.mark.parametrize(("hard", "lambda_", "dpr", "pp", "total"), [
    (1, 0.0, 0.633381, 0.987873, 2.114800), (1, 0.2, 0.698890, 0.987873, 2.180309),
    (1, 1.0, 0.924931, 0.987873, 2.406350), (0, 0.0, 0.201413, 0.502222, 1.197182),
    (0, 0.2, 0.300697, 0.502222, 1.296465), (0, 1.0, 0.621266, 0.502222, 1.617034),
])  # fmt: skip
def test_paper_golden(hard, lambda_, dpr, pp, total):
    losses = terms(SCORES if hard else WITHOUT_HARD, all_masks(2, hard), lambda_=lambda_)
    assert [t.item() for t in losses] == pytest.approx([total, dpr, 0.493546, pp, 0.0, 0.0, 0.0], abs=1e-6)


def test_by_the_letter_of_equation_5_a_question_has_no_hard_negative_of_its_own_in_l_pp():
    """e^1.5 / (e^1.5 + e^0.5 + e^0.2 + e^0.4) of q1, whose h1 scores 1.0; e^1.4 / (e^1.4 + e^0.3 + e^0.6 + e^0.1)."""
    losses = loss_terms(SCORES, all_masks(2, 1), form="paper", lambda_=0.0, tau1=0.0, tau2=1.0, pp_negatives="others")
    shares = [
        math.log(sum(map(math.exp, row)) / math.exp(row[0])) for row in ([1.5, 0.5, 0.2, 0.4], [1.4, 0.3, 0.6, 0.1])
    ]
    assert losses.pp.item() == pytest.approx(sum(shares) / 2)


@pytest.mark.parametrize(
    ("lambda_", "dpr", "total"), [(0.0, 0.600711, 3.0446689), (0.2, 0.627927, 3.0718849), (1.0, 0.837780, 3.2817380)]
)
def test_reference_golden(lambda_, dpr, total):
    """Totals of the official class run on these scores; terms re-computed (methods.md 6)."""
    losses = terms(SCORES, all_masks(2, 1), form="reference", lambda_=lambda_)
    assert losses.total.item() == pytest.approx(total, abs=2e-7)
    assert [t.item() for t in losses[1:]] == pytest.approx([dpr, 0.805498, 0.857659, 0.780802, 0.0, 0.0], abs=1.5e-6)


def test_reference_golden_without_hard_negatives():
    losses = terms(WITHOUT_HARD, all_masks(2, 0), form="reference", lambda_=0.0)
    assert losses.total.item() == pytest.approx(2.1389802, abs=2e-7)


def test_a_question_that_the_passage_answers_is_no_negative_of_the_flipped_loss():
    masks = all_masks(2, 1)
    masks.negatives_QN[0, 1] = False
    alone = math.log(1 + math.exp(0.3 - 2.0)) / 2
    assert flipped_loss(SCORES, masks).item() == pytest.approx(alone)


def nll(target, negatives):
    return -torch.log(target.exp() / (target.exp() + sum(negative.exp() for negative in negatives)))


def naive(
    s, masks: Masks, lambda_: float, form: str = "paper", balance: str = "none", pp_negatives: str = "all"
) -> dict[str, torch.Tensor | float]:
    """Return the terms, written out (design 6): loops, exponentials, no log-sum-exp. `s[i][c]` is a score."""
    count, wide = len(s), masks.negatives_QN.shape[1]
    has = masks.distractors_QQ.diagonal().tolist()
    terms = {name: [] for name in ("dpr", "hn", "pp", "plain", "placebo", "flipped")}
    for i in range(count):
        positive, distractor, zeros = s[i][i], s[i][wide + i], [0 * s[i][i]]
        terms["flipped"].append(nll(positive, [s[j][i] for j in range(count) if masks.negatives_QN[j, i]]))
        if form == "reference":  # what is masked stays as e^0
            columns = [s[i][n] if masks.negatives_QN[i, n] else zeros[0] for n in range(wide) if n != i]
            inside, hard = columns[: count - 1], wide - count
            weighted = distractor * has[i] * lambda_
            terms["dpr"].append(nll(positive, [*inside, *zeros * (hard + count - 1), weighted]))
            terms["plain"].append(nll(positive, [*columns, *zeros * count]))
            if has[i]:
                terms["hn"].append(nll(positive, [*zeros * (wide - 1 + count - 1), distractor]))
                apart = [s[i][wide + j] if masks.distractors_QQ[i, j] else zeros[0] for j in range(count) if j != i]
                terms["pp"].append(nll(distractor, [*inside, *zeros * (hard + 1), *apart]))
            continue
        negatives = [s[i][n] for n in range(wide) if masks.negatives_QN[i, n]]
        weighted = [distractor + math.log(lambda_)] if has[i] and lambda_ else []
        terms["dpr"].append(nll(positive, negatives + weighted))
        targets = [positive] if balance != "placebo" else []
        targets += [s[i][wide + count + i]] if balance != "none" else []
        compared = [nll(t, [distractor]) for t, counts in zip(targets, masks.contrast_CQ[:, i], strict=True) if counts]
        terms["hn"] += [mean(compared)] if compared else []
        if has[i]:
            distractors = [s[i][wide + j] for j in range(count) if j != i and masks.distractors_QQ[i, j]]
            hard = wide // count - 1
            own_hard = range(count + i * hard, count + (i + 1) * hard) if pp_negatives == "others" else []
            below = [s[i][n] for n in range(wide) if masks.negatives_QN[i, n] and n not in own_hard]
            terms["pp"].append(nll(distractor, below + distractors))
        if len(masks.placebos_Q) and masks.placebos_Q[i]:
            terms["placebo"].append(nll(s[i][wide + count + i], negatives))
    return {name: mean(values) for name, values in terms.items()}


def mean(values):
    return sum(values) / len(values) if values else 0.0


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


@given(batches(), st.sampled_from(["paper", "reference"]))
def test_equals_the_naive_loop_and_gradients_are_finite(batch, form):
    scores, masks, lambda_ = batch
    expected = naive(scores, masks, lambda_, form)
    losses = terms(scores.requires_grad_(), masks, lambda_=lambda_, form=form)
    exact = 1e-9 if form == "paper" else 1e-6  # lambda is a float32 among the factors of `reference`
    assert [t.item() for t in losses[1:5]] == pytest.approx([float(expected[n]) for n in Terms._fields[1:5]], abs=exact)
    assert flipped_loss(scores, masks).item() == pytest.approx(float(expected["flipped"]), abs=1e-9)
    losses.total.backward()
    assert scores.grad.isfinite().all()


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


@given(batches_with_placebos(), st.sampled_from(["all", "others"]))
def test_terms_with_placebos_equal_the_naive_loop(batch, pp_negatives):
    scores, masks, balance = batch
    terms_of_loop = naive(scores, masks, 0.7, balance=balance, pp_negatives=pp_negatives)
    expected = {name: float(term) for name, term in terms_of_loop.items()}
    scores.requires_grad_()
    weights = {"lambda_": 0.7, "tau1": 0.5, "tau2": 2.0, "placebo": 0.3, "pp_negatives": pp_negatives}
    losses = loss_terms(scores, masks, form="paper", balance=balance, **weights)
    assert [t.item() for t in losses[1:6]] == pytest.approx([expected[n] for n in Terms._fields[1:6]], abs=1e-9)
    total = expected["dpr"] + 0.5 * expected["hn"] + 2 * expected["pp"] + 0.3 * expected["placebo"]
    assert losses.total.item() == pytest.approx(total, abs=1e-9)
    losses.total.backward()
    assert scores.grad.isfinite().all()
