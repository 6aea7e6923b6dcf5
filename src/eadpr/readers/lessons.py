"""What readers learn, one question at a time: an extractive one to select the right path among others and to find the
answer in it, Fusion-in-Decoder to write the answer.

Shapes: P paths of one question, T tokens, A answer spans, S sentences.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.readers.extractive import ExtractiveReader, Logits, logits, passes
from eadpr.readers.fid import FusionReader, fused, passage_inputs
from eadpr.readers.inputs import Input, Sentences
from eadpr.readers.scores import KINDS, selection_nll, sentence_means, span_nll, support_loss
from eadpr.readers.selection import PathRows, QuestionPaths, select
from eadpr.runtime import machine as machines
from eadpr.runtime.machine import Machine
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Positive, Question, Span
from eadpr.supervision import spans
from eadpr.text.answers import AnswerMatcher, answer_spans
from eadpr.training.batches import draw

NOTHING_TO_LEARN = (
    "ranks passages for can be learnt from: none has an answer, or no passage holds it within reader.tokens; take"
    " another ranking in `readers`"
)
RIGHT = 1  # tells the draw of a right path from that of others


class Lesson(NamedTuple):
    """What examples of a question are drawn from. `support` are (row, sentence) pairs."""

    question: Question
    right: list[PathRows]
    others: list[PathRows]
    support: frozenset[tuple[int, int]]


class ReaderExample(NamedTuple):
    """The right path first; its answer spans (A, 2) in tokens, `kind` of KINDS. Of readers of paths also its sentences
    and, (S,), which of them support the answer."""

    inputs: list[Input]
    spans_A2: Tensor
    kind: int
    sentences: Sentences | None
    support_S: np.ndarray | None


class ExtractiveExamples:
    """What an extractive reader learns from: a right path, whose answer spans and whose selection among other paths it
    is to find likely."""

    def __init__(self, reader: ExtractiveReader, store: PassageStore) -> None:
        self._reader = reader
        self.passages = reader.passages_of(store)
        self.lessons: list[Lesson] = []

    def __len__(self) -> int:
        return len(self.lessons)

    def __call__(self, i: int, epoch: int) -> ReaderExample:
        settings, lesson = self._reader.settings, self.lessons[i]
        options = {"seed": settings.seed, "epoch": epoch, "example": i}
        right = draw(np.arange(len(lesson.right)), 1, copy=RIGHT, **options)
        others = draw(np.arange(len(lesson.others)), settings.passages - 1, **options)
        paths = [lesson.right[right[0]], *(lesson.others[other] for other in others)]
        inputs = self._reader.inputs(lesson.question.question, paths, self.passages)
        found = torch.tensor(self.spans(lesson.question, inputs[0], paths[0]))
        if not settings.of_paths:
            return ReaderExample(inputs, found, 0, None, None)
        sentences = self.passages.sentences_in(inputs[0], paths[0])
        support = [(paths[0][place], number) in lesson.support for place, number in sentences.numbers]
        return ReaderExample(inputs, found, _kind(lesson.question), sentences, np.array(support, bool))

    def spans(self, question: Question, given: Input, path: PathRows) -> list[tuple[int, int]]:
        """Where the answers stand that the input is not cut before, in order, at most `answers`."""
        found = [(i, s) for i, row in enumerate(path) for s in sorted(_places(question, self.passages.text(row)))]
        tokens = dict.fromkeys(given.span(place, span) for place, span in found)
        return [span for span in tokens if span is not None][: self._reader.settings.answers]

    def counts(self) -> dict[str, int]:
        return {}


def _places(question: Question, text: str) -> set[Span]:
    return {span for answer in question.answers for span in answer_spans([answer], text, question.answer_kind)}


class PassageExamples(ExtractiveExamples):
    """Questions without a positive that can be learnt from are left out."""

    why_none = NOTHING_TO_LEARN

    def __init__(self, reader: ExtractiveReader, found: Sequence[QuestionPaths], store: PassageStore, _: Path) -> None:
        super().__init__(reader, store)
        self._matcher = AnswerMatcher()
        self.lessons = [lesson for one in found if one.question.matchable and (lesson := self._lesson(one, store))]

    def _lesson(self, one: QuestionPaths, store: PassageStore) -> Lesson | None:
        settings, question = self._reader.settings, one.question
        holds = self._matcher.matches(question.answers, store.texts(one.rows), question.answer_kind)
        gold_page = [title in one.gold_titles for title in store.titles(one.rows)]
        chosen = select(holds.tolist(), gold_page, positives=settings.positives, negatives=settings.negatives)
        positives, negatives = ([one.paths[i] for i in places] for places in chosen)
        inputs = self._reader.inputs(question.question, positives, self.passages)
        right = [path for path, given in zip(positives, inputs, strict=True) if self.spans(question, given, path)]
        return Lesson(question, right, negatives, frozenset()) if right else None


class PathExamples(ExtractiveExamples):
    """The right path is that of the supporting passages, ranked or not, in either order where hops have none; questions
    without an answer or supporting passages are left out."""

    why_none = (
        "has paths for has an answer and supporting passages; train on a set of multi-hop questions (`sets.train`)"
    )

    def __init__(
        self, reader: ExtractiveReader, found: Sequence[QuestionPaths], store: PassageStore, positives: Path
    ) -> None:
        super().__init__(reader, store)
        asked = [one for one in found if one.question.answers and one.question.hops]
        ids = {one.question.id for one in asked}
        gold = {
            (row.question_id, row.passage_id): row.gold
            for row in tables.rows(positives / "positives.parquet", Positive)
            if row.question_id in ids and row.gold
        }
        self.lessons = [self._lesson(one, store, gold) for one in asked]

    def _lesson(self, one: QuestionPaths, store: PassageStore, gold: dict[tuple[str, str], list[Span]]) -> Lesson:
        """A path of just the supporting passages, in any order, is none of the others."""
        question = one.question
        hops = tuple(store.rows(question.hops).tolist())
        support = frozenset(
            (row, sentence)
            for row, passage_id in zip(hops, question.hops, strict=True)
            for sentence in spans.overlapping(self.passages.sentences(row), gold.get((question.id, passage_id), []))
        )
        right = [hops, hops[::-1]] if question.either_order else [hops]
        return Lesson(question, right, [path for path in one.paths if set(path) != set(hops)], support)

    def counts(self) -> dict[str, int]:
        """Of questions; `without_span` those whose answer, other than yes and no, no supporting passage holds."""
        rest = [lesson for lesson in self.lessons if not _kind(lesson.question)]
        held = [any(_places(one.question, self.passages.text(row)) for row in one.right[0]) for one in rest]
        return {
            "without_other_paths": sum(not lesson.others for lesson in self.lessons),
            "without_span": held.count(False),
        }


def _kind(question: Question) -> int:
    return KINDS.index(question.answers[0]) if question.answer_kind == "yes-no" else 0


def extractive_terms(reader: ExtractiveReader, example: ReaderExample, hardware: Machine) -> dict[str, Tensor]:
    """`loss` and what it is the sum of: of the answer spans of the right path and of its selection, of readers of paths
    also of the kind of answer and, times `support`, of the supporting sentences."""
    read: dict[int, tuple[Logits, Tensor]] = {}
    for part in passes(example.inputs):
        found, passage_PT = logits(reader, [example.inputs[i] for i in part], hardware)
        read |= {i: (found.at(at), passage_PT[at]) for at, i in enumerate(part)}
    right, passage_T = read[0]
    device = passage_T.device
    parts = {
        "spans": span_nll(right.start, right.end, passage_T >= 0, example.spans_A2.to(device)),
        "selection": selection_nll(torch.stack([read[i][0].paths for i in range(len(read))])),
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
    """Ids of the passages with their question, and of the answer."""

    inputs: list[list[int]]
    target: list[int]


class FusionExamples:
    """What Fusion-in-Decoder learns from: the first passages of each question's ranking, with one of its answers, drawn
    anew in each epoch."""

    why_none = NOTHING_TO_LEARN

    def __init__(self, reader: FusionReader, found: Sequence[QuestionPaths], store: PassageStore, _: Path) -> None:
        self._reader = reader
        self._store = store
        self._asked = [(one, targets) for one in found if one.paths and (targets := self._targets(one))]

    def __len__(self) -> int:
        return len(self._asked)

    def __call__(self, i: int, epoch: int) -> FusionExample:
        one, targets = self._asked[i]
        settings = self._reader.settings
        drawn = np.random.default_rng([settings.seed, epoch, i]).integers(len(targets))
        inputs = passage_inputs(self._reader, self._store, one.question, one.rows[: settings.passages])
        return FusionExample(inputs, self._reader.target_ids(targets[drawn]))

    def _targets(self, one: QuestionPaths) -> list[str]:
        """The answers; for a regex what it matches in the first passage of the ranking that it matches in."""
        question = one.question
        if question.answer_kind != "regex":
            return question.answers
        for text in self._store.texts(one.rows):
            if found := answer_spans(question.answers, text, "regex"):
                return [text[found[0].start : found[0].end]]
        return []

    def counts(self) -> dict[str, int]:
        return {}


def fusion_terms(reader: FusionReader, example: FusionExample, hardware: Machine) -> dict[str, Tensor]:
    """`loss`: mean -log-likelihood of the answer's tokens."""
    labels = torch.tensor([example.target], device=reader.model.device)
    with machines.autocast(hardware):
        found = reader.model(**fused(reader.states(example.inputs)), labels=labels).logits.float()
    return {"loss": torch.nn.functional.cross_entropy(found[0], labels[0])}
