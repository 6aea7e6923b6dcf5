"""Find the positive passages of every question and part the questions into train and validation.

Writes positives.parquet, folds.parquet and report.json.
"""

from eadpr.settings.command import stage


@stage(ranking="C/rankings/bm25", out="C/positives")
def main(positives, sets, *, records, ranking, out):
    from eadpr.runtime import files
    from eadpr.supervision.positives import find_positives

    count = find_positives(records, ranking, out, positives=positives, sets=sets)
    report = files.read_json(out / "report.json")["train"]
    note = ""
    if lacking := report["given_positives_hold_no_answer"]:
        note = f"; the given positives of {lacking:,} of {report['questions']:,} training questions hold no answer"
    return f"positives: {count:,} positive passages{note}"
