"""Questions about entities, as Sciavolino et al. (2021) evaluate and train with them: from facts, EntityQuestions, PAQ.

From facts (subject, relation, object; T-REx QA, sections 3.2 and 3.3): a relation's template makes a question of each
subject, its objects are the answers. Every relation is parted 80/10/10 by subject: trex-seen/train, /dev and /test hold
the relations seen in training; trex-unseen/test a tenth of each other relation. At most `subset` questions per relation
are also in one of the four sets trex-{seen,unseen}-{known,new}/test: by relation, and by whether trex-seen/train asks
about the same subject. Those of seen relations are in trex-seen/test, too; those of unseen ones are drawn from all
facts, those of trex-unseen/test first. Subjects are told apart by their names alone.

EntityQuestions: simple questions, one JSON file per relation and split, alone or in a zip. They come without passages;
evaluation is the mean over relations (the report's macro average).

PAQ: questions generated from passages (section 5.1). Of the passages with enough questions a sample is drawn, of each
passage one question, and the passages are parted 70/15/15: paq/train, /dev, /test. PAQ has 65 million questions: its
metadata file is read twice, memory is that of the engine, which counts, and of the sample.
"""

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, field_validator

from eadpr.atlas.trex import QUESTIONS
from eadpr.corpus.formats import file_rows
from eadpr.corpus.rows import GivenContext, GivenQuestion, Row, digest, rows, texts_of
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Section
from eadpr.storage import engine

TREX_SHARES = {"test": 10, "dev": 10, "train": 80}  # per cent, in the order drawn
_FACTS_NAME = re.compile(r"(P\d+)\.jsonl(\.gz)?")
_QUESTIONS_NAME = re.compile(r"(?P<relation>P\d+)\.(?P<split>train|dev|test)\.json(\.gz)?")
PAQ_SHARES = {"train": 70, "dev": 15, "test": 15}  # per cent


