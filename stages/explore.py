"""Show what was measured as one HTML file, question by question."""

from eadpr.settings.command import stage


@stage(out="reports/{collection}.html")
def main(
    report, sets, explore,
    *, records, positives, evidence, distractors, pairs, rankings, outcomes, measured, out,
):  # fmt: skip
    from eadpr.explorer import explore as explorer
    from eadpr.explorer.config import ExploreInputs
    from eadpr.report.write import delete_inactive

    left = delete_inactive(rankings, [rankings / name for name in explore.rankings])
    inputs = ExploreInputs(records, positives, evidence, distractors, pairs, rankings, outcomes, measured)
    why = "a ranking of what is not active (dvc checkout brings it back with its arm)"
    said = [f"explore: deleted {path}, {why}" for path in left]
    return "\n".join([*said, explorer.run(inputs, out, measured.name, report, sets)])
