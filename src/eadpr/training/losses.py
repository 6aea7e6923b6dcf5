"""The losses of EADPR (paper 001, equations 3, 5, 7 and 8) and PiCL (004, 7 to 10), pure functions of a score matrix.

Q: the B questions of the batch. P: its columns `[positives B | hard negatives B*H | distractors B of level 0 | ... |
placebos B]`; column i of the first and of the later blocks belongs to question i, columns i*H .. i*H + H - 1 of the
second block too. The papers have one level. With L levels (`Pivots` in docs/methods.md, ours) more of the evidence is
removed in each. The last block is there only where a loss uses placebos ("Balanced pairs" there, ours).
Columns of passages that are missing hold any finite score. All losses are natural logarithms.
"""

import math
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor

from eadpr.training.config import Balance


class Masks(NamedTuple):
    """Which columns and distractors count; all bool.

    `negatives_QN` (B, B + B*H): the column is a negative of the question; False for its own positive.
    `distractors_LQQ` (L, B, B): on the diagonals, the question has a distractor of the level; elsewhere, the other's
    distractor is a negative of the question in L_PP.
    `contrast_CQ` (C, B): the question is in comparison c of L_HN, whose two sides differ. They are the L levels, each
    against the one before it; with balance `placebo` one, of placebo and distractor; with `both` two, of positive and
    distractor and of placebo and distractor.
    `placebos_Q` (B,): the question has a placebo; (0,) where there are no columns of placebos.
    """

    negatives_QN: Tensor
    distractors_LQQ: Tensor
    contrast_CQ: Tensor
    placebos_Q: Tensor

    def to(self, device: str) -> Self:
        return Masks(*(mask.to(device, non_blocking=True) for mask in self))  # type: ignore[return-value]


class Terms(NamedTuple):
    """Means over the questions a term is defined for, 0 without any, each the mean over its levels; `plain` is the
    fourth term of `reference`, `placebo` is L_P."""

    total: Tensor
    dpr: Tensor
    hn: Tensor
    pp: Tensor
    plain: Tensor
    placebo: Tensor


def loss_terms(
    scores_QP: Tensor,
    masks: Masks,
    *,
    form: Literal["paper", "reference"],
    lambda_: float,
    tau1: float,
    tau2: float,
    weight: float = 1.0,
    anchor: Literal["question", "passage"] = "question",
    balance: Balance = "none",
    placebo: float = 0.0,
) -> Terms:
    """`paper`: weight L_dpr + tau1 L_HN + tau2 L_PP + placebo L_P, the papers with weight 1 and without L_P; with
    `anchor` passage L_dpr is `flipped_loss`; `balance` is L_HN's.

    `reference`: what the published code computes (528688b, `biencoder.py:503-540`): masked logits are multiplied by 0
    and so add e^0 to the sum, lambda multiplies the distractor's logit, hard negatives are masked from the three terms
    and stand in a fourth, the DPR loss with the distractors masked.
    """
    dpr, hn, pp, plain = FORMS[form](scores_QP, masks, lambda_, anchor, balance)
    own = placebo_loss(scores_QP, masks) if placebo else scores_QP.new_zeros(())
    return Terms(weight * dpr + tau1 * hn + tau2 * pp + plain + placebo * own, dpr, hn, pp, plain, own)


def dpr_loss(scores_QP: Tensor, masks: Masks, lambda_: float) -> Tensor:
    """-log e^s(q,p+) / (e^s(q,p+) + sum over negatives + lambda e^s(q,p*)), mean over all questions.

    The lambda term is missing where a question has no distractor, and everywhere with lambda 0. Each of a question's L
    levels has lambda / L.
    """
    own_Q, negatives_QN = _positive(scores_QP), _negatives(scores_QP, masks)
    has_LQ = _own(masks.distractors_LQQ)
    shift_Q = (lambda_ / has_LQ.sum(0).clamp(min=1).to(scores_QP.dtype)).log()
    distractors_LQ = (_own(_levels(scores_QP, masks)) + shift_Q).masked_fill(~has_LQ, -math.inf)
    return _nll(own_Q, negatives_QN, distractors_LQ.T).mean()


def flipped_loss(scores_QP: Tensor, masks: Masks) -> Tensor:
    """-log e^s(q,p+) / (e^s(q,p+) + sum over other questions q' of e^s(q',p+)), mean over the positives (002, 5.1).

    The passage is the anchor: `dpr_loss` of the transposed positives, without hard negatives. Another question that the
    passage answers is masked as that question's false negative is.
    """
    count = len(scores_QP)
    others_PQ = scores_QP[:, :count].T.masked_fill(~masks.negatives_QN[:, :count].T, -math.inf)
    return _nll(_positive(scores_QP), others_PQ).mean()


def hn_loss(scores_QP: Tensor, masks: Masks, *, balance: Balance = "none") -> Tensor:
    """-log e^s(q,p+) / (e^s(q,p+) + e^s(q,p*)): the distractor as the only negative, where `contrast_CQ`.

    Of several levels each is set against the one before it: positive above level 0 above level 1, and so on. Of one
    level, with `placebo` the placebo p° stands in the place of p+, so that both sides were cut; with `both` each stands
    there once, so that it neither helps nor harms a passage that it was cut (ours).
    """
    nlls = []
    for above_Q in _above(scores_QP, masks, balance):
        for own_Q, has_Q in zip(_own(_levels(scores_QP, masks)), _own(masks.distractors_LQQ), strict=True):
            nlls.append(_nll(above_Q, own_Q[:, None]))
            above_Q = torch.where(has_Q, own_Q, above_Q)
    return _mean(torch.stack(nlls), masks.contrast_CQ)


