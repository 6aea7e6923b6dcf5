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

import numpy as np

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import counts, plot_data, plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.awareness import AWARENESS, differences
from eadpr.evaluation.comparisons import Difference, Outcomes, PerQuestion, compare
from eadpr.evaluation.config import BM25, ReportArms
from eadpr.evaluation.question_types import TYPES
from eadpr.evaluation.statistics import holm, spread
from eadpr.questions import select
from eadpr.records import PairScore, Passage


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
        of_set = {row: found[row][name] for row in settings.rows}
        parts += [f"## {name}: {of_set[BM25]['n']:,} questions"]
        parts += _main_table({row: [of[name] for of in each[row]] for row in settings.rows}, of_set, settings)
        parts += _macro_table({row: [of[name] for of in each[row]] for row in settings.rows}, settings)
        parts += _differences(outcomes, name, settings) + _removed(of_set, settings) + _by_type(of_set, settings)
        parts += _scores(inputs, name, settings)
    parts += _counts(inputs, found, settings, min(settings.depth, passages))
    markdown = "\n\n".join(parts) + "\n"
    with files.new_folder(out) as folder:
        files.write_text(folder / "table.md", markdown)
        _write_top_k(folder, found, outcomes, settings, sets)
        _write_losses(folder, inputs.training, settings)
        _write_by_type(folder, found, settings, sets)
        _write_score_differences(folder, inputs, settings, sets)
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


def _main_table(each: dict[str, list[Any]], of_set: dict[str, Any], settings: ReportArms) -> list[str]:
    header = ["%", *map(md.title, settings.columns)]
    rows = []
    for row, trainings in each.items():
        cells = []
        for metric in settings.columns:
            values = [of[metric] for of in trainings if metric in of]
            cells.append(md.share(of_set[row], metric, spread(values) if len(values) > 1 else None))
        rows.append([row, *cells])
    counts = {row: len(trainings) for row, trainings in each.items() if len(trainings) > 1}
    said = ", ".join(f"{row} {count}" for row, count in counts.items())
    note = [f"Mean ± standard deviation over trainings with different seeds: {said}."] if counts else []
    return [md.table(header, rows), *note]


def _macro_table(each: dict[str, list[Any]], settings: ReportArms) -> list[str]:
    """Nothing for a set without a macro average."""
    macros = {row: [of["macro"] for of in trainings if "macro" in of] for row, trainings in each.items()}
    relations = {of["relations"] for of_row in macros.values() for of in of_row}
    if not relations:
        return []
    columns = [
        metric for metric in settings.columns if any(metric in of for of_row in macros.values() for of in of_row)
    ]
    rows = []
    for row, of_row in macros.items():
        found = {metric: [of[metric] for of in of_row if metric in of] for metric in columns}
        rows.append(
            [row, *(md.macro(values, spread(values) if len(values) > 1 else None) for values in found.values())]
        )
    (count,) = relations
    return [f"Mean over the {count} relations (%):", md.table(["macro", *map(md.title, columns)], rows)]


def _differences(outcomes: dict[str, Outcomes], name: str, settings: ReportArms) -> list[str]:
    """Paired differences in percentage points: of the arms' means over trainings, then of each training."""
    if not settings.comparisons:
        return []
    header = ["difference", *map(md.title, settings.differences)]
    found = {
        (arm, other, metric): _compared(*(outcomes[row].per_question(name, metric) for row in (arm, other)), settings)
        for arm, other in settings.comparisons
        for metric in settings.differences
    }
    known = [key for key, difference in found.items() if difference]
    adjusted = dict(zip(known, holm([found[key].p for key in known]), strict=True))
    level = 1 - settings.confidence
    rows = [
        [
            f"{arm} − {other}",
            *(
                md.difference(found[key] and found[key].interval, starred=adjusted.get(key, 1.0) < level)
                for key in ((arm, other, metric) for metric in settings.differences)
            ),
        ]
        for arm, other in settings.comparisons
    ]
    said = (
        f"Differences in percentage points with {100 * settings.confidence:g} % intervals (paired bootstrap over"
        f" questions, {settings.resamples:,} resamples); * below {level:.2g} in the paired randomisation test, with"
        f" Holm's correction for the {len(known)} differences of the table:"
    )
    return [said, md.table(header, rows), *_differences_of_trainings(outcomes, name, settings, header)]


