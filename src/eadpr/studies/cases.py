"""Case studies (EADPR, Table 6; PiCL, Table 7): what two arms rank first, side by side, answer, evidence and
placebo marked."""

import html
import itertools
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.evaluation.metrics import Judge, given_positives, relevant_of
from eadpr.evaluation.outcomes import Outcomes
from eadpr.storage import tables
from eadpr.storage.grades import grades
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import selected
from eadpr.storage.records import Evidence, Question, Ranked, Span
from eadpr.text.answers import answer_spans
from eadpr.text.question_types import question_type

RIGHT, PLACEBO = "top1", "placebo"
RANKED = "ranked"  # `evaluate` has it of every question, whatever its settings are
HIT = "a hit (an answer or, where no text can hold one, a passage known to be relevant)"
Spans = dict[str, list[Span]]  # of passages, by id
_SPECIAL = str.maketrans({sign: f"&#{ord(sign)};" for sign in "|*_`"} | {"\n": " "})  # what Markdown would read


def won(outcomes: Path, arms: tuple[str, str], question_set: str) -> tuple[list[str], list[str]]:
    """Questions of which only the first arm ranks a hit first, and only the second. Raises ValueError where that was
    not evaluated on the set."""
    right = []
    for arm in arms:
        of_arm = Outcomes([outcomes / f"{arm}.parquet"])
        found = of_arm.of_training(0, question_set, RIGHT)
        if not len(found):
            known = len(of_arm.of_training(0, question_set, RANKED))
            mend = "put 1 into evaluate.top_k" if known else "name one of sets.evaluate"
            raise ValueError(f"{outcomes / arm}.parquet has no {RIGHT} of {question_set}; {mend}")
        right.append({*found.index[found["sums"] > 0]})
    return sorted(right[0] - right[1]), sorted(right[1] - right[0])


def cases(
    made: Path,
    arms: tuple[str, str],
    question_set: str,
    *,
    kind: str | None = None,
    count: int = 3,
    depth: int = 3,
    seed: int = 0,
    strategy: str = "pseudo",
) -> str:
    """Markdown of `count` questions, drawn from those of type `kind` that the first arm gets right and the second not;
    `made` is data/<collection>.

    Each with its positives, as far as they have evidence, and what both arms rank first. It also says how many such
    questions there are, and how many the other way round, so that a case can be weighed.
    """
    records, found = made / "records", won(made / "outcomes", arms, question_set)
    questions = {
        question.id: question
        for question in selected(records / "questions.parquet", {*found[0], *found[1]})
        if kind in (None, question_type(question.question))
    }
    first, second = ([question_id for question_id in ids if question_id in questions] for ids in found)
    drawn = sorted(np.random.default_rng(seed).permutation(len(first))[:count].tolist())
    chosen = [questions[first[i]] for i in drawn]
    tops = [_tops(made / "rankings" / arm / "evaluate.parquet", {question.id for question in chosen}) for arm in arms]
    spans = spans_of(made / "evidence.parquet", {question.id for question in chosen}, (strategy, PLACEBO))
    store = PassageStore(records / "passages.parquet")
    hits = _judge(made, chosen, store)
    of_kind = f" of type {kind}" if kind else ""
    hit = "an answer" if all(question.sought for question in questions.values()) else HIT
    parts = [
        f"Questions{of_kind} of {question_set} with {hit} in the first passage: {len(first):,} by {arms[0]} alone,"
        f" {len(second):,} by {arms[1]} alone. Shown: {len(chosen)} of the former, drawn with seed {seed}. Answers are"
        f" bold, evidence ({strategy}, known of positives) is marked, its placebo, if any, underlined."
    ]
    for question in chosen:
        own, placebo = (spans[question.id, of] for of in (strategy, PLACEBO))
        shown = partial(_shown, question, own, placebo, store)
        parts += [f"## {html.escape(question.question)}", f"Answers: {html.escape('; '.join(question.answers))}"]
        parts += [f"Positive: {shown(passage_id)}" for passage_id in own]
        ids = [of_arm[question.id] for of_arm in tops]
        ranks = [_first_hit(of_arm, question, hits) for of_arm in ids]
        rows = [["", *(f"{arm} ({rank})" for arm, rank in zip(arms, ranks, strict=True))], ["---"] * 3]
        for rank in range(depth):
            rows.append([str(rank + 1), *("".join(map(shown, of_arm[rank : rank + 1])) for of_arm in ids)])
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    return "\n\n".join(parts) + "\n"


def marked(text: str, answers: Sequence[Span], evidence: Sequence[Span], placebo: Sequence[Span] = ()) -> str:
    """HTML of a text for a table cell: answers bold, evidence marked, wherever they overlap; the placebo underlined."""
    edges = sorted({0, len(text), *(edge for span in (*answers, *evidence, *placebo) for edge in span)})
    parts, open_ = [], False
    for start, end in itertools.pairwise(edges):
        inside, bold, underlined = (
            any(span.start <= start < span.end for span in spans) for spans in (evidence, answers, placebo)
        )
        if inside != open_:
            parts.append("<mark>" if inside else "</mark>")
            open_ = inside
        piece = html.escape(text[start:end], quote=False).translate(_SPECIAL)
        piece = f"<b>{piece}</b>" if bold else piece
        parts.append(f"<u>{piece}</u>" if underlined else piece)
    return "".join(parts) + "</mark>" * open_


def _tops(ranking: Path, ids: Collection[str]) -> dict[str, list[str]]:
    """Passage ids by question, best first."""
    rows = tables.read(ranking, Ranked, ["question_id", "passage_id"]).to_pandas()
    of_one = rows[rows["question_id"].isin(ids)].groupby("question_id")["passage_id"]
    return {question_id: [] for question_id in ids} | of_one.agg(list).to_dict()


def spans_of(path: Path, ids: Collection[str], strategies: Collection[str]) -> dict[tuple[str, str], Spans]:
    """What was chosen in each passage, by question and strategy."""
    found: dict[tuple[str, str], Spans] = {key: {} for key in itertools.product(ids, strategies)}
    for row in tables.rows(path, Evidence):
        if (key := (row.question_id, row.strategy)) in found:
            found[key][row.passage_id] = row.chosen_spans
    return found


def _judge(made: Path, questions: Sequence[Question], store: PassageStore) -> Judge:
    ids = pa.array([question.id for question in questions], pa.string())
    given = given_positives(made / "positives" / "positives.parquet", ids)
    return Judge(store, relevant_of(given, 0, questions, grades(made / "records")))


def _first_hit(ids: Sequence[str], question: Question, hits: Judge) -> str:
    """Its best rank, and what it is a hit by."""
    found = hits(question, ids) if ids else []
    rank = next(itertools.compress(itertools.count(1), found), None)
    return f"first {'answer' if question.sought else 'hit'}: {f'rank {rank}' if rank else 'none found'}"


def _shown(question: Question, evidence: Spans, placebo: Spans, store: PassageStore, passage_id: str) -> str:
    row = store.rows([passage_id])
    (text,), (title,) = store.texts(row), store.titles(row)
    answers = answer_spans(question.answers, text, question.answer_kind)
    text = marked(text, answers, evidence.get(passage_id, []), placebo.get(passage_id, []))
    return f"<i>{marked(title, [], [])}</i><br>{text}"
