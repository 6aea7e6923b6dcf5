"""Make passages like the positives that hold no answer, by one generator.

Writes near_duplicates.parquet and report.json.
"""

from eadpr.settings.command import stage


@stage("near_duplicates/{generator}.json", out="C/near_duplicates/{generator}")
def main(near_duplicates, endpoint, source, sets, *, sources, raw, records, positives, distractors, out):
    from eadpr.robustness.generate import write_near_duplicates

    folders = {"sources": sources, "raw": raw, "records": records, "positives": positives, "distractors": distractors}
    report = write_near_duplicates(near_duplicates, endpoint, source, sets, **folders, out=out)
    return f"{report['near_duplicates']:,} near-duplicates of {report['questions']:,} questions"
