"""The report's counts: what the numbers of the table rest on, and what was left out of them.

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
PAIRS = {
    name: said
    for metric, of in AWARENESS.items()
    if of.beyond
    for name, said in (
        (f"n_{metric}", f"{of.title} pairs"),
        (f"n_{metric}{CUT}", f"left out, {of.beyond}"),
        (f"n_{metric}{WITHOUT}", "left out without a placebo"),
    )
}
TRAINING = {
    "questions": "training examples",
    "questions_per_epoch": "asked per epoch",
    "without_negatives": "without negatives",
    "without_distractor": "without a distractor",
    "without_placebo": "without a placebo",
    "truncated": "with evidence or placebo beyond the cut",
    "masked": "false negatives masked per step",
}
TRAINING_TWO_HOPS = {
    "questions": "training questions",
    "left_out": "left out without an example of each hop",
    "without_negatives": "without negatives",
    **{name: f"hops {TRAINING[name]}" for name in ("without_distractor", "without_placebo", "truncated")},
    "masked": TRAINING["masked"],
}


def of_questions(metrics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines for every question set; `metrics` maps each row of the main table to its metrics file."""
    lines: list[str] = []
    for name in next(iter(metrics.values())):
        for meanings in (QUESTIONS, PAIRS):
            lines += _grouped(name, {row: _counted(found[name], meanings) for row, found in metrics.items()})
    return lines


def of_depth(metrics: Mapping[str, Mapping[str, Any]], needed: int) -> list[str]:
    """Lines for rankings that hold fewer than `needed` passages for every question of a set."""
    lines: list[str] = []
    for name in next(iter(metrics.values())):
        deepest = {row: found[name]["deepest_rank"] for row, found in metrics.items()}
        said = {row: f"at most {depth:,} passages per question" for row, depth in deepest.items() if depth < needed}
        lines += _grouped(f"{name}, short rankings", said)
    return lines


def of_negatives(folder: Path, arms: Sequence[str]) -> list[str]:
    return _grouped("negatives", {arm: _listed(md.leaves(_json(folder / arm / "report.json"))) for arm in arms})


def of_examples(folder: Path, arms: Sequence[str]) -> list[str]:
    """What forms the distractors of training have, where an arm asks for another than cut."""
    texts = {}
    for arm in arms:
        found = _json(folder / arm / "report.json")["train"]
        forms, fallbacks = (_listed(found.get(key, {})) for key in ("forms", "fallbacks"))
        texts[arm] = forms + f"; of these for want of what was drawn {fallbacks}" * bool(fallbacks)
    return _grouped("forms of distractors", texts)


def of_training(folder: Path, arms: Sequence[str], meanings: Mapping[str, str] = TRAINING) -> list[str]:
    """Counts among what each arm's training logged last; a mean over steps names the group it stands in."""
    texts = {}
    for arm in arms:
        logged = md.leaves(_json(folder / arm / "metrics.json"))
        parts = ((name.rpartition("."), value) for name, value in logged.items())
        found = {leaf: (group.replace("_", " "), value) for (group, _, leaf), value in parts}
        shown = {leaf: found[leaf] for leaf in meanings if leaf in found}
        texts[arm] = ", ".join(
            f"{md.number(value)} {meanings[leaf]}{f' ({group})' * bool(group)}"
            for leaf, (group, value) in shown.items()
        )
    return _grouped("training", texts)


def of_distractors(folder: Path) -> str:
    """Table from report.json: question set -> strategy -> form -> pairs, kept, dropped by reason."""
    counted = {
        (strategy, form, name): found
        for name, of_set in _json(folder / "report.json").items()
        for strategy, of_strategy in of_set.items()
        for form, found in of_strategy.items()
    }
    rows = []
    for key, found in sorted(counted.items()):
        dropped = _listed(found["dropped"]) or md.NONE
        rows.append([", ".join(key), md.number(found["pairs"]), md.number(found["kept"]), dropped])
    return md.table(["distractors and placebos", "pairs", "kept", "dropped"], rows)


def of_evidence(path: Path) -> list[str]:
    """Table of evidence accuracy from the metrics of evaluate_evidence; nothing where no pair was counted."""
    rows = []
    for name, found in sorted(_json(path).items()):
        evidence = found.get("pseudo")  # absent where no annotator was asked
        if evidence and evidence["n"]:
            accuracy = Interval(*(evidence[key] for key in ("accuracy", "accuracy_low", "accuracy_high", "n")))
            shares = [f"{100 * evidence[key]:.1f}" for key in ("chance", "share_of_passage")]
            rows.append([name, md.bounded(accuracy), f"{accuracy.n:,}", *shares])
    return [md.table(["evidence (%)", "accuracy", "n", "chance", "share of passage"], rows)] if rows else []


def _counted(found: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    """Counts with their meaning; zeros are left out."""
    return ", ".join(f"{found[name]:,} {meaning}" for name, meaning in meanings.items() if found.get(name))


def _grouped(label: str, texts: Mapping[str, str]) -> list[str]:
    """One line per different text, naming the arms that share it; empty texts give none."""
    arms_of: dict[str, list[str]] = {}
    for arm, text in texts.items():
        if text:
            arms_of.setdefault(text, []).append(arm)
    return [f"- {label} ({', '.join(arms)}): {text}" for text, arms in arms_of.items()]


def _listed(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{md.number(value)} {name.replace('_', ' ')}" for name, value in numbers.items())


def _json(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro`")
    return files.read_json(path)
