"""Compare what was measured: Markdown tables and CSV files for `dvc plots`."""

from eadpr.settings.command import stage


@stage(metrics="metrics/{collection}.json", out="reports/{collection}")
def main(
    report, robustness, read, sets,
    *, records, positives, evidence, distractors, negatives, examples, training, pairs, outcomes, accuracy,
    metrics, out,
):  # fmt: skip
    from functools import partial

    from eadpr.readers.report import report_readers
    from eadpr.report import write as reports
    from eadpr.report.config import ReportInputs
    from eadpr.report.inactive import remove_inactive
    from eadpr.robustness.report import report_robustness

    inputs = ReportInputs(
        records=records, positives=positives, evidence=evidence, distractors=distractors, negatives=negatives,
        examples=examples, training=training, pairs=pairs, outcomes=outcomes, accuracy=accuracy,
    )  # fmt: skip
    more = [
        partial(report_robustness, outcomes, report, robustness, sets),
        partial(report_readers, outcomes, report, read, sets),
    ]
    reports.run(inputs, out, metrics, report, sets, more)
    for path in remove_inactive(inputs, report):
        print(f"report: deleted {path}, of what is not active (dvc checkout brings it back with its arm)")
    return f"report: {len(report.trainings)} arms and BM25 in {out}"
