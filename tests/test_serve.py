"""`ask --serve`: who may ask and what, questions side by side that do not mix, and the page in a browser."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from axe_playwright_python.sync_playwright import Axe

from eadpr.asking import ask, serve
from eadpr.asking.ask import Reply
from eadpr.asking.candidates import ProposedAnswer
from eadpr.asking.finder import FoundPassage
from eadpr.search.config import Encode
from eadpr.search.encode import encode
from eadpr.storage.records import Passage, Span
from stages import ask as command
from tests.browsers import browsers, pages
from tests.small_collection import ENCODE, WORDS, write_model
from tests.test_ask import EVIDENCE, HARDWARE
from tests.test_ask import made as made

JSON = {"Content-Type": "application/json"}
HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">{{name}}"
TEXT = f"🜂 𝔘 Rome is old. It was founded by Romulus. {HOSTILE}"  # two characters that are two of JavaScript's each


@contextmanager
def serving(arms: dict, name: str = "toy") -> Iterator[int]:
    """The port of a server that runs during the block."""
    listener = serve.listening(0)
    port = listener.getsockname()[1]
    server = serve.server(serve.application(name, arms, top=2, port=port))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join()


def sent(port: int, body: object = None, path: str = "/ask", method: str = "POST", **headers: str) -> SimpleNamespace:
    """The response; `body` is sent as JSON unless it is bytes, and a header's name is written with `_` for `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    given = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body).encode(), given)
    response = connection.getresponse()
    found = SimpleNamespace(status=response.status, headers=response.headers, text=response.read().decode())
    connection.close()
    return found


def echo(question: str, top: int) -> Reply:
    """A reply that says the question; "break" is what nobody foresaw."""
    if question == "break":
        raise RuntimeError("secret")
    return Reply(question, [], [])


@pytest.fixture(scope="module")
def echoing():
    with serving({"a": echo}) as port:
        yield port


@pytest.mark.parametrize(
    ("status", "said", "request_"),
    [
        (200, '"question":"where?"', {}),
        (200, '"question":"where?"', {"Host": "LOCALHOST:{port}", "Content_Type": "Application/JSON; charset=utf-8"}),
        (421, "has no other name", {"Host": "evil.example:{port}"}),
        (421, "has no other name", {"Host": "127.0.0.1"}),
        (421, "has no other name", {"Host": "127.0.0.1:1", "path": "/", "method": "GET"}),
        (421, "has no other name", {"Host": "localhost.evil.example:{port}", "path": "/none"}),
        (415, "application/json", {"Content_Type": "text/plain"}),
        (415, "application/json", {"Content_Type": "application/x-www-form-urlencoded"}),
        (415, "application/json", {"Content_Type": ""}),
        (405, "Method Not Allowed", {"method": "GET"}),
        (405, "Method Not Allowed", {"method": "OPTIONS"}),
        (405, "Method Not Allowed", {"path": "/"}),
        *[(404, "Not Found", {"path": path}) for path in ("/docs", "/openapi.json", "/ask/", "//ask", "/../ask")],
        (404, "Not Found", {"path": "http://evil.example/", "Host": "localhost:{port}"}),
        (400, "this is not JSON", {"body": b"question=where"}),
        (400, "this is not JSON", {"body": b"\xff"}),
        (400, "this is not JSON", {"body": b"[" * 8_000}),
        (400, "this is not JSON", {"body": b'{"question": "\\ud800"}'}),
        *[(400, "and nothing else", {"body": b}) for b in ([], {"question": 1}, {"question": "who?", "top": 9}, {})],
        (400, "is empty", {"body": {"question": " \n"}}),
        (413, "has 501 characters; 500 are read", {"body": {"question": "x" * 501}}),
        (413, "longer than 8,192 bytes", {"body": b" " * 8_193}),
        (500, "the server's terminal says why", {"body": {"question": "break"}}),
    ],
)  # fmt: skip
def test_what_is_not_a_question_is_refused_in_words(echoing, status, said, request_):
    given = {"body": {"question": "where?"}} | request_
    if "Host" in given:
        given["Host"] = given["Host"].format(port=echoing)
    found = sent(echoing, **given)
    assert (found.status, said in found.text) == (status, True), found.text
    assert not {"Traceback", "secret"} & set(found.text.split())
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Referrer-Policy"] == "no-referrer"
    assert found.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "Access-Control-Allow-Origin" not in found.headers


def test_the_longest_question_is_taken_however_it_is_written(echoing):
    assert sent(echoing, {"question": "𝔘" * 500}).status == 200
    assert len(json.dumps({"question": "𝔘" * 500})) > 6_000


