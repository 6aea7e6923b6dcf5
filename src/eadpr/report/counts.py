"""The report's counts: the number of questions, pairs and examples behind the tables, and how many were left out.

The stages that drop something count it in a report of their own; here these are only shown.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eadpr.evaluation.awareness import AWARENESS, CUT, WITHOUT
from eadpr.evaluation.statistics import Interval
from eadpr.report import markdown as md
from eadpr.runtime import files

QUESTIONS = {
    "n": "questions",
    "n_ranked": "with a ranking",
    "n_without_answers": "without answers that a text can hold, judged by passage id",
    "n_unjudged": "with neither such answers nor relevant passages, always wrong",
    "n_relevant": "with relevant passages given by id",
    "n_supporting": "with supporting passages",
}
PAIRS = {}
for metric, compared in AWARENESS.items():
    if compared.beyond:
        PAIRS |= {
            f"n_{metric}": f"{compared.title} pairs",
            f"n_{metric}{CUT}": f"left out, {compared.beyond}",
            f"n_{metric}{WITHOUT}": "left out without a placebo",
        }
TRAINING = {
    "questions": "questions",
    "left_out": "left out without an example of each hop",
    "questions_per_epoch": "asked per epoch",
    "without_negatives": "without negatives",
    "without_distractor": "examples without a distractor",
    "without_placebo": "examples without a placebo",
    "truncated": "examples with evidence or placebo beyond the cut",
    "masked": "false negatives masked per step",
}


def count_questions(metrics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines for every question set; `metrics` maps each row of the main table to its metrics file."""
    lines: list[str] = []
    for name in next(iter(metrics.values())):
        for labels in (QUESTIONS, PAIRS):
            texts = {}
            for row, sets in metrics.items():  # zeros are left out
                counts = [f"{sets[name][key]:,} {label}" for key, label in labels.items() if sets[name].get(key)]
                texts[row] = ", ".join(counts)
            lines += _group_arms(name, texts)
    return lines


def short_rankings(metrics: Mapping[str, Mapping[str, Any]], depth: int) -> list[str]:
    """Return lines for rankings that hold fewer than `depth` passages for every question of a set."""
    lines: list[str] = []
    for name in next(iter(metrics.values())):
        texts = {}
        for row, sets in metrics.items():
            if (deepest := sets[name]["deepest_rank"]) < depth:
                texts[row] = f"at most {deepest:,} passages per question"
        lines += _group_arms(f"{name}, short rankings", texts)
    return lines


def count_negatives(folder: Path, arms: Sequence[str]) -> list[str]:
    texts = {arm: _join(md.leaves(_read_json(folder / arm / "report.json"))) for arm in arms}
    return _group_arms("negatives", texts)


def count_forms(folder: Path, arms: Sequence[str]) -> list[str]:
    """Return the forms of the distractors of training, where an arm asks for another than cut."""
    texts = {}
    for arm in arms:
        train = _read_json(folder / arm / "report.json")["train"]
        texts[arm] = _join(train.get("forms", {}))
        if train.get("fallbacks"):
            texts[arm] += f"; of these for want of what was drawn {_join(train['fallbacks'])}"
    return _group_arms("forms of distractors", texts)


def count_training(folder: Path, arms: Sequence[str]) -> list[str]:
    """Return the counts that each arm's training logged last; a mean over steps names its group."""
    texts = {}
    for arm in arms:
        log, logged = _read_json(folder / arm / "metrics.json"), {}
        for name, value in md.leaves(log).items() if log["steps"] else ():
            group, _, key = name.rpartition(".")
            logged[key] = (value, f" ({group.replace('_', ' ')})" if group else "")
        parts = []
        for key, label in TRAINING.items():
            if key in logged:
                value, group = logged[key]
                parts.append(f"{md.number(value)} {label}{group}")
        texts[arm] = ", ".join(parts)
    return _group_arms("training", texts)


def distractor_table(folder: Path) -> str:
    """Return a table of report.json: question set -> strategy -> form -> pairs, kept, dropped by reason."""
    counts = {}
    for name, strategies in _read_json(folder / "report.json").items():
        for strategy, forms in strategies.items():
            for form, count in forms.items():
                counts[strategy, form, name] = count
    rows = []
    for key, count in sorted(counts.items()):
        dropped = _join(count["dropped"]) or md.NONE
        rows.append([", ".join(key), md.number(count["pairs"]), md.number(count["kept"]), dropped])
    return md.table(["distractors and placebos", "pairs", "kept", "dropped"], rows)


def evidence_table(path: Path) -> list[str]:
    """Return a table of evidence accuracy from the metrics of evaluate_evidence; nothing where no pair was counted."""
    rows = []
    for name, metrics in sorted(_read_json(path).items()):
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


def _join(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{md.number(value)} {name.replace('_', ' ')}" for name, value in numbers.items())


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro`")
    return files.read_json(path)
