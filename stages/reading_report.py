"""Compare rankings by what a reader answers from them: a Markdown table, also printed."""

from eadpr.commands import stage


@stage()
def main(rankings, read, sets, *, outcomes, metrics, out):
    from eadpr.evaluation import reading_report

    markdown = reading_report.run(outcomes, metrics, out, settings=rankings, read=read, sets=sets)
    removed = reading_report.remove_inactive(outcomes, rankings)
    said = [f"reading_report: deleted {left}, of a ranking that is not read any more" for left in removed]
    return "\n".join([*said, f"reading_report: {len(rankings.trainings)} rankings in {out}\n\n{markdown}"])