def test_a_question_that_does_not_come_is_not_waited_for(echoing, monkeypatch):
    monkeypatch.setattr(serve, "SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", echoing)) as slow:
        head = f"POST /ask HTTP/1.1\r\nHost: localhost:{echoing}\r\nContent-Type: application/json\r\n"
        slow.sendall(f"{head}Content-Length: 9\r\n\r\n{{".encode())
        assert slow.recv(99).startswith(b"HTTP/1.1 408")


class Held:
    """An arm that notes what it was asked and answers once `go` is set."""

    def __init__(self) -> None:
        self.asked, self.started, self.go = [], threading.Event(), threading.Event()

    def __call__(self, question: str, top: int) -> Reply:
        self.asked.append(question)
        self.started.set()
        assert self.go.wait(60)
        return echo(question, top)


def test_one_too_many_is_refused_and_the_others_are_answered():
    held, most = Held(), serve.WAITING
    with serving({"a": held}) as port, ThreadPoolExecutor(most + 1) as pool:
        replies = [pool.submit(sent, port, {"question": f"q{i}"}) for i in range(most + 1)]
        refused = next(as_completed(replies)).result()
        assert (refused.status, f"{most} questions are waiting" in refused.text) == (503, True)
        held.go.set()
        answered = [one.result() for one in replies]
    assert sorted(one.status for one in answered) == [200] * most + [503]
    said = [json.loads(one.text)["arms"][0]["question"] for one in answered if one.status == 200]
    assert sorted(said) == sorted(held.asked)
    assert len(set(said)) == most


def test_a_question_whose_asker_has_gone_is_not_answered():
    held = Held()
    with serving({"a": held}) as port, ThreadPoolExecutor(2) as pool:
        first = pool.submit(sent, port, {"question": "q0"})
        assert held.started.wait(60)
        gone = http.client.HTTPConnection("127.0.0.1", port)
        gone.request("POST", "/ask", b'{"question": "gone"}', JSON)
        gone.close()
        for _ in range(5):  # the server's loop goes round, and sees the end of the connection
            assert sent(port, path="/", method="GET").status == 200
        last = pool.submit(sent, port, {"question": "q1"})
        held.go.set()
        assert (first.result().status, last.result().status) == (200, 200)
    assert held.asked == ["q0", "q1"]


def with_arm(folder: Path, arm: str, seed: int) -> None:
    model = write_model(folder / "models" / arm, seed=seed)
    records = folder / "records" / "passages.parquet"
    encode(records, model, folder / "vectors" / arm, settings=Encode(**ENCODE), hardware=HARDWARE)


