"""The report's tables of one question set, in Markdown."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED, of_trainings
from eadpr.evaluation.config import BM25
from eadpr.evaluation.kinds import KINDS, KindName
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms, Rows
from eadpr.report.differences import comparisons, difference_table
from eadpr.report.summary import MACRO
from eadpr.storage.questions import read_question_ids
from eadpr.supervision.config import PLACEBOS
from eadpr.supervision.probed import first_pairs_with_cuts, mask_answers

COSINE = 1.001  # no score is larger, but for rounding
FEWEST = 30  # questions or pairs behind a table by kind


def share_longer(
    records: Path, positives: Path, distractors: Path, name: str, settings: ReportArms, metrics: Collection[str]
) -> dict[str, float]:
    """Return by controlled metric the share of pairs of the question set `name` in which the text that should score
    higher has more characters: chance of length alone, without any encoder. `positives`, `distractors` are tables."""
    controlled = [metric for metric in CONTROLLED if metric in metrics]
    if not controlled:
        return {}
    variants = {settings.strategy: "distractor"} | {placebo: placebo for placebo in PLACEBOS}
    longer = defaultdict(list)
    ids = read_question_ids(records / "question_sets.parquet", [name])
    for pair, texts_by_strategy in first_pairs_with_cuts(records, positives, distractors, [*variants], ids):
        if settings.annotated and not pair.gold:
            continue
        texts = {variants[removed]: text for removed, text in texts_by_strategy.items()}
        texts["masked"] = mask_answers(pair.passage.text, pair.question.answers, pair.question.answer_kind)
        for metric in controlled:
            above, below = (texts.get(variant) for variant in AWARENESS[metric][:2])
            if above is not None and below is not None:
                longer[metric].append(len(above) > len(below))
    return {metric: sum(flags) / len(flags) for metric, flags in longer.items()}


def tables_of_set(
    name: str,
    means: pd.DataFrame,
    outcomes: Mapping[str, Outcomes],
    longer: Mapping[str, float],
    notes: Sequence[str],
    settings: ReportArms,
) -> list[str]:
    """Return the set's heading and tables, with `notes` below the first; `means` cover every row."""
    means = means[means["question_set"] == name]
    totals = means[means["by"] == ""]
    count = totals[(totals["row"] == BM25) & (totals["metric"] == "n")]["n"].item()
    compared = comparisons(outcomes, settings.comparisons, name, settings.differences)
    main = [md.pivot(totals, ["%"], settings.rows.keys(), settings.columns, spread=True)]
    main.append(explain_columns(settings.columns, longer))
    if repeated := ", ".join(f"{row} {len(names)}" for row, names in settings.rows.items() if len(names) > 1):
        main.append(f"Mean ± standard deviation over trainings with different seeds: {repeated}.")
    return [
        f"## {name}: {count:,.0f} questions",
        *main,
        *notes,
        *macro_table(means[means["by"] == MACRO], [*settings.rows], settings.columns),
        *difference_table(compared, settings.differences, settings),
        *removed_table(totals, [*settings.trainings], settings.columns, longer),
        *tables_by_kind(means, settings.by),
    ]


def explain_columns(columns: Sequence[str], longer: Mapping[str, float]) -> str:
    """Return a line per kind of column: its titles and what it means."""
    titles: dict[str, list[str]] = {}
    for metric in columns:
        text = md.explain(metric)
        if metric in longer:
            text += f", of length alone {100 * longer[metric]:.1f}"
        titles.setdefault(text, []).append(md.title(metric))
    return "\n".join(f"- {', '.join(of_text)}: {text}" for text, of_text in titles.items())


def macro_table(macro: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return means over relations; nothing for a set without a macro average."""
    if macro.empty:
        return []
    relations = macro[macro["metric"] == "relations"]["n"].max()
    columns = [metric for metric in columns if metric in set(macro["metric"])]
    fewer = macro.assign(n=macro["n"].where(macro["n"] < relations))
    intro = f"Mean over the {relations:.0f} relations (%); n of them where not all have such pairs:"
    return [intro, md.pivot(fewer, ["macro"], rows, columns, spread=True)]


def removed_table(
    totals: pd.DataFrame, arms: Sequence[str], columns: Sequence[str], longer: Mapping[str, float]
) -> list[str]:
    """Return all awareness that was probed, where the main table does not show all of it."""
    totals = totals[totals["row"].isin(arms)]
    probed = [metric for metric in AWARENESS if metric in set(totals["metric"])]
    unexplained = [metric for metric in probed if metric not in columns]
    if not unexplained:
        return []
    table = md.pivot(totals, ["arm"], arms, probed)
    return ["Answer awareness by what is removed (%):", table, explain_columns(unexplained, longer)]


def tables_by_kind(means: pd.DataFrame, metrics_by_kind: Mapping[KindName, Sequence[str]]) -> list[str]:
    parts = []
    for kind, metrics in metrics_by_kind.items():
        for metric in metrics:
            groups = means[(means["by"] == kind) & (means["metric"] == metric)]
            counts = groups.groupby("group")["n"].unique()
            present = [group for group in KINDS[kind].groups or sorted(counts.index) if group in counts]
            labels = {group: [group, "/".join(f"{n:,.0f}" for n in sorted(counts[group]))] for group in present}
            if labels and counts.map(max).sum() >= FEWEST:
                head = [kind.replace("_", " "), "pairs" if metric in AWARENESS else "questions"]
                rows, groups = list(groups["row"].unique()), groups.assign(n=np.nan)
                table = md.pivot(groups, head, labels, rows, row_key="group", column_key="row")
                parts += [f"{md.title(metric)} (%) by {KINDS[kind].title}:", table]
    return parts


def score_table(records: Path, pairs_folder: Path, name: str, arms: Rows) -> list[str]:
    """Return mean scores of the texts compared, and of their differences (PiCL, Table 5 and Figure 5)."""
    questions, rows = pa.array(read_question_ids(records / "question_sets.parquet", [name]), pa.string()), []
    for arm, names in arms.items():
        for metric, pairs in of_trainings([pairs_folder / f"{name}.parquet" for name in names], questions):
            if len(pairs.values):
                above, below = pairs.values[pairs.values > 0], pairs.values[pairs.values <= 0]
                digits = 4 if np.abs(pairs.above).max() <= COSINE else 2
                columns = (pairs.above, pairs.above - pairs.values, pairs.values, above, below)
                means = [f"{values.mean():.{digits}f}" if len(values) else md.NONE for values in columns]
                rows.append([arm, md.title(metric), f"{len(pairs.values) / len(names):,.0f}", *means])
    if not rows:
        return []
    header = ["arm", "behind", "pairs", "first", "second", "difference", "where above 0", "where not"]
    intro = (
        "Mean scores of the two texts compared: of AA and placebo rates the first is the positive, of"
        " controlled awareness the positive without the placebo:"
    )
    return [intro, md.table(header, rows)]
