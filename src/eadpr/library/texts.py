"""A user's rows of question, answers and passage, and the texts made of each: distractor, placebos, masked passage."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd

from eadpr.corpus.formats import own
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.hugging_face import HUB, as_file
from eadpr.corpus.formats.squad import is_squad, read_answered
from eadpr.corpus.rows import Row, excerpt, usable_answers
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import model_files
from eadpr.storage import engine
from eadpr.storage.records import Evidence, Passage, Question, Span
from eadpr.supervision.config import PLACEBOS, EvidenceSettings, Strategy
from eadpr.supervision.evidence import Annotate
from eadpr.supervision.forms import NO_ANSWER, NO_EVIDENCE, cut
from eadpr.supervision.manifest import MANIFEST, Manifest, Model, Prompt, read_manifest
from eadpr.supervision.pairs import Pair
from eadpr.supervision.probed import mask_answers

Rows = Iterable[Any] | Path  # of what `as_rows` reads
BLOCK = 1_000  # rows annotated at a time, as in the stage; part of the bytes of a QA model's scores
EVIDENCE = ("pseudo", "sentence", "window", "answer")  # of rows, which lack what a source annotated as gold
INSIDE: tuple[Strategy, ...] = ("window", "answer")  # as in `settings.checks`: they cut inside of a sentence
KINDS = "rows may be dictionaries, a table of pandas, polars or Arrow, one split of datasets, a Path or hf:NAME"
UNIFIEDQA = Prompt("{question} \\n {context}", lowercase=True)


class Annotation(NamedTuple):
    """The places of a row's evidence in its text, or the reason why there is none: no_answer or no_evidence."""

    evidence: list[Span]
    reason: str | None


class Texts(NamedTuple):
    """A row's texts. `variants` has positive and, if they exist, distractor, masked and each of PLACEBOS.

    `reasons` has the reasons of `forms.cut` for those that do not exist, or cut_otherwise: the placebo is a sentence
    taken out, and the distractor lacks no sentence.
    """

    question: str
    title: str
    variants: dict[str, str]
    reasons: dict[str, str]


def annotate(rows: Rows, **settings: Any) -> Iterator[Annotation]:
    """Yield each row's evidence as the stage `evidence` finds it; the arguments are those of `distractors`."""
    for _, (row, *_) in _find_evidence(rows, _make_annotator(**settings)):
        yield Annotation(row.chosen_spans, None if row.chosen else NO_EVIDENCE if row.target else NO_ANSWER)


def distractors(
    rows: Rows, *, annotator: Path | str | None = None, evidence: Strategy | None = None, window: int = 5
) -> Iterator[Texts]:
    """Yield each row's texts as the stages `evidence`, `distractors` and `probe` make them, in the order of the rows.

    `rows`: dictionaries, a table of pandas, polars or Arrow, or a `datasets.Dataset` of `question`, `answers` and
    `text`, and if wanted `title`, `answer_kind`, `id` and `passage_id`, by which placebos are drawn. `annotator` is a
    QA model: a folder of the stage `annotator`, or a T5 by folder or Hub name that is prompted as UnifiedQA is; it
    finds evidence `pseudo`. Without one `evidence` is sentence, window or answer. A placebo exists only if it is cut in
    the same way as the text it is compared with: no sentence placebo goes with evidence window or answer. Word placebos
    go with `masked`. Raises ValueError for a bad row, by its number from 0, and TypeError for rows of another kind.
    """
    for pair, evidence_rows in _find_evidence(rows, _make_annotator(annotator, evidence, window)):
        variants, reasons = {"positive": pair.passage.text}, {}
        for row in evidence_rows:
            variant = row.strategy if row.strategy in PLACEBOS else "distractor"
            attempt = cut(pair, row)
            if variant in ("placebo", "placebo_second") and evidence in INSIDE:
                reasons[variant] = "cut_otherwise"
            elif attempt.distractor is None:
                reasons[variant] = attempt.reason
            else:
                variants[variant] = attempt.distractor.text
        if (masked := mask_answers(pair.passage.text, pair.question.answers, pair.question.answer_kind)) is not None:
            variants["masked"] = masked
        yield Texts(pair.question.question, pair.passage.title, variants, reasons)


