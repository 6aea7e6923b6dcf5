"""The file counts.md: what the figures rest on, and what was left out, as the stages wrote it to their reports."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS, CUT, WITHOUT
from eadpr.evaluation.statistics import Interval
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms, ReportInputs
from eadpr.runtime import files

QUESTIONS = md.WORDS["questions"] | {
    f"n_{metric}{suffix}": label
    for metric, compared in AWARENESS.items()
    if compared.beyond
    for suffix, label in (
        ("", f"{compared.title} pairs"), (CUT, f"left out, {compared.beyond}"), (WITHOUT, "left out without a placebo")
    )
}  # fmt: skip


def counts_page(inputs: ReportInputs, by_row: Mapping[str, Any], settings: ReportArms) -> str:
    """Return the Markdown of the file; `by_row` maps each row of the main table to its metrics file."""
    trainings = [*chain.from_iterable(settings.trainings.values())]
    lines = []
    for question_set in next(iter(by_row.values())):  # every row has the same
        texts = {row: format_counts(sets[question_set], QUESTIONS) for row, sets in by_row.items()}
        lines += _group_arms(question_set, texts)
    reports = {arm: _numbers(files.read_json(inputs.negatives / arm / "report.json")) for arm in trainings}
    texts = {arm: format_counts(counts, md.WORDS["negatives"]) for arm, counts in reports.items()}
    lines += _group_arms("negatives", texts)
    lines += count_training(inputs.training, inputs.examples, [*trainings, *settings.one_hop])
    parts = ["# What the figures rest on", "\n".join(lines), distractor_table(inputs.distractors)]
    return "\n\n".join([*parts, *evidence_table(inputs.accuracy)]) + "\n"


def count_training(training: Path, examples: Path, arms: Sequence[str]) -> list[str]:
    """Return the last values of each arm's training log, and its forms of distractors (two hops have none)."""
    texts = {}
    for arm in arms:
        log, path = files.read_json(training / arm / "metrics.json"), examples / arm / "report.json"
        last = {name.rpartition(".")[2]: value for name, value in _numbers(log).items()}
        parts = [format_counts(last, md.WORDS["training"])] if log["steps"] else []
        counted = files.read_json(path)["train"] if path.exists() else {}
        if counted.get("forms"):
            parts.append(f"forms of distractors: {format_counts(counted['forms'])}")
        texts[arm] = "; ".join(parts)
    return _group_arms("training", texts)


def distractor_table(folder: Path) -> str:
    """Return a table of report.json: question set -> strategy -> form -> pairs, kept, dropped by reason."""
    rows = []
    for name, strategies in files.read_json(folder / "report.json").items():
        for strategy, forms in strategies.items():
            for form, count in forms.items():
                numbers = (f"{count[key]:,}" for key in ("pairs", "kept"))
                what = f"{name}: {md.WORDS['forms'][form]} {md.WORDS['removed'][strategy]}"
                rows.append([what, *numbers, format_counts(count["dropped"]) or md.NONE])
    return md.table(["passages", "pairs", "kept", "left out"], sorted(rows))


def evidence_table(path: Path) -> list[str]:
    """Return a table of evidence accuracy from the metrics of evaluate_evidence; nothing where no pair was counted."""
    rows = []
    for name, metrics in sorted(files.read_json(path).items()):
        evidence = metrics.get("pseudo")  # absent where no annotator was asked
        if evidence and evidence["n"]:
            accuracy = Interval(*(evidence[key] for key in ("accuracy", "accuracy_low", "accuracy_high", "n")))
            shares = [f"{100 * evidence[key]:.1f}" for key in ("chance", "share_of_passage")]
            rows.append([name, md.bounded(accuracy), f"{accuracy.n:,}", *shares])
    return [md.table(["evidence (%)", "accuracy", "n", "chance", "share of passage"], rows)] if rows else []


def _group_arms(label: str, texts: Mapping[str, str]) -> list[str]:
    """Return a line per different text, naming the arms that share it; none for an empty text."""
    arms_of: dict[str, list[str]] = {}
    for arm, text in texts.items():
        if text:
            arms_of.setdefault(text, []).append(arm)
    return [f"- {label} ({', '.join(arms)}): {text}" for text, arms in arms_of.items()]


def format_counts(counts: Mapping[str, float], labels: Mapping[str, str] | None = None) -> str:
    """Return the counts that are not 0 with their labels, by default their names."""
    labels = labels or {key: re.sub(r"[._]", " ", key) for key in counts}
    return ", ".join(f"{md.as_count(counts[key]):,} {label}" for key, label in labels.items() if counts.get(key))


def _numbers(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a nested report by dotted name."""
    return pd.json_normalize(report).select_dtypes("number").iloc[0].to_dict()