def pp_loss(scores_QP: Tensor, masks: Masks) -> Tensor:
    """-log e^s(q,p*) / (e^s(q,p*) + sum over negatives + sum over others' distractors): the distractor as a positive.

    The question's own positive is not in it, nor are distractors of other levels.
    """
    count, negatives_QN = len(scores_QP), _negatives(scores_QP, masks)
    own_QQ = torch.eye(count, dtype=torch.bool, device=scores_QP.device)
    nlls = []
    for level_QQ, mask_QQ in zip(_levels(scores_QP, masks), masks.distractors_LQQ, strict=True):
        others_QQ = level_QQ.masked_fill(~mask_QQ | own_QQ, -math.inf)
        nlls.append(_nll(level_QQ.diagonal(), negatives_QN, others_QQ))
    return _mean(torch.stack(nlls), _own(masks.distractors_LQQ))


def placebo_loss(scores_QP: Tensor, masks: Masks) -> Tensor:
    """-log e^s(q,p°) / (e^s(q,p°) + sum over negatives): the placebo as one more positive (ours).

    Mean over the questions that have one. Distractors and other questions' placebos are not in it.
    """
    return _mean(_nll(_placebo(scores_QP, masks), _negatives(scores_QP, masks))[None], masks.placebos_Q[None])


def _paper_terms(
    scores_QP: Tensor, masks: Masks, lambda_: float, anchor: str, balance: Balance
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dpr = dpr_loss(scores_QP, masks, lambda_) if anchor == "question" else flipped_loss(scores_QP, masks)
    hn = hn_loss(scores_QP, masks, balance=balance)
    return dpr, hn, pp_loss(scores_QP, masks), scores_QP.new_zeros(())


def _reference_terms(
    scores_QP: Tensor, masks: Masks, lambda_: float, anchor: str, balance: Balance
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Logits times 0 (masked), lambda (own distractor in dpr) or 1; all columns stay."""
    count = len(scores_QP)
    (distractors_QQ,) = masks.distractors_LQQ
    own_QQ = torch.eye(count, device=scores_QP.device)
    has_LQ = _own(masks.distractors_LQQ)
    none_QN = torch.zeros_like(masks.negatives_QN, dtype=torch.float32)
    own_QN, others_QN = none_QN.clone(), none_QN.clone()
    own_QN[:, :count] = own_QQ
    others_QN[:, :count] = masks.negatives_QN[:, :count]
    pseudo_QQ = torch.where(own_QQ.bool(), own_QQ, distractors_QQ)

    def logsumexp(factors_QN: Tensor, factors_QQ: Tensor) -> Tensor:
        return (scores_QP * torch.cat([factors_QN, factors_QQ], dim=1)).logsumexp(1)

    positive_Q, distractor_Q = _positive(scores_QP), scores_QP[:, -count:].diagonal()
    return (
        (logsumexp(own_QN + others_QN, own_QQ * has_LQ * lambda_) - positive_Q).mean(),
        _mean(logsumexp(own_QN, own_QQ) - positive_Q, has_LQ),
        _mean(logsumexp(others_QN, pseudo_QQ) - distractor_Q, has_LQ),
        (logsumexp(own_QN + masks.negatives_QN, torch.zeros_like(own_QQ)) - positive_Q).mean(),
    )


# dpr, hn, pp, plain by `loss.form`.
FORMS = {"paper": _paper_terms, "reference": _reference_terms}


def _positive(scores_QP: Tensor) -> Tensor:
    return scores_QP[:, : len(scores_QP)].diagonal()


def _placebo(scores_QP: Tensor, masks: Masks) -> Tensor:
    return scores_QP[:, _end(masks) :].diagonal()


def _above(scores_QP: Tensor, masks: Masks, balance: Balance) -> list[Tensor]:
    """What distractors are compared with."""
    positive, placebo = balance != "placebo", balance != "none"
    return [_positive(scores_QP)] * positive + [_placebo(scores_QP, masks)] * placebo


def _negatives(scores_QP: Tensor, masks: Masks) -> Tensor:
    """(B, N) scores of the columns before the distractors; -inf where a column is no negative."""
    return scores_QP[:, : masks.negatives_QN.shape[1]].masked_fill(~masks.negatives_QN, -math.inf)


def _levels(scores_QP: Tensor, masks: Masks) -> Tensor:
    """(L, B, B) scores of the distractors."""
    first, (levels, count, _) = masks.negatives_QN.shape[1], masks.distractors_LQQ.shape
    return scores_QP[:, first : _end(masks)].unflatten(1, (levels, count)).transpose(0, 1)


def _end(masks: Masks) -> int:
    """How many columns there are before the placebos."""
    levels, count, _ = masks.distractors_LQQ.shape
    return masks.negatives_QN.shape[1] + levels * count


def _own(values_LQQ: Tensor) -> Tensor:
    """(L, B) scores of each question's own distractor."""
    return values_LQQ.diagonal(dim1=1, dim2=2)


def _nll(target_Q: Tensor, *others: Tensor) -> Tensor:
    """-log of the target's share of the softmax over itself and the others (B, any); -inf leaves an entry out."""
    return torch.cat([target_Q[:, None], *others], dim=1).logsumexp(1) - target_Q


def _mean(values_RQ: Tensor, mask_RQ: Tensor) -> Tensor:
    """The mean over the questions that have a row (a level or comparison) in the mask; each counts with the mean over
    these rows."""
    values_Q = torch.where(mask_RQ, values_RQ, 0.0).sum(0) / mask_RQ.sum(0).clamp(min=1)
    return values_Q.sum() / mask_RQ.any(0).sum().clamp(min=1)
