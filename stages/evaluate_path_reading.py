"""Measure the answers of a reader of paths and their supporting sentences."""

from eadpr.commands import stage


@stage()
def main(sets, *, records, positives, reading, outcomes, metrics):
    from eadpr.evaluation.path_reading import evaluate_path_reading

    counts = evaluate_path_reading(
        records=records, positives=positives, reading=reading, outcomes=outcomes, metrics_file=metrics, sets=sets
    )
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate_path_reading: {metrics.parent.name} on {metrics.stem}: {found}"
