"""Forms of a distractor on passages that can be read: what is put in, and what cannot be had."""

import json

import pytest

from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, ScoredSpan, Span
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.forms import fill, make_forms
from tests.supervision_toy import write_collection
from tests.test_distractors import CUT, pair

TEXT = "Ann liked tea. She was born in Rome.\nRome is old. So is she."
TEA, BORN, OLD, SHE = Span(0, 14), Span(15, 36), Span(37, 49), Span(50, 60)
PAIR = pair(TEXT)
BOB, CID, DAN, EVE = "Bob saw the cold sea.", "Cid has no cat.", "Dan is ill.", "Eve ran."


def row(*spans: Span, strategy="pseudo", target="Rome") -> Evidence:
    return Evidence("q", "p", strategy, target, [ScoredSpan(*s, None) for s in spans], list(range(len(spans))), None)


class Giving(Fillers):
    """Fillers that give the first of these that fits."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(0, [])
        self._sentences = sentences

    def candidates(self, *_: object) -> tuple[str, ...]:
        return self._sentences


def fill_with(evidence: Evidence, *sentences: str):
    return fill(PAIR, evidence, Giving(*sentences))


@pytest.mark.parametrize(("evidence", "expected"), [
    (row(BORN), f"Ann liked tea. {BOB}\nRome is old. So is she."),
    (row(BORN, OLD), f"Ann liked tea. {BOB}\n{CID} So is she."),
    (row(Span(14, 37)), f"Ann liked tea. {BOB}\nRome is old. So is she."),  # with white space, as some sources cut
    (row(TEA, SHE), f"{BOB} She was born in Rome.\nRome is old. {CID}"),
])  # fmt: skip
def test_each_sentence_of_the_evidence_gives_way_to_a_filler_of_its_own(evidence, expected):
    attempt = fill_with(evidence, BOB, CID, DAN)
    assert (attempt.reason, attempt.distractor.text, attempt.distractor.form) == ("kept", expected, "filled")
    assert [*attempt.distractor.removed] == [Span(s.start, s.end) for s in evidence.spans]


@pytest.mark.parametrize(("evidence", "sentences", "reason"), [
    (row(Span(15, 30)), [BOB], "not_sentences"),
    (row(Span(15, 49)), [BOB], "not_sentences"),  # two in one piece
    (row(BORN, Span(37, 41)), [BOB, CID], "not_sentences"),
    (row(BORN), [], "no_filler"),
    (row(OLD, SHE), [CID], "no_filler"),
    (row(TEA, BORN, OLD, SHE), [BOB, CID, DAN, EVE], "little_left"),
    (row(), [BOB], "no_evidence"),
    (row(target=""), [BOB], "no_answer"),
])  # fmt: skip
def test_what_cannot_be_filled(evidence, sentences, reason):
    assert fill_with(evidence, *sentences) == (reason, None, ())


def test_an_answer_stands_in_what_is_filled_only_where_it_may():
    assert fill_with(row(BORN, strategy="sentence"), BOB).reason == "holds_answer"
    assert fill_with(row(BORN, OLD, strategy="sentence"), BOB, CID).reason == "kept"


ALL_FORMS = CUT.model_copy(update={"forms": ["cut", "filled"]})


def test_forms_of_evidence_and_placebos_in_order():
    """Gold and pseudo-evidence share a sentence, filled alike; placebos get others, but a placebo of words none."""
    rows = [
        row(OLD, strategy="placebo"), row(BORN), row(Span(0, 3), strategy="placebo_words"),
        row(BORN, OLD, strategy="gold"),
    ]  # fmt: skip
    attempts = [
        (row.strategy, form, attempt.reason, attempt.distractor and attempt.distractor.text)
        for row, form, attempt in make_forms(PAIR, rows, ALL_FORMS.forms, Giving(CID, BOB, DAN))
    ]
    assert attempts == [
        ("placebo", "cut", "kept", "Ann liked tea. She was born in Rome. So is she."),
        ("placebo", "filled", "kept", f"Ann liked tea. She was born in Rome.\n{DAN} So is she."),
        ("pseudo", "cut", "kept", "Ann liked tea. Rome is old. So is she."),
        ("pseudo", "filled", "kept", f"Ann liked tea. {CID}\nRome is old. So is she."),
        ("placebo_words", "cut", "kept", "liked tea. She was born in Rome.\nRome is old. So is she."),
        ("placebo_words", "filled", "not_sentences", None),
        ("gold", "cut", "kept", "Ann liked tea. So is she."),
        ("gold", "filled", "kept", f"Ann liked tea. {CID}\n{BOB} So is she."),
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_no_two_placebos_have_the_same_filler(first):
    """Whichever row comes first, the second placebo gives way."""
    rows = [row(TEA, strategy="placebo"), row(OLD, strategy="placebo_second")]
    ordered = [row(BORN), rows[first], rows[1 - first]]
    attempts = make_forms(PAIR, ordered, ["filled"], Giving(CID, BOB, DAN))
    expected = {"pseudo": [CID], "placebo": [BOB], "placebo_second": [DAN]}
    assert {evidence.strategy: [*attempt.fillers] for evidence, _, attempt in attempts} == expected


def test_the_stage_writes_every_form_and_counts_it(tmp_path):
    """Fillers are sentences of other persons. Without `filled` the cut ones are the same."""
    records, positives = write_collection(tmp_path)
    rows = [
        Evidence("q0", "p0", "pseudo", "Arlo", [ScoredSpan(20, 46, 2.0)], [0], 0.1),
        Evidence("q0", "p0", "placebo", "Arlo", [ScoredSpan(0, 19, None)], [0], None),
        Evidence("q1", "p1", "pseudo", "Brund", [], [], 0.1),
        Evidence("q4", "p4", "pseudo", "Elmar", [ScoredSpan(20, 47, 2.0)], [0], 0.1),
    ]
    tables.write(tmp_path / "evidence.parquet", Evidence, rows)
    inputs = {"records": records, "positives": positives, "evidence": tmp_path / "evidence.parquet"}
    out = tmp_path / "distractors"
    write_distractors(CUT, **inputs, out=out)
    alone = list(tables.rows(out / "distractors.parquet", Distractor))
    count = write_distractors(ALL_FORMS, **inputs, out=out)
    written = list(tables.rows(out / "distractors.parquet", Distractor))
    assert [row for row in written if row.form == "cut"] == alone
    texts = {(d.question_id, d.strategy, d.form): d.text for d in written}
    assert count == len(texts) == 6
    start, _, end = texts["q0", "pseudo", "filled"].partition("Person 0 liked tea. ")
    assert start == ""
    assert end.endswith(" Nobody knows why.")
    assert end.startswith("Person ")
    assert "Arlo" not in end
    assert texts["q0", "placebo", "filled"].endswith(" Person 0 was born in Arlo. Nobody knows why.")
    assert not texts["q0", "placebo", "filled"].startswith(("Person 0", end.split(".")[0]))
    report = json.loads((out / "report.json").read_text())
    counts = {"pairs": 2, "kept": 1, "dropped": {"no_evidence": 1}}
    assert report["toy/train"]["pseudo"] == dict.fromkeys(ALL_FORMS.forms, counts)
    assert set(report["toy/train"]["placebo"]) == {"cut", "filled"}
    assert texts["q0", "pseudo", "cut"] == "Person 0 liked tea. Nobody knows why."
