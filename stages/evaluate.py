"""Measure a ranking, and where pair scores are given an arm's answer awareness."""

from eadpr.commands import stage


@stage()
def main(evaluate, sets, *, records, positives, ranking, pairs=None, outcomes, metrics):
    from eadpr.evaluation import evaluate as evaluation

    counts = evaluation.run(
        records=records, positives=positives, ranking=ranking, pairs=pairs, outcomes=outcomes, metrics_file=metrics,
        settings=evaluate, sets=sets,
    )  # fmt: skip
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate: {metrics.stem}: {found}"
