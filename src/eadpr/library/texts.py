"""A user's rows of question, answers and passage, and what is made of each: evidence, distractor, placebos, masked."""

import functools
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from eadpr.corpus.formats import own, shapes
from eadpr.corpus.rows import GivenQuestion, Row, usable_answers
from eadpr.runtime import cache, machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import model_files
from eadpr.storage import engine, tables
from eadpr.storage.records import Evidence, Fold, Passage, Question, ScoredSpan, Span
from eadpr.supervision import qa_model
from eadpr.supervision.annotator_manifest import NAME, Manifest, Model, Prompt, read_manifest
from eadpr.supervision.config import PLACEBOS, Distractors, EvidenceSettings, Form, Strategy
from eadpr.supervision.evidence import Annotate, make_scorers
from eadpr.supervision.fillers import POOL, Fillers, Pool
from eadpr.supervision.forms import NO_ANSWER, NO_EVIDENCE, Forms
from eadpr.supervision.pairs import Pair
from eadpr.supervision.probed import mask_answers
from eadpr.supervision.spans import Segmenter
from eadpr.supervision.swaps import Swaps

BLOCK = 1_000  # rows annotated at a time, as in the stage; part of the bytes of a QA model's scores
# By strategy, as in params.yaml; where it may not, the distractor is dropped.
MAY_HOLD_ANSWER: dict[Strategy, bool] = dict.fromkeys(get_args(Strategy), False) | {"pseudo": True, "gold": True}
INSIDE: tuple[Strategy, ...] = ("window", "answer")  # as in `params_checks`: they cut inside of a sentence
SENTENCES = ("placebo", "placebo_second")
CUT_OTHERWISE = "cut_otherwise"
UNIFIEDQA = Prompt("{question} \\n {context}", lowercase=True)
Named = TypeVar("Named", Passage, Question)
# The strategies, that of the evidence first and then the placebos; and the rows of evidence of each pair by these.
Finder = tuple[Sequence[str], Callable[[Sequence[Pair]], Iterable[Any]]]


class Annotation(NamedTuple):
    """Where the evidence of a row stands in its text, in characters.

    `reason` says why there is none: no_answer (none to look for) or no_evidence. `placebos` are those that the row has,
    by name. `spans` are what the evidence was chosen from, with a QA model's surprise at the answer without each.
    """

    question_id: str
    passage_id: str
    evidence: list[Span]
    reason: str | None
    placebos: dict[str, Span]
    spans: list[ScoredSpan]


class Texts(NamedTuple):
    """`variants`: positive, and where they exist distractor, masked, placebo, placebo_second, placebo_words and
    placebo_inside. `reasons` says of the others why there is none (`forms.cut`, `forms.filled`, `forms.swapped`;
    cut_otherwise: the placebo is a sentence taken out, and the distractor lacks no sentence)."""

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
    resume: Path | str | None = None,
) -> Iterator[Annotation]:
    """What the stage `evidence` finds in each row, in their order.

    `rows`: dictionaries, a DataFrame or a `datasets.Dataset` of `question`, `answers` and `text`, and if wanted
    `title`, `answer_kind`, `id` and `passage_id`, by which placebos are drawn. `annotator` is a QA model: a folder of
    the stage `annotator`, or a T5 by folder or hub name that is asked as UnifiedQA is; it finds evidence `pseudo`.
    Without one `evidence` is sentence, window or answer. `resume` is a folder that keeps what was found of each 1,000
    rows: asked again for the same rows in the same way, after a kill too, this goes on from there; take it away when
    you like. Raises ValueError for a bad row, by its number from 0.
    """
    for pair, found in _annotated(_pairs(rows), _finder(annotator, evidence, segmenter, window, resume)):
        strategy = next(iter(found))
        own = found[strategy]
        reason = None if own.chosen else NO_EVIDENCE if own.target else NO_ANSWER
        placebos = {name: found[name].chosen_spans[0] for name in PLACEBOS if found[name].chosen}
        yield Annotation(pair.question.id, pair.passage.id, own.chosen_spans, reason, placebos, own.spans)


