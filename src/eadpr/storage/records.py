"""Record types: the columns of every Parquet file are the fields of one of them.

Offsets are in characters (Python string indices) and half open.
"""

from typing import NamedTuple


class Span(NamedTuple):
    start: int
    end: int


class ScoredSpan(NamedTuple):
    start: int
    end: int
    nll: float | None


class Passage(NamedTuple):
    id: str
    title: str
    text: str
    sentences: list[Span] | None


class Question(NamedTuple):
    """`answers` may be empty; `answer_kind` is string, regex or yes-no; `hops` are the supporting passages in order."""

    id: str
    question: str
    answers: list[str]
    answer_kind: str
    subject: str | None
    relation: str | None
    type: str | None
    hops: list[str] | None

    @property
    def matchable(self) -> bool:
        """True where the text of a passage can tell that it holds an answer; never for yes or no."""
        return bool(self.answers) and self.answer_kind != "yes-no"

    @property
    def either_order(self) -> bool:
        """True where the hops have no order."""
        return self.type == "comparison"


class SetMember(NamedTuple):
    """The membership of a question in a set; params.yaml writes `set/split`."""

    question_set: str
    split: str
    question_id: str


class Context(NamedTuple):
    """A passage that the source names for a question; `role` is positive, negative, hard_negative or own (itself).

    `order` counts from 0 within the role. `grade` is the relevance of a user's judgements. `title` is HotpotQA's
    spelling where it differs from the passage's title.
    """

    question_id: str
    passage_id: str
    role: str
    order: int
    grade: float | None
    gold: list[Span] | None
    title: str | None


class SupportingFact(NamedTuple):
    """A page's title and the number of a sentence on it, from 0."""

    page: str
    sentence: int


class Origin(NamedTuple):
    """The place of a question in its source; `row` counts from 1. `facts` are HotpotQA's, as its file has them."""

    question_id: str
    file: str
    row: int
    facts: list[SupportingFact] | None


class Positive(NamedTuple):
    """A positive passage; `source` is given or bm25, `gold` is the evidence that the source annotated."""

    question_id: str
    passage_id: str
    source: str
    gold: list[Span] | None


class Fold(NamedTuple):
    """The use of a training question: `role` is train, validation, or annotator (trains the QA model only); `half` (0
    or 1) is for cross-fitting.

    Both are drawn by the title of the first positive, so that questions about one article share them.
    """

    question_id: str
    role: str
    half: int


class Ranked(NamedTuple):
    """One row of a ranking; rank 1 is the best, rows are ordered by question (as in questions), then rank."""

    question_id: str
    passage_id: str
    rank: int
    score: float


class Negative(NamedTuple):
    question_id: str
    passage_id: str
    source: str
    rank: int


class Evidence(NamedTuple):
    """The spans of a positive that were scored as evidence; `chosen` are indices into `spans`.

    `nll` is the target's negative log-likelihood without the span, `nll_full` the one with the whole passage; where
    relevance chose, what it is less without the span, or that of the span, and of the whole passage. A placebo
    is a row too: its chosen span is cut where evidence would be.
    """

    question_id: str
    passage_id: str
    strategy: str
    target: str
    spans: list[ScoredSpan]
    chosen: list[int]
    nll_full: float | None

    @property
    def chosen_spans(self) -> list[Span]:
        return [Span(self.spans[i].start, self.spans[i].end) for i in self.chosen]


class Distractor(NamedTuple):
    """A positive's text without evidence, the spans `removed`; `form` is cut or filled, `level` always 0."""

    question_id: str
    passage_id: str
    strategy: str
    level: int
    form: str
    text: str
    removed: list[Span]


class Example(NamedTuple):
    """A training example. `positive`, `negatives` and `others`, the question's other positives, are passage ids;
    `distractors` is [0] where the table of distractors has one of the same question and positive, else empty."""

    question_id: str
    role: str
    positive: str
    negatives: list[str]
    distractors: list[int]
    others: list[str]


class PairScore(NamedTuple):
    """The score of a question with one form of its positive; `passage_id` is the positive's.

    `variant` is positive, masked (the answer removed), distractor (by probe.strategy), a placebo, or a strategy of
    probe.also for its distractor. The suffix `_cut` says that the removed text lies beyond the encoder's length, so
    that it sees two equal texts: such pairs are counted and left out of every measure.
    """

    question_id: str
    passage_id: str
    variant: str
    score: float


class Outcome(NamedTuple):
    """The value of a metric for one question of one question set (`set/split`), written by every measure and read by
    the report. The file has the name of the arm's training or of the ranking.

    `type` is the question's first wh-word; `hop_type` (bridge, comparison) and `relation` are the source's.
    """

    question_set: str
    question_id: str
    type: str
    hop_type: str | None
    relation: str | None
    metric: str
    value: float
