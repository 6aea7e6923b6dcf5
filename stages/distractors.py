"""Write the positives without their evidence, in each form, and what was dropped and why."""

from eadpr.settings.command import stage


@stage(out="C/distractors")
def main(distractors, *, records, positives, evidence, out):
    from eadpr.supervision.distractors import write_distractors

    count = write_distractors(distractors, records=records, positives=positives, evidence=evidence, out=out)
    return f"{count} distractors"
