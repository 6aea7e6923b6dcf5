"""The report's tables of one question set, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eadpr.evaluation import tabulate as md
from eadpr.evaluation.awareness import AWARENESS, of_file
from eadpr.evaluation.comparisons import compared, difference_table, rows_of_pairs
from eadpr.evaluation.config import BM25, ReportArms, count_name
from eadpr.evaluation.outcomes import Outcomes
from eadpr.evaluation.question_types import TYPES
from eadpr.evaluation.statistics import spread
from eadpr.evaluation.summary import averaged
from eadpr.questions import select

OF_PATHS = ("all", "one_hop_all", "pr", "path_recall", "hop1_recall")  # what `evaluate` measures of paths, at k


def of_question_set(
    name: str,
    each: dict[str, list[Any]],
    found: dict[str, Any],
    outcomes: dict[str, Outcomes],
    settings: ReportArms,
) -> list[str]:
    """The set's heading and what stands beneath it. `each` has the set's summary of every training of a row, `found`
    their means."""
    return [
        f"## {name}: {found[BM25]['n']:,} questions",
        *_main_table(each, settings),
        *_macro_table(each, settings),
        *_differences(outcomes, name, settings),
        *_removed(found, settings),
        *_two_hops(found, settings),
        *_by_type(found, settings),
    ]


def _main_table(each: dict[str, list[Any]], settings: ReportArms) -> list[str]:
    counts = {row: len(trainings) for row, trainings in each.items() if len(trainings) > 1}
    said = ", ".join(f"{row} {count}" for row, count in counts.items())
    note = [f"Mean ± standard deviation over trainings with different seeds: {said}."] if counts else []
    return [_means("%", each, settings.columns), *note]


def _macro_table(each: dict[str, list[Any]], settings: ReportArms) -> list[str]:
    """Nothing for a set without a macro average."""
    macros = {row: [of["macro"] for of in trainings if "macro" in of] for row, trainings in each.items()}
    known = {metric: value for of_row in macros.values() for of in of_row for metric, value in of.items()}
    columns = [metric for metric in settings.columns if metric in known]
    return [f"Mean over the {known['relations']} relations (%):", _means("macro", macros, columns)] if known else []


def _means(label: str, each: dict[str, list[Any]], columns: list[str]) -> str:
    """A row of means over its trainings for each, with their spread where there are several."""
    rows = []
    for row, trainings in each.items():
        known = {metric: [of[metric] for of in trainings if metric in of] for metric in columns}
        means = averaged(trainings or [{}])
        rows.append([row, *(md.share(means, metric, spread(v) if len(v) > 1 else None) for metric, v in known.items())])
    return md.table([label, *map(md.title, columns)], rows)


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


def _removed(of_set: dict[str, Any], settings: ReportArms) -> list[str]:
    """AA by what the positive is compared with lacks, where probe.also asks for more than the two."""
    shown = [metric for metric in AWARENESS if any(metric in of_set[arm] for arm in settings.arms)]
    if not set(shown) - {"aa", "aa_evidence"}:
        return []
    return ["AA by what is removed (%):", _means("arm", {arm: [of_set[arm]] for arm in settings.arms}, shown)]


def _two_hops(of_set: dict[str, Any], settings: ReportArms) -> list[str]:
    """Measures of paths, of all questions with hops and of each kind of them; nothing where there are no paths."""
    parts = {
        (row, kind): found | {f"one_hop_{metric}": value for metric, value in found.get("one_hop", {}).items()}
        for row, of_row in of_set.items()
        if row in settings.one_hop
        for kind, found in {"all": of_row, **of_row.get("by_hop_type", {})}.items()
    }
    cutoffs = sorted({int(name[2:]) for found in parts.values() for name in found if re.fullmatch(r"pr\d+", name)})
    columns = [f"{measure}{k}" for measure in OF_PATHS for k in cutoffs]
    columns = [metric for metric in columns if any(metric in found for found in parts.values())]
    rows = [
        [*names, f"{found['n_supporting']:,}", *(md.share(found, metric) for metric in columns)]
        for names, found in parts.items()
        if any(metric in found for metric in columns)
    ]
    if not rows:
        return []
    said = (
        "Two hops (%): whether the k/2 best paths hold all supporting passages (R-all), any of them (PR), a path of"
        " just them (path recall), one as a first hop (1-recall)"
    )
    if any(metric.startswith("one_hop") for metric in columns):
        said += "; one-hop: the k best passages of the arm whose examples the model learnt from"
    return [f"{said}:", md.table(["%", "questions", "n", *map(md.title, columns)], rows)]


def _by_type(of_set: dict[str, Any], settings: ReportArms) -> list[str]:
    parts = []
    for metric in settings.by_type:
        found = {row: by_type(of_row, metric) for row, of_row in of_set.items()}
        found = {row: of_row for row, of_row in found.items() if of_row}
        kinds = [kind for kind in TYPES if any(kind in of_row for of_row in found.values())]
        if not kinds:
            continue
        rows = []
        for kind in kinds:
            counts = {of_row[kind][1] for of_row in found.values() if kind in of_row}
            cells = [f"{100 * of_row[kind][0]:.1f}" if kind in of_row else md.NONE for of_row in found.values()]
            rows.append([kind, "/".join(f"{n:,.0f}" for n in sorted(counts)), *cells])
        counted = "pairs" if md.is_awareness(metric) else "questions"
        parts += [f"{md.title(metric)} (%) by question type:", md.table(["type", counted, *found], rows)]
    return parts


def by_type(found: Mapping[str, Any], metric: str) -> dict[str, tuple[float, int]]:
    """Question type -> (share, pairs or questions) of a set's summary."""
    of_types = {kind: of for kind, of in found["by_type"].items() if metric in of}
    return {kind: (of[metric], of[count_name(metric) or "n"]) for kind, of in of_types.items()}


def scores(records: Path, pairs: Path, name: str, settings: ReportArms) -> list[str]:
    """Means over pairs of the scores behind AA, and of their differences on either side of 0 (PiCL, Table 5 and
    Figure 5); an arm's trainings weigh alike."""
    questions = pa.array(select(records / "question_sets.parquet", [name]), pa.string())
    rows = []
    for arm, trainings in settings.trainings.items():
        found = [of_file(pairs / f"{one}.parquet", questions) for one in trainings]
        for metric in AWARENESS:
            own = [of_training[metric] for of_training in found if metric in of_training]
            positives, values = (
                np.concatenate([getattr(of, key) for of in own] or [[]]) for key in ("positives", "values")
            )
            if not len(values):
                continue
            of_sides = [positives, positives - values, values, values[values > 0], values[values <= 0]]
            means = [f"{side.mean():.2f}" if len(side) else md.NONE for side in of_sides]
            rows.append([arm, md.title(metric), f"{len(values) / len(trainings):,.0f}", *means])
    if not rows:
        return []
    header = ["arm", "behind", "pairs", "with", "without", "difference", "where above 0", "where not"]
    return ["Mean scores (dot products) of the positive with and without what is removed:", md.table(header, rows)]
