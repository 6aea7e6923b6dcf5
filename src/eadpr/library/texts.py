"""A user's rows of question, answers and passage, and the texts made of each: distractor, placebos, masked passage."""

import functools
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from eadpr.corpus.formats.own import read_probed
from eadpr.corpus.formats.squad import read_answered
from eadpr.corpus.rows import GivenQuestion, Row, usable_answers
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import model_files
from eadpr.storage import engine, tables
from eadpr.storage.records import Evidence, Fold, Passage, Question, ScoredSpan, Span
from eadpr.supervision import qa_model
from eadpr.supervision.annotator_manifest import NAME, Manifest, Model, Prompt, read_manifest
from eadpr.supervision.config import PLACEBOS, Distractors, EvidenceSettings, Form, Strategy
from eadpr.supervision.evidence import Annotate, make_scorer
from eadpr.supervision.fillers import POOL, Fillers, Pool
from eadpr.supervision.forms import NO_ANSWER, NO_EVIDENCE, Forms
from eadpr.supervision.pairs import Pair
from eadpr.supervision.probed import mask_answers
from eadpr.supervision.spans import Segmenter
from eadpr.supervision.swaps import Swaps

BLOCK = 1_000  # rows annotated at a time, as in the stage; part of the bytes of a QA model's scores
# The strategies of params.yaml; a distractor that holds an answer is dropped unless its strategy allows it.
MAY_HOLD_ANSWER: dict[Strategy, bool] = dict.fromkeys(get_args(Strategy), False) | {"pseudo": True, "gold": True}
INSIDE: tuple[Strategy, ...] = ("window", "answer")  # as in `settings.checks`: they cut inside of a sentence
SENTENCES = ("placebo", "placebo_second")
CUT_OTHERWISE = "cut_otherwise"
UNIFIEDQA = Prompt("{question} \\n {context}", lowercase=True)
Record = TypeVar("Record", Passage, Question)


class Finder(NamedTuple):
    """`strategies` are the evidence's and then the placebos'; `find` returns a row for each pair and strategy."""

    strategies: Sequence[str]
    find: Callable[[Sequence[Pair]], Iterable[Any]]


class Annotation(NamedTuple):
    """The places of the evidence in a row's text, in characters.

    `reason` says why the row has no evidence: no_answer (nothing to look for) or no_evidence. `placebos` are the row's,
    by name. `spans` are the candidates for evidence, with a QA model's surprise at the answer without each.
    """

    question_id: str
    passage_id: str
    evidence: list[Span]
    reason: str | None
    placebos: dict[str, Span]
    spans: list[ScoredSpan]


class Texts(NamedTuple):
    """A row's texts. `variants` has positive and, if they exist, distractor, masked, placebo, placebo_second,
    placebo_words and placebo_inside.

    `reasons` has the reasons of `forms.cut`, `forms.fill` and `forms.apply_swap` for those that do not exist, or
    cut_otherwise: the placebo is a sentence taken out, and the distractor lacks no sentence.
    """

    question: str
    title: str
    variants: dict[str, str]
    reasons: dict[str, str]


def annotate(
    rows: Iterable[Mapping[str, Any]],
    *,
    annotator: Path | str | None = None,
    evidence: Strategy | None = None,
    segmenter: Segmenter = "sentence",
    window: int = 5,
) -> Iterator[Annotation]:
    """Yield each row's evidence as the stage `evidence` finds it, in the order of the rows.

    `rows`: dictionaries, a DataFrame or a `datasets.Dataset` of `question`, `answers` and `text`, and if wanted
    `title`, `answer_kind`, `id` and `passage_id`, by which placebos are drawn. `annotator` is a QA model: a folder of
    the stage `annotator`, or a T5 by folder or Hub name that is prompted as UnifiedQA is; it finds evidence `pseudo`.
    Without one `evidence` is sentence, window or answer. Raises ValueError
    for a bad row, by its number from 0.
    """
    finder = _make_finder(annotator, evidence, segmenter, window)
    for pair, evidence_rows in _find_evidence(_pairs(rows), finder):
        row = evidence_rows[finder.strategies[0]]
        reason = None if row.chosen else NO_EVIDENCE if row.target else NO_ANSWER
        placebos = {name: evidence_rows[name].chosen_spans[0] for name in PLACEBOS if evidence_rows[name].chosen}
        yield Annotation(pair.question.id, pair.passage.id, row.chosen_spans, reason, placebos, row.spans)


