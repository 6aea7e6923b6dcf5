"""A server of HTTP on this machine, for tests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(**methods: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[ThreadingHTTPServer]:
    """It runs during the block; `methods` (do_GET, do_POST) answer its requests."""
    answers = {name: lambda to, answer=answer: answer(to) for name, answer in methods.items()}
    handler = type("Handler", (BaseHTTPRequestHandler,), answers | {"log_message": lambda *_: None})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield http
    finally:
        http.shutdown()
        http.server_close()
