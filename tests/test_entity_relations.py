"""Questions from facts, EntityQuestions and PAQ: splits and sets worked out by hand, naive loops, the real files."""

import gzip
import json
import re
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eadpr.corpus.formats.paq import Paq, sample_paq
from eadpr.corpus.formats.trex_facts import Facts, facts_reader
from eadpr.corpus.rows import digest
from eadpr.storage.questions import read_question_ids
from eadpr.storage.records import Span
from tests.corpus_toy import OF_PASSAGES, PASSAGES, lines, rows, write
from tests.corpus_toy import prepared as prepared_files

pytestmark = pytest.mark.formats

FACTS = Facts(unseen=["P20", "P740"], questions=1000, subset=4, seed=0)
PAQ = Paq(min_questions=3, passages=4, seed=0)
ALL_SETS = r"trex-(seen/(train|dev|test)|unseen/test|(un)?seen-(known|new)/test)"


def facts_of(relation: str, stated: list[tuple[str, str]]) -> str:
    numbered = enumerate(stated, start=1)
    return lines(*({"sub_label": s, "obj_label": o, "uuid": f"{relation}-{n}"} for n, (s, o) in numbered))


def write_facts(folder: Path) -> list[Path]:
    """P19 and P413 of people 0 to 39, P20 of people 20 to 59, P740 of bands."""
    folder.mkdir(parents=True, exist_ok=True)
    people = {"P19": range(40), "P413": range(40), "P20": range(20, 60)}
    stated = {relation: [(f"Person {i}", f"{relation} of {i}") for i in ids] for relation, ids in people.items()}
    stated["P740"] = [(f"Band {i}", "Rome") for i in range(20)]
    return [write(folder / f"{relation}.jsonl", facts_of(relation, facts)) for relation, facts in stated.items()]


def asked_of(paths, facts=FACTS):
    ask = facts_reader(paths, facts)
    return [question for path in paths for question in ask(path)]


def by_set(questions):
    sets = defaultdict(list)
    for question in questions:
        for name in (f"{question.set}/{question.split}", *question.also):
            sets[name].append(question)
    return sets


def test_seen_relations_are_parted_80_10_10_and_a_tenth_of_the_unseen_ones_is_for_testing(tmp_path):
    sets = by_set(asked_of(write_facts(tmp_path)))
    sizes = {name: Counter(question.relation for question in questions) for name, questions in sets.items()}
    assert sizes["trex-seen/train"] == {"P19": 32, "P413": 32}
    assert sizes["trex-seen/dev"] == sizes["trex-seen/test"] == {"P19": 4, "P413": 4}
    assert sizes["trex-unseen/test"] == {"P20": 4, "P740": 2}
    assert all(re.fullmatch(ALL_SETS, name) for name in sets)


def test_the_four_sets_follow_relation_and_subject(tmp_path):
    sets = by_set(asked_of(write_facts(tmp_path)))
    trained = {question.subject for question in sets["trex-seen/train"]}
    for kind, relations in (("seen", {"P19", "P413"}), ("unseen", {"P20", "P740"})):
        for entity in ("known", "new"):
            for question in sets[f"trex-{kind}-{entity}/test"]:
                assert question.relation in relations
                assert (question.subject in trained) == (entity == "known")
    tested = {question.id for question in sets["trex-seen/test"]}
    assert {q.id for q in (*sets["trex-seen-known/test"], *sets["trex-seen-new/test"])} == tested
    per_relation = Counter(q.relation for q in sets["trex-unseen-known/test"])
    assert per_relation == {"P20": 4}, "at most 4 per relation; no band is asked about in training"
    assert len(sets["trex-unseen-new/test"]) == 8


def test_a_question_is_its_relations_template_with_all_objects_of_the_subject(tmp_path):
    pairs = ["Buddy Holly/Brunswick", "The Crickets/Brunswick", "Buddy Holly/Coral", "Buddy Holly/Coral"]
    stated = facts_of("P264", [tuple(pair.split("/")) for pair in pairs])
    path = write(tmp_path / "P264.jsonl.gz", gzip.compress(stated.encode()))
    first, second = sorted(asked_of([path], FACTS.model_copy(update={"unseen": []})), key=lambda q: q.row)
    assert first.question == "What music label is Buddy Holly represented by?"
    assert first.answers == ["Brunswick", "Coral"]
    assert (first.id, first.row, first.subject, first.relation) == ("P264-1", 1, "Buddy Holly", "P264")
    assert (second.subject, second.answers) == ("The Crickets", ["Brunswick"])


@pytest.mark.parametrize("name", ["P99.jsonl", "P19.json"])
def test_a_file_of_facts_is_named_after_its_relation(name):
    with pytest.raises(ValueError, match=r"as P19\.jsonl"):
        facts_reader([Path(name)], FACTS)


def prepared(tmp_path, *files, passages=PASSAGES, **sections):
    write(tmp_path / "p.tsv", passages)
    return prepared_files(tmp_path, OF_PASSAGES, *files, **sections)