def _differences_of_trainings(
    outcomes: dict[str, Outcomes], name: str, settings: ReportArms, header: list[str]
) -> list[str]:
    """Training i of an arm against training i of the other one, or against its only one."""
    rows = []
    for arm, other in settings.comparisons:
        names = settings.rows[arm], settings.rows[other]
        if len(names[0]) == 1 or len(names[1]) not in (1, len(names[0])):
            continue
        cells: dict[str, list[str]] = {}
        for metric in settings.differences:
            one, two = (outcomes[row].per_training(name, metric) for row in (arm, other))
            for i, training in enumerate(names[0]):
                against = i if len(two) > 1 else 0
                found = _compared(one[i], two[against], settings)
                label = f"{training} − {names[1][against]}"
                cells.setdefault(label, []).append(md.difference(found and found.interval))
        rows += [[label, *of_label] for label, of_label in cells.items()]
    return ["The same for each training:", md.table(header, rows)] if rows else []


def _compared(first: PerQuestion, second: PerQuestion, settings: ReportArms) -> Difference | None:
    return compare(first, second, resamples=settings.resamples, seed=settings.seed, confidence=settings.confidence)


def _removed(of_set: dict[str, Any], settings: ReportArms) -> list[str]:
    """AA by what the positive is compared with lacks, where probe.also asks for more than the two."""
    shown = [metric for metric in AWARENESS if any(metric in of_set[arm] for arm in settings.arms)]
    if not set(shown) - {"aa", "aa_evidence"}:
        return []
    rows = [[arm, *(md.share(of_set[arm], metric) for metric in shown)] for arm in settings.arms]
    return ["AA by what is removed (%):", md.table(["arm", *map(md.title, shown)], rows)]


def _by_type(of_set: dict[str, Any], settings: ReportArms) -> list[str]:
    parts = []
    for metric in settings.by_type:
        found = {row: plot_data.by_type(of_row, metric) for row, of_row in of_set.items()}
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


def _scores(inputs: Inputs, name: str, settings: ReportArms) -> list[str]:
    """Means over pairs of the scores behind AA, and of their differences on either side of 0 (PiCL, Table 5 and
    Figure 5); an arm's trainings weigh alike."""
    questions = frozenset(select(inputs.records / "question_sets.parquet", [name]))
    rows = []
    for arm, trainings in settings.trainings.items():
        scores = [tables.read(inputs.pairs / f"{one}.parquet", PairScore) for one in trainings]
        for metric, variant in AWARENESS.items():
            found = [differences(table, variant, questions) for table in scores]
            positives, values = (np.concatenate([getattr(of, key) for of in found]) for key in ("positives", "values"))
            if not len(values):
                continue
            of_sides = [positives, positives - values, values, values[values > 0], values[values <= 0]]
            means = [f"{side.mean():.2f}" if len(side) else md.NONE for side in of_sides]
            rows.append([arm, md.title(metric), f"{len(values) / len(trainings):,.0f}", *means])
    if not rows:
        return []
    header = ["arm", "behind", "pairs", "with", "without", "difference", "where above 0", "where not"]
    return ["Mean scores (dot products) of the positive with and without what is removed:", md.table(header, rows)]


def _counts(inputs: Inputs, found: dict[str, Any], settings: ReportArms, depth: int) -> list[str]:
    trainings = [name for of_arm in settings.trainings.values() for name in of_arm]
    lines = counts.of_questions(found) + counts.of_depth(found, depth)
    if inputs.negatives is not None:
        lines += counts.of_negatives(inputs.negatives, trainings)
    lines += counts.of_training(inputs.training, trainings)
    parts = ["## Counts", "\n".join(lines)]
    if inputs.distractors is not None:
        parts.append(counts.of_distractors(inputs.distractors))
    if inputs.evidence_metrics is not None and (evidence := counts.of_evidence(inputs.evidence_metrics)):
        parts.append(evidence)
    return parts


