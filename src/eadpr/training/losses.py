"""The losses of EADPR (paper 001, equations 3, 5, 7 and 8) and PiCL (004, 7 to 10), pure functions of a score matrix.

Q: the B questions of the batch. P: its columns `[positives B | hard negatives B*H | distractors B | placebos B]`, the
last block only where a loss uses placebos ("Balanced pairs" in docs/methods.md, ours). N: the columns of the first two
blocks. Column i of a block belongs to question i; among the hard negatives, columns i*H .. i*H + H - 1 do.
A missing column holds any finite score. All losses are natural logarithms.
"""

import math
from typing import Literal, NamedTuple, Self, assert_never

import torch
from torch import Tensor

from eadpr.training.config import Balance, HardNegatives


class Masks(NamedTuple):
    """Which columns and distractors count; all bool.

    `negatives_QN` (B, B + B*H): the column is a negative of the question; False for its own positive.
    `distractors_QQ` (B, B): on the diagonal, the question has a distractor; elsewhere, the distractor of the other
    question is a negative of this question in L_PP.
    `contrast_CQ` (C, B): the question takes part in comparison c of L_HN, as its passages differ. With balance `none`
    there is one comparison, of positive and distractor; with `placebo` one, of placebo and distractor; with `both` two.
    `placebos_Q` (B,): the question has a placebo; (0,) without columns of placebos.
    `parts_Q` (B,): the encoder reads both evidence and rest of the question's positive; None where no loss asks.
    """

    negatives_QN: Tensor
    distractors_QQ: Tensor
    contrast_CQ: Tensor
    placebos_Q: Tensor
    parts_Q: Tensor | None = None  # no tensor, since one made at import moves the last bits of a training

    def to(self, device: str) -> Self:
        return Masks(*(mask if mask is None else mask.to(device, non_blocking=True) for mask in self))  # type: ignore[arg-type, return-value]


def make_masks(present_P: Tensor, false_QP: Tensor, contrast_CQ: Tensor, placebos_Q: Tensor) -> Masks:
    """Return the masks of a batch. Of the columns before the placebos `present_P` are there, and `false_QP` are no
    negatives of a question, but for its own, which stay whatever text they hold."""
    questions = torch.arange(len(false_QP), device=false_QP.device)
    count, hard = len(questions), len(present_P) // len(questions) - 2
    owners_P = torch.cat([questions, questions.repeat_interleave(hard), questions])
    allowed_QP = present_P & (~false_QP | (owners_P == questions[:, None]))
    negatives_QN = allowed_QP[:, :-count].clone()
    negatives_QN.fill_diagonal_(False)
    return Masks(negatives_QN, allowed_QP[:, -count:], contrast_CQ, placebos_Q)


class Terms(NamedTuple):
    """Scalars, means over the questions that a term is defined for, 0 without any; `plain` is of `reference` only."""

    total: Tensor
    dpr: Tensor
    hn: Tensor
    pp: Tensor
    plain: Tensor
    placebo: Tensor
    rest: Tensor


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
    pp_negatives: HardNegatives = "all",
    placebo: float = 0.0,
    rest: float = 0.0,
    parts_Q2: Tensor | None = None,
) -> Terms:
    """Return the loss and its terms.

    `paper`: weight L_dpr + tau1 L_HN + tau2 L_PP + placebo L_P + rest L_R, the papers with weight 1 and without L_P and
    L_R; with `anchor` passage L_dpr is `flipped_loss`; `balance` is L_HN's, `pp_negatives` L_PP's, `parts_Q2` L_R's.

    `reference`: what the published code computes (528688b, `biencoder.py:503-540`): masked logits are multiplied by 0
    and so add e^0 to the sum, lambda multiplies the distractor's logit, hard negatives are masked from the three terms
    and enter a fourth, the DPR loss with the distractors masked.
    """
    match form:
        case "reference":
            dpr, hn, pp, plain = _reference_terms(scores_QP, masks, lambda_)
        case "paper":
            dpr = dpr_loss(scores_QP, masks, lambda_) if anchor == "question" else flipped_loss(scores_QP, masks)
            hn, pp = hn_loss(scores_QP, masks, balance=balance), pp_loss(scores_QP, masks, negatives=pp_negatives)
            plain = scores_QP.new_zeros(())
        case _:
            assert_never(form)
    of_placebos = placebo_loss(scores_QP, masks) if placebo else scores_QP.new_zeros(())
    total = weight * dpr + tau1 * hn + tau2 * pp + plain + placebo * of_placebos
    of_rest = scores_QP.new_zeros(()) if parts_Q2 is None else rest_loss(parts_Q2, scores_QP, masks)
    return Terms(total + rest * of_rest, dpr, hn, pp, plain, of_placebos, of_rest)


