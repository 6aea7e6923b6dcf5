"""The report's section of what readers answer from the rankings of several retrievers."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from eadpr.readers.config import Read
from eadpr.report import markdown as md
from eadpr.report.config import Pairs, ReportArms, Rows, Sampling
from eadpr.report.differences import comparisons, difference_table
from eadpr.report.summary import MeasuredRows, average_trainings, load_rows, nest_means, select_set
from eadpr.runtime import files
from eadpr.runtime.section import Sets

PATH_METRICS = ["em", "f1", "sp_em", "sp_f1", "joint_em", "joint_f1"]
AWARE = ("aa", "placebo_words", "controlled_aa")  # of the retriever, shown with the answers from its ranking
KINDS = {"bridge": "Bridge questions", "comparison": "Comparisons"}


def report_readers(
    outcomes: Path, settings: ReportArms, read: Read, sets: Sets, folder: Path, trainings: pd.DataFrame
) -> list[str]:
    """Report every reader, those of passages first, with the answer awareness of the rankings they read (PiCL, Figure
    2). A `report.Section` once all but the last two arguments are bound; JSON goes to `folder`."""
    rows, sampling, parts = settings.reading.trainings, settings, []
    pairs = settings.pair([*rows], rows)
    for reader in sorted(settings.reading.by, key=lambda name: name in settings.of_paths):
        measures = load_rows(outcomes / "reading" / reader, rows, sets.evaluate)
        for name, means in measures.trainings.groupby("row"):
            files.write_json(folder / "metrics" / "reading" / reader / f"{name}.json", nest_means(means))
        if reader in settings.of_paths:
            parts.append(f"# Answers of the reader of paths {reader}")
            # Each ranking and the one that report.compare gives it, where that is read too, else the first.
            path_pairs = settings.pair([*rows], rows, next(iter(rows)))
            parts += tables_of_paths(measures, rows, path_pairs, sampling, sets.evaluate)
        else:
            parts.append(f"# Answers of the reader {reader}")
            awareness = average_trainings(trainings[trainings["metric"].isin(AWARE)], rows)
            for name in sets.evaluate:
                parts += tables_of_passages(measures, select_set(awareness, name), rows, pairs, sampling, read, name)
    return parts


def tables_of_passages(
    measures: MeasuredRows, awareness: pd.DataFrame, rows: Rows, pairs: Pairs, sampling: Sampling, read: Read, name: str
) -> list[str]:
    means = select_set(measures.rows, name)
    count = means[means["metric"] == read.metrics[0]]["n"].iloc[0]
    table = md.pivot(pd.concat([means, awareness]), ["%"], [*rows], [*read.metrics, *AWARE])
    compared = comparisons(measures.outcomes, pairs, name, read.metrics)
    return [f"## {name}: {count:,.0f} questions", table, *difference_table(compared, read.metrics, sampling)]


def tables_of_paths(
    measures: MeasuredRows, rows: Rows, pairs: Pairs, sampling: Sampling, sets: Sequence[str]
) -> list[str]:
    """Return tables of answers and their supporting sentences (001, Tables 5 and 10), of all questions and by kind."""
    means = measures.rows
    means = means[means["metric"].isin(PATH_METRICS) & means["by"].isin(["", "hop_type"])]
    parts = []
    for name in sets:
        set_means = means[means["question_set"] == name]
        for kind, group in set_means.groupby("group"):
            n = f"{group['n'].iloc[0]:,.0f}"
            parts.append(f"{KINDS.get(kind, kind)} (n={n}):" if kind else f"## {name}: {n} questions")
            parts.append(md.pivot(group, ["%"], [*rows], PATH_METRICS))
        if len(set_means):
            compared = comparisons(measures.outcomes, pairs, name, PATH_METRICS)
            parts += difference_table(compared, PATH_METRICS, sampling)
    return parts
