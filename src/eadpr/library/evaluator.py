"""Controlled awareness of a model while sentence-transformers trains it."""

from collections.abc import Iterable
from typing import Any

from sentence_transformers.base.evaluation import BaseEvaluator

from eadpr.library.awareness import awareness
from eadpr.library.texts import Rows, Texts, as_texts

PRIMARY = "controlled_aa_evidence"


class AwarenessEvaluator(BaseEvaluator):
    """An `evaluator=` of a `SentenceTransformerTrainer`, which returns the shares of `awareness`, 0 to 1.

    `texts` are rows that are not trained on, or what `distractors` made of them; `name` stands before each measure.
    Raises ValueError if no row has a distractor and a placebo, or if in all they differ beyond the model's input.
    """

    def __init__(self, texts: Iterable[Texts] | Rows, *, name: str = "", join: str | None = None) -> None:
        super().__init__()
        self.texts, self.name, self.join = as_texts(texts), name, join
        self.primary_metric = PRIMARY
        if not any({"distractor", "placebo"} <= row.variants.keys() for row in self.texts):
            raise ValueError("no row has both a distractor and a placebo; give rows with evidence sentence or pseudo")

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        results = awareness(model, self.texts, join=self.join, resamples=1)
        if not results[PRIMARY].interval.n:
            raise ValueError(f"in each of {results[PRIMARY].cut} rows what is removed lies beyond the model's input")
        shares = {metric: result.interval.estimate for metric, result in results.items() if result.interval.n}
        shares = self.prefix_name_to_metrics(shares, self.name)
        self.store_metrics_in_model_card_data(model, shares, epoch, steps)
        return shares
