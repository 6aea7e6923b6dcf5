"""Language models in training data: distractors of the form `written`, and evidence by endpoint."""

import json
import re
from pathlib import Path

import pytest

from eadpr.corpus.sources import File
from eadpr.runtime import files
from eadpr.settings import resolve as params
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, Passage, Question, ScoredSpan, Span
from eadpr.supervision.annotator_manifest import Manifest, Prompt, write_manifest
from eadpr.supervision.config import Distractors
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.evidence import find_evidence
from eadpr.supervision.forms import cut
from eadpr.supervision.pairs import Pair
from eadpr.writers.config import EndpointTask, Writer, Written
from eadpr.writers.evidence import by_endpoint, choose_spans, parse_numbers
from eadpr.writers.original import Candidate
from eadpr.writers.written import write_by, write_distractor
from tests import small_collection
from tests.chat_server import CutOff, chatting, task
from tests.repository import ROOT
from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE, TOWNS, write_collection
from tests.test_distractors import ALLOW_ALL

pytestmark = pytest.mark.writers

TEXT = "Ann liked tea. She was born in Rome.\nRome is old. So is she."  # 60 characters
TEA, BORN = Span(0, 14), Span(15, 36)
SETTINGS = Written(by="given", strategies=["pseudo"], candidates=3)
FITS = "She, whose name was Ann, did like tea, and old she is."


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with chatting() as server:
        yield server


def pair(answers=("Rome",), kind="string", text=TEXT) -> Pair:
    asked_of = Question("q", "Where?", list(answers), kind, None, None, None, None)
    return Pair(asked_of, Passage("p", "Ann", text, None), None)


def row(*spans: Span, chosen=None, target="Rome") -> Evidence:
    picked = list(range(len(spans))) if chosen is None else chosen
    return Evidence("q", "p", "pseudo", target, [ScoredSpan(*s, None) for s in spans], picked, None)


def tried(*texts: str, evidence: Evidence | None = None):
    """Offer these texts one at a time."""

    def generate(original, numbers):
        return [Candidate("another title", text) for text in texts[numbers.start : numbers.stop]]

    return write_distractor(pair(), evidence or row(BORN), SETTINGS, generate)


# What is kept


def test_the_first_text_that_fits_is_the_distractor():
    attempt = tried(" - !", FITS, "Ann lived by the sea, and there she liked the tea.")
    assert attempt == ("kept", Distractor("q", "p", "pseudo", 0, "written", FITS, [BORN]), ())
    assert tried("No.", "No.", "No.", FITS).reason == "length"  # three are asked for


@pytest.mark.parametrize(("text", "reason"), [
    (" - !", "empty"),
    (TEXT.replace("\n", "  "), "positive"),
    ("Ann, who liked tea so much, came from the city of rome.", "holds_answer"),
    *[("x" * length, "kept" if 30 <= length <= 120 else "length") for length in (29, 30, 120, 121)],
])  # fmt: skip
def test_defects_of_a_text(text, reason):
    assert tried(text).reason == reason


def test_no_sentence_of_the_evidence_stays_as_it_was():
    """Ann and her tea are the evidence, in one span with what follows: either sentence alone is too much."""
    both = row(Span(0, 36))
    assert tried("Of old it is known: Ann liked\ntea. So did he.", evidence=row(TEA)).reason == "holds_evidence"
    assert tried("Of old it is known: Ann liked tea. So did he.", evidence=both).reason == "holds_evidence"
    assert tried("Of old it is known: Ann liked her tea. So did he.", evidence=both).reason == "kept"


@pytest.mark.parametrize(("positive", "evidence", "reason"), [
    (pair(), row(chosen=[]), "no_evidence"),
    (pair(answers=["yes"], kind="yes-no"), row(BORN), "no_answer"),
    (pair(text="Rome. Only Rome."), row(Span(0, 5)), "no_text"),  # the other sentence holds the answer too
    (pair(text="She was in Rome"), row(Span(0, 15)), "nothing_left"),
])  # fmt: skip
def test_nothing_is_written_from(positive, evidence, reason):
    generate = lambda original, numbers: [] if not original.text else 1 / 0  # noqa: E731
    assert write_distractor(positive, evidence, SETTINGS, generate).reason == reason


# The stage

TEXT_OF = {f"q{i}": f"It is said of person {i} that a cup of tea was liked, who knows why." for i in range(8)}


FORMS = Distractors(**ALLOW_ALL.model_dump() | {"forms": ["cut", "written"]})


def writer(by: str, settings: EndpointTask | None, *texts: File) -> Writer:
    return Writer(by=by, settings=settings, texts=list(texts))


@pytest.fixture
def towns(tmp_path) -> Path:
    """A collection with the sentences of the towns as evidence; q4 and q5 are evaluated, not learnt from."""
    write_collection(tmp_path / "toy")
    found = ((i, town, strategy) for i, town in enumerate(TOWNS[:6]) for strategy in ("pseudo", "gold"))
    spans = {town: [ScoredSpan(20, 42 + len(town), None)] for town in TOWNS}
    rows = (Evidence(f"q{i}", f"p{i}", by, town, spans[town], [0], None) for i, town, by in found)
    tables.write(tmp_path / "toy" / "evidence.parquet", Evidence, rows)
    return tmp_path / "toy"


