"""Compare the arms: a Markdown table, also printed, CSV files for `dvc plots`, and the same plots as SVG."""

from eadpr.commands import stage


@stage()
def main(
    report, sets,
    *, records, metrics, outcomes, training, pairs, distractors=None, negatives=None, evidence_metrics=None, out,
):  # fmt: skip
    from eadpr.evaluation import report as reports

    inputs = reports.Inputs(
        records=records, metrics=metrics, outcomes=outcomes, training=training, pairs=pairs, distractors=distractors,
        negatives=negatives, evidence_metrics=evidence_metrics,
    )  # fmt: skip
    markdown = reports.run(inputs, out, settings=report, sets=sets)
    why = "of an arm that is not active (dvc checkout brings it back with the arm)"
    said = [f"report: deleted {left}, {why}" for left in reports.remove_inactive(inputs, report)]
    return "\n".join([*said, f"report: {len(report.arms)} arms and BM25 in {out}\n\n{markdown}"])
