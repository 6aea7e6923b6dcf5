"""The report's sections of robustness: how much each arm loses as near-duplicates join the corpus.

Interval estimates are paired over questions; an arm with several trainings has their means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import plot_data, plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.comparisons import Row, difference_table
from eadpr.evaluation.config import ReportArms, Robustness
from eadpr.evaluation.outcomes import MADE, Outcomes, PerQuestion

Tables = dict[str, dict[int, Outcomes]]  # arm -> near-duplicates per question -> outcomes of its trainings


def sections(outcomes: Path, folder: Path, settings: ReportArms, counts: Robustness, sets: Sets) -> list[str]:
    """Of every generator, whose CSV and SVG go to `folder`."""
    rows = settings.robustness.trainings
    shown, parts = settings.only(rows), []
    for generator in settings.robustness.each:
        own = outcomes / "robustness" / generator
        measured = {
            arm: {n: Outcomes([own / name / f"{n}.parquet" for name in trainings]) for n in counts.counts}
            for arm, trainings in rows.items()
        }
        first = own / next(iter(rows.values()))[0] / MADE
        made = json.loads(first.read_text(encoding="utf-8"))
        parts += [f"# Near-duplicates by {made['generator']}", _made(made)]
        for name in sets.evaluate:
            parts += [f"## {name}", _table(measured, name, shown), *_changes(measured, name, shown)]
        _write_curves(folder, f"robustness-{generator}", measured, shown, sets)
    return parts


def _made(made: dict[str, Any]) -> str:
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in made["dropped"].items()) or "none"
    return (
        f"{made['near_duplicates']:,} near-duplicates of {made['questions']:,} questions; {made['with_all']:,} have all"
        f" that were asked for, {made['with_none']:,} have none. Dropped: {dropped}. Every question counts."
    )


def _metrics(measured: Tables, name: str, asked: list[str]) -> list[str]:
    """Those of `asked` that the question set has; BM25 and answer awareness are not measured here."""
    first = next(iter(measured.values()))[0]
    return [metric for metric in asked if len(first.per_question(name, metric).question_ids)]


def _table(measured: Tables, name: str, settings: ReportArms) -> str:
    metrics = _metrics(measured, name, settings.columns)
    rows = [
        [f"{arm}, {n}", *(f"{100 * of.per_question(name, metric).mean:.1f}" for metric in metrics)]
        for arm, of_arm in measured.items()
        for n, of in of_arm.items()
    ]
    return md.table(["%, near-duplicates per question", *map(md.title, metrics)], rows)


def _changes(measured: Tables, name: str, settings: ReportArms) -> list[str]:
    """What the most near-duplicates change for each arm, and whether they change it less for one than for another."""
    metrics = _metrics(measured, name, settings.differences)
    most = max(next(iter(measured.values())))

    def at(arm: str, n: int, metric: str) -> PerQuestion:
        return measured[arm][n].per_question(name, metric)

    def change(arm: str, metric: str) -> PerQuestion:
        after, before = at(arm, most, metric), at(arm, 0, metric)
        return after._replace(sums=after.sums - before.sums)  # of one arm, so that the questions are the same

    def rows() -> Iterator[Row]:
        for arm in measured:
            yield f"{arm}: {most} − 0", ((at(arm, most, metric), at(arm, 0, metric)) for metric in metrics)
        for arm, other in settings.comparisons:
            if other in measured:
                pairs = ((at(arm, most, metric), at(other, most, metric)) for metric in metrics)
                yield f"{arm} − {other} at {most}", pairs
                changes = ((change(arm, metric), change(other, metric)) for metric in metrics)
                yield f"change of {arm} − change of {other}", changes

    return difference_table(rows(), [md.title(metric) for metric in metrics], settings)


def _write_curves(folder: Path, file: str, measured: Tables, settings: ReportArms, sets: Sets) -> None:
    rows, curves = [], {}
    for name in sets.evaluate:
        for metric in _metrics(measured, name, settings.differences):
            shares = {
                arm: {n: of.per_question(name, metric).mean for n, of in of_arm.items()}
                for arm, of_arm in measured.items()
            }
            rows += [(n, share, arm, metric, name) for arm, curve in shares.items() for n, share in curve.items()]
            panel = f"{name}: {md.title(metric)}"
            curves[panel] = {arm: (list(curve), list(curve.values())) for arm, curve in shares.items()}
    header = ["near_duplicates", "share", "arm", "metric", "question_set"]
    plot_data.write_csv(folder / f"{file}.csv", header, rows)
    if curves:
        files.write_text(folder / f"{file}.svg", plots.robustness(curves, list(measured)))
