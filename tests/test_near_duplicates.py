"""Near-duplicates: what each generator makes, what is dropped, and that a killed run goes on where it was."""

import json
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import pytest

from eadpr.robustness import generate
from eadpr.robustness.config import Generation, NearDuplicate
from eadpr.robustness.rules import by_rule, removed, reordered, replaced
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Fold, Passage, Positive, Question, Span
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.text.answers import has_answer
from eadpr.writers.config import Endpoint
from eadpr.writers.original import Candidate, Original, make_original
from tests.chat_server import chatting, task
from tests.toy_records import question, write_records

pytestmark = pytest.mark.robustness

TEXT = "Ada was born in London. She liked tea. The tea was green. Nobody knows why."
ADA = Original(question("q", ["London"]), Passage("p", "Ada", TEXT, None), [Span(0, 23)], TEXT[24:])


def settings(generator="removed", **changes) -> Generation:
    defaults = {"per_question": 3, "strategy": "pseudo", "seed": 0}
    return Generation(**defaults | {"generator": generator} | changes)


def texts(make, original=ADA, numbers=range(8)) -> list[str]:
    return [candidate.text for candidate in make(original, numbers)]


# What there is to start from


def test_the_evidence_and_sentences_that_hold_an_answer_are_taken_out_of_the_positive():
    """The rest of a sentence is looked at: without the words around London it holds none."""
    pair = Pair(question("q", ["London", "green"]), Passage("p", "Ada", TEXT, None), None)
    assert make_original(pair, None) == (*pair[:2], [Span(0, 23), Span(39, 57)], "She liked tea. Nobody knows why.")
    assert make_original(pair, [Span(0, 23), Span(24, 38)]).text == "Nobody knows why."
    assert make_original(pair, [Span(8, 23)]).text == "Ada was She liked tea. Nobody knows why."
    assert make_original(pair, [Span(0, 38), Span(58, 75)]).text == ""
    pair = Pair(question("q", ["Paris"]), Passage("p", "Ada", TEXT, None), None)
    assert make_original(pair, None)[2:] == ([], "")
    assert make_original(pair, [Span(0, 23)]).text == "She liked tea. The tea was green. Nobody knows why."


# By rule

LEFT = ["She liked tea.", "The tea was green.", "Nobody knows why."]


def test_removed_is_the_distractor_and_then_lacks_ever_more_sentences():
    """Each choice of the three once: all, pairs, single ones; in the order of the passage."""
    candidates = texts(by_rule(removed, 0))
    assert candidates[0] == ADA.text == " ".join(LEFT)
    pairs, single = ({" ".join(chosen) for chosen in combinations(LEFT, count)} for count in (2, 1))
    assert (set(candidates[1:4]), set(candidates[4:]), len(candidates)) == (pairs, single, 7)


def test_reordered_is_every_other_order_of_the_sentences_that_are_left():
    candidates = texts(by_rule(reordered, 0))
    assert len(candidates) == 5
    assert {*candidates, ADA.text} == {" ".join(order) for order in permutations(LEFT)}
    assert texts(by_rule(reordered, 0), ADA._replace(text="She liked tea.")) == []


@pytest.mark.parametrize("kind", [removed, reordered])
def test_a_rule_draws_by_seed_and_question_alone(kind):
    make = by_rule(kind, 0)
    assert texts(make, numbers=range(2, 4)) == texts(make)[2:4]
    assert any(texts(make) != texts(by_rule(kind, seed)) for seed in range(1, 9))
    originals = (ADA._replace(question=question(f"other{i}", ["London"])) for i in range(9))
    assert any(texts(make) != texts(make, original) for original in originals)
    assert texts(make, ADA._replace(text="")) == []