def distractors(
    rows: Iterable[Mapping[str, Any]],
    *,
    form: Literal["cut", "filled", "swapped"] = "cut",
    seed: int = 0,
    annotator: Path | str | None = None,
    evidence: Strategy | None = None,
    segmenter: Segmenter = "sentence",
    window: int = 5,
    resume: Path | str | None = None,
) -> Iterator[Texts]:
    """What the stages `evidence`, `distractors` and `probe` make of each row, in their order; rows as of `annotate`.

    `cut` takes the evidence out. `filled` puts sentences of the other rows in its place, `swapped` another row's answer
    in place of the answer; these two read all rows first, draw by `seed`, and refuse an id that two rows use for
    different texts. A placebo is there where what it is compared with is cut as it is: none of a sentence goes with
    `swapped`, or with evidence window or answer. Those of words go with `masked`.
    """
    if form not in ("cut", "filled", "swapped"):
        raise ValueError(f"form {form!r}: expected cut, filled or swapped")
    by, streamed = _finder(annotator, evidence, segmenter, window, resume), _pairs(rows)
    pairs = [] if form == "cut" else list(streamed)
    forms = _forms(form, seed, pairs)
    for pair, found in _annotated(pairs or streamed, by):
        yield _texts(pair, found, forms, form)


def rows_of(path: Path, columns: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """Rows for `annotate` and `distractors`, of SQuAD's JSON or of a table with their columns, each with the file and
    its line. `columns` maps fields to the table's columns where they have other names. Raises ValueError where there is
    no row."""
    if path.name.removesuffix(".gz").endswith(".json"):
        if columns:
            raise ValueError(f"{path}: SQuAD's JSON has no columns to name; leave out --columns")
        found = shapes.squad_rows(path)
    else:
        rows = enumerate(own.probed_rows(path, columns or {}))
        found = ({"id": str(n), "passage_id": str(n)} | row | {"where": where} for n, (where, row) in rows)
    first = next(found, None)
    if first is None:
        raise ValueError(f"{path} holds no rows of question and text; fill it")
    yield first
    yield from found


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
    """One text of both; raises ValueError for a `join` without {title} or {text}."""
    if "{title}" not in join or "{text}" not in join:
        raise ValueError(f"join is {join!r}; it must hold {{title}} and {{text}}")
    found = {"{title}": title, "{text}": text}
    return re.sub(r"\{title\}|\{text\}", lambda field: found[field[0]], join).strip() if title else text


def _finder(
    annotator: Path | str | None,
    evidence: Strategy | None,
    segmenter: Segmenter,
    window: int,
    resume: Path | str | None,
) -> Finder:
    evidence = evidence or ("sentence" if annotator is None else "pseudo")
    if (evidence == "pseudo") != (annotator is not None):
        raise ValueError("evidence pseudo goes with an `annotator`, and other strategies without")
    if evidence == "gold":
        raise ValueError("evidence gold needs what a source annotated, which rows do not have; name another strategy")
    settings = EvidenceSettings(
        positive="each",
        strategies=[evidence, *PLACEBOS],
        placebo_of=evidence,
        segmenter=segmenter,
        window=window,
        input_tokens=512,
    )
    folder, here = Path(annotator or ""), Machine(threads=engine.cores(), deterministic=False, precision="float32")
    if annotator is None:
        manifest = Manifest("none", UNIFIEDQA, [], {})
    elif (folder / NAME).is_file() or (isinstance(annotator, Path) and not (folder / "config.json").is_file()):
        manifest = read_manifest(folder)
    else:
        hashes = model_files(str(annotator)).sha256
        manifest = Manifest("given", UNIFIEDQA, [Model(str(annotator), [])], hashes)
    model_of = functools.cache(lambda index: qa_model.load_scorers(folder, manifest, here, [index])[0])
    find = Annotate(settings, manifest, *make_scorers(model_of, settings, here))
    if resume is None:
        return settings.strategies, find
    if annotator is not None and not folder.is_dir():
        raise ValueError(f"resume needs an annotator in a folder; {annotator} at a hub may be another tomorrow")
    models = [] if annotator is None else [folder]
    return settings.strategies, _keeping(find, Path(resume), machine.key(__file__, models, settings, manifest, here))


def _keeping(find: Annotate, folder: Path, key: str) -> Callable[[Sequence[Pair]], Iterable[Any]]:
    """Keeps each block's rows in a file of the folder, named by `key` and what is asked, sealed as the stage's are."""

    def found(block: Sequence[Pair]) -> Iterable[Any]:
        shard = folder / f"{cache.fingerprint(key, block)}.parquet"
        if not cache.intact(shard):
            tables.write(shard, Evidence, find(block))
            cache.seal(shard)
        return tables.rows(shard, Evidence)

    return found


def _annotated(pairs: Iterable[Pair], finder: Finder) -> Iterator[tuple[Pair, dict[str, Evidence]]]:
    """Pairs with their evidence by strategy, in the order of the finder's."""
    pairs, (strategies, find) = iter(pairs), finder
    while block := list(islice(pairs, BLOCK)):
        found = iter(find(block))
        for pair in block:
            yield pair, dict(zip(strategies, found, strict=False))


def _pairs(rows: Iterable[Mapping[str, Any]]) -> Iterator[Pair]:
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a DataFrame
        rows = rows.to_dict("records")
    return (_pair(Row(row.get("where", f"row {n}"), n, dict(row))) for n, row in enumerate(rows))


def _pair(row: Row) -> Pair:
    named = str(row.number)
    given = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.fields.items()}
    if given.get("title") is None or given["title"] != given["title"]:  # a cell of a DataFrame without a value
        given["title"] = ""
    row = row._replace(fields={"answer_kind": "string", "id": named, "passage_id": named} | given)
    kind = row.text("answer_kind")
    if kind not in ("string", "regex"):
        raise ValueError(f"{row.where}: answer_kind is {kind!r}, expected string or regex")
    if isinstance(row.fields.get("answers"), str):  # one alone stands for a list of it
        row.fields["answers"] = [row.fields["answers"]]
    question = GivenQuestion(row.where, row.number, row.text("question"), row.texts("answers"))
    answers = usable_answers(question, kind, drop_empty=False)
    # mypy takes `made_by` of a record for its first field.
    asked = Question(row.id("id"), question.question, answers, kind, None, None, None, None)  # type: ignore[call-arg]
    passage = Passage(row.id("passage_id"), row.text("title", empty=True), row.text("text"), None)  # type: ignore[call-arg]
    return Pair(asked, passage, None)  # type: ignore[call-arg]


