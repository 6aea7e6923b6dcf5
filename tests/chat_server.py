"""An OpenAI-compatible server on this machine, for tests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from eadpr.writers.config import Endpoint
from tests.loopback import serving


class CutOff(str):
    """An answer that stops at max_tokens."""


class Server:
    """Replies with `states`, then with what `says` makes of the body, HTTP 401 for None; `answer` is the whole body."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.keys: list[str | None] = []
        self.states: list[tuple[int, dict[str, str], str]] = []
        self.answer: str | None = None
        self.says: Callable[[dict], str | None] = lambda body: f" Answer to {body['seed']}. "
        self.lock = threading.Lock()

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        assert handler.path == "/v1/chat/completions"
        with self.lock:
            self.requests.append(body)
            self.keys.append(handler.headers.get("Authorization"))
            state = self.states.pop(0) if self.states else None
        status, headers, text = state or self._answer(body)
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text.encode())

    def _answer(self, body: dict) -> tuple[int, dict[str, str], str]:
        text = self.says(body)
        if text is None:
            return 401, {}, ""
        finish_reason = "length" if isinstance(text, CutOff) else "stop"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
        return 200, {}, self.answer or json.dumps({"choices": [choice]})


@contextmanager
def chatting() -> Iterator[Server]:
    server = Server()
    with serving(do_POST=server.reply) as http:
        server.url = f"http://127.0.0.1:{http.server_port}/v1"
        yield server


def task(server: Server, **changes) -> Endpoint:
    values = {
        "url": server.url, "model": "m", "key_variable": "MY_KEY", "prompt": "{question} | {title} | {text}",
        "temperature": 0.5, "top_p": 0.95, "max_tokens": 7,
    }  # fmt: skip
    return Endpoint(**values | changes)
