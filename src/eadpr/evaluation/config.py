"""Settings of the stage `evaluate`."""

import re
from typing import Annotated

from pydantic import Field

from eadpr.evaluation.awareness import AWARENESS, POINTING
from eadpr.runtime.section import Section

BM25 = "bm25"
Cutoff = Annotated[int, Field(ge=1)]


def count_name(metric: str) -> str | None:
    """Return the name of the count of a metric's values; None if every question has one."""
    if metric in (*AWARENESS, *POINTING):
        return f"n_{metric}"
    if re.fullmatch(r"(ndcg|map|recall|id_top|id_mrr)\d+", metric):
        return "n_relevant"
    return "n_supporting" if re.fullmatch(r"all\d+|(sp_|joint_)?(em|f1|prec|recall)", metric) else None


class Evaluate(Section):
    """Cut-offs of the metrics, each a part of a metric's name: `top20`, `mrr100`, `ndcg10`, `recall20`, `all10`. By
    passage id, `id_top20`, `id_mrr100` and `map100` take their cut-offs from `top_k` and `mrr_at`."""

    top_k: list[Cutoff] = Field(min_length=1)
    mrr_at: Cutoff
    ndcg_at: Cutoff
    recall_at: list[Cutoff]
    all_at: list[Cutoff]

    @property
    def metrics(self) -> list[str]:
        """Return the name of every metric that a collection can have."""
        names = [f"{kind}{k}" for kind in ("top", "id_top") for k in self.top_k]
        names += [f"{kind}{self.mrr_at}" for kind in ("mrr", "id_mrr", "map")]
        names += [f"ndcg{self.ndcg_at}", *(f"recall{k}" for k in self.recall_at), *(f"all{k}" for k in self.all_at)]
        return [*names, *POINTING, *AWARENESS]

    @property
    def depth(self) -> int:
        return max(*self.top_k, self.mrr_at, self.ndcg_at, *self.recall_at, *self.all_at)
