"""Measure a ranking, of an arm with its answer awareness, of paths with what is right about these."""

from eadpr.commands import stage


@stage()
def main(evaluate, sets, *, records, positives, ranking, pairs=None, out):
    from eadpr.evaluation import evaluate as evaluation

    counts = evaluation.run(
        records=records, positives=positives, ranking=ranking, pairs=pairs, outcomes=out, settings=evaluate, sets=sets
    )  # fmt: skip
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate: {out.stem}: {found}"
