"""Find the evidence spans of every positive passage."""

from eadpr.commands import stage


@stage()
def main(evidence, sets, machine, *, records, positives, annotator, out):
    from eadpr.supervision.evidence import find_evidence

    count = find_evidence(
        evidence, sets, machine, records=records, positives=positives, annotator_folder=annotator, out=out
    )
    return f"{count} rows of evidence"
