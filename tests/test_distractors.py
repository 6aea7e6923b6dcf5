"""Distractors: the text without the evidence, and every reason why there is none."""

import json
from pathlib import Path

import pytest

from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, Passage, Question, ScoredSpan, Span
from eadpr.supervision.config import Distractors
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.forms import Forms, cut
from eadpr.supervision.pairs import Pair
from tests.supervision_toy import write_collection

STRATEGIES = ("pseudo", "gold", "sentence", "window", "answer")
ALL = dict.fromkeys(STRATEGIES, True)
ALLOW_ALL = Distractors(forms=["cut"], fillers="random", seed=0, may_hold_answer=ALL)
ALLOW_NONE = ALLOW_ALL.model_copy(update={"may_hold_answer": dict.fromkeys(STRATEGIES, False)})
TEXT = "Ann liked tea. She was born in Rome. Rome is old."


def pair(text: str = TEXT, answers=("Rome",), kind: str = "string") -> Pair:
    question = Question("q", "Where?", list(answers), kind, None, None, None, None)
    return Pair(question, Passage("p", "Rome", text, None), None)


def evidence(*spans: Span, chosen: list[int], target: str = "Rome") -> Evidence:
    return Evidence("q", "p", "pseudo", target, [ScoredSpan(*span, None) for span in spans], chosen, None)


def test_a_distractor_lacks_all_chosen_spans():
    found = evidence(Span(0, 14), Span(15, 36), Span(37, 49), chosen=[1])
    outcome = cut(pair(), found, may_hold_answer=True)
    expected = ("kept", Distractor("q", "p", "pseudo", 0, "cut", "Ann liked tea. Rome is old.", [Span(15, 36)]), ())
    assert outcome == expected
    found = evidence(Span(0, 14), Span(15, 36), Span(37, 49), chosen=[1, 2])
    outcome = cut(pair(), found, may_hold_answer=False)
    assert (outcome.reason, outcome.distractor.text) == ("kept", "Ann liked tea.")


@pytest.mark.parametrize(("of", "found", "may_hold_answer", "reason"), [
    (pair(), evidence(Span(15, 36), chosen=[0]), False, "holds_answer"),
    (pair(answers=[r"r.me"], kind="regex"), evidence(Span(15, 36), chosen=[0]), False, "holds_answer"),
    (pair("Only Rome."), evidence(Span(0, 10), chosen=[0]), True, "nothing_left"),
    (pair("Only Rome - !"), evidence(Span(0, 9), chosen=[0]), True, "nothing_left"),
    (pair(), evidence(Span(14, 15), chosen=[0]), True, "unchanged"),
    (pair(), evidence(chosen=[]), True, "no_evidence"),
    (pair(), evidence(Span(0, 14), chosen=[]), True, "unreadable_reply"),
    (pair(answers=[]), evidence(Span(0, 14), chosen=[], target=""), True, "no_answer"),
])  # fmt: skip
def test_reasons(of, found, may_hold_answer, reason):
    assert cut(of, found, may_hold_answer=may_hold_answer) == (reason, None, ())


@pytest.mark.parametrize(("of", "found", "reason"), [
    (pair(), evidence(Span(0, 14), chosen=[0]), "kept"),
    (pair(), evidence(chosen=[]), "no_placebo"),
    (pair(answers=[]), evidence(chosen=[], target=""), "no_answer"),
    # The answer is Rome, but only where tea was spoken of before.
    (pair(answers=[r"(?<=tea.*)Rome"], kind="regex"), evidence(Span(0, 14), chosen=[0]), "answer_lost"),
    (pair(answers=["Oslo"]), evidence(Span(0, 14), chosen=[0]), "kept"),  # none was there
])  # fmt: skip
def test_what_a_placebo_is_taken_from_still_holds_the_answer(of, found, reason):
    """The settings say of evidence alone whether an answer may stand in what is left."""
    ((_, _, (counted, made, _)),) = Forms(ALLOW_NONE, None, None).attempts(of, [found._replace(strategy="placebo")], {})
    assert counted == reason
    assert (made and made.text) == ("She was born in Rome. Rome is old." if reason == "kept" else None)


def test_an_answer_in_the_title_does_not_count():
    found = evidence(Span(15, 36), Span(37, 49), chosen=[0, 1])
    assert cut(pair(), found, may_hold_answer=False).reason == "kept"


def written(tmp_path: Path, rows: list[Evidence], settings: Distractors) -> tuple[Path, int]:
    records, positives = write_collection(tmp_path)
    evidence, out = tmp_path / "evidence.parquet", tmp_path / "distractors"
    tables.write(evidence, Evidence, rows)
    given = {"records": records, "positives": positives, "evidence": evidence, "ranking": tmp_path / "none"}
    return out, write_distractors(settings, **given, out=out)


def test_the_stage_counts_by_strategy_and_question_set(tmp_path):
    """The town's sentence is taken from q0 and q4, another one from q1; q2 has no evidence."""
    rows = [
        Evidence("q0", "p0", "pseudo", "Arlo", [ScoredSpan(0, 19, 1.0), ScoredSpan(20, 46, 2.0)], [1], 0.1),
        Evidence("q0", "p0", "answer", "Arlo", [ScoredSpan(41, 45, None)], [0], None),
        Evidence("q1", "p1", "pseudo", "Brund", [ScoredSpan(0, 19, 2.0)], [0], 0.1),
        Evidence("q2", "p2", "pseudo", "Cassel", [], [], None),
        Evidence("q4", "p4", "pseudo", "Elmar", [ScoredSpan(0, 19, 1.0), ScoredSpan(20, 47, 2.0)], [1], 0.1),
    ]
    out, count = written(tmp_path, rows, ALLOW_NONE)
    assert count == 3
    found = list(tables.rows(out / "distractors.parquet", Distractor))
    assert [(d.question_id, d.strategy) for d in found] == [("q0", "pseudo"), ("q0", "answer"), ("q4", "pseudo")]
    assert found[0].text == "Person 0 liked tea. Nobody knows why."
    assert found[1].text == "Person 0 liked tea. Person 0 was born in. Nobody knows why."
    assert json.loads((out / "report.json").read_text()) == {
        "toy/dev": {"pseudo": {"cut": {"pairs": 1, "kept": 1, "dropped": {}}}},
        "toy/train": {
            "answer": {"cut": {"pairs": 1, "kept": 1, "dropped": {}}},
            "pseudo": {"cut": {"pairs": 3, "kept": 1, "dropped": {"holds_answer": 1, "no_evidence": 1}}},
        },
    }


def test_evidence_of_other_positives_is_refused(tmp_path):
    with pytest.raises(ValueError, match="does not belong to"):
        written(tmp_path, [Evidence("q0", "p9", "pseudo", "x", [], [], None)], ALLOW_ALL)
    assert not (tmp_path / "distractors").exists()


@pytest.mark.parametrize(("changes", "said"), [
    *(({"forms": wrong}, "must hold cut") for wrong in ([], ["filled"], ["cut", "cut"])),
    ({"may_hold_answer": {"pseudo": True, "sentence": False, "window": True}}, "say true or false for answer, gold"),
])  # fmt: skip
def test_settings_are_checked(changes, said):
    with pytest.raises(ValueError, match=said):
        Distractors(**ALLOW_ALL.model_dump() | changes)
