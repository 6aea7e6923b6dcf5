"""An OpenAI-compatible server on this machine, for tests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from eadpr.writers.config import Asked
from tests.loopback import serving


class CutOff(str):
    """What a server says that was stopped at max_tokens."""


class Server:
    """Answers with `states` first, then with what `says` makes of the body, HTTP 401 for None, or with the vectors that
    `embeds` makes of texts; `answer` replaces the whole body."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        self.states: list[tuple[int, dict[str, str], str]] = []
        self.answer: str | None = None
        self.says: Callable[[dict], str | None] = lambda body: f" Answer to {body['seed']}. "
        self.embeds: Callable[[list[str]], list] = lambda texts: [[float(len(text)), 1.0] for text in texts]
        self.lock = threading.Lock()

    def reply(self, to: BaseHTTPRequestHandler) -> None:
        body = json.loads(to.rfile.read(int(to.headers["Content-Length"])))
        assert to.path == ("/v1/embeddings" if "input" in body else "/v1/chat/completions")
        with self.lock:
            self.asked.append(body)
            self.keys.append(to.headers.get("Authorization"))
            status, headers, said = self.states.pop(0) if self.states else self._said(body)
        to.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(said.encode()))}.items():
            to.send_header(name, value)
        to.end_headers()
        to.wfile.write(said.encode())

    def _said(self, body: dict) -> tuple[int, dict[str, str], str]:
        if "input" in body:
            found = [{"index": i, "embedding": vector} for i, vector in enumerate(self.embeds(body["input"]))]
            return 200, {}, self.answer or json.dumps({"data": found[::-1]})
        text = self.says(body)
        finish_reason = "length" if isinstance(text, CutOff) else "stop"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
        said = json.dumps({"choices": [choice]})
        return (401, {}, "") if text is None else (200, {}, self.answer or said)


@contextmanager
def chatting() -> Iterator[Server]:
    found = Server()
    with serving(do_POST=found.reply) as http:
        found.url = f"http://127.0.0.1:{http.server_port}/v1"
        yield found


def asked(server: Server, **changes) -> Asked:
    own = {
        "url": server.url, "model": "m", "key_variable": "MY_KEY", "prompt": "{question} | {title} | {text}",
        "temperature": 0.5,
    }  # fmt: skip
    return Asked(**own | {"top_p": 0.95, "max_tokens": 7} | changes)
