"""The report's tables of one question set, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from eadpr.evaluation import tabulate as md
from eadpr.evaluation.awareness import AWARENESS, of_arms
from eadpr.evaluation.config import BM25, Report, ReportArms
from eadpr.evaluation.outcomes import TYPES, Outcomes, PerQuestion
from eadpr.evaluation.statistics import Difference, compare, holm
from eadpr.evaluation.summary import HOP_TYPE, MACRO, TYPE

OF_PATHS = ("all", "one_hop_all", "pr", "path_recall", "hop1_recall")  # what is measured of paths, at k


def of_question_set(name: str, found: pd.DataFrame, outcomes: dict[str, Outcomes], settings: ReportArms) -> list[str]:
    """The set's heading and what stands beneath it. `found` are the means of every row."""
    found = found[found["question_set"] == name]
    whole = found[found["by"] == ""]
    count = whole[(whole["row"] == BM25) & (whole["metric"] == "n")]["n"].item()
    return [
        f"## {name}: {count:,.0f} questions",
        *_main_table(whole, settings),
        *_macro_table(found[found["by"] == MACRO], settings),
        *_differences(outcomes, name, settings),
        *_removed(whole, settings),
        *_two_hops(found, settings),
        *_by_type(found[found["by"] == TYPE], settings),
    ]


def _titled(first: str, metrics: list[str]) -> list[str]:
    return [first, *map(md.title, metrics)]


def _main_table(whole: pd.DataFrame, settings: ReportArms) -> list[str]:
    rows = {row: [row] for row in settings.rows}
    said = ", ".join(f"{row} {len(names)}" for row, names in settings.rows.items() if len(names) > 1)
    note = [f"Mean ± standard deviation over trainings with different seeds: {said}."] if said else []
    return [md.pivot(whole, _titled("%", settings.columns), rows, settings.columns, spread=True), *note]


def _macro_table(macro: pd.DataFrame, settings: ReportArms) -> list[str]:
    """Nothing for a set without a macro average."""
    if macro.empty:
        return []
    relations = macro[macro["metric"] == "relations"]["n"].max()
    columns = [metric for metric in settings.columns if metric in set(macro["metric"])]
    rows = {row: [row] for row in settings.rows}
    table = md.pivot(macro, _titled("macro", columns), rows, columns, spread=True)
    return [f"Mean over the {relations:.0f} relations (%):", table]


def _differences(outcomes: dict[str, Outcomes], name: str, settings: ReportArms) -> list[str]:
    """Of the arms' means over trainings, then of each training."""
    columns = [md.title(metric) for metric in settings.differences]
    rows = rows_of_pairs(outcomes, settings.comparisons, name, settings.differences)
    return [*difference_table(rows, columns, settings), *_differences_of_trainings(outcomes, name, settings, columns)]


def _differences_of_trainings(
    outcomes: dict[str, Outcomes], name: str, settings: ReportArms, columns: list[str]
) -> list[str]:
    """Training i of an arm against training i of the other one, or against its only one."""
    cells = []
    for arm, other in settings.comparisons:
        names = settings.rows[arm], settings.rows[other]
        if len(names[0]) == 1 or len(names[1]) not in (1, len(names[0])):
            continue
        for i, training in enumerate(names[0]):
            j = i if len(names[1]) > 1 else 0
            pairs = (
                (outcomes[arm].of_training(i, name, metric), outcomes[other].of_training(j, name, metric))
                for metric in settings.differences
            )
            label = f"{training} − {names[1][j]}"
            cells.append([label, *(md.difference(one and one.interval) for one in compared((label, pairs), settings))])
    return ["The same for each training:", md.table(["difference", *columns], cells)] if cells else []


def _removed(whole: pd.DataFrame, settings: ReportArms) -> list[str]:
    """AA by what the positive is compared with lacks, where probe.also asks for more than the two."""
    of_arms = whole[whole["row"].isin(settings.arms)]
    shown = [metric for metric in AWARENESS if metric in set(of_arms["metric"])]
    if not set(shown) - {"aa", "aa_evidence"}:
        return []
    rows = {arm: [arm] for arm in settings.arms}
    return ["AA by what is removed (%):", md.pivot(of_arms, _titled("arm", shown), rows, shown)]