def dpr_loss(scores_QP: Tensor, masks: Masks, lambda_: float) -> Tensor:
    """-log e^s(q,p+) / (e^s(q,p+) + sum over negatives + lambda e^s(q,p*)), mean over all questions.

    The lambda term is missing where a question has no distractor, and everywhere with lambda 0.
    """
    positive_Q, negatives_QN = _positive(scores_QP), _negatives(scores_QP, masks)
    log_lambda_Q = torch.full_like(positive_Q, lambda_).log()
    distractor_Q = _distractors(scores_QP, masks).diagonal() + log_lambda_Q
    distractor_Q = distractor_Q.masked_fill(~masks.distractors_QQ.diagonal(), -math.inf)
    return _nll(positive_Q, negatives_QN, distractor_Q[:, None]).mean()


def flipped_loss(scores_QP: Tensor, masks: Masks) -> Tensor:
    """-log e^s(q,p+) / (e^s(q,p+) + sum over other questions q' of e^s(q',p+)), mean over the positives (002, 5.1).

    The passage is the anchor: `dpr_loss` of the transposed positives, without hard negatives. Another question that the
    passage answers is masked as that question's false negative is.
    """
    count = len(scores_QP)
    questions_PQ = scores_QP[:, :count].T.masked_fill(~masks.negatives_QN[:, :count].T, -math.inf)
    return _nll(_positive(scores_QP), questions_PQ).mean()


def hn_loss(scores_QP: Tensor, masks: Masks, *, balance: Balance = "none") -> Tensor:
    """-log e^s(q,p+) / (e^s(q,p+) + e^s(q,p*)): the distractor as the only negative, where `contrast_CQ`.

    With balance `placebo` the placebo p° replaces p+, so that both passages were cut; `both` takes the mean over the
    two comparisons of a question, so that being cut neither helps nor harms a passage (ours).
    """
    nlls = []
    if balance != "placebo":
        nlls.append(_nll(_positive(scores_QP), _distractors(scores_QP, masks).diagonal()[:, None]))
    if balance != "none":
        nlls.append(_nll(_placebo(scores_QP, masks), _distractors(scores_QP, masks).diagonal()[:, None]))
    nll_CQ = torch.where(masks.contrast_CQ, torch.stack(nlls), 0.0)
    nll_Q = nll_CQ.sum(0) / masks.contrast_CQ.sum(0).clamp(min=1)
    return _mean(nll_Q, masks.contrast_CQ.any(0))


def pp_loss(scores_QP: Tensor, masks: Masks, *, negatives: HardNegatives = "all") -> Tensor:
    """-log e^s(q,p*) / (e^s(q,p*) + sum over negatives + sum over others' distractors): the distractor as a positive.

    The question's own positive is not in it, nor with `others` its hard negatives (001, eq. 5 by the letter: j ≠ i).
    """
    negatives_QN = _negatives(scores_QP, masks)
    own_QQ = torch.eye(len(scores_QP), dtype=torch.bool, device=scores_QP.device)
    if negatives == "others":
        hard = negatives_QN.shape[1] // len(own_QQ) - 1
        own_QN = torch.cat([own_QQ, own_QQ.repeat_interleave(hard, dim=1)], dim=1)
        negatives_QN = negatives_QN.masked_fill(own_QN, -math.inf)
    distractors_QQ = _distractors(scores_QP, masks)
    others_QQ = distractors_QQ.masked_fill(~masks.distractors_QQ | own_QQ, -math.inf)
    return _mean(_nll(distractors_QQ.diagonal(), negatives_QN, others_QQ), masks.distractors_QQ.diagonal())


