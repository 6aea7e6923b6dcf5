"""The report's section of what readers answer from the rankings of several retrievers."""

from functools import partial
from pathlib import Path

import pandas as pd

from eadpr.evaluation.config import ReportArms
from eadpr.readers.config import Read
from eadpr.report import markdown as md
from eadpr.report import plots
from eadpr.report.differences import comparisons, difference_table
from eadpr.report.summary import MeasuredRows, averaged, details, measured, rounded
from eadpr.runtime import files
from eadpr.runtime.section import Sets

OF_PATHS = ["em", "f1", "sp_em", "sp_f1", "joint_em", "joint_f1"]
EXACT_MATCH = plots.Plot("Exact match", partial(
    plots.lines, at="passages", share="em", x="passages read", y="exact match (%)", log=True
))  # fmt: skip
AWARE = ("aa", "placebo_words", "controlled_aa")  # shown beside the answers from what an arm ranks
KINDS = {"bridge": "Bridge questions", "comparison": "Comparisons"}


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
            awareness = averaged(trainings[trainings["metric"].isin(AWARE)], rows)
            parts += [f"# Answers of the reader {reader}", *_of_passages(found, awareness, shown, read, sets)]
            _write_exact_match(folder / f"em-{reader}", found, shown.arms, read, sets)
    return parts


def _of_passages(
    found: MeasuredRows, awareness: pd.DataFrame, settings: ReportArms, read: Read, sets: Sets
) -> list[str]:
    parts = []
    if read.questions is not None:
        parts += [f"At most {read.questions:,} questions of each set are read, the same from every ranking."]
    for name in sets.evaluate:
        whole = md.whole(found.rows, name)
        count = whole[whole["metric"] == read.metrics[0]]["n"].iloc[0]
        means = pd.concat([whole, md.whole(awareness, name)])
        table = md.pivot(means, ["%"], settings.arms, [*read.metrics, *AWARE])
        compared = comparisons(found.outcomes, settings.comparisons_of_arms, name, read.metrics)
        parts += [f"## {name}: {count:,.0f} questions", table]
        parts += difference_table(compared, md.titles(read.metrics), settings)
    return parts


def _write_exact_match(path: Path, found: MeasuredRows, arms: list[str], read: Read, sets: Sets) -> None:
    """Over the passages that are read."""
    rows = []
    for name in sets.evaluate:
        shares = md.whole(found.rows, name).set_index(["row", "metric"])["mean"]
        rows += [(k, shares[row, f"em_{k}"], row, name) for row in arms for k in read.top_k]
    curves = pd.DataFrame(rows, columns=["passages", "em", "arm", "question_set"])
    plots.write(path, curves, EXACT_MATCH, arms)


def _of_paths(found: MeasuredRows, settings: ReportArms, sets: Sets) -> list[str]:
    """Answers and their supporting sentences (001, Tables 5 and 10), bridge questions and comparisons apart too."""
    means = averaged(rounded(found.trainings), settings.trainings)
    means = means[means["metric"].isin(OF_PATHS) & means["by"].isin(["", "hop_type"])]
    parts = []
    for name in sets.evaluate:
        of_set = means[means["question_set"] == name]
        for kind, of_kind in of_set.groupby("group"):
            n = f"{of_kind['n'].iloc[0]:,.0f}"
            heading = f"{KINDS.get(kind, kind)} (n={n}):" if kind else f"## {name}: {n} questions"
            parts += [heading, md.pivot(of_kind, ["%"], settings.arms, OF_PATHS)]
        if len(of_set):
            compared = comparisons(found.outcomes, comparisons_of_paths(settings), name, OF_PATHS)
            parts += difference_table(compared, md.titles(OF_PATHS), settings)
    return parts


def comparisons_of_paths(settings: ReportArms) -> list[tuple[str, str]]:
    """As `ReportArms.comparisons`: with the ranking that report.compare names where that is read too, else with the
    first."""
    return settings.model_copy(update={"baseline": settings.arms[0]}).comparisons_of_arms
