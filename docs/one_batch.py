"""The page that follows one batch through the loss, with the numbers that `eadpr.training.losses` gives."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eadpr.training.losses import Masks, Terms, loss_terms

COLUMNS = ("p₁⁺", "p₂⁺", "n₁", "n₂", "p₁*", "p₂*", "p₁°", "p₂°")
SCORES = [[2.0, -1.0, 1.0, 0.0, 2.0, 0.0, 1.0, -1.0], [-1.0, 3.0, -1.0, 1.0, -1.0, 1.0, -1.0, 3.0]]
MASKS = Masks(
    negatives_QN=torch.tensor([[False, True, True, True], [True, False, True, True]]),
    distractors_QQ=torch.ones(2, 2, dtype=torch.bool),
    contrast_CQ=torch.ones(2, 2, dtype=torch.bool),
    placebos_Q=torch.ones(2, dtype=torch.bool),
)
WEIGHTS = {"lambda_": 1.0, "tau1": 1.0, "tau2": 1.0}


def terms(scores_QP: Tensor, balance: str) -> Terms:
    masks = MASKS if balance == "both" else MASKS._replace(contrast_CQ=MASKS.contrast_CQ[:1])
    return loss_terms(scores_QP, masks, form="paper", balance=balance, **WEIGHTS)


def moved(balance: str) -> Tensor:
    """Return what a step of gradient descent at rate 1 would add to each score."""
    scores_QP = torch.tensor(SCORES, requires_grad=True)
    terms(scores_QP, balance).total.backward()
    return 0 - scores_QP.grad


def page() -> str:
    ours, papers = (terms(torch.tensor(SCORES), balance) for balance in ("both", "none"))
    first = SCORES[0]
    dpr = _share(first[0], [first[1], first[2], first[3], first[4]])
    cut, placebo = _share(first[0], [first[4]]), _share(first[6], [first[4]])
    changes = [[name, *(f"{change + 0.0:+.2f}" for change in moved(form)[0])] for name, form in BOTH.items()]
    pseudo = _share(first[4], [first[1], first[2], first[3], first[5]])
    return f"""# One batch through the loss

What does a training step ask of the encoder? Here is a batch of two questions that can be followed by hand. The code
that trains made the numbers on this page while the page was built.

Each question brings its positive p⁺, one BM25 negative n, its distractor p\\* (the positive without the evidence) and
its placebo p° (the positive without another sentence). The encoder gives every question a score with every passage:

{_table(["", *COLUMNS], [[f"q{'₁₂'[i]}", *(f"{score:.0f}" for score in row)] for i, row in enumerate(SCORES)])}

Look at the first question. Its distractor scores 2, as its positive does: this encoder does not see that the evidence
is gone. And its placebo scores 1: the encoder lowers a passage that was cut, although the evidence still stands in it.
The second question is in order: positive and placebo score 3, the distractor 1.

## Three terms

Each term is −log of a share, the share of one passage among some. 0 is the best that a term can be.

* **L_dpr** asks the positive to stand above all others: the other question's positive, both negatives and, with weight
  λ = 1, its own distractor. First question: −log(e² / (e² + e⁻¹ + e¹ + e⁰ + e²)) = {dpr:.3f}.
  Mean of both questions: **{ours.dpr:.3f}**.
* **L_HN** asks the positive to stand above its own distractor. First question: −log(e² / (e² + e²)) = {cut:.3f}, which
  is log 2, a coin's toss. Mean of both: **{papers.hn:.3f}**. Our arm `eadpr` asks the placebo to stand above the
  distractor too. First question: −log(e¹ / (e¹ + e²)) = {placebo:.3f}. Mean of both comparisons and both questions:
  **{ours.hn:.3f}**.
* **L_PP** asks the distractor to stand above the negatives and the other question's distractor, since it is at least
  on the subject. First question: −log(e² / (e² + e⁻¹ + e¹ + e⁰ + e⁰)) = {pseudo:.3f}. Mean: **{ours.pp:.3f}**.

The loss is their sum, all weights being 1: {papers.total:.3f} as published, **{ours.total:.3f}** for `eadpr`.

## What the step does

Training lowers the loss, so it moves each score against the loss' gradient. At rate 1 the first question's scores would
change by

{_table(["", *COLUMNS], changes)}

Both push the distractor down and the positive up. As published, only the positive may rise above the distractor, and
the placebo is in no term: that a cut is punished goes unnoticed. In `eadpr` the placebo has to rise as well, so what
was cut is lowered only where the evidence is gone.

The second question, in order already, is hardly moved by L_HN: its two shares are {math.exp(-_share(3, [1])):.2f}.

The formulas with all their masks are in `src/eadpr/training/losses.py`; forms of our own are explained in
[methods](../methods.md#balanced-pairs).
"""


BOTH = {"as published": "none", "`eadpr`": "both"}


def _share(above: float, rest: Sequence[float]) -> float:
    """-log of the share of the first."""
    return math.log(sum(math.exp(score) for score in (above, *rest))) - above


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["--:"] * len(head), *rows))
