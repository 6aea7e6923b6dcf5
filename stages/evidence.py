"""Find the evidence spans of every positive passage."""

from eadpr.settings.command import stage


@stage(out="C/evidence.parquet")
def main(evidence, endpoint, sets, machine, *, records, positives, annotator, out):
    from eadpr.supervision.evidence import find_evidence

    chooser = None
    if endpoint:
        from eadpr.writers.evidence import by_endpoint

        chooser = by_endpoint(endpoint)
    inputs = {"records": records, "positives": positives, "annotator_folder": annotator}
    count = find_evidence(evidence, sets, machine, **inputs, out=out, chooser=chooser)
    return f"{count} rows of evidence"
