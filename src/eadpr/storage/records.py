"""The words of the project as record types: the columns of every Parquet file are the fields of one of them.

Offsets are in characters (Python string indices) and half open. `made_by` names the stage that writes the table, for
error messages.
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
    made_by = "prepare"
    id: str
    title: str
    text: str
    sentences: list[Span] | None


class Question(NamedTuple):
    """`answers` may be empty; `answer_kind` is `string`, `regex` or `yes-no`, the answers that no text is searched for;
    `hops` are supporting passages in order."""

    made_by = "prepare"
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
        """Whether a passage can be told by its text to hold an answer."""
        return bool(self.answers) and self.answer_kind != "yes-no"

    @property
    def either_order(self) -> bool:
        """Whether its hops have no order."""
        return self.type == "comparison"


class SetMember(NamedTuple):
    """One row of `question_sets`; written `set/split` in params.yaml."""

    made_by = "prepare"
    question_set: str
    split: str
    question_id: str


class Context(NamedTuple):
    """A passage as the source gave it for a question; `role` is positive, negative or hard_negative.

    `order` counts from 0 within the role. `grade` is how relevant a user's judgements call it. `title` is as HotpotQA's
    file writes it, where it is not the passage's.
    """

    made_by = "prepare"
    question_id: str
    passage_id: str
    role: str
    order: int
    grade: float | None
    gold: list[Span] | None
    title: str | None


class SupportingFact(NamedTuple):
    """A page, by its title, and the number of a sentence on it, from 0."""

    page: str
    sentence: int


class Origin(NamedTuple):
    """Where a question stood in its source: `row` counts from 1 in `file`. `facts` are the supporting facts that
    HotpotQA's file names, as it writes them."""

    made_by = "prepare"
    question_id: str
    file: str
    row: int
    facts: list[SupportingFact] | None


class Positive(NamedTuple):
    """`source` is `given` or `bm25`; `gold` is the evidence the source annotated."""

    made_by = "positives"
    question_id: str
    passage_id: str
    source: str
    gold: list[Span] | None


class Fold(NamedTuple):
    """What a question is learned from for. `role` is train, validation, or annotator (trains the QA model only); `half`
    (0 or 1) is for cross-fitting.

    Both are drawn by the title of the first positive, so that the article of no first positive is on both sides.
    """

    made_by = "positives"
    question_id: str
    role: str
    half: int


class Ranked(NamedTuple):
    """One row of a ranking; rank 1 is the best, rows are ordered by question (as in questions), then rank."""

    made_by = "bm25 or retrieve"
    question_id: str
    passage_id: str
    rank: int
    score: float


class RankedPath(NamedTuple):
    """Passages in the order of the hops; `score` is the sum of `hop_scores`. Ranks and rows as in `Ranked`."""

    made_by = "retrieve_multihop"
    question_id: str
    rank: int
    passage_ids: list[str]
    hop_scores: list[float]
    score: float


class Negative(NamedTuple):
    made_by = "negatives"
    question_id: str
    passage_id: str
    source: str
    rank: int


class Evidence(NamedTuple):
    """`chosen` are indices into `spans`; `nll` is the target's without the span, `nll_full` with nothing left out. A
    span that `evidence.shortlist` left out has no `nll`, nor has one that stood on the shortlist alone.

    A placebo is a row too: its span is what is cut in place of evidence.
    """

    made_by = "evidence"
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
    """`form` is cut, filled, swapped or written; `removed` are the spans of the positive that its text lacks."""

    made_by = "distractors"
    question_id: str
    passage_id: str
    strategy: str
    level: int
    form: str
    text: str
    removed: list[Span]


class NearDuplicate(NamedTuple):
    """A passage much like the positive `passage_id` that holds no answer to the question.

    `number` counts from 0 within the question: where n near-duplicates per question join the corpus, those below n do.
    """

    made_by = "near_duplicates"
    question_id: str
    passage_id: str
    number: int
    generator: str
    title: str
    text: str


class Example(NamedTuple):
    """`positive` and `negatives` are passage ids; `distractors` are levels in the distractors table beside the examples
    (same question, same positive), empty where the question has none. `others` are the question's other positives,
    which are no negatives of it."""

    made_by = "examples"
    question_id: str
    role: str
    positive: str
    negatives: list[str]
    distractors: list[int]
    others: list[str]


class PairScore(NamedTuple):
    """Score of a question with one form of its positive; `passage_id` is the positive's.

    `variant` is positive, masked (the answer removed), distractor (of probe.strategy), a placebo, or a strategy of
    probe.also for its distractor. With `_cut` behind it, what was removed lies beyond the encoder's cut, so that both
    texts are the same to it and the score is the positive's: such pairs are counted, and left out of every measure.
    """

    made_by = "probe"
    question_id: str
    passage_id: str
    variant: str
    score: float


class Outcome(NamedTuple):
    """A metric's value for one question of one question set (`set/split`): a row of the table that every measure writes
    and the report reads. Its file is named after the arm's training, or the ranking, that was measured.

    `type` is the question's first wh-word; `hop_type` (bridge, comparison) and `relation` are those of the source.
    """

    made_by = "evaluate"
    question_set: str
    question_id: str
    type: str
    hop_type: str | None
    relation: str | None
    metric: str
    value: float