def read_rows(path: Path, columns: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield rows for `distractors` from SQuAD's JSON or a table, of `datasets` too, each with its file and line.

    `columns` maps fields to the table's columns of other names.
    """
    if is_squad(path):
        yield from read_answered(path)
        return
    n = None
    with TemporaryDirectory() as scratch:
        for n, row in enumerate(own.read_rows(as_file(path, Path(scratch)), Columns("probed", columns or {}))):
            where = row.where.replace(f"{scratch}/", "")
            yield {"id": str(n), "passage_id": str(n)} | row.fields | {"where": where}
    if n is None:
        raise ValueError(f"{path} holds no rows; fill it, or fetch a truncated file again")


def training_rows(texts: Iterable[Texts] | Rows, join: str = "{title} {text}") -> Iterator[dict[str, str]]:
    """Yield the columns of `losses.EvidenceLoss`: question, positive, distractor, placebo.

    The positive stands for a missing text, so that no sampler sees duplicates. `join` makes one text of title and text.
    """
    for row in as_texts(texts):
        columns = {"question": row.question}
        for name in ("positive", "distractor", "placebo"):
            columns[name] = join_title(join, row.title, row.variants.get(name, row.variants["positive"]))
        yield columns


def join_title(join: str, title: str, text: str) -> str:
    """Return one text of both; raises ValueError for a `join` without {title} or {text}."""
    if "{title}" not in join or "{text}" not in join:
        raise ValueError(f"join is {join!r}; it must hold {{title}} and {{text}}")
    values = {"{title}": title, "{text}": text}
    return re.sub(r"\{title\}|\{text\}", lambda field: values[field[0]], join).strip() if title else text


def _make_annotator(annotator: Path | str | None = None, evidence: Strategy | None = None, window: int = 5) -> Annotate:
    evidence = evidence or ("sentence" if annotator is None else "pseudo")
    if evidence not in EVIDENCE:
        raise ValueError(f"evidence is {evidence!r}; use one of {', '.join(EVIDENCE)}")
    if (evidence == "pseudo") != (annotator is not None):
        raise ValueError("evidence pseudo goes with an `annotator`, and other strategies without")
    settings = EvidenceSettings(
        positive="each", strategies=[evidence, *PLACEBOS], placebo_of=evidence, window=window, input_tokens=512,
    )  # fmt: skip
    if annotator is None:
        return Annotate(settings, Manifest("none", UNIFIEDQA, [], {}), score=None)
    from eadpr.supervision import answer_nll, qa_model  # torch comes with it, which rules do not need

    folder, hardware = Path(annotator), Machine(threads=engine.cores(), deterministic=False, precision="float32")
    if (folder / MANIFEST).is_file() or (isinstance(annotator, Path) and not folder.is_dir()):
        manifest = read_manifest(folder)
    else:
        manifest = Manifest("given", UNIFIEDQA, [Model(str(annotator), [])], model_files(str(annotator)).sha256)
    load_model = functools.cache(lambda index: qa_model.load_scorers(folder, manifest, hardware, [index])[0])
    return Annotate(settings, manifest, answer_nll.make_scorer(load_model, manifest, settings, hardware))


def as_rows(rows: Any) -> Iterator[Row]:
    """Yield the rows of a table of any kind, or of texts. Raises TypeError for what is none, as one text or one row."""
    if isinstance(rows, Path) or (isinstance(rows, str) and rows.startswith(HUB)):
        rows = read_rows(Path(rows))
    if isinstance(rows, pd.DataFrame):
        rows = rows.to_dict("records")
    rows = getattr(rows, "to_pylist", getattr(rows, "to_dicts", lambda: rows))()  # of Arrow and polars
    if not isinstance(rows, Iterable) or isinstance(rows, str | Mapping):
        raise TypeError(f"{excerpt(rows)} is no table of rows; {KINDS}")
    for number, row in enumerate(rows):
        row = {"text": row} if isinstance(row, str) else row
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} is {excerpt(row)}, no dictionary; {KINDS}")
        fields: dict[str, Any] = {"title": "", "answer_kind": "string", "id": str(number), "passage_id": str(number)}
        for name, value in row.items():
            if name not in fields or pd.isna(value) is not True:  # a table's empty cell: None, NaN or NA
                value = list(value) if isinstance(value, tuple) else value
                fields[name] = value.tolist() if hasattr(value, "tolist") else value
        yield Row(fields.get("where", f"row {number}"), number, fields)


def as_texts(rows: Any) -> list[Texts]:
    """Return what `distractors` made, or what it makes of rows."""
    rows = list(rows) if isinstance(rows, Iterator | list | tuple) else rows
    are_texts = isinstance(rows, list) and all(isinstance(row, Texts) for row in rows)
    return rows if are_texts else list(distractors(rows))


def _find_evidence(rows: Rows, annotate_pairs: Annotate) -> Iterator[tuple[Pair, list[Evidence]]]:
    """Yield each row's pair with a row of evidence for each strategy, the placebos last."""
    pairs = map(_pair, as_rows(rows))
    while block := list(islice(pairs, BLOCK)):
        evidence = annotate_pairs(block)
        for pair in block:
            yield pair, list(islice(evidence, len(annotate_pairs.settings.strategies)))


def _pair(row: Row) -> Pair:
    own.parse_lists(row)
    if isinstance(answers := row.fields.get("answers", []), str) or pd.isna(answers) is True:  # one, or an empty cell
        row.fields["answers"] = [answers] if isinstance(answers, str) and answers else []
    kind = row.text("answer_kind")
    if kind not in ("string", "regex"):
        raise ValueError(f"{row.where}: answer_kind is {kind!r}, expected string or regex")
    text, answers = row.text("question"), usable_answers(row.texts("answers"), kind, row.where)
    question = Question(row.id("id"), text, answers, kind, None, None, None, None)
    passage = Passage(row.id("passage_id"), row.text("title", empty=True), row.text("text"), None)
    return Pair(question, passage, None)
