"""Write the positives without their evidence, in each form, and what was dropped and why."""

from eadpr.settings.command import stage


@stage(out="C/distractors")
def main(distractors, written, writer, *, records, positives, evidence, out, sources=None, raw=None):
    from eadpr.supervision.distractors import write_distractors

    write = None
    if writer:
        from eadpr.writers.written import write_by

        folds = positives / "folds.parquet"
        write = write_by(writer, written, distractors.seed, folds=folds, sources=sources, raw=raw)
    inputs = {"records": records, "positives": positives, "evidence": evidence}
    count = write_distractors(distractors, **inputs, out=out, write=write)
    return f"{count} distractors"
