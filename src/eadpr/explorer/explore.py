"""The stage `explore`: one HTML file to look at results in, question by question (`eadpr.explorer.page`)."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS, CUT, POINTING
from eadpr.evaluation.outcomes import MeasuredQuestions, Outcomes, load_questions
from eadpr.explorer import gather, words
from eadpr.explorer.page import make_page
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms
from eadpr.report.differences import compare, is_fixed
from eadpr.report.notes import NOTES
from eadpr.report.summary import MeasuredRows, load_rows
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.storage.records import Question

DEPTH = 20  # passages of each ranking
DIGITS = 6  # of a figure of the overview, as in the report


def run(
    inputs: gather.ExploreInputs, out: Path, collection: str, settings: ReportArms, sets: Sets, about: Mapping[str, Any]
) -> str:
    """Write the page, with the first training of each row of the report, and return a summary of it.

    `about` may name a commit, its date, edits since, and settings changed from the defaults (`provenance`).
    """
    arms = [names[0] for names in settings.rows.values()]
    questions = load_questions(inputs.records, sets.evaluate)
    rankings = [gather.read_ranking(inputs.rankings / name / "evaluate.parquet", questions, DEPTH) for name in arms]
    numbers = {}
    records = list(read_questions(inputs.records / "questions.parquet", questions.ids.to_pylist()))
    details = list(gather.details(inputs, arms, records, rankings, settings, numbers))
    data = {
        "collection": collection,
        "depth": DEPTH,
        "about": {**about, "bases": settings.bases, "seeds": settings.seeds},
        "arms": arms,
        "descriptions": [words.describe_ranking(name, settings) for name in arms],
        "evidence": words.EVIDENCE.get(settings.strategy, f"evidence: what “{settings.strategy}” takes for it"),
        "forms": {name: words.explain_form(name) for form in words.FORMS for name in (form, f"{form}{CUT}")},
        **_question_columns(questions, records),
        **_measures(inputs, arms, questions, settings),
    }
    store = PassageStore(inputs.records / "passages.parquet")
    rows = store.rows([*numbers])
    texts = map(list, zip(numbers, store.titles(rows), store.texts(rows), strict=True))
    page = make_page(collection, about.get("date", ""), data, details, texts)
    with files.replacing(out) as temporary:
        temporary.write_bytes(page)
    return f"{len(questions.ids):,} questions, {len(arms)} rankings, {len(page) / 1e6:.1f} MB in {out}"


def _question_columns(questions: MeasuredQuestions, records: Sequence[Question]) -> dict[str, Any]:
    table = questions.table
    relations, names = table["relation"].to_pylist(), words.RELATIONS
    return {
        "sets": {name: rows.tolist() for name, rows in questions.members.items()},
        "ids": [question.id for question in records],
        "questions": [question.question for question in records],
        "answers": [question.answers for question in records],
        "hops": [len(question.hops or ()) for question in records],
        "types": table["type"].to_pylist(),
        "hop_types": table["hop_type"].to_pylist(),
        "relations": relations,
        "relationNames": {
            code: f"{names[code]} ({code})" if code in names else code for code in sorted({*filter(None, relations)})
        },
    }


def _measures(
    inputs: gather.ExploreInputs, arms: Sequence[str], questions: MeasuredQuestions, settings: ReportArms
) -> dict[str, Any]:
    """Return each question's first hits and values, and the overview."""
    rows = load_rows(inputs.outcomes, settings.rows, [*questions.members])
    present = rows.rows[rows.rows["by"] == ""]["metric"].unique().tolist()
    deepest = max(int(metric[3:]) for metric in present if metric.startswith("mrr"))
    columns = [metric for metric in settings.columns if metric in present]
    outcomes = [Outcomes([inputs.outcomes / f"{name}.parquet"]) for name in arms]
    reciprocal = [_sum_values(ranking, questions, f"mrr{deepest}")["sums"] for ranking in outcomes]
    values = {}
    for metric in columns:
        if metric.startswith(("top", "mrr")) and int(metric[3:]) <= deepest:
            continue  # the page counts it from the first hits
        of_rankings = [_sum_values(ranking, questions, metric) for ranking in outcomes]
        values[metric] = [[ranking["sums"].round(4).tolist(), ranking["counts"].tolist()] for ranking in of_rankings]
    return {
        "deepest": deepest,
        "rows": list(settings.rows),
        "confidence": settings.confidence,
        "metrics": {name: [md.title(name), md.explain(name), name in (*AWARENESS, *POINTING)] for name in columns},
        "first": [[round(1 / value) if value else 0 for value in of_ranking] for of_ranking in reciprocal],
        "values": values,
        "overview": {name: _make_overview(name, rows, settings) for name in questions.members},
        "notes": files.read_json(inputs.report / NOTES),
    }


def _make_overview(name: str, measures: MeasuredRows, settings: ReportArms) -> dict[str, Any]:
    """Return means and differences with intervals, as the report has them."""

    def read(row: str, metric: str) -> list[pd.DataFrame]:
        return measures.outcomes[row].of_trainings(name, metric)

    def estimate(pairs: list[tuple[str, str | None]]) -> list[dict[str, list[float]]]:
        """Return by metric estimate, bounds and number of questions, for each row alone or with another."""
        sides = (
            (read(row, metric), read(reference, metric) if reference else [], is_fixed(row, reference))
            for (row, reference), metric in product(pairs, settings.columns)
        )
        intervals: list[dict[str, list[float]]] = [{} for _ in pairs]
        cells = product(intervals, settings.columns)
        for (by_metric, metric), difference in zip(cells, compare(sides, settings), strict=True):
            if difference:
                estimate, low, high, n = difference.interval
                by_metric[metric] = [*(round(value, DIGITS) for value in (estimate, low, high)), n]
        return intervals

    pairs = zip(settings.comparisons, estimate(settings.comparisons), strict=True)
    return {
        "means": dict(zip(settings.rows, estimate([(row, None) for row in settings.rows]), strict=True)),
        "differences": [{"row": row, "with": reference, "metrics": metrics} for (row, reference), metrics in pairs],
        "trainings": {row: len(names) for row, names in settings.rows.items()},
    }


def _sum_values(outcomes: Outcomes, questions: MeasuredQuestions, metric: str) -> pd.DataFrame:
    """Return each question's sum of values, and their number: 0 where it has none."""
    values = pd.concat([outcomes.of_training(0, name, metric) for name in questions.members])
    values = values[~values.index.duplicated()]  # a question can be in several sets
    return values.reindex(questions.ids.to_pylist(), fill_value=0)