def distractors(
    rows: Iterable[Mapping[str, Any]],
    *,
    form: Literal["cut", "filled", "swapped"] = "cut",
    seed: int = 0,
    annotator: Path | str | None = None,
    evidence: Strategy | None = None,
    segmenter: Segmenter = "sentence",
    window: int = 5,
) -> Iterator[Texts]:
    """Yield each row's texts as the stages `evidence`, `distractors` and `probe` make them; rows as of `annotate`.

    `cut` takes the evidence out. `filled` puts sentences of other rows in its place, `swapped` replaces the answer by
    another row's; these two read all rows first, draw by `seed`, and refuse an id that two rows use for different
    texts. A placebo exists only if it is cut in the same way as the text it is compared with: no sentence placebo goes
    with `swapped`, or with evidence window or answer. Word placebos go with `masked`.
    """
    if form not in ("cut", "filled", "swapped"):
        raise ValueError(f"form {form!r}: expected cut, filled or swapped")
    finder = _make_finder(annotator, evidence, segmenter, window)
    pairs: Iterable[Pair] = _pairs(rows)
    if form != "cut":
        pairs = list(pairs)
    forms = _make_forms(form, seed, pairs)
    for pair, evidence_rows in _find_evidence(pairs, finder):
        yield _make_texts(pair, evidence_rows, forms, form)


