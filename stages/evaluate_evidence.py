"""Measure how often the chosen span is the annotated one."""

from eadpr.commands import stage


@stage()
def main(sets, *, records, positives, evidence, distractors, metrics):
    from eadpr.evaluation.evidence import evaluate_evidence

    count = evaluate_evidence(
        sets, records=records, positives=positives, evidence=evidence, distractors=distractors, out=metrics
    )
    return f"{count} chosen spans compared"