def write(folder: Path, out: Path, by: Writer) -> list[Distractor]:
    given = {"records": folder / "records", "positives": folder / "positives", "evidence": folder / "evidence.parquet"}
    add = write_by(by, SETTINGS, 0, folds=folder / "positives" / "folds.parquet", sources=folder, raw=folder)
    write_distractors(FORMS, **given, out=out, write=add)
    return list(tables.rows(out / "distractors.parquet", Distractor))


def says(body: dict) -> str:
    number = re.search(r"Person (\d)", body["messages"][0]["content"])[1]
    return f" {TEXT_OF[f'q{number}']}\n"


def test_an_endpoint_writes_for_what_is_learnt_from_and_is_asked_once(server, towns, tmp_path):
    server.says = says
    server.states = [(429, {"Retry-After": "0"}, "")]
    found = write(towns, tmp_path / "out", writer("endpoint", task(server)))
    texts = {one.question_id: one for one in found if one.form == "written"}
    assert {i: one.text for i, one in texts.items()} == {i: TEXT_OF[i] for i in ("q0", "q1", "q2", "q3")}
    assert {(one.strategy, one.level) for one in texts.values()} == {("pseudo", 0)}
    assert [*texts["q2"].removed] == [Span(20, 48)]
    prompts = {body["messages"][0]["content"] for body in server.requests}
    expected = {f"Where was Person {i} born? | Person {i} | Person {i} liked tea. Nobody knows why." for i in range(4)}
    assert prompts == expected
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["toy/train"]["pseudo"]["written"] == {"pairs": 4, "kept": 4, "dropped": {}}
    assert ["written" in report[name][by] for name, by in (("toy/train", "gold"), ("toy/dev", "pseudo"))] == [False] * 2
    assert len(server.requests) == 5
    write(towns, tmp_path / "again", writer("endpoint", task(server)))
    assert len(server.requests) == 5
    assert files.tree_sha256(tmp_path / "again") == files.tree_sha256(tmp_path / "out")


def saying(server, choose) -> dict[str, int]:
    """Have the server say what `choose` makes of a text, the number of its person and how often that was asked for,
    which is returned by number."""
    seen: dict[str, int] = {}

    def said(body):
        text = says(body)
        number = re.search(r"person (\d)", text)[1]
        seen[number] = seen.get(number, 0) + 1
        return choose(text, number, seen[number])

    server.says = said
    return seen


@pytest.mark.parametrize(
    ("once", "always", "reason"),
    [(lambda text: "", lambda text: f"{text} It was Cassel.", "holds_answer"), (CutOff, CutOff, "cut_off")],
)
def test_what_does_not_fit_is_asked_for_again_and_counted(server, towns, tmp_path, once, always, reason):
    """The second text of Person 1 fits; those of Person 2 name its town, or are cut off however well they fit."""

    def choose(text, number, time):
        if number == "2":
            return always(text)
        return once(text) if (number, time) == ("1", 1) else text

    seen = saying(server, choose)
    found = write(towns, tmp_path / "out", writer("endpoint", task(server)))
    assert [one.question_id for one in found if one.form == "written"] == ["q0", "q1", "q3"]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["toy/train"]["pseudo"]["written"] == {"pairs": 4, "kept": 3, "dropped": {reason: 1}}
    assert seen == {"0": 1, "1": 2, "2": 3, "3": 1}
    assert len({body["seed"] for body in server.requests if "Person 2" in body["messages"][0]["content"]}) == 3


def test_a_killed_run_asks_only_what_it_had_not_been_told(server, towns, tmp_path):
    server.says = lambda body: None if "Person 2" in body["messages"][0]["content"] else says(body)
    with pytest.raises(OSError, match="HTTP 401"):
        write(towns, tmp_path / "out", writer("endpoint", task(server)))
    assert not (tmp_path / "out").exists()
    before = len(server.requests)
    server.says = says
    assert len(write(towns, tmp_path / "out", writer("endpoint", task(server)))) == 16
    assert [says(body) for body in server.requests[before:]] == [f" {TEXT_OF['q2']}\n"]


# Evidence

FIND = "{question} | {answer} | {title}{spans}"


@pytest.mark.parametrize(("reply", "numbers"), [
    ("2", [2]),
    ("3.", [3]),
    ("3, 1,3", [1, 3]),
    ("0", []),
    *((reply, None) for reply in ("0, 1", "4", "", "2 3", "٢", "1" * 5000)),
])  # fmt: skip
def test_a_reply_is_numbers_or_none(reply, numbers):
    assert parse_numbers(reply, 3) == numbers