class Drawn(Fillers):
    """Fillers of these sentences, whatever their length."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(0, [])
        self._sentences = sentences

    def candidates(self, pair: Pair, length: int, start: int) -> list[str]:
        first = start % len(self._sentences)
        return [*self._sentences[first:], *self._sentences[:first]]


def test_replaced_has_sentences_from_elsewhere_in_the_place_of_the_evidence():
    """Each gap another one, none that the passage has."""
    both = make_original(Pair(question("q", ["London", "green"]), Passage("p", "Ada", TEXT, None), None), None)
    sentences = ["Rain fell all day long.", "Snow fell all night.", "Hail fell at noon.", "She liked tea."]
    make = by_rule(replaced, Drawn(*sentences))
    assert set(texts(make, both, range(40))) == {
        f"{first} She liked tea. {second} Nobody knows why." for first, second in permutations(sentences[:3], 2)
    }
    assert texts(make, both, range(5, 7)) == texts(make, both)[5:7]
    assert texts(make, ADA._replace(removed=[], text="")) == []
    assert texts(by_rule(replaced, Fillers(0, []))) == []


# What is kept


class Asked:
    """A generator that gives these texts, and remembers the numbers it was asked for."""

    def __init__(self, *replies: str | None) -> None:
        self.replies, self.numbers = replies, []

    def __call__(self, original: Original, numbers: range) -> list[Candidate]:
        self.numbers.append((numbers.start, numbers.stop))
        return [Candidate("T", self.replies[number]) for number in numbers if number < len(self.replies)]


def test_what_is_dropped_is_counted_and_asked_for_again():
    make = Asked("One.", " - ", "In  London!", "One. ", None, "Two.", "Three.", "Four.")
    dropped: Counter[str] = Counter()
    duplicates = generate.near_duplicates(ADA, settings(), make, dropped)
    expected = [NearDuplicate("q", "p", i, "removed", "T", text) for i, text in enumerate(["One.", "Two.", "Three."])]
    assert duplicates == expected
    assert dropped == {"empty": 1, "holds_answer": 1, "repeated": 1, "cut_off": 1}
    assert make.numbers == [(0, 3), (3, 5), (5, 7)]


def test_no_more_is_asked_than_the_candidates_or_than_there_are(monkeypatch):
    monkeypatch.setattr(generate, "CANDIDATES", 6)
    make = Asked(TEXT, TEXT.replace(" ", "\n"), "One.", "London", "London", "London", "Two.")
    dropped: Counter[str] = Counter()
    assert len(generate.near_duplicates(ADA, settings(), make, dropped)) == 1
    assert dropped == {"positive": 2, "holds_answer": 3}
    few = Asked("One.")
    assert len(generate.near_duplicates(ADA, settings(), few, dropped)) == 1
    assert few.numbers == [(0, 3)]


# The stage

PEOPLE = ("Ada", "Bob", "Cem")


def write_people(folder: Path) -> dict[str, Path]:
    """q0 to q2 are evaluated with a positive, q3 has no answers, q4 no positive; q1 and q2 share a positive."""
    text = "{0} was born in Town{1}. {0} saw Hill. A river ran."
    passages = [(f"p{i}", name, text.format(name, i)) for i, name in enumerate(PEOPLE)]
    passages.append(("copy", "Other", "Ada saw Hill. A  river ran."))
    questions = [question(f"q{i}", [f"Town{min(i, 1)}"])._replace(relation="birth") for i in range(3)]
    questions += [question("q3", []), question("q4", ["x"])]
    write_records(folder / "records", passages=passages, questions=[*questions, question("t", ["Town2"])], sets={
        "toy/dev": [q.id for q in questions], "toy/train": ["t"],
    })  # fmt: skip
    pairs = [("q0", "p0"), ("q0", "p1"), ("q1", "p1"), ("q2", "p1"), ("q3", "p2"), ("t", "p2")]
    rows = (Positive(*pair, "given", None) for pair in pairs)
    tables.write(folder / "positives" / "positives.parquet", Positive, rows)
    rows = [
        Distractor("q0", "p0", "pseudo", 0, "cut", "Ada saw Hill. A river ran.", [Span(0, 22)]),
        Distractor("q0", "p0", "pseudo", 0, "filled", "Bob ran. Ada saw Hill. A river ran.", [Span(0, 22)]),
    ]
    tables.write(folder / "distractors" / "distractors.parquet", Distractor, rows)
    tables.write(folder / "positives" / "folds.parquet", Fold, [Fold("t", "train", 0)])
    (folder / "raw").mkdir()
    return {name: folder / name for name in ("sources", "raw", "records", "positives", "distractors")}


SETS = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=[])


def write(folders: dict[str, Path], out: Path, chosen: Generation, endpoint: Endpoint | None = None):
    report = generate.write_near_duplicates(chosen, endpoint, None, SETS, **folders, out=out)
    return list(tables.rows(out / "near_duplicates.parquet", NearDuplicate)), report


def test_the_stage_compares_with_the_corpus_and_between_questions(tmp_path, monkeypatch):
    inputs = write_people(tmp_path)
    of_question = {"q0": ["Ada saw Hill. A river ran.", "B.", "C."], "q1": ["D.", "E."], "q2": ["E. ", "F.", "B."]}
    seen = []

    def make(original, numbers):
        seen.append((original.question.id, original.positive.id, original.text))
        return [Candidate("", text) for text in of_question[original.question.id][numbers.start : numbers.stop]]

    monkeypatch.setattr(generate, "choose_generator", lambda *_: make)
    rows, report = write(inputs, tmp_path / "out", settings(per_question=2))
    expected = [("q0", "p0", 0, "B."), ("q1", "p1", 0, "D."), ("q1", "p1", 1, "E."), ("q2", "p1", 0, "F.")]
    assert [(row.question_id, row.passage_id, row.number, row.text) for row in rows] == expected
    assert report == {
        "generator": "removed", "questions": 5, "with_all": 1, "with_none": 2, "near_duplicates": 4,
        "dropped": {"corpus": 1, "shared": 1},
    }  # fmt: skip
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report
    assert {i: (p, text) for i, p, text in seen} == {
        "q0": ("p0", "Ada saw Hill. A river ran."),
        "q1": ("p1", "Bob saw Hill. A river ran."),
        "q2": ("p1", "Bob saw Hill. A river ran."),
    }


OF_ADA = {
    "removed": {"Ada saw Hill.", "A river ran."},
    "replaced": {f"{name} was born in Town{i}. Ada saw Hill. A river ran." for i, name in enumerate(PEOPLE) if i},
    "reordered": {"A river ran. Ada saw Hill."},
}


@pytest.mark.parametrize("kind", OF_ADA)
def test_the_kinds_of_a_positive(tmp_path, kind):
    """Fillers come from Bob and Cem; the corpus has what `removed` makes first of Ada's. No kind leaves an answer."""
    chosen = settings(kind, per_question=40)
    rows, report = write(write_people(tmp_path), tmp_path / "out", chosen)
    assert {row.text for row in rows if row.question_id == "q0"} >= OF_ADA[kind]
    assert not any(has_answer(["Town0" if row.question_id == "q0" else "Town1"], row.text) for row in rows)
    assert {row.generator for row in rows} == {report["generator"]} == {kind}


