"""The stage `explore`: what was measured as one HTML file to look at, question by question (`eadpr.explorer.page`)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eadpr.evaluation.awareness import AWARENESS, CUT
from eadpr.evaluation.outcomes import MeasuredQuestions, Outcomes
from eadpr.explorer import gather, overview, rankings
from eadpr.explorer import words as said
from eadpr.explorer.config import Explore
from eadpr.explorer.gather import Chosen
from eadpr.explorer.packing import PackedPage, frequent, in_blocks, pack, shortener
from eadpr.explorer.page import page
from eadpr.explorer.rankings import ExploreInputs
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms
from eadpr.report.plan import make_plan
from eadpr.report.summary import load_rows
from eadpr.runtime import files
from eadpr.runtime.section import Sets, read
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions

DEPTH = 20  # passages of each ranking, unless told
TEXTS = 256  # passages that are unpacked together


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
    """Write the page; says what is in it. By default it shows the first training of every row of the report, also among
    near-duplicates, of which so many per question joined as `counts` say: with the fewest of them."""
    usual, among = rankings.usual(settings, counts)
    known = rankings.known(inputs, settings, counts)
    _check(arms, question_sets, known, sets)
    shown = [known[name] for name in dict.fromkeys(arms or [*usual, *among])]
    chosen = Chosen(shown, list(dict.fromkeys(question_sets)) or sets.evaluate, depth)
    asked = gather.questions(inputs, chosen)
    found = [rankings.columns(one, asked, depth) for one in shown]
    number = rankings.Numbering()
    details = list(in_blocks(gather.details(inputs, chosen, asked, found, settings, number), gather.BLOCK))
    passages = list(number.texts(PassageStore(inputs.records / "passages.parquet"), shown))
    words = frequent(passages)
    texts = list(in_blocks(passages, TEXTS, shortener(words)))
    columns = _columns(inputs, chosen, asked, settings, collection)
    columns |= {
        "aside": [] if arms else among,
        "blocks": {"details": gather.BLOCK, "texts": TEXTS},
        "decimals": [of.decimals for of in found],
    }
    packed = page(collection, PackedPage(pack(columns), pack(words), details, texts))
    with files.replacing(out) as temporary:
        temporary.write_bytes(packed)
    return f"{len(asked.ids):,} questions, {len(shown)} rankings, {len(packed) / 1e6:.1f} MB in {out}"


def measured_collection(data: Path, name: str | None) -> str:
    """Raises ValueError where it was not measured, or none is named and there is not just one."""
    known = sorted(path.parts[-3] for path in data.glob("*/configs/explore.json"))
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        said = "none is named" if name is None else f"{name!r} was not measured"
        raise ValueError(f"--collection: {said}; known are {', '.join(known) or 'none: run `dvc repro`'}")
    return name


def found(collection: Path, report: Path) -> tuple[ExploreInputs, ReportArms, Sets, list[int]]:
    """What the pipeline made of a collection."""
    names = ("records", "positives", "evidence.parquet", *ExploreInputs._fields[3:-1])
    config = collection / "configs" / "explore.json"
    settings, sets, explore = read(config, report=ReportArms, sets=Sets, explore=Explore)
    return ExploreInputs(*(collection / name for name in names), report), settings, sets, explore.near_duplicates


def remove_inactive(rankings: Path, settings: Explore) -> list[Path]:
    """Delete and return the rankings that the pipeline no longer makes: DVC hashes the folder whole."""
    left = [path for path in sorted(rankings.glob("[!.]*")) if path.name not in settings.rankings]
    for path in left:
        files.discard(path)
    return left


def _check(arms: Sequence[str], question_sets: Sequence[str], rankings: Iterable[str], sets: Sets) -> None:
    """Raises ValueError for what was not measured."""
    known = {"arm": list(rankings), "set": sets.evaluate}
    for kind, names in (("arm", arms), ("set", question_sets)):
        if missing := [name for name in names if name not in known[kind]]:
            raise ValueError(f"--{kind} {missing[0]}: was not measured; known are {', '.join(known[kind])}")


def _columns(
    inputs: ExploreInputs, chosen: Chosen, asked: MeasuredQuestions, settings: ReportArms, collection: str
) -> dict[str, Any]:
    """What the page knows of every question at once, and its overview."""
    plan = make_plan(settings, chosen.sets)
    found = load_rows(inputs.outcomes, plan.rows, chosen.sets)
    whole = found.rows[found.rows["by"] == ""]["metric"].unique().tolist()
    deepest = max(int(metric[3:]) for metric in whole if metric.startswith("mrr"))
    from_ranks = {metric for metric in whole if metric.startswith(("top", "mrr")) and int(metric[3:]) <= deepest}
    counted = [metric for metric in settings.columns if metric in whole and metric not in from_ranks]
    table, ids = asked.table, asked.ids.to_pylist()
    relations = table["relation"].to_pylist()
    given = {question.id: question for question in read_questions(inputs.records / "questions.parquet", ids)}
    own = [Outcomes([one.outcomes]) for one in chosen.rankings]
    place = {question_id: i for i, question_id in enumerate(ids)}
    return {
        "collection": collection,
        "depth": chosen.depth,
        "deepest": deepest,
        "arms": [one.name for one in chosen.rankings],
        "said": [one.said for one in chosen.rankings],
        "readersOfPaths": settings.of_paths,
        "evidence": said.EVIDENCE.get(settings.strategy, f"evidence: what “{settings.strategy}” takes for it"),
        "rows": list(plan.rows),
        "baseline": settings.baseline,
        "confidence": settings.confidence,
        "metrics": {
            name: [md.title(name), said.meaning(name), name in AWARENESS] for name in settings.columns if name in whole
        },
        "forms": {name: said.form(name) for form in said.FORMS for name in (form, f"{form}{CUT}")},
        "sets": {name: asked.members[name].tolist() for name in chosen.sets},
        "ids": ids,
        "questions": [given[question_id].question for question_id in ids],
        "answers": [given[question_id].answers for question_id in ids],
        "hops": [len(given[question_id].hops or ()) for question_id in ids],
        **{key: table[name].to_pylist() for key, name in (("types", "type"), ("hop_types", "hop_type"))},
        "relations": relations,
        "relationNames": {code: said.relation(code) for code in sorted({*filter(None, relations)})},
        "first": [_first(of, chosen, place, f"mrr{deepest}") for of in own],
        "values": {metric: [_values(of, chosen, place, metric) for of in own] for metric in counted},
        "overview": {name: overview.of_set(name, found, inputs, plan) for name in chosen.sets},
        "losses": overview.losses(inputs.training, plan),
    }


def _first(of: Outcomes, chosen: Chosen, place: dict[str, int], metric: str) -> list[int]:
    """Rank of each question's first hit, 0 for none."""
    return [round(1 / value) if value else 0 for value in _sums(of, chosen, place, metric)[0]]


def _values(of: Outcomes, chosen: Chosen, place: dict[str, int], metric: str) -> list[list[float]]:
    sums, counts = _sums(of, chosen, place, metric)
    return [[int(value) if value.is_integer() else round(value, 4) for value in sums], counts]


def _sums(of: Outcomes, chosen: Chosen, place: dict[str, int], metric: str) -> tuple[list[float], list[int]]:
    """Of each question the sum of its values, and their number: 0 where it has none."""
    sums, counts = np.zeros(len(place)), np.zeros(len(place), dtype=np.int64)
    for name in chosen.sets:
        found = of.of_training(0, name, metric)
        rows = [place[question_id] for question_id in found.index]
        sums[rows], counts[rows] = found["sums"], found["counts"]
    return sums.tolist(), counts.tolist()
