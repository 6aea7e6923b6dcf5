"""Show what was measured as one HTML file, question by question. The headline is printed."""

from eadpr.settings.command import stage

ABOUT = "eadpr.studies.provenance:describe_run"  # by name: an edit of what reads settings is no reason to rerun


@stage(out="reports/{collection}.html")
def main(
    report, sets,
    *, records, positives, evidence, distractors, pairs, rankings, outcomes, measured, out,
):  # fmt: skip
    from pkgutil import resolve_name

    from eadpr.explorer import explore as explorer
    from eadpr.explorer.gather import ExploreInputs
    from eadpr.report.headline import FILE
    from eadpr.report.inactive import delete_inactive_rows

    for path in delete_inactive_rows(rankings, report):
        print(f"explore: deleted {path}, of what is not active (dvc checkout brings it back with its arm)")
    inputs = ExploreInputs(records, positives, evidence, distractors, pairs, rankings, outcomes, measured)
    text = explorer.run(inputs, out, measured.name, report, sets, resolve_name(ABOUT)(measured.name))
    return f"explore: {text}\n\n{(measured / FILE).read_text(encoding='utf-8')}"
