"""Find the evidence spans of every positive passage."""

from eadpr.settings.command import stage


@stage(out="C/evidence.parquet")
def main(evidence, sets, machine, *, records, positives, annotator, out):
    from eadpr.supervision.evidence import find_evidence

    inputs = {"records": records, "positives": positives, "annotator_folder": annotator}
    count = find_evidence(evidence, sets, machine, **inputs, out=out)
    return f"{count} rows of evidence"
