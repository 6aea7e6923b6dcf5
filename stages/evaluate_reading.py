"""Measure what a reader of passages answered, or a reader of paths."""

from eadpr.commands import stage


@stage("readings/{readers}.json")
def main(reader, read, sets, *, records, positives, reading, out):
    from eadpr.evaluation.reading import evaluate_path_reading, evaluate_reading

    given = {"records": records, "reading": reading, "outcomes": out, "sets": sets}
    if reader.of_paths:
        counts = evaluate_path_reading(**given, positives=positives)
    else:
        counts = evaluate_reading(**given, settings=read)
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate_reading: {out.parent.name} on {out.stem}: {found}"
