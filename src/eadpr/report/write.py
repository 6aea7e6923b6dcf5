"""The stage `report`: tables of all that was measured, CSV files for `dvc plots`, the same plots as SVG, the headline
metrics of the collection.

Only BM25 and the arms that the config names are shown, in its order, whatever other files the folders hold. An arm that
was trained with several seeds has one row: means over its trainings. What near-duplicates change and what readers
answer stand in sections of their own, where that was measured.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED
from eadpr.evaluation.config import ReportArms
from eadpr.evaluation.kinds import KINDS, positions
from eadpr.report import counts, plot_data
from eadpr.report import tables as report_tables
from eadpr.report.pair_texts import of_pairs
from eadpr.report.summary import ONE_HOP, averaged, details, measured, rounded
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Passage

HEADLINES = 30  # numbers at most, so that `dvc exp show` and `dvc metrics diff` can be read


class ReportInputs(NamedTuple):
    """Folders, the table `evidence`, and the file `accuracy` of what `evaluate_evidence` measured."""

    records: Path
    positives: Path
    evidence: Path
    distractors: Path
    negatives: Path
    examples: Path
    training: Path
    pairs: Path
    outcomes: Path
    accuracy: Path


Section = Callable[[Path, pd.DataFrame], list[str]]


def run(
    inputs: ReportInputs, out: Path, metrics: Path, settings: ReportArms, sets: Sets, more: Sequence[Section] = ()
) -> str:
    """Write the folder `out` whole and the file `metrics` of headlines; returns the Markdown.

    Each of `more` is a section of what else was measured: told the folder, where it may put files of its own, and the
    means of every training, it gives the Markdown.
    """
    positives, made = inputs.positives / "positives.parquet", inputs.distractors / "distractors.parquet"
    known = positions(inputs.records, positives, inputs.evidence, settings.strategy, sets.evaluate)
    found = measured(inputs.outcomes, settings.rows, sets.evaluate, known)
    trainings = _with_one_hop(rounded(found.trainings), settings.one_hop)
    means = averaged(trainings, settings.rows)
    by_row = {row: details(of_row) for row, of_row in means.groupby("row", sort=False)}
    passages = tables.count(inputs.records / "passages.parquet", Passage)
    parts = [f"# {out.name}: {passages:,} passages"]
    for name in sets.evaluate:
        texts = of_pairs(inputs.records, positives, made, name, settings.strategy, set(means["metric"]))
        parts += report_tables.of_question_set(name, means, found.outcomes, texts, settings)
        parts += report_tables.scores(inputs.records, inputs.pairs, name, settings)
    parts += _counts(inputs, by_row, settings, min(settings.depth, passages))
    with files.new_folder(out) as folder:
        plot_data.write_top_k(folder, found, settings, sets)
        plot_data.write_losses(folder, inputs.training, [*_trainings(settings), *settings.one_hop])
        for kind in (kind for kind in KINDS if KINDS[kind].groups):
            plot_data.write_by_kind(folder, kind, means, settings, sets)
        plot_data.write_score_differences(folder, inputs.records, inputs.pairs, settings, sets)
        for section in more:
            parts += section(folder, trainings)
        markdown = "\n\n".join(parts) + "\n"
        files.write_text(folder / "table.md", markdown)
        for name, of_training in trainings.groupby("row"):
            files.write_json(folder / "metrics" / f"{name}.json", details(of_training))
    files.write_json(metrics, headlines(by_row, inputs.accuracy, settings, sets))
    return markdown


def headlines(
    found: Mapping[str, Any], accuracy: Path, settings: ReportArms, sets: Sets
) -> dict[str, dict[str, float]]:
    """At most `HEADLINES` shares: of the first question set, the columns of the table for every row (the first, then
    controlled awareness, AA and placebo rates), as many as there is room for; how often the pseudo-evidence is right.
    """
    name = sets.evaluate[0]
    measured = files.read_json(accuracy).get(name, {}).get("pseudo", {})
    shown = {"evidence": {"accuracy": measured["accuracy"]}} if "accuracy" in measured else {}
    first, *others = settings.columns
    columns = [first, *sorted(others, key=lambda metric: (metric not in CONTROLLED, metric not in AWARENESS))]
    rows = list(found)[: HEADLINES - 1]
    columns = columns[: max(1, (HEADLINES - 1) // len(rows))]
    for row in rows:
        of_row = found[row][name]
        shown[row] = {metric: round(of_row[metric], 6) for metric in columns if metric in of_row}
    return shown


def remove_inactive(inputs: ReportInputs, settings: ReportArms) -> list[Path]:
    """Delete what arms that are no longer active left behind; return it. DVC's cache and git still have it.

    DVC hashes these folders whole: a file of no stage would make dvc.lock another than on a fresh clone.
    """
    names = {name for trainings in settings.rows.values() for name in trainings}
    kept = {inputs.outcomes / f"{name}.parquet" for name in names}
    kept |= {inputs.pairs / f"{name}.parquet" for name in names} | {inputs.training / name for name in names}
    of_arms = [inputs.negatives, inputs.examples]
    kept |= {folder / name for folder in of_arms for name in names}
    for kind, suffix in {"robustness": "", "reading": ".parquet", "answers": ".parquet"}.items():
        measured = settings.robustness if kind == "robustness" else settings.reading
        own = {f"{name}{suffix}" for trainings in measured.trainings.values() for name in trainings}
        kept |= {inputs.outcomes / kind / by / name for by in measured.by for name in own}
    folders = [inputs.outcomes, inputs.pairs, inputs.training, *of_arms]
    left = [path for folder in folders for path in _other(folder, kept)]
    for path in left:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return left


def _other(folder: Path, kept: set[Path]) -> Iterator[Path]:
    """What is neither kept nor holds what is kept."""
    for path in sorted(folder.glob("[!.]*")):
        if any(path in one.parents for one in kept):
            yield from _other(path, kept)
        elif path not in kept:
            yield path


def _with_one_hop(found: pd.DataFrame, one_hop: Mapping[str, str]) -> pd.DataFrame:
    """Beside the means of a ranking of paths, what the arm that it learnt from finds among as many passages."""
    found_all = found[found["metric"].str.fullmatch(r"all\d+") & found["by"].isin(["", "hop_type"])]
    parts = [found_all[found_all["row"] == arm].assign(row=name) for name, arm in one_hop.items()]
    return pd.concat([found, *(part.assign(metric=ONE_HOP + part["metric"]) for part in parts)])


def _trainings(settings: ReportArms) -> list[str]:
    return [name for of_arm in settings.trainings.values() for name in of_arm]


def _counts(inputs: ReportInputs, found: dict[str, Any], settings: ReportArms, depth: int) -> list[str]:
    trainings = _trainings(settings)
    lines = counts.of_questions(found) + counts.of_depth(found, depth)
    lines += counts.of_negatives(inputs.negatives, trainings)
    lines += counts.of_examples(inputs.examples, trainings)
    lines += counts.of_training(inputs.training, trainings)
    lines += counts.of_training(inputs.training, list(settings.one_hop), counts.TRAINING_TWO_HOPS)
    parts = ["## Counts", "\n".join(lines), counts.of_distractors(inputs.distractors)]
    return [*parts, *counts.of_evidence(inputs.accuracy)]
