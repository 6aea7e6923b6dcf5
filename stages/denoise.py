"""Keep the passages of a ranking that a reader takes for negatives.

Writes a ranking, train.parquet, and report.json.
"""

from eadpr.settings.command import stage


@stage(
    "denoised/{denoised}.json",
    ranking="C/rankings/{ranking}",
    scores="C/passage_scores/{denoised}.parquet",
    out="C/rankings/{denoised}",
)
def main(denoise, *, positives, ranking, scores, out):
    from eadpr.readers.denoise import denoise as denoised

    count = denoised(positives, ranking, scores, out, settings=denoise)
    return f"denoise: {count:,} passages of {ranking.name} stay"
