"""The stage `report`: tables of all that was measured, CSV files for `dvc plots`, the collection's headline metrics.

Only BM25 and the config's arms are shown, in its order, whatever else the folders hold. An arm that was trained with
several seeds has one row: means over its trainings. The stage adds sections on near-duplicates and on readers' answers.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED
from eadpr.evaluation.kinds import positions
from eadpr.report import plots
from eadpr.report.config import UNTRAINED, ReportArms, ReportInputs
from eadpr.report.counts import counts_page
from eadpr.report.headline import FILE as HEADLINE
from eadpr.report.headline import headline, sentences
from eadpr.report.notes import NOTES, command_for_few, note_few, note_kept, note_lower, note_validation, read_validation
from eadpr.report.summary import load_rows, nest_means, select_set
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
    measures = load_rows(inputs.outcomes, settings.rows, sets.evaluate, evidence_positions)
    means = measures.rows
    by_row = {row: nest_means(row_means) for row, row_means in means.groupby("row", sort=False)}
    passages = tables.count(inputs.records / "passages.parquet", Passage)
    lower = {name: note_lower(name, measures.outcomes, settings, out.name) for name in sets.evaluate}
    validation = read_validation(inputs.training, [*settings.trainings])
    trained = [arm for arm in settings.trainings if arm != UNTRAINED] or [UNTRAINED]
    best = validation.preferred if validation else trained[-1]
    summaries = {name: sentences(name, means, measures.outcomes, settings, best) for name in sets.evaluate}
    records = files.read_json(inputs.records / "report.json")
    warnings = [f"{records['unheld']}."] if records.get("unheld") else []
    if few := note_few(records["sets"], sets):
        learnt = [records["sets"][name] for name in sets.train]
        answered = any(counts["without_answers"] < counts["questions"] for counts in learnt)
        warnings.append(f"{few} What works: `{command_for_few(out.name, answers=answered)}`")
    warnings += note_validation(inputs.training, [*settings.trainings])
    parts = [f"# {out.name}: {passages:,} passages", *warnings]
    for name in sets.evaluate:
        longer = share_longer(inputs.records, positives, distractors, name, settings, set(means["metric"]))
        parts += tables_of_set(name, means, measures.outcomes, longer, lower[name], settings)
        parts += score_table(inputs.records, inputs.pairs, name, settings.trainings)
    parts.append("What these figures rest on, and what was left out, stands in [counts.md](counts.md).")
    counted = counts_page(inputs, by_row, settings)
    with files.new_folder(out) as folder:
        plots.write_plots(folder, measures, settings, sets.evaluate, inputs.training)
        notes = {"headlines": summaries, "collection": warnings, "sets": lower, "passages": passages, "counts": counted}
        files.write_json(folder / NOTES, notes)
        files.write_text(folder / "counts.md", counted)
        for section in more:
            parts += section(folder, measures.trainings)
        markdown = "\n\n".join(parts) + "\n"
        files.write_text(folder / "table.md", markdown)
        first = sets.evaluate[0]
        summary = [*summaries[first], note_kept(inputs.training, [*settings.trainings])]
        files.write_text(folder / HEADLINE, headline(out.name, select_set(means, first), settings, summary))
        for name, of_training in measures.trainings.groupby("row"):
            files.write_json(folder / "metrics" / f"{name}.json", nest_means(of_training))
    files.write_json(metrics, headlines(by_row, inputs.accuracy, settings.columns, sets.evaluate[0]))
    return markdown


def headlines(
    by_row: Mapping[str, Any], accuracy: Path, columns: Sequence[str], name: str
) -> dict[str, dict[str, float]]:
    """Return what `dvc metrics diff` compares: for every row the table's columns and nDCG, without uncontrolled
    awareness, of the question set `name`; and the accuracy of the evidence."""
    compared = {*columns} - (AWARENESS.keys() - CONTROLLED)
    values = {
        row: {metric: value for metric, value in sets[name].items() if metric in compared or metric.startswith("ndcg")}
        for row, sets in by_row.items()
    }
    evidence = files.read_json(accuracy).get(name, {}).get("pseudo", {})
    if "accuracy" in evidence:
        values["evidence"] = {"accuracy": evidence["accuracy"]}
    return values
