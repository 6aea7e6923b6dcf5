"""Training examples and losses of readers, one question at a time. An extractive reader learns to select the right path
and to find the answer in it, Fusion-in-Decoder to write the answer.

Shapes: P paths of one question, T tokens, A answer spans, S sentences.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.readers.extractive import ExtractiveReader, Logits, compute_logits, group_passes
from eadpr.readers.fid import TARGET_TOKENS, FusionReader, decoder_inputs, tokenize_passages
from eadpr.readers.inputs import Input, Passages, Sentences
from eadpr.readers.scores import KINDS, selection_nll, sentence_means, span_nll, support_loss
from eadpr.readers.selection import PathRows, QuestionPaths, select_passages
from eadpr.runtime import machine
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Positive, Question
from eadpr.text import spans
from eadpr.text.answers import AnswerMatcher, answer_spans
from eadpr.training.batches import draw

ANSWERS = 10  # places of the answers in a path that count, as in DPR's code
RIGHT = 1  # separates the draw of the right path from the draw of wrong ones


class Lesson(NamedTuple):
    """A question with its right and wrong paths, from which examples are drawn. `support` are (row, sentence) pairs."""

    question: Question
    right: list[PathRows]
    wrong: list[PathRows]
    support: frozenset[tuple[int, int]]


class ReaderExample(NamedTuple):
    """Inputs, the right path first, with its answer spans (A, 2) in tokens and `kind` (an index of KINDS). For readers
    of paths also its sentences and, (S,), true for those that support the answer."""

    inputs: list[Input]
    spans_A2: Tensor
    kind: int
    sentences: Sentences | None
    support_S: np.ndarray | None


class ExtractiveExamples:
    """The examples of an extractive reader, one per lesson and epoch: a right path with its answers, and wrong ones."""

    def __init__(self, reader: ExtractiveReader, passages: Passages, lessons: list[Lesson]) -> None:
        self.reader, self.passages, self.lessons = reader, passages, lessons

    def __len__(self) -> int:
        return len(self.lessons)

    def __call__(self, i: int, epoch: int) -> ReaderExample:
        settings, lesson = self.reader.settings, self.lessons[i]
        options = {"seed": settings.seed, "epoch": epoch, "example": i}
        right = draw(np.arange(len(lesson.right)), 1, copy=RIGHT, **options)
        wrong = draw(np.arange(len(lesson.wrong)), settings.passages - 1, **options)
        paths = [lesson.right[right[0]], *(lesson.wrong[place] for place in wrong)]
        inputs = self.reader.inputs(lesson.question.question, paths, self.passages)
        spans_A2 = torch.tensor(find_answers(lesson.question, inputs[0], paths[0], self.passages)[:ANSWERS])
        if not settings.of_paths:
            return ReaderExample(inputs, spans_A2, 0, None, None)
        sentences = self.passages.sentences_in(inputs[0], paths[0])
        support = [(paths[0][place], number) in lesson.support for place, number in sentences.numbers]
        kind = KINDS.index(lesson.question.answers[0]) if lesson.question.answer_kind == "yes-no" else 0
        return ReaderExample(inputs, spans_A2, kind, sentences, np.array(support, bool))


def find_answers(question: Question, path_input: Input, path: PathRows, passages: Passages) -> list[tuple[int, int]]:
    """Return the token spans of the answers in the input, in order, without those that were cut off."""
    tokens: dict[tuple[int, int] | None, None] = {}
    for place, row in enumerate(path):
        text = passages.text(row)
        matches = {span for answer in question.answers for span in answer_spans([answer], text, question.answer_kind)}
        tokens |= {path_input.span(place, span): None for span in sorted(matches)}
    tokens.pop(None, None)
    return list(tokens)


def passage_examples(
    reader: ExtractiveReader, ranked: Sequence[QuestionPaths], store: PassageStore, positives: Path
) -> ExtractiveExamples:
    """Return the examples of a reader of passages, without questions that have no positive with an answer in it."""
    passages, matcher, lessons = reader.load_passages(store), AnswerMatcher(), []
    for question, paths, gold_titles in ranked:
        if not question.matchable:
            continue
        rows = [row for (row,) in paths]
        holds = matcher.matches(question.answers, store.texts(rows), question.answer_kind)
        gold_page = [title in gold_titles for title in store.titles(rows)]
        right, wrong = ([paths[i] for i in places] for places in select_passages(holds.tolist(), gold_page))
        inputs = zip(right, reader.inputs(question.question, right, passages), strict=True)
        right = [path for path, path_input in inputs if find_answers(question, path_input, path, passages)]
        if right:
            lessons.append(Lesson(question, right, wrong, frozenset()))
    return ExtractiveExamples(reader, passages, lessons)


def path_examples(
    reader: ExtractiveReader, ranked: Sequence[QuestionPaths], store: PassageStore, positives: Path
) -> ExtractiveExamples:
    """Return the examples of a reader of paths, without questions that have no answer or no supporting passages.

    The right path is the supporting passages, ranked or not, in either order if the hops have no order.
    """
    passages, lessons = reader.load_passages(store), []
    usable = [row for row in ranked if row.question.answers and row.question.hops]
    ids = {row.question.id for row in usable}
    positive_rows = tables.rows(positives / "positives.parquet", Positive)
    gold = {(row.question_id, row.passage_id): row.gold or [] for row in positive_rows if row.question_id in ids}
    for question, paths, _ in usable:
        hops = tuple(store.rows(question.hops).tolist())
        support = frozenset(
            (row, sentence)
            for row, passage_id in zip(hops, question.hops, strict=True)
            for sentence in spans.overlapping(passages.sentences(row), gold.get((question.id, passage_id), []))
        )
        right = [hops, hops[::-1]] if question.either_order else [hops]
        wrong = [path for path in paths if set(path) != set(hops)]  # in any order the hops are right
        lessons.append(Lesson(question, right, wrong, support))
    return ExtractiveExamples(reader, passages, lessons)


def extractive_terms(reader: ExtractiveReader, example: ReaderExample, hardware: machine.Machine) -> dict[str, Tensor]:
    """Return `loss` and its summands: the right path's answer spans and its selection, for readers of paths also the
    kind of answer and, times `support`, the supporting sentences."""
    scored: dict[int, tuple[Logits, Tensor]] = {}
    for group in group_passes(example.inputs):
        logits, passage_PT = compute_logits(reader, [example.inputs[i] for i in group], hardware)
        scored |= {i: (logits.row(row), passage_PT[row]) for row, i in enumerate(group)}
    right, passage_T = scored[0]
    device = passage_T.device
    parts = {
        "spans": span_nll(right.start, right.end, passage_T >= 0, example.spans_A2.to(device)),
        "selection": selection_nll(torch.stack([scored[i][0].paths for i in range(len(scored))])),
    }
    if example.sentences is None:
        return {"loss": parts["spans"] + parts["selection"], **parts}
    numbers, sentence_T = example.sentences
    count = len(sentence_T)
    scores_S = sentence_means(right.sentences[:count], torch.from_numpy(sentence_T).to(device), len(numbers))
    there_S, support_S = (torch.from_numpy(x).to(device) for x in (example.sentences.there_S, example.support_S))
    parts["kinds"] = -right.kinds.log_softmax(0)[example.kind]
    parts["support"] = support_loss(scores_S, support_S, there_S)
    unweighted = parts["spans"] + parts["selection"] + parts["kinds"]
    return {"loss": unweighted + reader.settings.support * parts["support"], **parts}


class FusionExample(NamedTuple):
    """The ids of the passages with their question, and of the answer."""

    inputs: list[list[int]]
    target: list[int]


class FusionExamples:
    """The examples of Fusion-in-Decoder: the first passages of each question's ranking and one of its answers, drawn in
    each epoch. Questions with patterns for answers are left out."""

    def __init__(self, reader: FusionReader, ranked: Sequence[QuestionPaths], store: PassageStore, _: Path) -> None:
        self._reader, self._store = reader, store
        answered = (row for row in ranked if row.question.answers and row.question.answer_kind != "regex")
        self._lessons = [row for row in answered if row.paths]

    def __len__(self) -> int:
        return len(self._lessons)

    def __call__(self, i: int, epoch: int) -> FusionExample:
        ranked, settings = self._lessons[i], self._reader.settings
        answers = ranked.question.answers
        target = np.random.default_rng([settings.seed, epoch, i]).integers(len(answers))
        rows = [row for (row,) in ranked.paths[: settings.passages]]
        inputs = tokenize_passages(self._reader, self._store, ranked.question, rows)
        return FusionExample(inputs, self._reader.ids(answers[target], TARGET_TOKENS))


def fusion_terms(reader: FusionReader, example: FusionExample, hardware: machine.Machine) -> dict[str, Tensor]:
    """Return `loss`, the mean -log-likelihood of the answer's tokens."""
    labels = torch.tensor([example.target], device=reader.model.device)
    with machine.autocast(hardware):
        logits = reader.model(**decoder_inputs(reader.states(example.inputs)), labels=labels).logits.float()
    return {"loss": torch.nn.functional.cross_entropy(logits[0], labels[0])}
