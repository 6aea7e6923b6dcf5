"""Questions made of facts (subject, relation, object), as T-REx QA (Sciavolino et al., 2021, sections 3.2 and 3.3).

A relation's template makes a question of each subject, its objects are the answers. Every relation is parted 80/10/10
by subject: trex-seen/train, /dev and /test hold the relations seen in training; trex-unseen/test a tenth of each other
relation. At most `subset` questions per relation are also in one of the four sets trex-{seen,unseen}-{known,new}/test:
by relation, and by whether trex-seen/train asks about the same subject. Questions of seen relations are in
trex-seen/test, too; those on unseen ones are drawn from all facts, first trex-unseen/test. A subject is its name.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from pydantic import Field

from eadpr.atlas.texts import QUESTIONS, TrexRelation
from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.rows import GivenQuestion, digest
from eadpr.runtime.section import Section

SHARES = {"test": 10, "dev": 10, "train": 80}  # per cent, in the order drawn
_FILE_NAME = re.compile(r"(P\d+)\.jsonl(\.gz)?")


class Facts(Section):
    """How questions are made of facts; the comments in settings/defaults.yaml say what each key does."""

    unseen: list[TrexRelation]
    questions: int = Field(ge=10)
    subset: int = Field(ge=1)
    seed: int = Field(ge=0)


def assign_splits(count: int, shares: Mapping[str, int]) -> list[str]:
    """Return the split of each of `count` items; `shares` are per cent, borders rounded to the nearest, half up."""
    splits: list[str] = []
    for name, share in zip(shares, accumulate(shares.values()), strict=True):
        splits += [name] * ((count * share + 50) // 100 - len(splits))
    return splits


def facts_reader(paths: Sequence[Path], facts: Facts) -> Callable[[Path], Iterator[GivenQuestion]]:
    """Return a function that yields the questions of one relation's file.

    All files are read for the subjects of training first; memory is one relation and 8 bytes per such subject.
    """
    seen = [path for path in paths if relation_of(path) not in facts.unseen]
    trained = {digest(q.subject) for path in seen for q in _draw_questions(path, facts) if q.split == "train"}

    def read_facts(path: Path) -> Iterator[GivenQuestion]:
        kind = "unseen" if relation_of(path) in facts.unseen else "seen"
        sizes: Counter[str] = Counter()
        for question in _draw_questions(path, facts):
            tested = question.split == "test"
            sets = [f"trex-{kind}/{question.split}"] if kind == "seen" or tested else []
            subset = f"trex-{kind}-{'known' if digest(question.subject) in trained else 'new'}"
            if (kind == "unseen" or tested) and sizes[subset] < facts.subset:
                sizes[subset] += 1
                sets.append(f"{subset}/test")
            if sets:
                first_set, split = sets[0].split("/")
                yield question._replace(set=first_set, split=split, also=sets[1:])

    return read_facts


def relation_of(path: Path) -> str:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None or match[1] not in QUESTIONS:
        relations = ", ".join(QUESTIONS)
        raise ValueError(f"{path}: a file of facts is named after its relation, as P19.jsonl; known are {relations}")
    return match[1]


def _draw_questions(path: Path, facts: Facts) -> list[GivenQuestion]:
    """Return a question of at most `facts.questions` subjects with their splits, in an order that a seeded hash gives;
    place and id are from a subject's first fact."""
    relation = relation_of(path)
    questions: dict[str, GivenQuestion] = {}
    for row in read_objects(path):
        fact, subject, answer = row.id("uuid"), row.text("sub_label"), row.text("obj_label")
        text = QUESTIONS[relation].replace("[X]", subject)
        new = GivenQuestion(row.where, row.number, text, [], id=fact, subject=subject, relation=relation)
        question = questions.setdefault(subject, new)
        if answer not in question.answers:
            question.answers.append(answer)
    order = sorted(questions, key=lambda subject: digest(str(facts.seed), relation, subject))[: facts.questions]
    splits = assign_splits(len(order), SHARES)
    return [questions[subject]._replace(split=split) for subject, split in zip(order, splits, strict=True)]
