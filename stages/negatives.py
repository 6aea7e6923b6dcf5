"""Mine an arm's hard negatives from a ranking, or draw them from the corpus. The ranking's name is their source.

Writes negatives.parquet and report.json.
"""

from eadpr.settings.command import stage


@stage("{arm}/negatives.json", ranking="C/rankings/{ranking}", out="C/negatives/{arm}")
def main(negatives, *, records, positives, ranking, out):
    from eadpr.supervision.negatives import mine_negatives

    count = mine_negatives(records, positives, ranking, out, negatives=negatives)
    return f"negatives: {count:,} from {ranking.name if negatives.kind == 'ranked' else negatives.kind}"