def _write_top_k(
    folder: Path, found: dict[str, Any], outcomes: dict[str, Outcomes], settings: ReportArms, sets: Sets
) -> None:
    curves: dict[str, dict[str, list[float]]] = {}
    for name in sets.evaluate:
        metric = next(key for key in found[BM25][name] if key.startswith("mrr"))
        depth = int(metric.removeprefix("mrr"))
        curves[name] = {
            row: plot_data.mean_curve([plot_data.top_k_curve(t.sums, depth) for t in of.per_training(name, metric)])
            for row, of in outcomes.items()
        }
    rows = (
        (k, accuracy, row, name)
        for name, of_set in curves.items()
        for row, curve in of_set.items()
        for k, accuracy in enumerate(curve, start=1)
    )
    plot_data.write_csv(folder / "topk.csv", ["k", "accuracy", "arm", "question_set"], rows)
    files.write_text(folder / "topk.svg", plots.top_k(curves, list(settings.rows)))


def _write_losses(folder: Path, training: Path, settings: ReportArms) -> None:
    curves = {name: plot_data.read_loss(training / name) for of_arm in settings.trainings.values() for name in of_arm}
    rows = ((step, loss, arm) for arm, curve in curves.items() for step, loss in zip(*curve, strict=True))
    plot_data.write_csv(folder / "loss.csv", ["step", "loss", "arm"], rows)
    files.write_text(folder / "loss.svg", plots.losses(curves, list(curves)))


def _write_by_type(folder: Path, found: dict[str, Any], settings: ReportArms, sets: Sets) -> None:
    """The plot shows AA; the file also has AA by evidence."""
    rows, shares = [], {}
    for name in sets.evaluate:
        for arm in settings.arms:
            for metric in ("aa", "aa_evidence"):
                of_arm = plot_data.by_type(found[arm][name], metric)
                rows += [(kind, value, n, arm, metric, name) for kind, (value, n) in of_arm.items()]
                if metric == "aa" and of_arm:
                    shares.setdefault(name, {})[arm] = of_arm
    header = ["type", "share", "pairs", "arm", "metric", "question_set"]
    plot_data.write_csv(folder / "aa_by_type.csv", header, rows)
    if shares:
        files.write_text(folder / "aa_by_type.svg", plots.by_type(shares, settings.arms))


def _write_score_differences(folder: Path, inputs: Inputs, settings: ReportArms, sets: Sets) -> None:
    scores = {
        arm: [tables.read(inputs.pairs / f"{name}.parquet", PairScore) for name in trainings]
        for arm, trainings in settings.trainings.items()
    }
    rows, shares, edges = [], {}, {}
    for name in sets.evaluate:
        questions = frozenset(select(inputs.records / "question_sets.parquet", [name]))
        values = {
            arm: np.concatenate([differences(table, "distractor", questions).values for table in of_arm])
            for arm, of_arm in scores.items()
        }
        values = {arm: of_arm for arm, of_arm in values.items() if len(of_arm)}
        if not values:
            continue
        edges[name] = plot_data.bin_edges(values.values(), settings.bins)
        shares[name] = {arm: plot_data.bin_shares(of_arm, edges[name]) for arm, of_arm in values.items()}
        bins = list(zip(edges[name], edges[name][1:], strict=False))
        for arm, of_arm in shares[name].items():
            rows += [((a + b) / 2, a, b, part, arm, name) for (a, b), part in zip(bins, of_arm, strict=True)]
    header = ["difference", "low", "high", "share", "arm", "question_set"]
    plot_data.write_csv(folder / "score_differences.csv", header, rows)
    if shares:
        files.write_text(folder / "score_differences.svg", plots.score_differences(shares, edges, settings.arms))
