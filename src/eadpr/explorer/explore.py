"""The stage `explore`: one HTML file to look at results in, question by question (`eadpr.explorer.page`)."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr.evaluation.awareness import AWARENESS, CUT
from eadpr.evaluation.outcomes import MeasuredQuestions, Outcomes
from eadpr.explorer import gather, overview, rankings, words
from eadpr.explorer.config import Explore
from eadpr.explorer.page import make_page
from eadpr.explorer.rankings import ExploreInputs, ShownRanking
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms
from eadpr.report.notes import NOTES
from eadpr.report.summary import load_rows
from eadpr.runtime import files
from eadpr.runtime.section import Sets, read
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions

DEPTH = 20  # passages of each ranking


def run(
    inputs: ExploreInputs,
    out: Path,
    collection: str,
    settings: ReportArms,
    sets: Sets,
    *,
    counts: Sequence[int] = (),
    arms: Sequence[str] = (),
    question_sets: Sequence[str] = (),
    depth: int = DEPTH,
) -> str:
    """Write the page and return a summary of it.

    By default it shows the first training of every row of the report, and its ranking with near-duplicates, for the
    smallest of `counts` per question.
    """
    available = rankings.list_rankings(inputs, settings, counts)
    usual, with_near_duplicates = rankings.choose_default(settings, counts)
    _check_names("arm", arms, available)
    _check_names("set", question_sets, sets.evaluate)
    shown = [available[name] for name in dict.fromkeys(arms or [*usual, *with_near_duplicates])]
    names = list(dict.fromkeys(question_sets)) or sets.evaluate
    questions = gather.read_questions_of(inputs.records, names)
    columns = [rankings.read_columns(ranking, questions, depth) for ranking in shown]
    number = rankings.Numbering()
    details = list(gather.details(inputs, shown, questions, columns, settings, number))
    data = {
        "collection": collection,
        "depth": depth,
        "aside": [] if arms else with_near_duplicates,
        "decimals": [ranking.decimals for ranking in columns],
        **_question_columns(inputs, questions),
        **_measures(inputs, shown, questions, settings),
        **_texts(shown, settings, questions),
    }
    texts = number.texts(PassageStore(inputs.records / "passages.parquet"), shown)
    page = make_page(collection, data, details, texts)
    with files.replacing(out) as temporary:
        temporary.write_bytes(page)
    return f"{len(questions.ids):,} questions, {len(shown)} rankings, {len(page) / 1e6:.1f} MB in {out}"


def find_collection(data: Path, name: str | None) -> str:
    """Return the collection's name; raises ValueError where it was not measured, or none is named and there is not just
    one."""
    available = sorted(path.parts[-3] for path in data.glob("*/configs/explore.json"))
    if name is None and len(available) == 1:
        return available[0]
    if name not in available:
        problem = "none is named" if name is None else f"{name!r} was not measured"
        known = ", ".join(available) or "none: run `dvc repro`"
        raise ValueError(f"--collection: {problem}; known are {known}")
    return name


class PipelineOutputs(NamedTuple):
    """The inputs and settings that the pipeline made for a collection."""

    inputs: ExploreInputs
    report: ReportArms
    sets: Sets
    near_duplicates: list[int]


def find_outputs(collection: Path, report: Path) -> PipelineOutputs:
    names = ("records", "positives", "evidence.parquet", *ExploreInputs._fields[3:-1])
    inputs = ExploreInputs(*(collection / name for name in names), report)
    config = collection / "configs" / "explore.json"
    settings, sets, explore = read(config, report=ReportArms, sets=Sets, explore=Explore)
    return PipelineOutputs(inputs, settings, sets, explore.near_duplicates)


def remove_inactive(folder: Path, settings: Explore) -> list[Path]:
    """Delete and return the rankings that the pipeline no longer makes: DVC hashes the folder whole."""
    inactive = [path for path in sorted(folder.glob("[!.]*")) if path.name not in settings.rankings]
    for path in inactive:
        files.discard(path)
    return inactive


def _check_names(option: str, names: Sequence[str], available: Iterable[str]) -> None:
    for name in names:
        if name not in available:
            raise ValueError(f"--{option} {name}: was not measured; known are {', '.join(available)}")


def _question_columns(inputs: ExploreInputs, questions: MeasuredQuestions) -> dict[str, Any]:
    table, ids = questions.table, questions.ids.to_pylist()
    by_id = {question.id: question for question in read_questions(inputs.records / "questions.parquet", ids)}
    records = [by_id[question_id] for question_id in ids]
    return {
        "sets": {name: rows.tolist() for name, rows in questions.members.items()},
        "ids": ids,
        "questions": [question.question for question in records],
        "answers": [question.answers for question in records],
        "hops": [len(question.hops or ()) for question in records],
        "types": table["type"].to_pylist(),
        "hop_types": table["hop_type"].to_pylist(),
        "relations": table["relation"].to_pylist(),
    }


def _measures(
    inputs: ExploreInputs, shown: Sequence[ShownRanking], questions: MeasuredQuestions, settings: ReportArms
) -> dict[str, Any]:
    """Return each question's first hits and values, and the overview."""
    rows = load_rows(inputs.outcomes, settings.rows, [*questions.members])
    present = rows.rows[rows.rows["by"] == ""]["metric"].unique().tolist()
    deepest = max(int(metric[3:]) for metric in present if metric.startswith("mrr"))
    columns = [metric for metric in settings.columns if metric in present]
    outcomes = [Outcomes([ranking.outcomes]) for ranking in shown]
    first = []
    for ranking in outcomes:
        sums, _ = _sums(ranking, questions, f"mrr{deepest}")
        first.append([round(1 / value) if value else 0 for value in sums])
    values = {}
    for metric in columns:
        if metric.startswith(("top", "mrr")) and int(metric[3:]) <= deepest:
            continue  # the page counts it from the first hits
        values[metric] = []
        for ranking in outcomes:
            sums, counts = _sums(ranking, questions, metric)
            short = [int(value) if value.is_integer() else round(value, 4) for value in sums]
            values[metric].append([short, counts])
    return {
        "deepest": deepest,
        "rows": list(settings.rows),
        "confidence": settings.confidence,
        "metrics": {name: [md.title(name), words.explain_metric(name), name in AWARENESS] for name in columns},
        "first": first,
        "values": values,
        "overview": {name: overview.make_overview(name, rows, settings) for name in questions.members},
        "notes": json.loads(_read_report(inputs.report, NOTES)),
        "plots": [[*texts, _read_report(inputs.report, f"{name}.svg")] for name, texts in words.PLOTS.items()],
    }