def test_a_question_whose_answer_no_text_can_hold_has_none(tmp_path):
    """It could not be told whether a near-duplicate says yes, even with a distractor."""
    inputs = write_people(tmp_path)
    lacking = Distractor("q1", "p1", "pseudo", 0, "cut", "Bob saw Hill. A river ran.", [Span(0, 22)])
    tables.write(inputs["distractors"] / "distractors.parquet", Distractor, [lacking])
    path = inputs["records"] / "questions.parquet"
    questions = [row._replace(answer_kind="yes-no") if row.id == "q1" else row for row in tables.rows(path, Question)]
    tables.write(path, Question, questions)
    rows, report = write(inputs, tmp_path / "out", settings())
    assert ({row.question_id for row in rows}, report["with_none"]) == ({"q0", "q2"}, 3)


def test_a_killed_run_asks_an_endpoint_for_the_rest_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    inputs, chosen = write_people(tmp_path), settings("endpoint", per_question=2)
    with chatting() as server:
        endpoint = task(server)
        says, server.says = server.says, lambda body: None if "q1?" in str(body) else says(body)
        with pytest.raises(OSError, match="HTTP 401"):
            write(inputs, tmp_path / "out", chosen, endpoint)
        assert not (tmp_path / "out").exists()
        done, server.says = [body for body in server.requests if "q0?" in str(body)], says
        rows, report = write(inputs, tmp_path / "out", chosen, endpoint)
        assert len(done) == 2
        assert [body for body in server.requests if "q0?" in str(body)] == done
        assert {row.text for row in rows if row.question_id == "q0"} == {f"Answer to {body['seed']}." for body in done}
    assert report["near_duplicates"] == 6
