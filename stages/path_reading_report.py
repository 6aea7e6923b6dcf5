"""Compare rankings of paths by what a reader answers from them: a Markdown table, also printed."""

from eadpr.commands import stage


@stage()
def main(path_rankings, sets, *, outcomes, metrics, out):
    from eadpr.evaluation import path_reading_report
    from eadpr.evaluation.reading_report import remove_inactive

    markdown = path_reading_report.run(outcomes, metrics, out, settings=path_rankings, sets=sets)
    removed = remove_inactive(outcomes, path_rankings) + remove_inactive(metrics, path_rankings, ".json")
    said = [f"path_reading_report: deleted {left}, of a ranking that is not read any more" for left in removed]
    return "\n".join([*said, f"path_reading_report: {len(path_rankings.arms)} rankings in {out}\n\n{markdown}"])
