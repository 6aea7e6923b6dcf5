"""Measure paths and the ranking that they make."""

from eadpr.commands import stage


@stage("evaluate.json")
def main(evaluate, sets, *, records, positives, paths, ranking, compared, outcomes, metrics):
    from eadpr.evaluation import evaluate_paths

    counts = evaluate_paths.run(
        records=records, positives=positives, paths=paths, ranking=ranking, one_hop=compared, outcomes=outcomes,
        metrics_file=metrics, settings=evaluate, sets=sets,
    )  # fmt: skip
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate_multihop: {metrics.stem}: {found}"
