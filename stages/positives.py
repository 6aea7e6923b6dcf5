"""Find the positive passages of every question and part the questions into train and validation.

Writes positives.parquet, folds.parquet and report.json.
"""

from eadpr.commands import stage


@stage()
def main(positives, sets, *, records, ranking, out):
    from eadpr.supervision.positives import find_positives

    count = find_positives(records, ranking, out, positives=positives, sets=sets)
    return f"positives: {count:,} positive passages"
