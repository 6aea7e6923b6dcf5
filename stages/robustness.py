"""Measure an arm's ranking, or BM25's, as near-duplicates join the corpus: a table of outcomes for each count."""

from eadpr.commands import stage


@stage()
def main(
    robustness, evaluate, encode, sets, machine, bm25, *, records, positives, ranking, model=None, duplicates, out
):
    from eadpr.evaluation.robustness import run
    from eadpr.evaluation.robustness_given import RobustnessInputs, RobustnessSettings

    inputs = RobustnessInputs(
        records=records, positives=positives, ranking=ranking, model=model, near_duplicates=duplicates
    )
    count = run(inputs, out, RobustnessSettings(robustness, evaluate, encode, sets, machine, bm25))
    return f"robustness: {out.name} against {count:,} near-duplicates by {duplicates.name}"
