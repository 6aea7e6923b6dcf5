"""Measure a reader's answers."""

from eadpr.commands import stage


@stage()
def main(read, sets, *, records, reading, outcomes, metrics):
    from eadpr.evaluation.reading import evaluate_reading

    counts = evaluate_reading(
        records=records, reading=reading, outcomes=outcomes, metrics_file=metrics, settings=read, sets=sets
    )
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate_reading: {metrics.parent.name} on {metrics.stem}: {found}"
