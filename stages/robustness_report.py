"""Show how much each arm loses as near-duplicates join the corpus: a Markdown table, also printed, a CSV, an SVG."""

from eadpr.commands import stage


@stage()
def main(measured, robustness_, sets, *, robustness, duplicates, out):
    from eadpr.evaluation import robustness_report

    markdown = robustness_report.run(robustness, duplicates, out, settings=measured, counts=robustness_, sets=sets)
    removed = robustness_report.remove_inactive(robustness, measured)
    said = [f"robustness_report: deleted {left}, of an arm that is not measured any more" for left in removed]
    return "\n".join([*said, f"robustness_report: {len(measured.arms)} arms in {out}\n\n{markdown}"])
