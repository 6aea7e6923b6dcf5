"""Measure how often the chosen span is the annotated one."""

from eadpr.settings.command import stage


@stage(out="C/evidence_accuracy.json")
def main(sets, *, records, positives, evidence, distractors, out):
    from eadpr.evaluation.evidence import evaluate_evidence

    count = evaluate_evidence(
        sets, records=records, positives=positives, evidence=evidence, distractors=distractors, out=out
    )
    return f"{count} chosen spans compared"
