"""Language models that write: requests, that none is sent twice, and the texts of a collection's own files."""

import json
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from eadpr.corpus.sources import File
from eadpr.runtime import cache
from eadpr.storage import tables
from eadpr.storage.records import Evidence, Passage, Question, Span
from eadpr.supervision.annotator import build_annotator
from eadpr.supervision.evidence import find_evidence
from eadpr.supervision.pairs import Pair
from eadpr.writers import endpoint
from eadpr.writers.endpoint import AT_ONCE, RETRY, generate_by_endpoint
from eadpr.writers.evidence import choose_sentences
from eadpr.writers.given import generate_from_files
from eadpr.writers.original import Candidate, Generate, Original
from tests.chat_server import CutOff, chatting, task
from tests.supervision_toy import EVIDENCE, HARDWARE, SHARED, annotator_settings, write_collection
from tests.toy_records import question

pytestmark = pytest.mark.writers

TEXT = "Ada was born in London. She liked tea. The tea was green. Nobody knows why."
ADA = Original(question("q", ["London"]), Passage("p", "Ada", TEXT, None), [Span(0, 23)], TEXT[24:])


def texts(generate, original=ADA, numbers=range(8)) -> list[str]:
    return [candidate.text for candidate in generate(original, numbers)]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with chatting() as server:
        yield server


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The pauses between tries, which take no time."""
    seconds = []
    monkeypatch.setattr("urllib3.util.retry.time", SimpleNamespace(sleep=seconds.append, time=time.time))
    return seconds


def by_endpoint(server, seed=0, **changes) -> Generate:
    return generate_by_endpoint(task(server, **changes), seed)


def first_answer(server, number=0, **changes) -> str | None:
    return texts(by_endpoint(server, **changes), numbers=range(number, number + 1))[0]


# endpoint


def test_an_endpoint_is_asked_once_per_number_and_never_again(server, monkeypatch):
    generate = by_endpoint(server)
    candidates = generate(ADA, range(AT_ONCE + 2))
    assert len({candidate.text for candidate in candidates}) == AT_ONCE + 2
    assert all(candidate.title == "Ada" and candidate.text == candidate.text.strip() for candidate in candidates)
    first = {name: value for name, value in server.requests[0].items() if name != "seed"}
    message = {"role": "user", "content": f"q? | Ada | {ADA.text}"}
    assert first == {"model": "m", "temperature": 0.5, "top_p": 0.95, "max_tokens": 7, "messages": [message]}
    assert set(server.keys) == {"Bearer sk-secret"}
    monkeypatch.delenv("MY_KEY")
    assert by_endpoint(server)(ADA, range(AT_ONCE + 2)) == candidates
    monkeypatch.setenv("MY_KEY", "sk-secret")
    assert generate(ADA._replace(text=""), range(2)) == []
    assert len(server.requests) == AT_ONCE + 2
    for changes in ({"model": "n"}, {"prompt": "{text}"}, {"temperature": 0.6}):
        first_answer(server, **changes)
    by_endpoint(server, seed=1)(ADA, range(1))
    assert len(server.requests) == AT_ONCE + 2 + 4


def test_the_key_is_shown_and_written_nowhere(server):
    server.states = [(401, {}, "Incorrect key: sk-secret.")]
    with pytest.raises(OSError, match=r"HTTP 401: 'Incorrect key: <key>\.'"):
        first_answer(server)
    first_answer(server)
    (reply,) = (cache.root() / "endpoint").rglob("*.json")
    assert "sk-secret" not in reply.read_text()


def test_a_reply_that_was_cut_off_is_no_text_and_stays_none(server):
    """Nor is one that has not begun, as of a model that still thinks when it is stopped."""
    replies = iter([CutOff("Ada was"), CutOff(), "Ada was."])
    server.says = lambda body: next(replies)
    for _ in range(2):
        assert [first_answer(server, number) for number in range(3)] == [None, None, "Ada was."]
    assert len(server.requests) == 3
    server.says = lambda body: "Ada was in London."
    assert first_answer(server, max_tokens=8) == "Ada was in London."


def test_the_key_follows_no_redirect(server):
    server.states = [(307, {"Location": f"{server.url}/chat/completions"}, "")]
    with pytest.raises(OSError, match="HTTP 307"):
        first_answer(server)
    assert len(server.requests) == 1


def test_after_temporary_failures_it_is_asked_again_with_growing_pauses(server, pauses):
    server.states = [(500, {}, ""), (429, {"Retry-After": "7"}, ""), (524, {}, ""), (429, {}, "")]
    assert first_answer(server)
    assert pauses == [7, 4, 8]
    server.states = [(429, {}, "no quota left for sk-secret")] * (RETRY.total + 1)
    with pytest.raises(OSError, match=r"HTTP 429: 'no quota left for <key>'.* run again later"):
        first_answer(server, 1)


def test_a_server_that_is_not_there_and_one_that_wants_no_key(server, pauses, monkeypatch, tmp_path):
    monkeypatch.delenv("MY_KEY")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(netrc))
    with pytest.raises(ValueError, match="MY_KEY is not set"):
        first_answer(server)
    first_answer(server, key_variable=None)
    assert server.keys == [None]
    with pytest.raises(OSError, match=r"port=9.*/v1/chat/completions"):
        first_answer(server, key_variable=None, url="http://127.0.0.1:9/v1")
    assert sum(pauses) == 126


@pytest.mark.parametrize("answer", ["no json", "[]", '{"choices": []}', '{"choices": [{"message": {"content": 1}}]}'])
def test_an_answer_that_makes_no_sense_is_refused(server, answer):
    server.answer = answer
    with pytest.raises(OSError, match=r"without choices\[0\]\.message"):
        first_answer(server)


@pytest.mark.parametrize("limit", ["LARGEST", "LONGEST"])
def test_an_answer_without_end_is_not_read(server, monkeypatch, limit):
    monkeypatch.setattr(endpoint, limit, 0)
    with pytest.raises(OSError, match=r"completions answers with more than .*OpenAI-compatible"):
        first_answer(server)


def test_a_refusal_is_an_empty_candidate_and_half_a_character_is_none(server):
    messages = [r'"content": null, "refusal": "No."', r'"content": "Tea \ud83c"', '"role": "assistant"']
    server.states = [(200, {}, f'{{"choices": [{{"message": {{{message}}}}}]}}') for message in messages]
    assert [first_answer(server, number) for number in range(3)] == ["", "Tea ?", ""]


@pytest.mark.parametrize("reply", [
    (400, {}, '{"error": {"code": "content_filter", "message": "The response was filtered."}}'),
    (400, {}, '{"error": {"code": 400, "message": "This model\'s maximum context length is 512 tokens."}}'),
    (200, {}, '{"choices": [{"message": {"role": "assistant"}, "finish_reason": "length"}]}'),
    (200, {}, '{"choices": [{"message": {"content": "Half a"}, "finish_reason": "content_filter"}]}'),
])  # fmt: skip
def test_text_stopped_by_a_filter_or_a_limit_is_none_and_others_are_written(server, reply):
    server.states = [reply]
    assert first_answer(server) is None
    assert (first_answer(server) is None) == (reply[0] == 200), "what the server refuses it may take tomorrow"


@pytest.mark.parametrize("text", ["model_not_found", "max_tokens is too large: 9. This model's maximum context length"])
def test_a_setting_that_all_requests_share_stops_the_run(server, text):
    server.states = [(400, {}, text)]
    with pytest.raises(OSError, match=f"HTTP 400: .*{text}"):
        first_answer(server)


# evidence

REPLIES = {f"q{i}?": text for i, text in enumerate(["2", "Sentence 3.", "0", "2 or 3", "5", CutOff("2"), ""])}


def test_a_language_model_names_the_sentence_and_who_has_none_is_counted(server, capsys):
    """Two are named: no number, two, or one that no sentence has names none, and neither do halves and refusals."""
    server.says = lambda body: REPLIES[body["messages"][0]["content"].partition("Question: ")[2].partition("\n")[0]]
    ada = Passage("p", "Ada", TEXT.replace("tea. ", "tea.\n"), None)
    server.states = [(400, {}, "content_filter")]
    assert choose_sentences(task(server), [Pair(question("q0", []), ada, None)]) == [[]]
    assert "none was named of 1 of 1 positives (1 refused or cut off, else" in capsys.readouterr().err
    pairs = [Pair(question(f"q{i}", []), ada, None) for i in range(len(REPLIES))]
    assert choose_sentences(task(server), pairs) == [[1], [2], [], [], [], [], []]
    assert "none was named of 5 of 7 positives (1 refused or cut off, else" in capsys.readouterr().err
    prompts = {body["messages"][0]["content"] for body in server.requests}
    assert len(server.requests) == len(prompts) + 1 == 8, "the refused one again"
    sentences = "1. Ada was born in London.\n2. She liked tea.\n3. The tea was green.\n4. Nobody knows why."
    assert all('the passage "Ada"' in text and text.endswith(f"?\n\n{sentences}") for text in prompts)
    assert choose_sentences(task(server), pairs[:2]) == [[1], [2]]
    assert len(server.requests) == 8


def test_the_stages_find_evidence_without_answers_and_build_no_model(server, tmp_path):
    records, positives = write_collection(tmp_path)
    unanswered = [row._replace(answers=[]) for row in tables.rows(records / "questions.parquet", Question)]
    tables.write(records / "questions.parquet", Question, unanswered)
    settings, folders = annotator_settings(), {"records": records, "positives": positives}
    settings = settings.model_copy(update={"kind": "endpoint"})
    build_annotator(settings, SHARED, HARDWARE, **folders, out=tmp_path / "annotator")
    server.says = lambda body: "2" if "Person 4" in str(body) else "no idea"
    options = {"annotator_folder": tmp_path / "annotator", "choose": partial(choose_sentences, task(server))}
    evidence = EVIDENCE.model_copy(update={"strategies": ["pseudo", "placebo"]})
    assert find_evidence(evidence, SHARED, HARDWARE, **folders, **options, out=tmp_path / "e.parquet") == 12
    rows = {(row.question_id, row.strategy): row for row in tables.rows(tmp_path / "e.parquet", Evidence)}
    assert {key for key, row in rows.items() if row.chosen} == {("q4", "pseudo"), ("q4", "placebo")}
    assert [span[:2] for span in rows["q4", "pseudo"].chosen_spans] == [(20, 47)]


# given


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


OWN = File(kind="near_duplicates", path="own.jsonl")
RAMDOCS = {
    "question": "q?", "gold_answers": ["London"],
    "documents": [
        {"text": "She is of London.", "type": "correct"}, {"text": "She is of Paris.", "type": "misinfo"},
        {"text": "She is of London.", "type": "noise"}, {"text": "Noise.", "type": "noise"},
    ],
}  # fmt: skip


def test_texts_of_files_go_by_id_or_question(tmp_path):
    path = lines(
        tmp_path / "own.jsonl", {"question_id": "q", "text": "One.", "title": "T"},
        {"question": "q?", "text": "Two."},
        {"question_id": "q?", "text": "Four."}, {"question_id": "q", "text": "Five.", "title": ""},
    )  # fmt: skip
    make = generate_from_files([(OWN, path)])
    assert make(ADA, range(9)) == [Candidate("T", "One."), Candidate("", "Five."), Candidate("Ada", "Two.")]
    assert make(ADA, range(1, 2)) == [Candidate("", "Five.")]


def test_documents_of_ramdocs_that_are_not_correct_are_given(tmp_path):
    path = lines(tmp_path / "r.jsonl", RAMDOCS)
    file = File(kind="ramdocs", path="r.jsonl", set="ramdocs", split="test")
    assert texts(generate_from_files([(file, path)])) == ["She is of Paris.", "Noise."]


def test_no_file_is_refused():
    with pytest.raises(ValueError, match="no file of kind near_duplicates"):
        generate_from_files([])
