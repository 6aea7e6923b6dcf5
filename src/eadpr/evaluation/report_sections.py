"""The report's sections of what an optional part of the pipeline measured: how much each arm loses as near-duplicates
join the corpus, and what readers answer from the rankings of several retrievers.

Each function is a `report.Section` once all but its last two arguments are given: the report's folder, where its CSV,
SVG and JSON go, and the means of every training. Intervals are paired over questions; an arm with several trainings has
their means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.config import ReportArms, Robustness
from eadpr.evaluation.outcomes import MADE, PerQuestion
from eadpr.evaluation.report_tables import Row, difference_table, rows_of_pairs
from eadpr.evaluation.summary import HOP_TYPE, MeasuredRows, averaged, details, measured, rounded
from eadpr.reading.config import Read

OF_PATHS = {
    "em": "answer EM",
    "f1": "answer F1",
    "sp_em": "support EM",
    "sp_f1": "support F1",
    "joint_em": "joint EM",
    "joint_f1": "joint F1",
}
KINDS = {"bridge": "Bridge questions", "comparison": "Comparisons"}


def of_robustness(
    outcomes: Path, settings: ReportArms, counts: Robustness, sets: Sets, folder: Path, _: pd.DataFrame
) -> list[str]:
    """Of every generator of near-duplicates."""
    arms, parts = settings.robustness.trainings, []
    for generator in settings.robustness.each:
        own = outcomes / "robustness" / generator
        rows = {f"{arm}, {n}": [f"{name}/{n}" for name in names] for arm, names in arms.items() for n in counts.counts}
        found = measured(own, rows, sets.evaluate)
        first = own / next(iter(arms.values()))[0] / MADE
        made = json.loads(first.read_text(encoding="utf-8"))
        parts += [f"# Near-duplicates by {made['generator']}", _made(made)]
        for name in sets.evaluate:
            whole = _whole(found.rows, name)
            metrics = [metric for metric in settings.columns if metric in set(whole["metric"])]
            head = ["%, near-duplicates per question", *map(md.title, metrics)]
            parts += [f"## {name}", md.pivot(whole, head, {row: [row] for row in rows}, metrics)]
            compared = [metric for metric in settings.differences if metric in set(whole["metric"])]
            changes = _changes(found, name, compared, settings.only(arms), counts.counts[-1])
            parts += difference_table(changes, [md.title(metric) for metric in compared], settings)
        _write_robustness(folder / f"robustness-{generator}", found, settings, counts.counts, sets)
    return parts


def _whole(found: pd.DataFrame, name: str) -> pd.DataFrame:
    """Means over all questions of a set."""
    return found[(found["question_set"] == name) & (found["by"] == "")]


def _made(made: dict[str, Any]) -> str:
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in made["dropped"].items()) or "none"
    return (
        f"{made['near_duplicates']:,} near-duplicates of {made['questions']:,} questions; {made['with_all']:,} have all"
        f" that were asked for, {made['with_none']:,} have none. Dropped: {dropped}. Every question counts."
    )


def _changes(found: MeasuredRows, name: str, metrics: Sequence[str], settings: ReportArms, most: int) -> Iterator[Row]:
    """What the most near-duplicates change for each arm, and whether they change it less for one than for another."""

    def at(arm: str, n: int, metric: str) -> PerQuestion:
        return found.outcomes[f"{arm}, {n}"].per_question(name, metric)

    def change(arm: str, metric: str) -> PerQuestion:
        after, before = at(arm, most, metric), at(arm, 0, metric)
        return after._replace(sums=after.sums - before.sums)  # of one arm, so that the questions are the same

    for arm in settings.arms:
        yield f"{arm}: {most} − 0", ((at(arm, most, metric), at(arm, 0, metric)) for metric in metrics)
    for arm, other in settings.comparisons:
        if other in settings.arms:
            yield f"{arm} − {other} at {most}", ((at(arm, most, m), at(other, most, m)) for m in metrics)
            changes = ((change(arm, metric), change(other, metric)) for metric in metrics)
            yield f"change of {arm} − change of {other}", changes


def _write_robustness(path: Path, found: MeasuredRows, settings: ReportArms, counts: Sequence[int], sets: Sets) -> None:
    arms, rows = list(settings.robustness.trainings), []
    for name in sets.evaluate:
        shares = _whole(found.rows, name).set_index(["row", "metric"])["mean"]
        for metric in settings.differences:
            if metric in shares.index.levels[1]:
                rows += [(n, shares[f"{arm}, {n}", metric], arm, metric, name) for arm in arms for n in counts]
    curves = pd.DataFrame(rows, columns=["near_duplicates", "share", "arm", "metric", "question_set"])
    plots.write(path, curves, lambda shown: plots.robustness(shown, arms))


def of_readers(
    outcomes: Path, settings: ReportArms, read: Read, sets: Sets, folder: Path, trainings: pd.DataFrame
) -> list[str]:
    """Of every reader, those of passages first; beside their answers stands the answer awareness of what they read
    (PiCL, Figure 2)."""
    rows, parts = settings.reading.trainings, []
    shown = settings.only(rows)
    for reader in sorted(settings.reading.each, key=lambda one: one in settings.of_paths):
        found = measured(outcomes / "reading" / reader, rows, sets.evaluate)
        for name, of_ranking in found.trainings.groupby("row"):
            files.write_json(folder / "metrics" / "reading" / reader / f"{name}.json", details(of_ranking))
        if reader in settings.of_paths:
            parts += [f"# Answers of the reader of paths {reader}", *_of_paths(found, shown, sets)]
        else:
            awareness = averaged(trainings[trainings["metric"] == "aa"], rows)
            parts += [f"# Answers of the reader {reader}", *_of_passages(found, awareness, shown, read, sets)]
            _write_exact_match(folder / f"em-{reader}", found, shown.arms, read, sets)
    return parts


def _of_passages(
    found: MeasuredRows, awareness: pd.DataFrame, settings: ReportArms, read: Read, sets: Sets
) -> list[str]:
    parts = []
    if read.questions is not None:
        parts += [f"At most {read.questions:,} questions of each set are read, the same from every ranking."]
    pairs = [pair for pair in settings.comparisons if {*pair} <= set(settings.arms)]
    titles = [title(metric) for metric in read.metrics]
    for name in sets.evaluate:
        whole = _whole(found.rows, name)
        count = whole[whole["metric"] == read.metrics[0]]["n"].iloc[0]
        means = pd.concat([whole, _whole(awareness, name)])
        rows = {row: [row] for row in settings.arms}
        table = md.pivot(means, ["%", *titles, "AA"], rows, [*read.metrics, "aa"])
        compared = rows_of_pairs(found.outcomes, pairs, name, read.metrics)
        parts += [f"## {name}: {count:,.0f} questions", table, *difference_table(compared, titles, settings)]
    return parts


def title(metric: str) -> str:
    """`em_5` -> EM, top-5."""
    kind, k = metric.split("_")
    return f"{kind.upper()}, top-{k}"


def _write_exact_match(path: Path, found: MeasuredRows, arms: list[str], read: Read, sets: Sets) -> None:
    """Over the passages that are read."""
    rows = []
    for name in sets.evaluate:
        shares = _whole(found.rows, name).set_index(["row", "metric"])["mean"]
        rows += [(k, shares[row, f"em_{k}"], row, name) for row in arms for k in read.top_k]
    curves = pd.DataFrame(rows, columns=["passages", "em", "arm", "question_set"])
    plots.write(path, curves, lambda shown: plots.exact_match(shown, arms))


def _of_paths(found: MeasuredRows, settings: ReportArms, sets: Sets) -> list[str]:
    """Answers and their supporting sentences (001, Tables 5 and 10), bridge questions and comparisons apart too."""
    means = averaged(rounded(found.trainings), settings.trainings)
    means = means[means["metric"].isin(OF_PATHS) & means["by"].isin(["", HOP_TYPE])]
    titles, rows, parts = list(OF_PATHS.values()), {row: [row] for row in settings.arms}, []
    for name in sets.evaluate:
        of_set = means[means["question_set"] == name]
        for kind, of_kind in of_set.groupby("group"):
            n = f"{of_kind['n'].iloc[0]:,.0f}"
            heading = f"{KINDS.get(kind, kind)} (n={n}):" if kind else f"## {name}: {n} questions"
            parts += [heading, md.pivot(of_kind, ["%", *titles], rows, list(OF_PATHS))]
        if len(of_set):
            compared = rows_of_pairs(found.outcomes, comparisons_of_paths(settings), name, list(OF_PATHS))
            parts += difference_table(compared, titles, settings)
    return parts


def comparisons_of_paths(settings: ReportArms) -> list[tuple[str, str]]:
    """Pairs (ranking, what it is compared with), each once: with the one that report.compare names where that is read
    too, else with the first."""
    first = settings.arms[0]
    pairs: list[tuple[str, str]] = []
    for name in settings.arms:
        other = settings.compare.get(name, first)
        pair = (name, other if other in settings.arms else first)
        if name != pair[1] and pair[::-1] not in pairs:
            pairs.append(pair)
    return pairs
