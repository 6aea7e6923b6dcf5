"""The report's tables of one question set, in Markdown."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from eadpr.evaluation.awareness import AWARENESS, of_trainings
from eadpr.evaluation.config import BM25, ReportArms, count_name
from eadpr.evaluation.kinds import KINDS
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.differences import compare, comparisons, difference_table
from eadpr.report.pair_texts import PairTexts
from eadpr.report.summary import MACRO
from eadpr.storage.questions import read_question_ids

OF_PATHS = ("all", "one_hop_all", "pr", "path_recall", "hop1_recall")  # what is measured of paths, at k


def of_question_set(
    name: str,
    found: pd.DataFrame,
    outcomes: dict[str, Outcomes],
    texts: PairTexts,
    settings: ReportArms,
) -> list[str]:
    """The set's heading and what stands beneath it. `found` are the means of every row."""
    found = found[found["question_set"] == name]
    whole = md.whole(found, name)
    count = whole[(whole["row"] == BM25) & (whole["metric"] == "n")]["n"].item()
    compared = comparisons(outcomes, settings.comparisons, name, settings.differences)
    return [
        f"## {name}: {count:,.0f} questions",
        *_main_table(whole, texts, settings),
        *below_bm25(name, outcomes, settings),
        *_macro_table(found[found["by"] == MACRO], settings),
        *difference_table(compared, md.titles(settings.differences), settings),
        *_removed(whole, texts, settings),
        *_two_hops(found, settings),
        *_by_kind(found, settings),
    ]


def _main_table(whole: pd.DataFrame, texts: PairTexts, settings: ReportArms) -> list[str]:
    said = ", ".join(f"{row} {len(names)}" for row, names in settings.rows.items() if len(names) > 1)
    note = [f"Mean ± standard deviation over trainings with different seeds: {said}."] if said else []
    table = md.pivot(whole, ["%"], settings.rows.keys(), settings.columns, spread=True)
    return [table, *_meanings(settings.columns, texts), *note]


def below_bm25(name: str, outcomes: dict[str, Outcomes], settings: ReportArms) -> list[str]:
    """Which arms find less than BM25, by an interval below 0 of the deepest top-k of the table that is at most 20."""
    ks = [int(column[3:]) for column in settings.columns if re.fullmatch(r"top\d+", column)]
    metric = f"top{max((k for k in ks if k <= 20), default=0)}"
    rows = comparisons(outcomes, [(arm, BM25) for arm in settings.arms], name, [metric])
    compared = [(row.label, compare(*pair, settings, fixed=row.fixed)) for row in rows for pair in row.pairs]
    found = [f"{arm} {md.difference(by.interval)}" for arm, by in compared if by and by.interval.high < 0]
    if not found:
        return []
    said = f"**Below BM25** at {md.title(metric)}, in points: {', '.join(found)}. Fuse such an arm with BM25,"
    return [f"{said} train it longer, or begin with a pretrained encoder if it does not (docs/tutorial/own-data.md)."]


def _meanings(columns: Sequence[str], texts: PairTexts) -> list[str]:
    """What is counted: answers or ids; and what the columns of awareness say."""
    by_answer = [md.title(metric) for metric in columns if re.fullmatch(r"(top|mrr)\d+", metric)]
    by_id = [md.title(metric) for metric in columns if count_name(metric) == "n_relevant"]
    of = {"By answer in the text, or by passage id where no text can hold one": by_answer, "By passage id": by_id}
    counted = [f"- {what}: {', '.join(titles)}." for what, titles in of.items() if titles]
    known = {metric: AWARENESS[metric] for metric in columns if metric in AWARENESS and AWARENESS[metric].said}
    alone = {metric: f", of length alone {100 * share:.1f}" for metric, share in texts.by_length.items()}
    if texts.answered:
        holding = f"; {texts.answered:,} of {texts.distractors:,} p* hold an answer still"
        alone |= {metric: alone.get(metric, "") + holding for metric in ("aa_evidence", "controlled_aa_evidence")}
    said = [f"- {of.title}: {of.meaning}{alone.get(metric, '')}" for metric, of in known.items()]
    return ["\n".join([*counted, *said])] if counted or said else []


