"""Let readers score the passages that a ranking gives the training questions: a table.

The first reader scores the questions of half 0, the second those of half 1.
"""

from eadpr.settings.command import stage


@stage(
    ranking="C/rankings/{ranking}",
    first="C/readers/{first}",
    second="C/readers/{second}",
    out="C/passage_scores/{denoised}.parquet",
)
def main(machine, *, records, positives, ranking, first, second, out):
    from eadpr.readers.passage_scores import ScoringInputs, score_passages

    inputs = ScoringInputs(records=records, positives=positives, ranking=ranking, readers=(first, second))
    count = score_passages(inputs, out, hardware=machine)
    return f"score_passages: {count:,} passages of {ranking.name}"
