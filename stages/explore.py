"""Show what was measured as one HTML file, question by question."""

from eadpr.settings.command import stage


@stage(out="reports/{collection}.html")
def main(
    report, sets,
    *, records, positives, evidence, distractors, pairs, rankings, outcomes, measured, out,
):  # fmt: skip
    from eadpr.explorer import explore as explorer
    from eadpr.explorer.config import ExploreInputs
    from eadpr.report.inactive import delete_inactive_rows

    for path in delete_inactive_rows(rankings, report):
        print(f"explore: deleted {path}, of what is not active (dvc checkout brings it back with its arm)")
    inputs = ExploreInputs(records, positives, evidence, distractors, pairs, rankings, outcomes, measured)
    return explorer.run(inputs, out, measured.name, report, sets)