def placebo_loss(scores_QP: Tensor, masks: Masks) -> Tensor:
    """-log e^s(q,p°) / (e^s(q,p°) + sum over negatives): the placebo as one more positive (ours).

    Mean over the questions that have one. Distractors and other questions' placebos are not in it.
    """
    return _mean(_nll(_placebo(scores_QP, masks), _negatives(scores_QP, masks)), masks.placebos_Q)


def rest_loss(parts_Q2: Tensor, scores_QP: Tensor, masks: Masks) -> Tensor:
    """-log e^s(q,e) / (e^s(q,e) + e^s(q,r) + sum over negatives): the evidence e of the positive as the positive, the
    rest r of it as one more negative (ours). Mean over the questions with both; `parts_Q2` are their scores."""
    evidence_Q, rest_Q1 = parts_Q2[:, 0], parts_Q2[:, 1:]
    return _mean(_nll(evidence_Q, rest_Q1, _negatives(scores_QP, masks)), masks.parts_Q)  # type: ignore[arg-type]


def _reference_terms(scores_QP: Tensor, masks: Masks, lambda_: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Multiply each logit by 0 (masked), lambda (the question's distractor in dpr) or 1; all columns stay."""
    count = len(scores_QP)
    own_QQ = torch.eye(count, device=scores_QP.device)
    has_distractor_Q = masks.distractors_QQ.diagonal()
    own_QN = torch.zeros_like(masks.negatives_QN, dtype=torch.float32)
    others_QN = own_QN.clone()
    own_QN[:, :count] = own_QQ
    others_QN[:, :count] = masks.negatives_QN[:, :count]
    distractors_QQ = torch.where(own_QQ.bool(), own_QQ, masks.distractors_QQ)

    def logsumexp(factors_QN: Tensor, factors_QQ: Tensor) -> Tensor:
        return (scores_QP * torch.cat([factors_QN, factors_QQ], dim=1)).logsumexp(1)

    positive_Q, distractor_Q = _positive(scores_QP), scores_QP[:, -count:].diagonal()
    return (
        (logsumexp(own_QN + others_QN, own_QQ * has_distractor_Q * lambda_) - positive_Q).mean(),
        _mean(logsumexp(own_QN, own_QQ) - positive_Q, has_distractor_Q),
        _mean(logsumexp(others_QN, distractors_QQ) - distractor_Q, has_distractor_Q),
        (logsumexp(own_QN + masks.negatives_QN, torch.zeros_like(own_QQ)) - positive_Q).mean(),
    )


def _positive(scores_QP: Tensor) -> Tensor:
    return scores_QP[:, : len(scores_QP)].diagonal()


def _negatives(scores_QP: Tensor, masks: Masks) -> Tensor:
    """Return the (B, N) scores of the columns before the distractors; -inf where a column is no negative."""
    return scores_QP[:, : masks.negatives_QN.shape[1]].masked_fill(~masks.negatives_QN, -math.inf)


def _distractors(scores_QP: Tensor, masks: Masks) -> Tensor:
    """Return the (B, B) scores of the distractors."""
    first = masks.negatives_QN.shape[1]
    return scores_QP[:, first : first + len(scores_QP)]


def _placebo(scores_QP: Tensor, masks: Masks) -> Tensor:
    return scores_QP[:, masks.negatives_QN.shape[1] + len(scores_QP) :].diagonal()


def _nll(target_Q: Tensor, *negatives: Tensor) -> Tensor:
    """Return -log of the target's share of the softmax over itself and `negatives` (B, any); -inf: left out."""
    return torch.cat([target_Q[:, None], *negatives], dim=1).logsumexp(1) - target_Q


def _mean(values_Q: Tensor, mask_Q: Tensor) -> Tensor:
    return torch.where(mask_Q, values_Q, 0.0).sum() / mask_Q.sum().clamp(min=1)
