"""Questions from facts (subject, relation, object), as T-REx QA (Sciavolino et al., 2021, sections 3.2 and 3.3).

A relation's template makes a question of each subject, its objects are the answers. Every relation is parted 80/10/10
by subject: trex-seen/train, /dev and /test hold the relations seen in training; trex-unseen/test a tenth of each other
relation. At most `subset` questions per relation are also in one of the four sets
trex-{seen,unseen}-{known,new}/test: by relation, and by whether trex-seen/train asks about the same subject. Those of
seen relations are in trex-seen/test, too; those of unseen ones are drawn from all facts, those of trex-unseen/test
first. Subjects are told apart by their names alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, field_validator

from eadpr.config import Section
from eadpr.corpus import text_files
from eadpr.corpus.given import GivenQuestion, field_of, id_of, text_of
from eadpr.corpus.known import digest
from eadpr.corpus.shares import splits
from eadpr.trex import QUESTIONS

SHARES = {"test": 10, "dev": 10, "train": 80}  # per cent, in the order drawn
FIELDS = ("sub_label", "obj_label", "uuid")
_NAME = re.compile(r"(P\d+)\.jsonl(\.gz)?")


class Facts(Section):
    """How questions are made of facts; the comments in params.yaml say what each key does."""

    unseen: list[str]
    questions: int = Field(ge=10)
    subset: int = Field(ge=1)
    seed: int = Field(ge=0)

    @field_validator("unseen")
    @classmethod
    def _with_template(cls, unseen: list[str]) -> list[str]:
        for relation in unseen:
            if relation not in QUESTIONS:
                raise ValueError(f"{relation!r} is no relation with a template; known are {', '.join(QUESTIONS)}")
        return unseen


class _Subject(NamedTuple):
    """`row` and `id` are those of its first fact."""

    name: str
    objects: list[str]
    where: str
    row: int
    id: str


def trex_qa(paths: Sequence[Path], facts: Facts) -> Callable[[Path], Iterator[GivenQuestion]]:
    """What asks the questions of one of the files, which hold a relation each; all are read for the subjects of
    training, then each again; memory is one relation and 8 bytes per subject of training."""
    of_relation: dict[str, Path] = {}
    for path in paths:
        other = of_relation.setdefault(relation_of(path), path)
        if other != path:
            raise ValueError(f"{path} and {other} are of the same relation; make one file of them")
    seen = [path for relation, path in of_relation.items() if relation not in facts.unseen]
    trained = {digest(subject.name) for path in seen for subject, split in _drawn(path, facts) if split == "train"}
    return lambda path: _questions(path, facts, trained)


def relation_of(path: Path) -> str:
    """By the file's name."""
    named = _NAME.fullmatch(path.name)
    if named is None or named[1] not in QUESTIONS:
        raise ValueError(
            f"{path}: a file of facts is named after its relation, as P19.jsonl or P19.jsonl.gz;"
            f" known are {', '.join(QUESTIONS)}"
        )
    return named[1]


def _questions(path: Path, facts: Facts, trained: set[int]) -> Iterator[GivenQuestion]:
    relation = relation_of(path)
    kind = "unseen" if relation in facts.unseen else "seen"
    held: Counter[str] = Counter()
    for subject, split in _drawn(path, facts):
        sets = [(f"trex-{kind}", split)] if kind == "seen" or split == "test" else []
        subset = f"trex-{kind}-{'known' if digest(subject.name) in trained else 'new'}"
        if (kind == "unseen" or split == "test") and held[subset] < facts.subset:
            held[subset] += 1
            sets.append((subset, "test"))
        if not sets:
            continue
        (first, of), *also = sets
        yield GivenQuestion(
            where=subject.where,
            row=subject.row,
            question=QUESTIONS[relation].replace("[X]", subject.name),
            answers=subject.objects,
            answer_kind="string",
            set=first,
            split=of,
            also=also,
            id=subject.id,
            subject=subject.name,
            relation=relation,
        )


def _drawn(path: Path, facts: Facts) -> list[tuple[_Subject, str]]:
    """At most `facts.questions` subjects of a relation with their splits, in an order that a seeded hash gives."""
    relation = relation_of(path)
    order = sorted(_subjects(path), key=lambda subject: digest(str(facts.seed), relation, subject.name))
    order = order[: facts.questions]
    return list(zip(order, splits(len(order), SHARES), strict=True))


def _subjects(path: Path) -> list[_Subject]:
    found: dict[str, _Subject] = {}
    for row, (line, fact) in enumerate(text_files.jsonl(path), start=1):
        where = f"{path}, line {line}"
        name, stated, uuid = (field_of(fact, where, field) for field in FIELDS)
        name, stated = text_of(name, where, "sub_label"), text_of(stated, where, "obj_label")
        if name not in found:
            found[name] = _Subject(name, [], where, row, id_of(uuid, where, "uuid"))
        if stated not in found[name].objects:
            found[name].objects.append(stated)
    return list(found.values())