def test_facts_become_records_that_are_in_several_sets(tmp_path):
    files = [{"kind": "facts", "path": path.name} for path in write_facts(tmp_path)]
    records, report = prepared(tmp_path, *files, facts=FACTS)
    assert {name: counts["questions"] for name, counts in report["sets"].items()} == {
        name: len(questions) for name, questions in by_set(asked_of([tmp_path / f["path"] for f in files])).items()
    }
    members, names = records / "question_sets.parquet", ("trex-seen/train", "trex-seen/test")
    trained, tested = (set(read_question_ids(members, [name])) for name in names)
    assert not trained & tested
    assert len(rows(records, "questions")) == report["questions"]


ITEMS = [{"question": "where was a born?", "answers": ["x", "y"]}, {"question": "where was b born?", "answers": ["z"]}]


def test_a_zip_of_entity_questions_is_read_where_it_is(tmp_path):
    with zipfile.ZipFile(tmp_path / "dataset.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("dataset/test/P20.test.json", "dataset/dev/P19.dev.json", "__MACOSX/dataset/dev/._P19.dev.json"):
            archive.writestr(name, json.dumps(ITEMS))
        archive.writestr("dataset/README.md", "no questions")
    write(tmp_path / "P17.dev.json.gz", gzip.compress(json.dumps(ITEMS, indent=4).encode()))
    files = [{"kind": "entity_questions", "path": name} for name in ("dataset.zip", "P17.dev.json.gz")]
    records, _ = prepared(tmp_path, *files)
    questions = rows(records, "questions")
    assert [(q.id.removeprefix("entity-questions/"), q.relation) for q in questions] == [
        ("dev:1", "P19"), ("dev:2", "P19"), ("test:1", "P20"), ("test:2", "P20"), ("dev:3", "P17"), ("dev:4", "P17"),
    ]  # fmt: skip
    assert [(q.question, q.answers) for q in questions] == [(item["question"], item["answers"]) for item in ITEMS] * 3


def write_paq(path: Path, generated: list[list[str]]) -> Path:
    """A question for each list of passage ids; the answer span in passage p is `p span`."""
    rows = [
        {"question": f"question {n}?", "subsets": ["L1"], "answer": ["filtered"], "passage_score": "0.5"}
        | {"answers": [{"passage_id": p, "offset": 0, "text": f"{p} span", "extractor": "L"} for p in passages]}
        for n, passages in enumerate(generated, start=1)
    ]
    return write(path, lines(*rows))


def naive_sample(generated, settings):
    """Passage -> its question numbers, for the passages that are drawn."""
    of_passage = defaultdict(list)
    for n, passages in enumerate(generated, start=1):
        for passage in dict.fromkeys(passages):
            of_passage[passage].append(n)
    enough = [p for p, numbers in of_passage.items() if len(numbers) >= settings.min_questions]
    return sorted(enough, key=lambda p: digest(str(settings.seed), p))[: settings.passages], of_passage


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3), max_size=60),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_the_sample_is_that_of_a_naive_loop(tmp_path_factory, generated, least, most):
    paq = Paq(min_questions=least, passages=most, seed=3)
    questions = sample_paq(write_paq(tmp_path_factory.mktemp("paq") / "paq.jsonl", generated), paq)
    sample, of_passage = naive_sample(generated, paq)
    passage_ids = [question.contexts[0].passage_id for question in questions]
    assert passage_ids == [passage for passage in sample if passage in passage_ids], "in the order drawn, each once"
    assert len({question.row for question in questions}) == len(questions), "no question is asked of two passages"
    for question in questions:
        passage = question.contexts[0].passage_id
        assert question.row in of_passage[passage]
        assert question.answers == [f"{passage} span", "filtered"]
        candidates = [p for p in generated[question.row - 1] if p in sample]
        assert sample.index(passage) == min(map(sample.index, candidates))
    for passage in set(sample) - set(passage_ids):
        assert all(
            any(sample.index(p) < sample.index(passage) for p in generated[n - 1] if p in sample)
            for n in of_passage[passage]
        )


def test_paq_is_parted_70_15_15_with_its_passages_as_positives(tmp_path):
    names = [str(n) for n in range(40)]
    write_paq(tmp_path / "paq.jsonl", [[name] for name in names for _ in range(3)] + [["few"], ["few"]])
    passages = "id\ttitle\ttext\n" + "".join(f"{name}\tT\t{name} span.\n" for name in names)
    paq = PAQ.model_copy(update={"passages": 20})
    records, report = prepared(tmp_path, {"kind": "paq", "path": "paq.jsonl"}, passages=passages, paq=paq)
    sizes = {name: counts["questions"] for name, counts in report["sets"].items()}
    assert sizes == {"paq/train": 14, "paq/dev": 3, "paq/test": 3}
    contexts = rows(records, "contexts")
    assert len({context.passage_id for context in contexts}) == 20
    assert all(context.role == "positive" for context in contexts)
    assert all(context.gold == [Span(0, len(f"{context.passage_id} span"))] for context in contexts)
