"""Compare what was measured: Markdown tables, also printed, CSV files for `dvc plots`, the same plots as SVG."""

from eadpr.commands import stage


@stage()
def main(
    report, robustness, read, sets,
    *, records, outcomes, training, pairs, distractors=None, negatives=None, accuracy=None, metrics, out,
):  # fmt: skip
    from eadpr.evaluation import report as reports

    inputs = reports.ReportInputs(
        records=records, outcomes=outcomes, training=training, pairs=pairs, distractors=distractors,
        negatives=negatives, evidence=accuracy,
    )  # fmt: skip
    markdown = reports.run(inputs, out, metrics, reports.ReportSettings(report, robustness, read, sets))
    why = "of what is not active (dvc checkout brings it back with its arm)"
    said = [f"report: deleted {left}, {why}" for left in reports.remove_inactive(inputs, report)]
    return "\n".join([*said, f"report: {len(report.arms)} arms and BM25 in {out}\n\n{markdown}"])