def test_an_unreadable_reply_is_asked_for_once_more(server):
    replies = iter(["The second.", "2"])
    server.says = lambda body: next(replies)
    settings = task(server, prompt=FIND, temperature=0.0)
    spans = [TEA, BORN, Span(37, 60)]
    assert choose_spans(settings, pair(), spans) == [1]
    first, second = (body["messages"] for body in server.requests)
    prompt = "Where? | Rome | Ann\n1. Ann liked tea.\n2. She was born in Rome.\n3. Rome is old. So is she."
    assert first == [{"role": "user", "content": prompt}]
    assert second[:2] == [*first, {"role": "assistant", "content": "The second."}]
    assert second[2]["content"].startswith("This cannot be used")
    assert "seed" not in server.requests[0]
    assert (choose_spans(settings, pair(), spans), len(server.requests)) == ([1], 2)
    server.says = lambda body: "The second."
    assert choose_spans(settings.model_copy(update={"model": "other"}), pair(), spans) is None
    assert len(server.requests) == 4


@pytest.mark.parametrize("reply", [
    (400, {}, '{"error": {"code": "context_length_exceeded"}}'),
    (200, {}, '{"choices": [{"message": {"content": null}, "finish_reason": "length"}]}'),
])  # fmt: skip
def test_nothing_is_asked_again_where_nothing_was_said(server, reply):
    server.states = [reply]
    assert choose_spans(task(server, prompt=FIND), pair(), [TEA, BORN]) is None
    assert len(server.requests) == 1


@pytest.fixture
def toy(tmp_path):
    records, positives = write_collection(tmp_path)
    folder = tmp_path / "annotator"
    folder.mkdir()
    write_manifest(folder, Manifest("endpoint", Prompt("{question} {context}", False), [], {}))
    out = tmp_path / "evidence.parquet"
    return {"records": records, "positives": positives, "annotator_folder": folder, "out": out}


def test_the_evidence_of_every_positive_is_asked_for_and_what_is_no_reply_is_no_evidence(server, toy):
    """q0's reply is no number, q1's says that there is none."""
    replies = {"0": "none of them", "1": "0"}
    server.says = lambda body: replies.get(re.search(r"Person (\d)", body["messages"][0]["content"])[1], "2")
    by = by_endpoint(task(server, prompt=FIND))
    strategies = EVIDENCE.model_copy(update={"strategies": ["pseudo", "placebo"]})
    assert find_evidence(strategies, SEPARATE, HARDWARE, **toy, chooser=by) == 12
    rows = {row.question_id: row for row in tables.rows(toy["out"], Evidence) if row.strategy == "pseudo"}
    expected = {"q0": ([], 3), "q1": ([], 0), **{f"q{i}": ([1], 3) for i in range(2, 6)}}
    assert {i: (row.chosen, len(row.spans)) for i, row in rows.items()} == expected
    assert rows["q2"].chosen_spans == [Span(20, 48)]
    expected = ["unreadable_reply", "no_evidence"]
    assert [cut(pair(), rows[i], may_hold_answer=True).reason for i in ("q0", "q1")] == expected
    assert len(server.requests) == 7
    again = toy | {"out": toy["out"].with_name("again.parquet")}
    find_evidence(strategies, SEPARATE, HARDWARE, **again, chooser=by)
    assert len(server.requests) == 7
    assert again["out"].read_bytes() == toy["out"].read_bytes()


def test_the_stages_run_as_commands_with_what_configs_writes(server, tmp_path):
    """An endpoint finds the evidence and writes the distractors."""
    server.says = lambda body: "2" if "Which of these" in body["messages"][0]["content"] else says(body)
    values = params.load(ROOT / "params.yaml")
    values["annotator"]["model"] = "endpoint"
    values["distractors"]["forms"] = ["cut", "written"]
    values["endpoint"] |= {"url": server.url, "key_variable": "MY_KEY"}
    found = params.configs(values)
    records, positives = write_collection(tmp_path)
    folders = {"--records": records, "--positives": positives}
    out = {name: tmp_path / name for name in ("annotator", "evidence.parquet", "distractors")}

    def command(name: str, result: Path, **given: Path):
        sections = found[f"{name}.json"]
        sections |= {"sets": SEPARATE.model_dump()} if "sets" in sections else {}
        config = small_collection.write_config(tmp_path / f"{name}.json", **sections)
        options = {"--config": config, **folders, **{f"--{one}": path for one, path in given.items()}, "--out": result}
        return name, options, tmp_path / "cache"

    done = small_collection.stages(
        command("annotator", out["annotator"]),
        command("evidence", out["evidence.parquet"], annotator=out["annotator"]),
        command("distractors", out["distractors"], evidence=out["evidence.parquet"]),
    )
    assert done.returncode == 0, done.stderr
    assert "0 annotators (endpoint)" in done.stdout
    made = tables.rows(out["distractors"] / "distractors.parquet", Distractor)
    texts = {one.question_id: one.text for one in made if one.form == "written"}
    assert (texts, len(server.requests)) == ({f"q{i}": TEXT_OF[f"q{i}"] for i in range(4)}, 6 + 4)
