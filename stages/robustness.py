"""Measure an arm's ranking as near-duplicates join the corpus: a table of outcomes for each count."""

from eadpr.settings.command import stage


@stage(
    ranking="C/rankings/{arm}",
    model="C/models/{arm}",
    duplicates="C/near_duplicates/{generator}",
    out="C/outcomes/robustness/{generator}/{arm}",
)
def main(robustness, evaluate, encode, sets, machine, *, records, positives, ranking, model, duplicates, out):
    from eadpr.robustness.evaluate import run

    folders = {"records": records, "positives": positives, "ranking": ranking, "model": model}
    count = run(robustness, evaluate, encode, sets, machine, **folders, near_duplicates=duplicates, out=out)
    return f"robustness: {out.name} against {count:,} near-duplicates by {duplicates.name}"