def splits(count: int, shares: Mapping[str, int]) -> list[str]:
    """The split of each of `count` things; `shares` are per cent, borders are rounded to the nearest, half up."""
    assert sum(shares.values()) == 100, shares
    found: list[str] = []
    for name, share in zip(shares, accumulate(shares.values()), strict=True):
        found += [name] * ((count * share + 50) // 100 - len(found))
    return found


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


def trex_qa(paths: Sequence[Path], facts: Facts) -> Callable[[Path], Iterator[GivenQuestion]]:
    """What asks the questions of one of the files, which hold a relation each; all are read for the subjects of
    training, then each again; memory is one relation and 8 bytes per subject of training."""
    of_relation: dict[str, Path] = {}
    for path in paths:
        other = of_relation.setdefault(relation_of(path), path)
        if other != path:
            raise ValueError(f"{path} and {other} are of the same relation; make one file of them")
    seen = [path for relation, path in of_relation.items() if relation not in facts.unseen]
    trained = {digest(asked.subject) for path in seen for asked in _drawn(path, facts) if asked.split == "train"}
    return lambda path: _of_relation(path, facts, trained)


def relation_of(path: Path) -> str:
    """By the file's name."""
    named = _FACTS_NAME.fullmatch(path.name)
    if named is None or named[1] not in QUESTIONS:
        raise ValueError(
            f"{path}: a file of facts is named after its relation, as P19.jsonl or P19.jsonl.gz;"
            f" known are {', '.join(QUESTIONS)}"
        )
    return named[1]


def _of_relation(path: Path, facts: Facts, trained: set[int]) -> Iterator[GivenQuestion]:
    kind = "unseen" if relation_of(path) in facts.unseen else "seen"
    held: Counter[str] = Counter()
    for asked in _drawn(path, facts):
        tested = asked.split == "test"
        sets = [f"trex-{kind}/{asked.split}"] if kind == "seen" or tested else []
        subset = f"trex-{kind}-{'known' if digest(asked.subject) in trained else 'new'}"
        if (kind == "unseen" or tested) and held[subset] < facts.subset:
            held[subset] += 1
            sets.append(f"{subset}/test")
        if sets:
            first, of = sets[0].split("/")
            yield asked._replace(set=first, split=of, also=sets[1:])


def _drawn(path: Path, facts: Facts) -> list[GivenQuestion]:
    """At most `facts.questions` subjects of a relation with their splits, in an order that a seeded hash gives."""
    relation = relation_of(path)
    order = sorted(_subjects(path, relation), key=lambda asked: digest(str(facts.seed), relation, asked.subject))
    order = order[: facts.questions]
    parted = zip(order, splits(len(order), TREX_SHARES), strict=True)
    return [asked._replace(split=split) for asked, split in parted]


def _subjects(path: Path, relation: str) -> Iterable[GivenQuestion]:
    """A question of each, with all its objects; place and id are those of its first fact."""
    found: dict[str, GivenQuestion] = {}
    for row in rows(path):
        fact, name, stated = row.id("uuid"), row.text("sub_label"), row.text("obj_label")
        if name not in found:
            text = QUESTIONS[relation].replace("[X]", name)
            found[name] = GivenQuestion(row.where, row.number, text, [], id=fact, subject=name, relation=relation)
        if stated not in found[name].answers:
            found[name].answers.append(stated)
    return found.values()


def entity_questions(path: Path) -> Iterator[GivenQuestion]:
    """Lists of question and answers; relation and split are in the file's name, as in P19.dev.json."""
    number = 0
    for part, named in _parts(path):
        before = number
        for number, row in enumerate(rows(part), start=before + 1):
            of = {"set": "entity-questions", **named.groupdict()}
            yield GivenQuestion(row.where, number, row.text("question"), row.texts("answers"), **of)
        if number == before:
            raise ValueError(f"{part} holds no questions; fill it, or remove it")


def _parts(path: Path) -> Iterator[tuple[file_rows.Place, re.Match[str]]]:
    """The file itself, or those of a zip that are named as they should be, in the order of their names."""
    if path.suffix != ".zip":
        named = _QUESTIONS_NAME.fullmatch(path.name)
        if named is None:
            raise ValueError(f"{path}: the name must say relation and split, as P19.dev.json, or end in .zip")
        yield path, named
        return
    file_rows.check_there(path)
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is a truncated or damaged zip ({error}); copy or download it again") from error
    with archive:
        for name in sorted(archive.namelist()):
            if named := _QUESTIONS_NAME.fullmatch(name.rpartition("/")[2]):
                yield zipfile.Path(archive, name), named


class Paq(Section):
    """Which part of PAQ is taken; the comments in params.yaml say what each key does."""

    min_questions: int = Field(ge=1)
    passages: int = Field(ge=1)
    seed: int = Field(ge=0)


class _PaqSpan(NamedTuple):
    passage_id: str


def sampled_paq(path: Path, paq: Paq) -> list[GivenQuestion]:
    """One question of each passage of the sample, in the order the passages are drawn.

    A question that was generated from several of them is asked of one only, so a passage whose questions are all asked
    of others is left out.
    """
    drawn = _paq_passages(path, paq)
    sample = frozenset(drawn)
    best: dict[int, tuple[int, GivenQuestion]] = {}
    for row, spans in _paq_rows(path, "sample of PAQ"):
        of_draw = {_draw(paq, passage_id): passage_id for passage_id in spans}
        if not (within := sample.intersection(of_draw)):
            continue
        passage, asked, filtered = min(within), row.text("question"), row.fields["answer"]
        key = digest(str(paq.seed), asked)
        if passage not in best or key < best[passage][0]:
            filtered = texts_of(filtered if isinstance(filtered, list) else [filtered], row.where, "answer")
            # As the passage has it, then what the consistency filter answered.
            answers = list(dict.fromkeys([spans[of_draw[passage]], *filtered]))
            contexts = [GivenContext("positive", 0, of_draw[passage])]
            best[passage] = key, GivenQuestion(row.where, row.number, asked, answers, set="paq", contexts=contexts)
    parted = zip(drawn, splits(len(drawn), PAQ_SHARES), strict=True)
    return [best[passage][1]._replace(split=split) for passage, split in parted if passage in best]


def _paq_passages(path: Path, paq: Paq) -> list[int]:
    """What the drawn passages have for a draw, in order: the smallest ones of those with enough questions."""
    with engine.connect() as connection:
        with engine.filling(connection, "spans", _PaqSpan) as put:
            for _, spans in _paq_rows(path, "passages of PAQ"):
                for passage_id in spans:
                    put((passage_id,))
        query = "SELECT passage_id FROM spans GROUP BY passage_id HAVING count(*) >= $least"
        enough = engine.batches(connection, query, {"least": paq.min_questions})
        ids = (passage_id for batch in enough for passage_id in batch[0].to_pylist())
        return nsmallest(paq.passages, (_draw(paq, passage_id) for passage_id in ids))


def _draw(paq: Paq, passage_id: str) -> int:
    return digest(str(paq.seed), passage_id)


def _paq_rows(path: Path, label: str) -> Iterator[tuple[Row, dict[str, str]]]:
    """The questions, each with the passages that it was generated from and the first answer span in each."""
    with progress(label, None, "questions") as advance:
        for row in rows(path):
            for name in ("question", "answer"):
                row.value(name)
            found: dict[str, str] = {}
            expected = "an object with passage_id and text"
            for span in row.objects("answers", expected, needed=("passage_id", "text")):
                found.setdefault(span.id("passage_id"), span.text("text"))
            yield row, found
            advance(1)
