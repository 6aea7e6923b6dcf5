"""Write the positives without their evidence, in each form, and what was dropped and why."""

from eadpr.commands import stage


@stage()
def main(distractors, writer, *, records, positives, evidence, ranking, out, sources=None, raw=None):
    from eadpr.machine import settle

    if writer and writer.machine:
        settle(writer.machine)
    from eadpr.supervision.distractors import unwritten, write_distractors

    write = unwritten
    if writer:
        from eadpr.language_models.written import writing

        write = writing(distractors, writer, folds=positives / "folds.parquet", sources=sources, raw=raw)
    count = write_distractors(
        distractors, records=records, positives=positives, evidence=evidence, ranking=ranking, out=out, write=write
    )
    return f"{count} distractors"
