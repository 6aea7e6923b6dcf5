"""Settings of the stages `evaluate` and `report`."""

import re
from typing import Annotated, Self

from pydantic import Field, model_validator

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.kinds import KindName
from eadpr.runtime.section import Section
from eadpr.supervision.config import Strategy

BM25 = "bm25"
Cutoff = Annotated[int, Field(ge=1)]


def count_name(metric: str) -> str | None:
    """The name under which the number of a metric's values stands beside it; None where every question has one."""
    if metric in AWARENESS:
        return f"n_{metric}"
    if re.fullmatch(r"(ndcg|map|recall|id_top|id_mrr)\d+", metric):
        return "n_relevant"
    of_hops = re.fullmatch(r"(all|pr|path_recall|hop1_recall)\d+|(sp_|joint_)?(em|f1|prec|recall)", metric)
    return "n_supporting" if of_hops else None


class Evaluate(Section):
    """Cut-offs of the metrics, each a part of a metric's name: `top20`, `mrr100`, `ndcg10`, `recall20`, `all10`. By
    passage id, `id_top20`, `id_mrr100` and `map100` have those of `top_k` and `mrr_at`."""

    top_k: list[Cutoff] = Field(min_length=1)
    mrr_at: Cutoff
    ndcg_at: Cutoff
    recall_at: list[Cutoff]
    all_at: list[Cutoff]

    @model_validator(mode="after")
    def _sorted(self) -> Self:
        for name in ("top_k", "recall_at", "all_at"):
            cutoffs = getattr(self, name)
            if cutoffs != sorted(set(cutoffs)):
                raise ValueError(f"{name} must rise without repeats, found {cutoffs}")
        return self

    @property
    def metrics(self) -> list[str]:
        """Every metric that a collection can have, by name."""
        cutoffs = {
            "top": self.top_k,
            "mrr": [self.mrr_at],
            "id_top": self.top_k,
            "id_mrr": [self.mrr_at],
            "ndcg": [self.ndcg_at],
            "map": [self.mrr_at],
            "recall": self.recall_at,
            "all": self.all_at,
        }
        return [*(f"{kind}{k}" for kind, found in cutoffs.items() for k in found), *AWARENESS]

    @property
    def depth(self) -> int:
        """The deepest rank that any metric looks at."""
        return max(*self.top_k, self.mrr_at, self.ndcg_at, *self.recall_at, *self.all_at)


class Report(Section):
    """`columns`, `differences` and, by kind of question, `by` are metrics of `Evaluate`, which `configs` checks.

    `compare` names what an arm is compared with; others are compared with `baseline` where it is active.
    """

    columns: list[str] = Field(min_length=1)
    differences: list[str] = Field(min_length=1)
    by: dict[KindName, list[str]]
    baseline: str
    compare: dict[str, str]
    resamples: int = Field(ge=100)
    confidence: float = Field(gt=0, lt=1)
    seed: int = Field(ge=0)
    bins: int = Field(ge=2)

    @model_validator(mode="after")
    def _two_arms(self) -> Self:
        for arm, other in self.compare.items():
            if arm == other:
                raise ValueError(f"compare.{arm}: an arm cannot be compared with itself")
            if self.compare.get(other) == arm:
                raise ValueError(f"compare.{arm}: {other} is compared with {arm} already, leave one of the two out")
        return self


class MeasuredBy(Section):
    """Arms or rankings, in order, with their trainings, that each of `by` measured: the generators of near-duplicates,
    or the readers."""

    by: list[str]
    trainings: dict[str, list[str]]

    @property
    def each(self) -> list[str]:
        """Of `by`, those with anything to show: near-duplicates may be made and no arm measured among them."""
        return self.by if self.trainings else []


class ReportArms(Report):
    """What the stage `report` is given; the stage `configs` puts in the active arms.

    `trainings` maps each arm, in order, to its trainings: itself, then the arms that repeat it with other seeds;
    `fused` names rankings made of two, or of paths. `one_hop` maps the latter to the arm whose examples they learnt
    from. `of_paths` names the readers of kind paths. `strategy` is that of probe, whose evidence stands early or late.
    """

    trainings: dict[str, list[str]] = Field(min_length=1)
    fused: list[str]
    one_hop: dict[str, str]
    robustness: MeasuredBy
    reading: MeasuredBy
    of_paths: list[str]
    strategy: Strategy

    def only(self, trainings: dict[str, list[str]]) -> Self:
        """Of these rows alone."""
        return self.model_copy(update={"trainings": trainings, "fused": []})

    @property
    def arms(self) -> list[str]:
        return list(self.trainings)

    @property
    def rows(self) -> dict[str, list[str]]:
        """Rows of the table with the files behind them: BM25, the arms, fused rankings."""
        return {BM25: [BM25]} | self.trainings | {name: [name] for name in self.fused}

    @property
    def depth(self) -> int:
        """The deepest rank that a column looks at."""
        return max(int("0" + "".join(filter(str.isdigit, metric))) for metric in self.columns)

    @property
    def comparisons(self) -> list[tuple[str, str]]:
        """Pairs (row, what it is compared with), each once: what `compare` names where that is a row, else `baseline`;
        none for a row where neither is, or the row itself."""
        named = {row: other for row, other in self.compare.items() if other in self.rows}
        pairs = [(row, named.get(row, self.baseline)) for row in (*self.arms, *self.fused)]
        reversed_pairs = {(other, row) for row, other in self.compare.items()}
        return [pair for pair in pairs if pair[1] in self.rows and pair[0] != pair[1] and pair not in reversed_pairs]

    @property
    def comparisons_of_arms(self) -> list[tuple[str, str]]:
        """As `comparisons`, of arms alone: BM25 was not measured everywhere."""
        named = {row: other for row, other in self.compare.items() if other in self.arms}
        pairs = self.model_copy(update={"compare": named}).comparisons
        return [pair for pair in pairs if {*pair} <= {*self.arms}]
