"""Write the positives without their evidence, in each form, and what was dropped and why."""

from eadpr.commands import stage


@stage()
def main(distractors, *, records, positives, evidence, ranking, out):
    from eadpr.supervision.distractors import write_distractors

    count = write_distractors(
        distractors, records=records, positives=positives, evidence=evidence, ranking=ranking, out=out
    )
    return f"{count} distractors"