def _two_hops(found: pd.DataFrame, settings: ReportArms) -> list[str]:
    """Measures of paths, of all questions with hops and of each kind of them; nothing where there are no paths."""
    hops = found[found["row"].isin(settings.one_hop) & found["by"].isin(["", HOP_TYPE])]
    metrics = set(hops["metric"])
    cutoffs = sorted(int(metric[2:]) for metric in metrics if re.fullmatch(r"pr\d+", metric))
    columns = [f"{measure}{k}" for measure in OF_PATHS for k in cutoffs if f"{measure}{k}" in metrics]
    if not columns:
        return []
    keys = hops["row"] + "/" + hops["group"]
    rows = {}
    for row in settings.rows:
        counted = hops[(hops["row"] == row) & (hops["metric"] == f"pr{cutoffs[0]}")].sort_values("group")
        for kind, n in zip(counted["group"], counted["n"], strict=True):
            rows[f"{row}/{kind}"] = [row, kind or "all", f"{n:,.0f}"]
    said = (
        "Two hops (%): whether the k/2 best paths hold all supporting passages (R-all), any of them (PR), a path of"
        " just them (path recall), one as a first hop (1-recall)"
    )
    if any(metric.startswith("one_hop") for metric in columns):
        said += "; one-hop: the k best passages of the arm whose examples the model learnt from"
    head = ["%", "questions", "n", *map(md.title, columns)]
    return [f"{said}:", md.pivot(hops.assign(key=keys), head, rows, columns, by="key")]


def _by_type(of_types: pd.DataFrame, settings: ReportArms) -> list[str]:
    parts = []
    for metric in settings.by_type:
        found = of_types[of_types["metric"] == metric]
        counts = found.groupby("group")["n"].unique()
        rows = {kind: [kind, "/".join(f"{n:,.0f}" for n in sorted(counts[kind]))] for kind in TYPES if kind in counts}
        if rows:
            columns = list(found["row"].unique())
            head = ["type", "pairs" if md.is_awareness(metric) else "questions", *columns]
            found = found.assign(n=np.nan)
            parts += [
                f"{md.title(metric)} (%) by question type:",
                md.pivot(found, head, rows, columns, by="group", across="row"),
            ]
    return parts


def scores(records: Path, pairs: Path, name: str, settings: ReportArms) -> list[str]:
    """Means over pairs of the scores behind AA, and of their differences on either side of 0 (PiCL, Table 5 and
    Figure 5); an arm's trainings weigh alike."""
    rows = []
    for arm, found in of_arms(records, pairs, name, settings.trainings).items():
        for metric in AWARENESS:
            own = [of_training[metric] for of_training in found if metric in of_training]
            positives, values = (
                np.concatenate([getattr(of, key) for of in own] or [[]]) for key in ("positives", "values")
            )
            if not len(values):
                continue
            of_sides = [positives, positives - values, values, values[values > 0], values[values <= 0]]
            means = [f"{side.mean():.2f}" if len(side) else md.NONE for side in of_sides]
            rows.append([arm, md.title(metric), f"{len(values) / len(found):,.0f}", *means])
    if not rows:
        return []
    header = ["arm", "behind", "pairs", "with", "without", "difference", "where above 0", "where not"]
    return ["Mean scores (dot products) of the positive with and without what is removed:", md.table(header, rows)]


Pair = tuple[PerQuestion, PerQuestion]
Row = tuple[str, Iterable[Pair]]  # a label and, for each column, what is compared with what


def rows_of_pairs(
    outcomes: Mapping[str, Outcomes], pairs: Sequence[tuple[str, str]], question_set: str, metrics: Sequence[str]
) -> Iterator[Row]:
    """Nothing is read before it is compared: at a million questions, not all columns fit in memory together."""

    def of(name: str, other: str) -> Iterator[Pair]:
        return (tuple(outcomes[row].per_question(question_set, metric) for row in (name, other)) for metric in metrics)

    return ((f"{name} − {other}", of(name, other)) for name, other in pairs)


def compared(row: Row, settings: Report) -> list[Difference | None]:
    options = {"resamples": settings.resamples, "seed": settings.seed, "confidence": settings.confidence}
    return [compare(*pair, **options) for pair in row[1]]


def difference_table(rows: Iterable[Row], columns: Sequence[str], settings: Report) -> list[str]:
    """Differences in percentage points beneath what their stars mean; nothing without rows.

    All of the table is one family of Holm's correction, whatever its rows and columns are.
    """
    found = [(row[0], compared(row, settings)) for row in rows]
    if not found:
        return []
    known = [difference.p for _, of_row in found for difference in of_row if difference]
    level = 1 - settings.confidence
    starred = iter([p < level for p in holm(known)])
    cells = [
        [label, *(md.difference(one.interval, starred=next(starred)) if one else md.NONE for one in of_row)]
        for label, of_row in found
    ]
    said = (
        f"Differences in percentage points with {100 * settings.confidence:g} % intervals (paired bootstrap over"
        f" questions, {settings.resamples:,} resamples); * below {level:.2g} in the paired randomisation test, with"
        f" Holm's correction over the table ({len(known)} in all):"
    )
    return [said, md.table(["difference", *columns], cells)]
