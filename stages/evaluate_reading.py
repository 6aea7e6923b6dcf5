"""Measure what a reader of passages answered, or a reader of paths."""

from eadpr.settings.command import stage


@stage(
    "readings/{reader}.json",
    reading="C/readings/{reader}/{ranking}",
    out="C/outcomes/reading/{reader}/{ranking}.parquet",
)
def main(reader, read, sets, *, records, positives, reading, out):
    from eadpr.readers.evaluate import evaluate_reading

    counts = evaluate_reading(
        records=records, positives=positives, reading=reading, outcomes=out,
        of_paths=reader.of_paths, settings=read, sets=sets,
    )  # fmt: skip
    summary = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate_reading: {out.parent.name} on {out.stem}: {summary}"