def _read_report(folder: Path, name: str) -> str:
    """Return a file of the report; a plot without points has none."""
    if not (folder / NOTES).exists():
        raise FileNotFoundError(f"{folder / NOTES} does not exist; run `dvc repro report`")
    path = folder / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _sums(outcomes: Outcomes, questions: MeasuredQuestions, metric: str) -> tuple[list[float], list[int]]:
    """Return each question's sum of values, and their number: 0 where it has none."""
    place = {question_id: i for i, question_id in enumerate(questions.ids.to_pylist())}
    sums, counts = np.zeros(len(place)), np.zeros(len(place), dtype=np.int64)
    for name in questions.members:
        values = outcomes.of_training(0, name, metric)
        rows = [place[question_id] for question_id in values.index]
        sums[rows], counts[rows] = values["sums"], values["counts"]
    return sums.tolist(), counts.tolist()


def _texts(shown: Sequence[ShownRanking], settings: ReportArms, questions: MeasuredQuestions) -> dict[str, Any]:
    relations = sorted({*filter(None, questions.table["relation"].to_pylist())})
    strategy = settings.strategy
    return {
        "arms": [ranking.name for ranking in shown],
        "descriptions": [ranking.description for ranking in shown],
        "readersOfPaths": settings.of_paths,
        "evidence": words.EVIDENCE.get(strategy, f"evidence: what “{strategy}” takes for it"),
        "forms": {name: words.explain_form(name) for form in words.FORMS for name in (form, f"{form}{CUT}")},
        "relationNames": {code: words.name_relation(code) for code in relations},
    }