def _forms(form: Form, seed: int, pairs: Sequence[Pair]) -> Forms:
    """As of the stage `distractors`, with the passages of the pairs for corpus and their questions for all."""
    wanted: list[Form] = ["cut"] if form == "cut" else ["cut", form]
    settings = Distractors(forms=wanted, fillers="random", seed=seed, may_hold_answer=MAY_HOLD_ANSWER, pivots=[])
    if form == "filled":
        passages = _distinct("passage_id", (pair.passage for pair in pairs))
        drawn = sorted(passages, key=lambda passage: hashlib.sha256(f"{seed}\0{passage.id}".encode()).digest())
        return Forms(settings, Fillers(seed, Pool(passage[:3] for passage in drawn[:POOL])), None)
    if form == "cut":
        return Forms(settings, None, None)
    with tempfile.TemporaryDirectory() as records:
        folds = Path(records) / "folds.parquet"
        questions = _distinct("id", (pair.question for pair in pairs))
        tables.write(Path(records) / "questions.parquet", Question, questions)
        tables.write(folds, Fold, [])
        return Forms(settings, None, Swaps(seed, records=Path(records), folds=folds))


def _distinct(field: str, found: Iterable[Named]) -> list[Named]:
    by_id: dict[str, Named] = {}
    for one in found:
        if by_id.setdefault(one.id, one) != one:
            raise ValueError(f"two rows have the {field} {one.id!r} and different texts; give each its own")
    return list(by_id.values())


def _texts(pair: Pair, found: Mapping[str, Evidence], forms: Forms, form: Form) -> Texts:
    variants, reasons, strategy = {"positive": pair.passage.text}, {}, next(iter(found))
    for row, made_as, attempt in forms.attempts(pair, list(found.values()), {}):
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
    without = mask_answers(pair.passage.text, pair.question.answers, pair.question.answer_kind)
    if without is not None:
        variants["masked"] = without
    return Texts(pair.question.question, pair.passage.title, variants, reasons)
