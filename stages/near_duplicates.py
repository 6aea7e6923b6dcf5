"""Make passages like the positives that hold no answer, by one generator.

Writes near_duplicates.parquet and report.json.
"""

from eadpr.commands import stage


@stage("near_duplicates/{generators}.json", settled=False)
def main(
    near_duplicates, near_duplicates_files, source, sets, machine,
    *, sources, raw, records, positives, distractors, ranking, out,
):  # fmt: skip
    from eadpr.machine import settle

    if near_duplicates.generator == "seq2seq":
        settle(machine)
    from eadpr.near_duplicates.generate import NearDuplicateInputs, write_near_duplicates

    inputs = NearDuplicateInputs(
        sources=sources, raw=raw, records=records, positives=positives, distractors=distractors, ranking=ranking
    )
    report = write_near_duplicates(
        near_duplicates, source, sets, machine, model_files=near_duplicates_files, inputs=inputs, out=out
    )
    return f"{report['near_duplicates']:,} near-duplicates of {report['questions']:,} questions"
