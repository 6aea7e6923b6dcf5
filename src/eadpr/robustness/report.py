"""The report's section of how much each arm loses as near-duplicates join the corpus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from eadpr.evaluation.outcomes import MADE
from eadpr.report import markdown as md
from eadpr.report.config import Pairs, ReportArms
from eadpr.report.differences import Comparison, Trainings, difference_table, is_fixed
from eadpr.report.summary import MeasuredRows, load_rows, select_set
from eadpr.robustness.config import GOALS, Robustness
from eadpr.runtime import files
from eadpr.runtime.section import Sets

ReadValues = Callable[[str, int, str], Trainings]  # a metric of an arm among so many near-duplicates


class Scope(NamedTuple):
    """What is compared: arms and pairs of them, without near-duplicates and with the `most` that joined."""

    arms: Sequence[str]
    pairs: Pairs
    most: int
    settings: ReportArms


def report_robustness(
    outcomes: Path, settings: ReportArms, counts: Robustness, sets: Sets, _folder: Path, _means: pd.DataFrame
) -> list[str]:
    """Report what each arm loses at worst, then a part for every generator of near-duplicates.

    A `report.Section` once all but the last two arguments are bound.
    """
    arms = settings.robustness.trainings
    # BM25 was not measured everywhere.
    scope = Scope([*arms], settings.pair([*arms], arms), counts.counts[-1], settings)
    rows = {f"{arm}, {n}": [f"{name}/{n}" for name in names] for arm, names in arms.items() for n in counts.counts}
    generators = settings.robustness.by
    results = {name: load_rows(outcomes / "robustness" / name, rows, sets.evaluate) for name in generators}
    worst = [part for name in sets.evaluate for part in report_worst(results, name, scope)]
    parts = ["# Near-duplicates at their worst", *worst] if worst else []
    for generator, measured in results.items():
        made = files.read_json(outcomes / "robustness" / generator / next(iter(arms.values()))[0] / MADE)
        dropped = ", ".join(f"{n:,} {reason}" for reason, n in made["dropped"].items()) or "none"
        parts += [
            f"# Near-duplicates: {generator}",
            f"{made['near_duplicates']:,} near-duplicates of {made['questions']:,} questions of all sets;"
            f" {made['with_all']:,} have all that were asked for, {made['with_none']:,} have none. Dropped: {dropped}."
            " Every question counts.",
        ]
        for name in sets.evaluate:
            parts += report_set(measured, name, scope)
    return parts


def report_set(measured: MeasuredRows, name: str, scope: Scope) -> list[str]:
    means = select_set(measured.rows, name)
    columns, compared = (
        [metric for metric in metrics if metric in set(means["metric"])]
        for metrics in (scope.settings.columns, scope.settings.differences)
    )

    def read(arm: str, count: int, metric: str) -> Trainings:
        return measured.outcomes[f"{arm}, {count}"].of_trainings(name, metric)

    return [
        f"## {name}",
        md.pivot(means, ["%, near-duplicates per question"], measured.outcomes.keys(), columns),
        *difference_table(list_changes(read, compared, scope), md.titles(compared), scope.settings),
    ]


def report_worst(results: Mapping[str, MeasuredRows], name: str, scope: Scope) -> list[str]:
    """Return tables, by the first metric that was measured, of the kind by rule that costs each arm most, if any."""
    means = {goal: select_set(results[goal].rows, name) for goal in GOALS if goal in results}
    if not means:
        return []
    most, measured = scope.most, set(next(iter(means.values()))["metric"])
    metric = next(metric for metric in (*scope.settings.differences, *scope.settings.columns) if metric in measured)
    shares = {goal: of[of["metric"] == metric].set_index("row")["mean"] for goal, of in means.items()}
    worst = {arm: min(shares, key=lambda goal, row=f"{arm}, {most}": shares[goal][row]) for arm in scope.arms}
    rows = [
        [arm, kind, *(f"{100 * shares[kind][f'{arm}, {n}']:.1f}" for n in (0, most))] for arm, kind in worst.items()
    ]
    title = md.title(metric)

    def read(arm: str, count: int, metric: str) -> Trainings:
        return results[worst[arm]].outcomes[f"{arm}, {count}"].of_trainings(name, metric)

    return [
        f"## {name}",
        "Near-duplicates whose evidence is gone answer nothing, so that none should stand before a positive, however"
        f" the evidence was taken out ({', '.join(shares)}). An arm is judged by the kind that leaves it the least:",
        md.table(["%", "worst kind", f"{title} without near-duplicates", f"{title} with {most} per question"], rows),
        "Each arm with its worst kind. The intervals do not count that it was chosen by these very figures.",
        *difference_table(list_changes(read, [metric], scope), [f"{title}, worst"], scope.settings),
    ]


def list_changes(read: ReadValues, metrics: Sequence[str], scope: Scope) -> Iterator[Comparison]:
    """Yield the change by the most near-duplicates for each arm; for each pair the difference there and of changes."""
    most = scope.most

    def read_change(arm: str, metric: str) -> Trainings:
        changed = []
        for without, with_most in zip(read(arm, 0, metric), read(arm, most, metric), strict=True):
            changed.append(with_most.assign(sums=with_most["sums"] - without["sums"]))  # of the same questions
        return changed

    for arm in scope.arms:
        yield Comparison(f"{arm}: {most} − 0", ((read(arm, most, metric), read(arm, 0, metric)) for metric in metrics))
    for arm, reference in scope.pairs:
        fixed = is_fixed(arm, reference)
        sides = ((read(arm, most, metric), read(reference, most, metric)) for metric in metrics)
        yield Comparison(f"{arm} − {reference} at {most}", sides, fixed=fixed)
        sides = ((read_change(arm, metric), read_change(reference, metric)) for metric in metrics)
        yield Comparison(f"change of {arm} − change of {reference}", sides, fixed=fixed)