def read_rows(path: Path, columns: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield rows for `annotate` and `distractors` from SQuAD's JSON or a table, each with its file and line.

    `columns` maps fields to the table's columns of other names. Raises ValueError if there is no row.
    """
    if path.name.removesuffix(".gz").endswith(".json"):
        if columns:
            raise ValueError(f"{path}: SQuAD's JSON has no columns to name; leave out --columns")
        rows = read_answered(path)
    else:
        numbered = enumerate(read_probed(path, columns or {}))
        rows = ({"id": str(n), "passage_id": str(n)} | row.fields | {"where": row.where} for n, row in numbered)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{path} holds no rows of question and text; fill it")
    return chain([first], rows)


def training_rows(texts: Iterable[Texts], join: str = "{title} {text}") -> Iterator[dict[str, str]]:
    """Yield the columns of `losses.EvidenceLoss`: question, positive, distractor, placebo.

    A missing text is empty. `join` makes one text of title and text.
    """
    for row in texts:
        columns = {"question": row.question}
        for name in ("positive", "distractor", "placebo"):
            columns[name] = join_title(join, row.title, row.variants[name]) if name in row.variants else ""
        yield columns


def join_title(join: str, title: str, text: str) -> str:
    """Return one text of both; raises ValueError for a `join` without {title} or {text}."""
    if "{title}" not in join or "{text}" not in join:
        raise ValueError(f"join is {join!r}; it must hold {{title}} and {{text}}")
    values = {"{title}": title, "{text}": text}
    return re.sub(r"\{title\}|\{text\}", lambda field: values[field[0]], join).strip() if title else text


def _make_finder(annotator: Path | str | None, evidence: Strategy | None, segmenter: Segmenter, window: int) -> Finder:
    evidence = evidence or ("sentence" if annotator is None else "pseudo")
    if (evidence == "pseudo") != (annotator is not None):
        raise ValueError("evidence pseudo goes with an `annotator`, and other strategies without")
    if evidence == "gold":
        raise ValueError("evidence gold needs what a source annotated, which rows do not have; name another strategy")
    settings = EvidenceSettings(
        positive="each", strategies=[evidence, *PLACEBOS], placebo_of=evidence, segmenter=segmenter, window=window,
        input_tokens=512,
    )  # fmt: skip
    folder, hardware = Path(annotator or ""), Machine(threads=engine.cores(), deterministic=False, precision="float32")
    if annotator is None:
        manifest = Manifest("none", UNIFIEDQA, [], {})
    elif (folder / NAME).is_file() or (isinstance(annotator, Path) and not (folder / "config.json").is_file()):
        manifest = read_manifest(folder)
    else:
        hashes = model_files(str(annotator)).sha256
        manifest = Manifest("given", UNIFIEDQA, [Model(str(annotator), [])], hashes)
    load_model = functools.cache(lambda index: qa_model.load_scorers(folder, manifest, hardware, [index])[0])
    find = Annotate(settings, manifest, make_scorer(load_model, settings, hardware))
    return Finder(settings.strategies, find)


def _find_evidence(pairs: Iterable[Pair], finder: Finder) -> Iterator[tuple[Pair, dict[str, Evidence]]]:
    """Yield the pairs with their evidence by strategy."""
    pairs = iter(pairs)
    while block := list(islice(pairs, BLOCK)):
        rows = iter(finder.find(block))
        for pair in block:
            yield pair, dict(zip(finder.strategies, rows, strict=False))


def _pairs(rows: Iterable[Mapping[str, Any]]) -> Iterator[Pair]:
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a DataFrame
        rows = rows.to_dict("records")
    return (_pair(Row(row.get("where", f"row {n}"), n, dict(row))) for n, row in enumerate(rows))


def _pair(row: Row) -> Pair:
    number = str(row.number)
    fields: dict[str, Any] = {"answer_kind": "string", "id": number, "passage_id": number}
    fields |= {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.fields.items()}
    title = fields.get("title")
    if title is None or title != title:  # NaN: an empty cell of a DataFrame
        fields["title"] = ""
    if isinstance(fields.get("answers"), str):  # a single answer
        fields["answers"] = [fields["answers"]]
    row = row._replace(fields=fields)
    kind = row.text("answer_kind")
    if kind not in ("string", "regex"):
        raise ValueError(f"{row.where}: answer_kind is {kind!r}, expected string or regex")
    raw = GivenQuestion(row.where, row.number, row.text("question"), row.texts("answers"))
    answers = usable_answers(raw, kind, drop_empty=False)
    # mypy takes `made_by` of a record for its first field.
    question = Question(row.id("id"), raw.question, answers, kind, None, None, None, None)  # type: ignore[call-arg]
    passage = Passage(row.id("passage_id"), row.text("title", empty=True), row.text("text"), None)  # type: ignore[call-arg]
    return Pair(question, passage, None)  # type: ignore[call-arg]


def _make_forms(form: Form, seed: int, pairs: Iterable[Pair]) -> Forms:
    """Return the forms as in the stage `distractors`, with the pairs' passages as corpus and their questions as all."""
    names: list[Form] = ["cut"] if form == "cut" else ["cut", form]
    settings = Distractors(forms=names, fillers="random", seed=seed, may_hold_answer=MAY_HOLD_ANSWER)
    if form == "cut":
        return Forms(settings, None, None)
    if form == "filled":
        passages = _distinct("passage_id", (pair.passage for pair in pairs))
        passages.sort(key=lambda passage: hashlib.sha256(f"{seed}\0{passage.id}".encode()).digest())
        return Forms(settings, Fillers(seed, Pool(passage[:3] for passage in passages[:POOL])), None)
    with tempfile.TemporaryDirectory() as records:
        folds = Path(records) / "folds.parquet"
        questions = _distinct("id", (pair.question for pair in pairs))
        tables.write(Path(records) / "questions.parquet", Question, questions)
        tables.write(folds, Fold, [])
        return Forms(settings, None, Swaps(seed, records=Path(records), folds=folds))


def _distinct(field: str, records: Iterable[Record]) -> list[Record]:
    by_id: dict[str, Record] = {}
    for record in records:
        if by_id.setdefault(record.id, record) != record:
            raise ValueError(f"two rows have the {field} {record.id!r} and different texts; give each its own")
    return list(by_id.values())


def _make_texts(pair: Pair, evidence_rows: Mapping[str, Evidence], forms: Forms, form: Form) -> Texts:
    variants, reasons, strategy = {"positive": pair.passage.text}, {}, next(iter(evidence_rows))
    for row, made_as, attempt in forms.attempts(pair, list(evidence_rows.values()), {}):
        placebo = row.strategy != strategy
        if made_as != ("cut" if placebo and form == "swapped" else form):
            continue
        variant = row.strategy if placebo else "distractor"
        if variant in SENTENCES and (form == "swapped" or strategy in INSIDE):
            reasons[variant] = CUT_OTHERWISE
        elif attempt.distractor is None:
            reasons[variant] = attempt.reason
        else:
            variants[variant] = attempt.distractor.text
    without_answer = mask_answers(pair.passage.text, pair.question.answers, pair.question.answer_kind)
    if without_answer is not None:
        variants["masked"] = without_answer
    return Texts(pair.question.question, pair.passage.title, variants, reasons)