@pytest.fixture(scope="module")
def asks(made, tmp_path_factory):
    """Two arms, loaded; then the files of one become another encoder's, those of the other go."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("served") / "toy")
    with_arm(folder, "other", 1)
    loaded = ask.loaded(folder, ["dpr", "other"], EVIDENCE, HARDWARE)
    before = {arm: one("where was ada born", top=9) for arm, one in loaded.items()}
    for arm in loaded:
        shutil.rmtree(folder / "models" / arm)
        shutil.rmtree(folder / "vectors" / arm)
    with_arm(folder, "dpr", 2)
    return loaded, before, ask.loaded(folder, ["dpr"], EVIDENCE, HARDWARE)["dpr"]


def test_an_arm_answers_with_what_was_loaded(asks):
    loaded, before, after = asks
    assert {arm: one("where was ada born", top=9) for arm, one in loaded.items()} == before
    assert after("where was ada born", top=9) != before["dpr"] != before["other"]


def test_two_hundred_questions_at_once_get_the_replies_they_get_alone(asks, two_threads):
    arm = asks[0]["dpr"]
    questions = [f"{WORDS[i % 40]} {WORDS[i // 40]} {WORDS[7 * i % 45]}" for i in range(200)]
    alone = [{"arm": "dpr"} | ask.as_json(arm(text, top=2)) for text in questions]
    with serving({"dpr": arm}) as port, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda text: sent(port, {"question": text}), questions))
    assert {one.status for one in replies} == {200}
    assert [json.loads(one.text)["arms"][0] for one in replies] == json.loads(json.dumps(alone))
    assert len({json.dumps(one["passages"]) for one in alone}) > 100


def test_the_command_serves_until_it_is_interrupted(made):
    words = [sys.executable, "-m", "stages.ask", "--serve", "--port", "0", "--arm", "dpr", "--collection", "toy"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=made.parents[1], env=os.environ, text=True, **pipes) as running:
        said = running.stdout.readline()
        port = int(re.match(r"http://127\.0\.0\.1:(\d+)/ answers questions about toy until Ctrl-C\n", said)[1])
        found = sent(port, {"question": "where was ada"})
        assert [len(arm["passages"]) for arm in json.loads(found.text)["arms"]] == [5]
        with pytest.raises(ValueError, match=rf"--port {port}: Address already in use at 127\.0\.0\.1; give another"):
            serve.listening(port)
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
        assert (running.returncode, out, errors.strip()) == (130, "", "")


@pytest.mark.parametrize("browse", [False, True])
def test_the_browser_is_opened_only_when_asked(monkeypatch, browse):
    opened, run = [], []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(serve.uvicorn.Server, "run", lambda _, sockets: run.append(sockets[0].getsockname()))
    command._serve("toy", lambda: {"a": echo}, 2, 0, browse)
    assert opened == [f"http://127.0.0.1:{port}/" for _, port in run] * browse
    assert [host for host, _ in run] == ["127.0.0.1"]


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_without_the_libraries_it_says_what_to_install(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=r"needs Starlette and uvicorn; install requirements-serve\.txt"):
        command._serve("toy", dict, 2, 0, False)


BOB = FoundPassage(Passage("p2", "", "Bob sings.", None), -1.0)
START = TEXT.index("Romulus")
ROMULUS = ProposedAnswer("Romulus", Span(START, START + 7), Span(TEXT.index("It was"), START + 8), 0.75)


def rome(question: str, top: int) -> Reply:
    return Reply(question, [FoundPassage(Passage("p1", HOSTILE, TEXT, None), 2.5), BOB], [ROMULUS, None])


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsers(tmp_path_factory.mktemp("browsers")) as opened:
        yield opened("chromium")


@pytest.fixture
def visit(browser):
    """A function that opens the page; only `said` may stand on the console."""
    expected = []
    with pages(browser) as (made, wrong):

        def opened(port: int, *said: str, **options):
            expected.extend(said)
            page = made(**options)
            page.goto(f"http://localhost:{port}/")
            return page

        yield opened
    assert wrong == expected


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_the_page_shows_passages_of_two_arms_with_marks_and_hostile_texts_as_text(visit, width, scheme):
    arms = {"rome": rome, "<b>bob</b>": lambda question, top: Reply(question, [BOB], [None])}
    with serving(arms, "toy <b>&") as port:
        page = visit(port, viewport={"width": width, "height": 800}, color_scheme=scheme)
        assert page.locator("header").inner_text().split("\n") == ["toy <b>&", "passages by rome and <b>bob</b>"]
        page.keyboard.type("Who founded <b>Rome</b>?")
        page.keyboard.press("Enter")
        page.wait_for_selector("#arms section")
        assert page.locator("#status").inner_text() == (
            "Who founded <b>Rome</b>? rome: Romulus. <b>bob</b>: no answer found."
        )
        assert page.locator("h2").all_inner_texts() == ["rome", "<b>bob</b>"]
        assert page.locator(".reply").all_inner_texts() == ["Romulus score 0.750", "no answer found score 0.000"]
        assert page.locator("#arms mark").all_inner_texts() == ["It was founded by Romulus."]
        assert page.locator("#arms mark .answer").all_inner_texts() == ["Romulus"]
        assert page.locator(".best .text").all_inner_texts() == [TEXT]
        assert page.locator("h3").all_inner_texts() == [f"1. {HOSTILE}", "2. (no title)", "1. (no title)"]
        assert page.locator("li > .soft").all_inner_texts() == [
            "p1 · similarity 2.500 · Romulus: 0.750 · not in <b>bob</b>’s 1",
            "p2 · similarity -1.000 · nothing · <b>bob</b> 1",
            "p2 · similarity -1.000 · nothing · rome 2",
        ]
        assert page.evaluate("[document.title, document.images.length, document.scripts.length]") == [
            "toy <b>&: ask", 0, 1,
        ]  # fmt: skip
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert [one["id"] for one in Axe().run(page).response["violations"]] == []
        tops = page.locator("section").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert (tops[0] == tops[1]) == (width == 1280)


def test_the_page_says_why_a_question_was_not_answered(visit):
    wrong = "Failed to load resource: the server responded with a status of 500 (Internal Server Error)"
    with serving({"a": echo}) as port:
        page = visit(port, wrong, "Failed to load resource: net::ERR_CONNECTION_REFUSED")
        page.get_by_label("Question").fill("break")
        page.get_by_role("button", name="Ask").click()
        page.get_by_text("Not answered: the question could not be answered; the server's terminal says why.").wait_for()
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("Does the server still run?").wait_for()


def test_the_page_shows_the_reply_to_what_was_asked_last(visit):
    held = Held()
    with serving({"a": held}) as port:
        page = visit(port)
        for question in ("first", "second"):
            page.get_by_label("Question").fill(question)
            page.keyboard.press("Enter")
            assert held.started.wait(60)
        held.go.set()
        page.wait_for_selector("#arms section")
        assert page.locator("#status").inner_text().startswith("second")
    assert held.asked == ["first", "second"]
