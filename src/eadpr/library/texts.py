"""A user's rows of question, answers and passage, and what is made of each: distractor, placebos, masked passage."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from eadpr import engine
from eadpr.corpus import own, shapes
from eadpr.corpus.given import GivenQuestion, Row, usable_answers
from eadpr.machine import Machine
from eadpr.records import Passage, Question
from eadpr.search.probe import masked
from eadpr.supervision.annotator_manifest import Manifest, Prompt, read_manifest
from eadpr.supervision.config import PLACEBOS, EvidenceSettings
from eadpr.supervision.evidence import Annotate, scorer
from eadpr.supervision.forms import cut
from eadpr.supervision.pairs import Pair

BLOCK = 1_000  # rows annotated at a time
MAY_HOLD_ANSWER = {"sentence": False, "window": False, "answer": False}  # else the distractor is dropped


class Texts(NamedTuple):
    """`variants`: positive, and where they exist distractor, masked, placebo, placebo_second, placebo_words and
    placebo_inside. `reasons` says of the others why there is none (`forms.cut`)."""

    question: str
    title: str
    variants: dict[str, str]
    reasons: dict[str, str]


def texts(
    rows: Iterable[Mapping[str, Any]],
    *,
    evidence: str = "sentence",
    annotator: Path | None = None,
    segmenter: str = "sentence",
    window: int = 5,
) -> Iterator[Texts]:
    """What the stages `evidence`, `distractors` and `probe` make of each row, in their order, all of it cut.

    A row has `question`, `answers` and `text`, and if wanted `title`, `answer_kind`, `id` and `passage_id`, by which
    placebos are drawn; a list of dictionaries, a DataFrame or a `datasets.Dataset`. `evidence` is one of
    evidence.strategies but gold; `pseudo` asks the QA model of the folder `annotator`, e.g. data/atlas/annotator.
    Raises ValueError for a bad row, by its number from 0.
    """
    if (evidence == "pseudo") != (annotator is not None):
        raise ValueError("evidence pseudo goes with a folder `annotator`, and other strategies without")
    settings = EvidenceSettings(
        strategies=[evidence, *PLACEBOS], placebo_of=evidence, segmenter=segmenter, window=window, input_tokens=512
    )
    annotate = _annotate(settings, annotator)
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a DataFrame
        rows = rows.to_dict("records")
    pairs = (_pair(Row(row.get("where", f"row {n}"), n, dict(row))) for n, row in enumerate(rows))
    while block := list(islice(pairs, BLOCK)):
        found = annotate(block)
        for pair in block:
            yield _texts(pair, dict(zip(settings.strategies, found, strict=False)), evidence)


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Rows for `texts`, of SQuAD's JSON or of a table with their columns, each with the file and its line."""
    if path.name.removesuffix(".gz").endswith(".json"):
        yield from shapes.squad_rows(path)
        return
    for number, (where, row) in enumerate(own.probed_rows(path)):
        yield {"id": str(number), "passage_id": str(number)} | row | {"where": where}


def training_rows(made: Iterable[Texts], join: str = "{title} {text}") -> Iterator[dict[str, str]]:
    """Columns for `losses.EvidenceLoss`: question, positive, distractor and placebo, the last two empty where there is
    none. `join` makes one text of title and text."""
    for one in made:
        of = {"positive": "positive", "distractor": "distractor", "placebo": "placebo"}
        found = {name: one.variants.get(variant) for name, variant in of.items()}
        yield {"question": one.question} | {
            name: "" if text is None else joined(join, one.title, text) for name, text in found.items()
        }


def joined(join: str, title: str, text: str) -> str:
    return join.replace("{title}", title).replace("{text}", text).strip() if title else text


def _annotate(settings: EvidenceSettings, folder: Path | None) -> Annotate:
    if folder is None:
        return Annotate(settings, Manifest("none", Prompt("", False), [], {}), _nobody)
    manifest, here = read_manifest(folder), Machine(threads=engine.cores(), deterministic=False, precision="float32")
    return Annotate(settings, manifest, scorer(folder, manifest, settings, here))


def _nobody(*_: object) -> Any:
    raise AssertionError("only the strategy pseudo asks a model")


def _pair(row: Row) -> Pair:
    named = str(row.number)
    row = row._replace(fields={"title": "", "answer_kind": "string", "id": named, "passage_id": named} | row.fields)
    kind = row.text("answer_kind")
    if kind not in ("string", "regex"):
        raise ValueError(f"{row.where}: answer_kind is {kind!r}, expected string or regex")
    if isinstance(row.fields.get("answers"), str):  # one alone stands for a list of it
        row.fields["answers"] = [row.fields["answers"]]
    question = GivenQuestion(row.where, row.number, row.text("question"), row.texts("answers"))
    answers = usable_answers(question, kind, drop_empty=False)
    asked = Question(row.id("id"), question.question, answers, kind, None, None, None, None)
    return Pair(asked, Passage(row.id("passage_id"), row.text("title", empty=True), row.text("text"), None), None)


def _texts(pair: Pair, evidence: Mapping[str, Any], strategy: str) -> Texts:
    variants, reasons = {"positive": pair.passage.text}, {}
    for name, row in evidence.items():
        variant = "distractor" if name == strategy else name
        attempt = cut(pair, row, may_hold_answer=MAY_HOLD_ANSWER.get(name, True))
        if attempt.distractor is None:
            reasons[variant] = attempt.reason
        else:
            variants[variant] = attempt.distractor.text
    without = masked(pair.passage.text, pair.question.answers, pair.question.answer_kind)
    if without is not None:
        variants["masked"] = without
    return Texts(pair.question.question, pair.passage.title, variants, reasons)
