"""Does a retriever know evidence? Answer awareness and its controls (docs/methods.md) of any model that scores."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eadpr.evaluation.awareness import AWARENESS, POSITIVE, aware
from eadpr.evaluation.statistics import Interval, bound_equals, paired_bootstrap
from eadpr.library.scorers import distinct, make_scorer
from eadpr.library.texts import Rows, Texts, as_texts
from eadpr.report import markdown
from eadpr.report.tables import FEWEST

# The metrics that compare variants of `Texts`.
METRICS = (
    "aa", "placebo_words", "controlled_aa", "placebo_inside", "controlled_aa_inside",
    "aa_evidence", "placebo", "controlled_aa_evidence",
)  # fmt: skip
CONFIDENCE = 0.95
Scored = list[dict[str, tuple[float, Hashable]]]  # by variant, a score and what the model reads of it


class Awareness(NamedTuple):
    """A share of the pairs that count, `interval.n`; in the `cut` ones the difference lies beyond the model's input."""

    interval: Interval
    cut: int


def awareness(
    model: Any, texts: Iterable[Texts] | Rows, *, join: str | None = None, resamples: int = 10_000, seed: int = 0
) -> dict[str, Awareness]:
    """Measure each of METRICS that the texts allow, with 95 % intervals over questions, Wilson's where all are alike.

    `model` is the folder or hub name of an encoder, an arm's too; a model of sentence-transformers, loaded or by name;
    a function of N questions, titles and texts that returns (N,) scores, as `bm25` makes; or a `Scorer`. `texts` are
    what `distractors` made, or rows for it. `join` makes one text of title and text; by default a model read by name
    takes them as it says of itself, and for loaded ones there is a space between. Raises ValueError for scores that
    are not finite, and for a model that is none of these.
    """
    rows, scorer = as_texts(texts), make_scorer(model, join)
    if not rows:
        raise ValueError("there is no row to measure with")
    keys = [(i, variant) for i, row in enumerate(rows) for variant in row.variants]
    questions, titles = [rows[i].question for i, _ in keys], [rows[i].title for i, _ in keys]
    passages = [rows[i].variants[variant] for i, variant in keys]
    scores = np.asarray(scorer.score(questions, titles, passages), dtype=np.float64)
    if scores.shape != (len(keys),):
        raise ValueError(f"the model gave scores of shape {scores.shape} for {len(keys)} texts")
    if len(bad := np.flatnonzero(~np.isfinite(scores))):
        i, variant = keys[bad[0]]
        raise ValueError(f"the score of row {i}, {variant}, is {scores[bad[0]]}, not a finite number")
    scored: Scored = [{} for _ in rows]
    for (i, variant), score, text in zip(keys, scores.tolist(), scorer.inputs(titles, passages), strict=True):
        scored[i][variant] = score, text
    results = {}
    for metric in METRICS:
        if any({AWARENESS[metric].above, AWARENESS[metric].below} <= variants.keys() for variants in scored):
            results[metric] = _measure(metric, scored, [row.question for row in rows], resamples, seed)
    return results


def _measure(metric: str, scored: Scored, questions: Sequence[str], resamples: int, seed: int) -> Awareness:
    """Measure one metric over rows of scores and inputs; rows of the same question are resampled together."""
    above, below = AWARENESS[metric].above, AWARENESS[metric].below
    differences, counted, cut = [], [], 0
    for variants, question in zip(scored, questions, strict=True):
        if above not in variants or below not in variants:
            continue
        (high, input_above), (low, input_below) = variants[above], variants[below]
        _, input_positive = variants[POSITIVE]
        if input_below == input_positive or (above != POSITIVE and input_above == input_positive):
            cut += 1
        else:
            differences.append(high - low)
            counted.append(question)
    values = aware(np.array(differences))
    if not len(values):
        return Awareness(Interval(math.nan, math.nan, math.nan, 0), cut)
    _, question_of_row = distinct(counted)
    sums, counts = np.bincount(question_of_row, values), np.bincount(question_of_row)
    intervals = paired_bootstrap(sums, 0 * sums, counts=counts, resamples=resamples, seed=seed, confidence=CONFIDENCE)
    interval = bound_equals(intervals.questions, CONFIDENCE, 0.0)
    return Awareness(interval._replace(n=len(values)), cut)


def table(models: Mapping[str, Mapping[str, Awareness]]) -> str:
    """Return a Markdown table: a model per row, a metric per column, in %, with intervals and the number of pairs.

    Below it stands how many pairs were left out, where any was, and a warning of fewer than FEWEST pairs.
    """
    metrics = [metric for metric in METRICS if any(metric in results for results in models.values())]
    rows = [[name, *(cell(results.get(metric)) for metric in metrics)] for name, results in models.items()]
    parts = [markdown.table(["model", *(AWARENESS[metric].title for metric in metrics)], rows)]
    for name, results in models.items():
        if cut := [f"{result.cut:,} of {AWARENESS[metric].title}" for metric, result in results.items() if result.cut]:
            parts.append(f"Pairs left out, as {name} does not read as far as what was removed: {', '.join(cut)}.")
    if any(0 < result.interval.n < FEWEST for results in models.values() for result in results.values()):
        parts.append(f"A share of fewer than {FEWEST} pairs (n) says little: give more rows of question and passage.")
    return "\n\n".join(parts)


def cell(result: Awareness | None) -> str:
    """Return a share with its interval and the number of pairs."""
    if result is None or not result.interval.n:
        return "–"
    return f"{markdown.bounded(result.interval)} (n={result.interval.n:,})"
