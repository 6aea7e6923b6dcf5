"""The report's tables of one question set, in Markdown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from eadpr.evaluation.awareness import AWARENESS, of_trainings
from eadpr.evaluation.config import BM25, count_name
from eadpr.evaluation.kinds import KINDS, KindName
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms, Rows
from eadpr.report.differences import comparisons, difference_table
from eadpr.report.pair_texts import PairTexts
from eadpr.report.summary import MACRO
from eadpr.storage.questions import read_question_ids

COSINE = 1.001  # no score is larger, but for rounding
PATH_MEASURES = ("all", "one_hop_all", "pr", "path_recall", "hop1_recall")  # each at k
AA_EVIDENCE = ("aa_evidence", "controlled_aa_evidence")  # their distractors may hold an answer


def tables_of_set(
    name: str,
    means: pd.DataFrame,
    outcomes: Mapping[str, Outcomes],
    texts: PairTexts,
    notes: Sequence[str],
    settings: ReportArms,
) -> list[str]:
    """Return the set's heading and tables, with `notes` below the first; `means` cover every row."""
    means = means[means["question_set"] == name]
    totals = means[means["by"] == ""]
    count = totals[(totals["row"] == BM25) & (totals["metric"] == "n")]["n"].item()
    return [
        f"## {name}: {count:,.0f} questions",
        *main_table(totals, settings.rows, settings.columns, texts),
        *notes,
        *macro_table(means[means["by"] == MACRO], [*settings.rows], settings.columns),
        *difference_table(
            comparisons(outcomes, settings.comparisons, name, settings.differences),
            md.titles(settings.differences),
            settings,
        ),
        *removed_table(totals, [*settings.trainings], settings.columns, texts),
        *two_hop_table(means, [row for row in settings.rows if row in settings.one_hop]),
        *tables_by_kind(means, settings.by),
    ]


def main_table(totals: pd.DataFrame, rows: Rows, columns: Sequence[str], texts: PairTexts) -> list[str]:
    parts = [md.pivot(totals, ["%"], rows.keys(), columns, spread=True), *explain_columns(columns, texts)]
    repeated = ", ".join(f"{row} {len(names)}" for row, names in rows.items() if len(names) > 1)
    if repeated:
        parts.append(f"Mean ± standard deviation over trainings with different seeds: {repeated}.")
    return parts


def explain_columns(columns: Sequence[str], texts: PairTexts) -> list[str]:
    """Explain which columns count answers and which ids, and what the columns of awareness compare."""
    by_answer = [md.title(metric) for metric in columns if re.fullmatch(r"(top|mrr)\d+", metric)]
    by_id = [md.title(metric) for metric in columns if count_name(metric) == "n_relevant"]
    lines = []
    if by_answer:
        lines.append(f"- By answer in the text, or by passage id where no text can hold one: {', '.join(by_answer)}.")
    if by_id:
        lines.append(f"- By passage id: {', '.join(by_id)}.")
    for metric in columns:
        if metric in AWARENESS:
            line = f"- {AWARENESS[metric].title}: {AWARENESS[metric].formula}, {AWARENESS[metric].meaning}"
            if metric in texts.by_length:
                line += f", of length alone {100 * texts.by_length[metric]:.1f}"
            if metric in AA_EVIDENCE and texts.answered:
                line += f"; {texts.answered:,} of {texts.distractors:,} p* hold an answer still"
            lines.append(line)
    return ["\n".join(lines)] if lines else []


