"""Measure an arm's ranking, or BM25's, as near-duplicates join the corpus: a table of outcomes for each count."""

from eadpr.settings.command import stage


@stage(
    ranking="C/rankings/{ranking}",
    model="C/models/{model}",
    duplicates="C/near_duplicates/{generator}",
    out="C/outcomes/robustness/{generator}/{ranking}",
)
def main(
    robustness, evaluate, encode, sets, machine, bm25, *, records, positives, ranking, model=None, duplicates, out
):
    from eadpr.robustness.evaluate import RobustnessInputs, RobustnessSettings, run
    from eadpr.robustness.searchers import search_bm25, search_dense

    inputs = RobustnessInputs(
        records=records, positives=positives, ranking=ranking, model=model, near_duplicates=duplicates
    )
    settings = RobustnessSettings(robustness, evaluate, encode, sets, machine, bm25)
    count = run(inputs, out, settings, search_bm25 if model is None else search_dense)
    return f"robustness: {out.name} against {count:,} near-duplicates by {duplicates.name}"
