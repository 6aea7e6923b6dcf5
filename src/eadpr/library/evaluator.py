"""Controlled awareness of a model while sentence-transformers trains it."""

from collections.abc import Iterable
from typing import Any

from sentence_transformers.base.evaluation import BaseEvaluator

from eadpr.library.awareness import awareness
from eadpr.library.texts import Texts

PRIMARY = "controlled_aa_evidence"


class AwarenessEvaluator(BaseEvaluator):
    """`evaluator=` of a `SentenceTransformerTrainer`, or called with a model: the shares of `awareness`, 0 to 1.

    `made` is what `distractors` makes of rows that are not trained on. `name` stands before each measure; the primary
    one is controlled AA-evidence. `join` is that of `awareness`. Raises ValueError where no row has both a distractor
    and a placebo, or the model does not read as far in any.
    """

    def __init__(self, made: Iterable[Texts], *, name: str = "", join: str | None = None) -> None:
        super().__init__()
        self.made, self.name, self.join = list(made), name, join
        self.primary_metric = PRIMARY
        if not any({"distractor", "placebo"} <= one.variants.keys() for one in self.made):
            raise ValueError(
                "no row has both a distractor and a placebo, so nothing can be compared; give other rows, with form cut"
                " or filled and evidence sentence or pseudo, as others have no placebo that is cut alike"
            )

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        found = awareness(model, self.made, join=self.join, resamples=1)
        if not found[PRIMARY].interval.n:
            raise ValueError(f"in each of {found[PRIMARY].cut} rows what is removed lies beyond the model's input")
        shares = {metric: one.interval.estimate for metric, one in found.items() if one.interval.n}
        shares = self.prefix_name_to_metrics(shares, self.name)
        self.store_metrics_in_model_card_data(model, shares, epoch, steps)
        return shares
