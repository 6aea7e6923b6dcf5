"""Find the evidence spans of every positive passage."""

from eadpr.settings.command import stage


@stage(out="C/evidence.parquet")
def main(evidence, endpoint, sets, machine, *, records, positives, annotator, out):
    from functools import partial

    from eadpr.supervision.evidence import find_evidence
    from eadpr.writers.evidence import choose_sentences

    inputs = {"records": records, "positives": positives, "annotator_folder": annotator}
    choose = endpoint and partial(choose_sentences, endpoint)
    count = find_evidence(evidence, sets, machine, **inputs, out=out, choose=choose)
    return f"{count} rows of evidence"
