"""The report's section of how much each arm loses as near-duplicates join the corpus."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from eadpr.evaluation.outcomes import MADE
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms
from eadpr.report.differences import Comparison, Trainings, difference_table, is_fixed
from eadpr.report.summary import MeasuredRows, load_rows, select_set
from eadpr.robustness.config import Robustness
from eadpr.runtime import files
from eadpr.runtime.section import Sets


def report_robustness(
    outcomes: Path, settings: ReportArms, counts: Robustness, sets: Sets, _folder: Path, _means: pd.DataFrame
) -> list[str]:
    """Report what each arm loses by the near-duplicates of every generator.

    A `report.Section` once all but the last two arguments are bound.
    """
    arms, parts = settings.robustness.trainings, []
    rows = {f"{arm}, {n}": [f"{name}/{n}" for name in names] for arm, names in arms.items() for n in counts.counts}
    for generator in settings.robustness.by:
        measures = load_rows(outcomes / "robustness" / generator, rows, sets.evaluate)
        report = files.read_json(outcomes / "robustness" / generator / next(iter(arms.values()))[0] / MADE)
        dropped = ", ".join(f"{n:,} {reason}" for reason, n in report["dropped"].items()) or "none"
        parts += [
            f"# Near-duplicates: {generator}",
            f"{report['near_duplicates']:,} near-duplicates of {report['questions']:,} questions of all sets;"
            f" {report['with_all']:,} have all that were asked for, {report['with_none']:,} have none. Dropped:"
            f" {dropped}. Every question counts.",
        ]
        for name in sets.evaluate:
            parts += report_set(measures, name, settings, counts.counts[-1])
    return parts


def report_set(measures: MeasuredRows, name: str, settings: ReportArms, most: int) -> list[str]:
    means = select_set(measures.rows, name)
    measured = set(means["metric"])
    columns = [metric for metric in settings.columns if metric in measured]
    compared = [metric for metric in settings.differences if metric in measured]
    changes = list_changes(measures, name, compared, settings, most)
    return [
        f"## {name}",
        md.pivot(means, ["%, near-duplicates per question"], measures.outcomes.keys(), columns),
        *difference_table(changes, compared, settings),
    ]


def list_changes(
    measures: MeasuredRows, name: str, metrics: Sequence[str], settings: ReportArms, most: int
) -> Iterator[Comparison]:
    """Yield the change by `most` near-duplicates for each arm; for each pair the difference there and of changes."""

    def read(arm: str, count: int, metric: str) -> Trainings:
        return measures.outcomes[f"{arm}, {count}"].of_trainings(name, metric)

    def read_change(arm: str, metric: str) -> Trainings:
        sides = zip(read(arm, 0, metric), read(arm, most, metric), strict=True)  # of the same questions
        return [with_most.assign(sums=with_most["sums"] - without["sums"]) for without, with_most in sides]

    arms = settings.robustness.trainings
    for arm in arms:
        yield Comparison(f"{arm}: {most} − 0", ((read(arm, most, metric), read(arm, 0, metric)) for metric in metrics))
    for arm, reference in settings.pair([*arms], arms):  # BM25 was not measured everywhere
        fixed = is_fixed(arm, reference)
        sides = ((read(arm, most, metric), read(reference, most, metric)) for metric in metrics)
        yield Comparison(f"{arm} − {reference} at {most}", sides, fixed=fixed)
        sides = ((read_change(arm, metric), read_change(reference, metric)) for metric in metrics)
        yield Comparison(f"change of {arm} − change of {reference}", sides, fixed=fixed)