def _macro_table(macro: pd.DataFrame, settings: ReportArms) -> list[str]:
    """Nothing for a set without a macro average."""
    if macro.empty:
        return []
    relations = macro[macro["metric"] == "relations"]["n"].max()
    columns = [metric for metric in settings.columns if metric in set(macro["metric"])]
    fewer = macro["metric"].isin({*columns} & {*AWARENESS}) & (macro["n"] < relations)
    table = md.pivot(macro.assign(n=macro["n"].where(fewer)), ["macro"], settings.rows.keys(), columns, spread=True)
    said = f"Mean over the {relations:.0f} relations (%)"
    return [f"{said}; n of them where not all have such pairs:" if fewer.any() else f"{said}:", table]


def _removed(whole: pd.DataFrame, texts: PairTexts, settings: ReportArms) -> list[str]:
    """All that was probed, where the main table does not show it."""
    of_arms = whole[whole["row"].isin(settings.arms)]
    shown = [metric for metric in AWARENESS if metric in set(of_arms["metric"])]
    if not (more := [metric for metric in shown if metric not in settings.columns]):
        return []
    table = md.pivot(of_arms, ["arm"], settings.arms, shown)
    return ["Answer awareness by what is removed (%):", table, *_meanings(more, texts)]


def _two_hops(found: pd.DataFrame, settings: ReportArms) -> list[str]:
    """Measures of paths, of all questions with hops and of each kind of them; nothing where there are no paths."""
    hops = found[found["row"].isin(settings.one_hop) & found["by"].isin(["", "hop_type"])]
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
    return [f"{said}:", md.pivot(hops.assign(key=keys), ["%", "questions", "n"], rows, columns, by="key")]


def _by_kind(found: pd.DataFrame, settings: ReportArms) -> list[str]:
    parts = []
    for kind, metric in ((kind, metric) for kind, metrics in settings.by.items() for metric in metrics):
        of_kind = found[(found["by"] == kind) & (found["metric"] == metric)]
        counts = of_kind.groupby("group")["n"].unique()
        groups = [group for group in KINDS[kind].groups or sorted(counts.index) if group in counts]
        rows = {group: [group, "/".join(f"{n:,.0f}" for n in sorted(counts[group]))] for group in groups}
        if rows:
            first = [kind.replace("_", " "), "pairs" if metric in AWARENESS else "questions"]
            columns = list(of_kind["row"].unique())
            table = md.pivot(of_kind.assign(n=np.nan), first, rows, columns, by="group", across="row")
            parts += [f"{md.title(metric)} (%) by {KINDS[kind].title}:", table]
    return parts


def scores(records: Path, pairs: Path, name: str, settings: ReportArms) -> list[str]:
    """Means over pairs of the scores behind AA and its controls, and of their differences on either side of 0 (PiCL,
    Table 5 and Figure 5); an arm's trainings weigh alike."""
    rows = []
    asked = pa.array(read_question_ids(records / "question_sets.parquet", [name]), pa.string())
    for arm, names in settings.trainings.items():
        for metric, first, values in of_trainings([pairs / f"{one}.parquet" for one in names], asked):
            if not len(values):
                continue
            of_sides = [first, first - values, values, values[values > 0], values[values <= 0]]
            means = [f"{side.mean():.2f}" if len(side) else md.NONE for side in of_sides]
            rows.append([arm, md.title(metric), f"{len(values) / len(names):,.0f}", *means])
    if not rows:
        return []
    header = ["arm", "behind", "pairs", "first", "second", "difference", "where above 0", "where not"]
    said = "Mean scores (dot products) of the two texts compared: of AA and placebo rates the first is the positive, of"
    return [f"{said} controlled awareness the positive without the placebo:", md.table(header, rows)]
