"""Measure what a reader of passages answered, or a reader of paths where positives are given."""

from eadpr.commands import stage


@stage()
def main(read, sets, *, records, positives=None, reading, out):
    from eadpr.evaluation.reading import evaluate_path_reading, evaluate_reading

    given = {"records": records, "reading": reading, "outcomes": out, "sets": sets}
    if positives is None:
        counts = evaluate_reading(**given, settings=read)
    else:
        counts = evaluate_path_reading(**given, positives=positives)
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate_reading: {out.parent.name} on {out.stem}: {found}"
