"""The stage `report`: one Markdown table that compares the arms, CSV files for `dvc plots`, the same plots as SVG.

Only BM25 and the arms that the config names are shown, in its order, whatever other files the folders hold. An arm that
was trained with several seeds has one row: means over its trainings.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import counts, report_plots, report_tables
from eadpr.evaluation.comparisons import Outcomes
from eadpr.evaluation.config import ReportArms
from eadpr.records import Passage


class Inputs(NamedTuple):
    """Folders and files of the stage; the last three may be absent."""

    records: Path
    metrics: Path
    outcomes: Path
    training: Path
    pairs: Path
    distractors: Path | None = None
    negatives: Path | None = None
    evidence_metrics: Path | None = None


def run(inputs: Inputs, out: Path, *, settings: ReportArms, sets: Sets) -> str:
    """Write the folder `out` whole and return the Markdown."""
    each = {
        row: [_metrics(inputs.metrics / f"{name}.json", sets.evaluate) for name in trainings]
        for row, trainings in settings.rows.items()
    }
    found = {row: averaged(of_row) for row, of_row in each.items()}
    outcomes = {
        row: Outcomes([inputs.outcomes / f"{name}.parquet" for name in trainings])
        for row, trainings in settings.rows.items()
    }
    passages = tables.count(inputs.records / "passages.parquet", Passage)
    parts = [f"# {out.name}: {passages:,} passages"]
    for name in sets.evaluate:
        parts += report_tables.of_question_set(
            name,
            {row: [of[name] for of in of_row] for row, of_row in each.items()},
            {row: of_row[name] for row, of_row in found.items()},
            outcomes,
            records=inputs.records,
            pairs=inputs.pairs,
            settings=settings,
        )
    parts += _counts(inputs, found, settings, min(settings.depth, passages))
    markdown = "\n\n".join(parts) + "\n"
    with files.new_folder(out) as folder:
        files.write_text(folder / "table.md", markdown)
        report_plots.write_top_k(folder, found, outcomes, settings, sets)
        report_plots.write_losses(folder, inputs.training, [*_trainings(settings), *_two_hops(found)])
        report_plots.write_by_type(folder, found, settings, sets)
        report_plots.write_score_differences(folder, inputs.records, inputs.pairs, settings, sets)
    return markdown


def remove_inactive(inputs: Inputs, settings: ReportArms) -> list[Path]:
    """Delete what arms that are no longer active left behind; return it. DVC's cache and git still have it.

    DVC hashes these folders whole: a file of no stage would make dvc.lock another than on a fresh clone.
    """
    kept = {name for trainings in settings.rows.values() for name in trainings}
    if inputs.evidence_metrics:
        kept.add(inputs.evidence_metrics.stem)
    folders = {inputs.metrics: ".json", inputs.outcomes: ".parquet", inputs.pairs: ".parquet", inputs.training: ""}
    if inputs.negatives:
        folders[inputs.negatives] = ""
    left = [
        path
        for folder, suffix in folders.items()
        for path in sorted(folder.glob(f"[!.]*{suffix}"))
        if path.suffix == suffix and path.stem not in kept
    ]
    for path in left:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return left


def _metrics(path: Path, names: list[str]) -> dict[str, Any]:
    """The question sets `names` of a metrics file, in that order."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to evaluate {path.stem}")
    found = json.loads(path.read_text(encoding="utf-8"))
    for name in names:
        if name not in found:
            raise ValueError(f"{path} has no question set {name!r} (it has {', '.join(found)}); run `dvc repro`")
    return {name: found[name] for name in names}


def averaged(found: Sequence[Any]) -> Any:
    """Means of the numbers of several trainings' metrics; what is the same in all of them stays as it is."""
    first = found[0]
    if isinstance(first, dict):
        return {key: averaged([of[key] for of in found]) for key in first if all(key in of for of in found)}
    return first if all(value == first for value in found) else sum(found) / len(found)


def _trainings(settings: ReportArms) -> list[str]:
    return [name for of_arm in settings.trainings.values() for name in of_arm]


def _two_hops(found: dict[str, Any]) -> list[str]:
    """Rows whose paths were measured; each has a training log under its name, as fused rankings have not."""
    return [row for row, of_row in found.items() if any("by_hop_type" in of_set for of_set in of_row.values())]


def _counts(inputs: Inputs, found: dict[str, Any], settings: ReportArms, depth: int) -> list[str]:
    trainings = _trainings(settings)
    lines = counts.of_questions(found) + counts.of_depth(found, depth)
    if inputs.negatives is not None:
        lines += counts.of_negatives(inputs.negatives, trainings)
    lines += counts.of_training(inputs.training, trainings)
    lines += counts.of_training(inputs.training, _two_hops(found), counts.TRAINING_TWO_HOPS)
    parts = ["## Counts", "\n".join(lines)]
    if inputs.distractors is not None:
        parts.append(counts.of_distractors(inputs.distractors))
    if inputs.evidence_metrics is not None and (evidence := counts.of_evidence(inputs.evidence_metrics)):
        parts.append(evidence)
    return parts
