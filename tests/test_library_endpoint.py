"""Awareness of a model behind an address: what it is asked, and vectors that make no sense."""

import json
import math

import pytest
import typer
from typer.testing import CliRunner

from eadpr.library import endpoint as module
from eadpr.library.awareness import awareness
from eadpr.library.endpoint import endpoint
from eadpr.library.texts import distractors
from stages import probe_model
from tests.chat_server import chatting
from tests.test_library_awareness import NONE, ROW

pytestmark = pytest.mark.library
KEY = "sk-0123456789abcdef"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with chatting() as server:
        yield server


def knows(texts: list[str]) -> list[list[float]]:
    """Questions and passages with the answer lie along the first axis."""
    return [[float("London" in text or text.endswith("?")), 0.5] for text in texts]


def test_scores_are_dot_products_of_its_vectors_and_each_text_is_sent_once(server, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    server.embeds = knows
    scorer = endpoint(f"{server.url}/", "bge", key_variable="MY_KEY", join="{title}: {text}", prompts=("q ", "p "))
    titles, texts = ["Ada", "", "Ada"], ["in London", "in Rome", "in London"]
    assert scorer.score(["Where?"] * 3, titles, texts).tolist() == [1.25, 0.25, 1.25]
    sent = [(body["model"], body["encoding_format"], body["input"]) for body in server.requests]
    assert sent == [("bge", "float", ["q Where?"]), ("bge", "float", ["p Ada: in London", "p in Rome"])]
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert scorer.inputs(titles, texts)[:2] == ["p Ada: in London", "p in Rome"]
    server.states = [(429, {"Retry-After": "0"}, "")]
    assert scorer.score(["Where?"], ["Ada"], ["in London"]).tolist() == [1.25]


def test_an_index_that_is_left_out_is_the_place_in_the_list(server):
    server.answer = json.dumps({"data": [{"embedding": [2.0]}, {"embedding": [3.0], "index": 1}]})
    scorer = endpoint(server.url, "m")
    assert scorer.score(["a?", "b?"], ["", ""], ["c", "d"]).tolist() == [4.0, 9.0]
    server.answer = json.dumps({"data": [{"embedding": [2.0]}, {"embedding": [3.0], "index": "1"}]})
    with pytest.raises(OSError, match=r"gave vectors number \[0, '1'\] for 2 texts"):
        scorer.score(["a?", "b?"], ["", ""], ["c", "d"])


def test_what_it_knows_is_measured(server):
    server.embeds = knows
    found = awareness(endpoint(server.url, "m"), distractors([ROW, NONE]))
    assert found["controlled_aa_evidence"].interval.estimate == found["aa"].interval.estimate == 1


@pytest.mark.parametrize(("embeds", "match"), [
    (lambda texts: [[1.0, math.nan]] * len(texts), "as many finite numbers"),
    (lambda texts: [[1.0, None]] * len(texts), "as many finite numbers"),
    (lambda texts: [[1e39, 1.0]] * len(texts), "as many finite numbers"),
    (lambda texts: [[10**400, 1.0]] * len(texts), "as many finite numbers"),
    (lambda texts: [[1.0]] * (len(texts) + 1), r"number \[0, 1\] for 1 texts"),
    (lambda texts: [[1.0, 2.0][: 1 + len(text) % 2] for text in texts], "as many finite numbers"),
    (lambda texts: [[1.0] * len(texts)] * len(texts), "questions have vectors of 1 numbers, passages of 7"),
    (lambda texts: ["AACAPw=="] * len(texts), "as many finite numbers"),
    (lambda texts: [[]] * len(texts), "as many finite numbers"),
])  # fmt: skip
def test_vectors_that_make_no_sense_are_refused(server, embeds, match):
    server.embeds = embeds
    with pytest.raises((OSError, ValueError), match=match):
        awareness(endpoint(server.url, "m"), distractors([ROW]))


def test_a_bad_address_and_a_reply_without_vectors_are_named(server, monkeypatch):
    monkeypatch.setattr("eadpr.writers.endpoint.PAUSE", 0)
    for url in ("localhost:8000/v1", "http://me:secret@there/v1"):
        with pytest.raises(ValueError, match="is no address of an endpoint; give one such as"):
            endpoint(url, "m")
    for server.answer in (json.dumps({"choices": []}), "[" * 100_000):
        with pytest.raises(OSError, match=r"without data\[\].embedding.*OpenAI-compatible"):
            awareness(endpoint(server.url, "m"), distractors([ROW]))
    with pytest.raises(ValueError, match="NO_KEY is not set; set it to your key, or name no key_variable"):
        awareness(endpoint(server.url, "m", key_variable="NO_KEY"), distractors([ROW]))


def test_the_command_puts_it_in_a_row_and_plots_it(server, tmp_path):
    server.embeds = knows
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"asked": ROW["question"], "gold": ["London"], "text": ROW["text"]}) + "\n")
    app = typer.Typer()
    app.command()(probe_model.main)
    words = [f"{server.url}#bge", "--rows", str(rows), "--key-variable", "MY_KEY", "--columns", "question=asked"]
    words += ["--columns", "answers=gold", "--out", str(tmp_path / "t.md"), "--plot", str(tmp_path / "t.svg")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.exception
    assert f"| {server.url}#bge | 100.0 [100.0, 100.0] (n=1) |" in (tmp_path / "t.md").read_text()
    assert (tmp_path / "t.svg").read_text().startswith("<?xml")
    for change, said in [
        ([server.url, "--rows", str(rows)], f"{server.url} names no model of this endpoint; write it behind a #"),
        ([*words, "--plot", "t.png"], "--plot t.png: only SVG is written; let the name end in .svg"),
        ([*words, "--columns", "question"], "columns: 'question' is not FIELD=COLUMN, as in text=body"),
    ]:
        assert said in str(CliRunner().invoke(app, change).exception)
