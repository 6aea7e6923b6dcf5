"""Evidence by endpoint: a language model chooses among the spans of a positive."""

import re
from pathlib import Path

import pytest

from eadpr.settings import resolve as params
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, Passage, Question, Span
from eadpr.supervision.evidence import find_evidence
from eadpr.supervision.forms import cut
from eadpr.supervision.pairs import Pair
from eadpr.supervision.qa_model import Manifest, Prompt, write_manifest
from eadpr.writers.evidence import by_endpoint, choose_spans, parse_numbers
from tests import small_collection
from tests.chat_server import chatting, task
from tests.repository import ROOT
from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE, write_collection

pytestmark = pytest.mark.writers

TEXT = "Ann liked tea. She was born in Rome.\nRome is old. So is she."  # 60 characters
TEA, BORN = Span(0, 14), Span(15, 36)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with chatting() as server:
        yield server


def pair(answers=("Rome",), kind="string", text=TEXT) -> Pair:
    asked_of = Question("q", "Where?", list(answers), kind, None, None, None, None)
    return Pair(asked_of, Passage("p", "Ann", text, None), None)


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
    assert [cut(pair(), rows[i]).reason for i in ("q0", "q1")] == expected
    assert len(server.requests) == 7
    again = toy | {"out": toy["out"].with_name("again.parquet")}
    find_evidence(strategies, SEPARATE, HARDWARE, **again, chooser=by)
    assert len(server.requests) == 7
    assert again["out"].read_bytes() == toy["out"].read_bytes()


def test_the_stages_run_as_commands_with_what_configs_writes(server, tmp_path):
    server.says = lambda body: "2"
    values = params.load(ROOT / "params.yaml")
    values["annotator"]["model"] = "endpoint"
    values["distractors"]["forms"] = ["cut"]
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
    texts = {row.question_id: row.text for row in made if row.strategy == "pseudo"}
    expected = {f"q{i}": f"Person {i} liked tea. Nobody knows why." for i in range(6)}
    assert (texts, len(server.requests)) == (expected, 6)
