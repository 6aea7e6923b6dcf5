"""Measure a ranking, of an arm with its answer awareness, of paths with what is right about these."""

from eadpr.settings.command import stage


@stage(ranking="C/rankings/{ranking}", pairs="C/pairs/{pairs}.parquet", out="C/outcomes/{ranking}.parquet")
def main(evaluate, sets, *, records, positives, ranking, pairs=None, out):
    from functools import partial

    from eadpr.evaluation import evaluate as evaluation
    from eadpr.two_hops import evaluate as paths

    table = ranking / "paths" / "evaluate.parquet"
    of_paths = partial(paths.measure_paths, table, records=records, all_at=evaluate.all_at) if table.exists() else None
    counts = evaluation.run(
        records=records, positives=positives, ranking=ranking, pairs=pairs, outcomes=out, settings=evaluate, sets=sets,
        more=of_paths,
    )  # fmt: skip
    summary = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    return f"evaluate: {out.stem}: {summary}"