def macro_table(macro: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return means over relations; nothing for a set without a macro average."""
    if macro.empty:
        return []
    relations = macro[macro["metric"] == "relations"]["n"].max()
    columns = [metric for metric in columns if metric in set(macro["metric"])]
    fewer = macro["metric"].isin({*columns} & {*AWARENESS}) & (macro["n"] < relations)
    intro = f"Mean over the {relations:.0f} relations (%)"
    if fewer.any():
        intro += "; n of them where not all have such pairs"
    return [f"{intro}:", md.pivot(macro.assign(n=macro["n"].where(fewer)), ["macro"], rows, columns, spread=True)]


def removed_table(totals: pd.DataFrame, arms: Sequence[str], columns: Sequence[str], texts: PairTexts) -> list[str]:
    """Return all awareness that was probed, where the main table does not show all of it."""
    totals = totals[totals["row"].isin(arms)]
    probed = [metric for metric in AWARENESS if metric in set(totals["metric"])]
    unexplained = [metric for metric in probed if metric not in columns]
    if not unexplained:
        return []
    table = md.pivot(totals, ["arm"], arms, probed)
    return ["Answer awareness by what is removed (%):", table, *explain_columns(unexplained, texts)]


def two_hop_table(means: pd.DataFrame, rows: Sequence[str]) -> list[str]:
    """Return measures of paths, of all questions with hops and of each kind of them; nothing without paths."""
    hops = means[means["row"].isin(rows) & means["by"].isin(["", "hop_type"])]
    metrics = set(hops["metric"])
    cutoffs = sorted(int(metric[2:]) for metric in metrics if re.fullmatch(r"pr\d+", metric))
    columns = [f"{measure}{k}" for measure in PATH_MEASURES for k in cutoffs if f"{measure}{k}" in metrics]
    if not columns:
        return []
    labels = {}
    for row in rows:
        counted = hops[(hops["row"] == row) & (hops["metric"] == f"pr{cutoffs[0]}")].sort_values("group")
        for kind, n in zip(counted["group"], counted["n"], strict=True):
            labels[f"{row}/{kind}"] = [row, kind or "all", f"{n:,.0f}"]
    intro = (
        "Two hops (%): whether the k/2 best paths hold all supporting passages (R-all), any of them (PR), a path of"
        " just them (path recall), one as a first hop (1-recall)"
    )
    if any(metric.startswith("one_hop") for metric in columns):
        intro += "; one-hop: the k best passages of the arm whose examples the model learnt from"
    keyed = hops.assign(key=hops["row"] + "/" + hops["group"])
    return [f"{intro}:", md.pivot(keyed, ["%", "questions", "n"], labels, columns, row_key="key")]


def tables_by_kind(means: pd.DataFrame, metrics_by_kind: Mapping[KindName, Sequence[str]]) -> list[str]:
    parts = []
    for kind, metrics in metrics_by_kind.items():
        for metric in metrics:
            groups = means[(means["by"] == kind) & (means["metric"] == metric)]
            counts = groups.groupby("group")["n"].unique()
            labels = {}
            for group in KINDS[kind].groups or sorted(counts.index):
                if group in counts:
                    labels[group] = [group, "/".join(f"{n:,.0f}" for n in sorted(counts[group]))]
            if labels:
                head = [kind.replace("_", " "), "pairs" if metric in AWARENESS else "questions"]
                rows, groups = list(groups["row"].unique()), groups.assign(n=np.nan)
                table = md.pivot(groups, head, labels, rows, row_key="group", column_key="row")
                parts += [f"{md.title(metric)} (%) by {KINDS[kind].title}:", table]
    return parts


def score_table(records: Path, pairs: Path, name: str, arms: Rows) -> list[str]:
    """Return means over pairs of the scores behind AA and its controls, and of their differences on either side of 0
    (PiCL, Table 5 and Figure 5); an arm's trainings weigh alike."""
    questions = pa.array(read_question_ids(records / "question_sets.parquet", [name]), pa.string())
    rows = list(_score_rows(pairs, questions, arms))
    if not rows:
        return []
    header = ["arm", "behind", "pairs", "first", "second", "difference", "where above 0", "where not"]
    intro = (
        "Mean scores of the two texts compared: of AA and placebo rates the first is the positive, of"
        " controlled awareness the positive without the placebo:"
    )
    return [intro, md.table(header, rows)]


def _score_rows(pairs: Path, questions: pa.Array, arms: Rows) -> Iterator[list[str]]:
    for arm, names in arms.items():
        for metric, first, differences in of_trainings([pairs / f"{name}.parquet" for name in names], questions):
            if len(differences):
                row = [arm, md.title(metric), f"{len(differences) / len(names):,.0f}"]
                above, below = differences[differences > 0], differences[differences <= 0]
                digits = 4 if np.abs(first).max() <= COSINE else 2
                for values in (first, first - differences, differences, above, below):
                    row.append(f"{values.mean():.{digits}f}" if len(values) else md.NONE)
                yield row
