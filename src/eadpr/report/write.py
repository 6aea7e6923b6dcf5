"""The stage `report`: tables of all that was measured, CSV files for `dvc plots`, the headline metrics of the
collection.

Only BM25 and the arms that the config names are shown, in its order, whatever else the folders hold. An arm that was
trained with several seeds has one row: means over its trainings. What near-duplicates change and what readers answer
stands in sections that the stage adds.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED
from eadpr.evaluation.kinds import positions
from eadpr.report import counts, plots
from eadpr.report.config import ReportArms, ReportInputs
from eadpr.report.headline import FILE as HEADLINE
from eadpr.report.headline import headline
from eadpr.report.notes import NOTES, command_for_few, note_few, note_lower, note_validation, read_validation
from eadpr.report.summary import load_rows, nest_means
from eadpr.report.tables import score_table, share_longer, tables_of_set
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Passage

Section = Callable[[Path, pd.DataFrame], list[str]]


def run(
    inputs: ReportInputs, out: Path, metrics: Path, settings: ReportArms, sets: Sets, more: Sequence[Section] = ()
) -> str:
    """Write the folder `out` whole and the file `metrics` of headlines; return the Markdown of the tables.

    Each of `more` gets the folder, where it may write files, and the means of every training; it returns Markdown.
    """
    positives, distractors = inputs.positives / "positives.parquet", inputs.distractors / "distractors.parquet"
    evidence_positions = positions(inputs.records, positives, inputs.evidence, settings.strategy, sets.evaluate)
    measured = load_rows(inputs.outcomes, settings.rows, sets.evaluate, evidence_positions)
    means = measured.rows
    by_row = {row: nest_means(of_row) for row, of_row in means.groupby("row", sort=False)}
    passages = tables.count(inputs.records / "passages.parquet", Passage)
    lower = {name: note_lower(name, measured.outcomes, settings, out.name) for name in sets.evaluate}
    preferred = note_validation(inputs.training, [*settings.trainings])
    validation = read_validation(inputs.training, [*settings.trainings])
    best = validation and validation.preferred
    top = headline(out.name, sets.evaluate[0], means, measured.outcomes, settings, best)
    records = files.read_json(inputs.records / "report.json")
    few = note_few(records["sets"], sets)
    notes = [*([f"{few} What works: `{command_for_few(out.name)}`"] if few else []), *preferred]
    unheld = [f"{records['unheld']}."] if records.get("unheld") else []
    parts = [f"# {out.name}: {passages:,} passages", *unheld, *notes]
    for name in sets.evaluate:
        longer = share_longer(inputs.records, positives, distractors, name, settings.strategy, set(means["metric"]))
        parts += tables_of_set(name, means, measured.outcomes, longer, lower[name], settings)
        parts += score_table(inputs.records, inputs.pairs, name, settings.trainings)
    counted = _counts(inputs, by_row, settings)
    parts += ["## Counts", *counted]
    with files.new_folder(out) as folder:
        plots.write_plots(folder, measured, settings, sets.evaluate, inputs.training)
        files.write_json(folder / NOTES, {"collection": notes, "sets": lower, "counts": "\n\n".join(counted)})
        for section in more:
            parts += section(folder, measured.trainings)
        markdown = "\n\n".join(parts) + "\n"
        files.write_text(folder / "table.md", markdown)
        files.write_text(folder / HEADLINE, top)
        for name, of_training in measured.trainings.groupby("row"):
            files.write_json(folder / "metrics" / f"{name}.json", nest_means(of_training))
    files.write_json(metrics, headlines(by_row, inputs.accuracy, settings.columns, sets.evaluate[0]))
    return markdown


def headlines(
    by_row: Mapping[str, Any], accuracy: Path, columns: Sequence[str], name: str
) -> dict[str, dict[str, float]]:
    """Return what `dvc metrics diff` compares: for every row the table's columns and nDCG, without uncontrolled
    awareness, of the question set `name`; and the accuracy of the evidence."""
    uncontrolled = AWARENESS.keys() - CONTROLLED
    shown = {}
    for row, sets in by_row.items():
        shown[row] = {
            metric: value
            for metric, value in sets[name].items()
            if (metric in columns or metric.startswith("ndcg")) and metric not in uncontrolled
        }
    evidence = files.read_json(accuracy).get(name, {}).get("pseudo", {})
    if "accuracy" in evidence:
        shown["evidence"] = {"accuracy": evidence["accuracy"]}
    return shown


def _counts(inputs: ReportInputs, by_row: dict[str, Any], settings: ReportArms) -> list[str]:
    trainings = [*chain.from_iterable(settings.trainings.values())]
    lines = [
        *counts.count_questions(by_row),
        *counts.count_negatives(inputs.negatives, trainings),
        *counts.count_training(inputs.training, inputs.examples, [*trainings, *settings.one_hop]),
    ]
    table = counts.distractor_table(inputs.distractors)
    return ["\n".join(lines), table, *counts.evidence_table(inputs.accuracy)]
