"""What is right by the records, and HotpotQA's official prediction file as other programs write it (`official` of
`reading_multihop` says its form)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from eadpr import questions
from eadpr.corpus.hotpot import passage_id, plain_title
from eadpr.evaluation.hotpot_metrics import Gold
from eadpr.reading_multihop.official import named_facts
from eadpr.reading_multihop.records import Fact, sentences_of
from eadpr.records import Passage
from eadpr.supervision import pairs, spans


class Official(NamedTuple):
    """A prediction file; titles as `plain_title` has them."""

    answers: dict[str, str]
    support: dict[str, frozenset[Fact]]


def golds(
    records: Path, positives: Path, ids: Collection[str], *, page: Callable[[Passage], str] = lambda passage: passage.id
) -> Iterator[Gold]:
    """Of the questions with an answer. Their supporting facts are those that HotpotQA's file names, with sentences that
    the corpus lacks, as the official script counts them; of other questions the sentences that hold gold evidence.

    `page` names a fact's page: the passage's id, since titles need not differ, or its title as official files do.
    """
    named = named_facts(records, ids)
    support: dict[str, set[Fact]] = {}
    for pair in pairs.pairs(records, positives, [i for i in ids if i not in named]):
        sentences = spans.overlapping(sentences_of(pair.passage), pair.gold or [])
        support.setdefault(pair.question.id, set()).update((page(pair.passage), sentence) for sentence in sentences)
    for question in questions.selected(records / "questions.parquet", ids):
        for title, sentence in named.get(question.id, ()):
            named_page = page(Passage(passage_id(title), plain_title(title), "", None))
            support.setdefault(question.id, set()).add((named_page, sentence))
        if question.answers:
            yield Gold(question.id, question.type, question.answers[0], frozenset(support.get(question.id, ())))


def read_official(path: Path) -> Official:
    """Raises ValueError naming file, field and value where it is not of the official form."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON in UTF-8: {error}") from error
    answers, support = (_object(found, path, name) for name in ("answer", "sp"))
    for question_id, answer in answers.items():
        if not isinstance(answer, str):
            raise ValueError(f"{path}: answer[{question_id!r}] is {_shown(answer)}, expected a string")
    return Official(answers, {i: frozenset(_facts(path, i, facts)) for i, facts in support.items()})


def _object(found: Any, path: Path, name: str) -> dict[str, Any]:
    if not isinstance(found, dict) or not isinstance(found.get(name), dict):
        raise ValueError(
            f"{path}: no object {name!r} at its top; the form is"
            ' {"answer": {id: answer}, "sp": {id: [[title, sentence], ...]}}'
        )
    return found[name]


def _facts(path: Path, question_id: str, facts: Any) -> Iterator[Fact]:
    where = f"{path}: sp[{question_id!r}]"
    if not isinstance(facts, list):
        raise ValueError(f"{where} is {_shown(facts)}, expected a list of [title, sentence]")
    for i, fact in enumerate(facts):
        if not (isinstance(fact, list) and [type(part) for part in fact] == [str, int] and fact[1] >= 0):
            raise ValueError(f"{where}[{i}] is {_shown(fact)}, expected [title, number of a sentence from 0]")
        yield plain_title(fact[0]), fact[1]


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]
