"""A page on this machine that asks: what `ask` replies, by one arm or by two side by side.

Pages of other sites must not ask in a reader's browser. So a question is JSON, which no form sends and no other site
may send unasked, and comes under this server's own name: a foreign one that leads here (DNS rebinding) is refused.
"""

import asyncio
import base64
import hashlib
import html
import json
import re
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eadpr.asking.ask import Reply, as_json

HOST = "127.0.0.1"
PAGE = "page.html"
LONGEST = 500  # characters of a question
BODY = 8_192  # bytes of a request's; LONGEST characters take up to 6,000 in JSON
WAITING = 16  # questions taken and not yet answered
CONNECTIONS = 64
SECONDS = 10  # in which a question must have come
POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def listening(port: int) -> socket.socket:
    """On this machine alone; port 0 is any that is free. ValueError where nothing can listen there."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that a server just left
    try:
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        raise ValueError(f"--port {port}: {error.strerror} at {HOST}; give another, or 0 for any") from error
    return made


def server(app: ASGIApp) -> uvicorn.Server:
    """Its `run` wants the socket, and returns or raises KeyboardInterrupt when it is told to stop."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
    )


def application(name: str, arms: Mapping[str, Callable[..., Reply]], *, top: int, port: int) -> ASGIApp:
    """The page at / and its questions at /ask, of the collection `name`; each arm is what `ask.loaded` makes."""
    page, policy = _page(name, arms)
    questions = OneByOne(arms, top)

    async def shown(_: Request) -> Response:
        return HTMLResponse(page)

    app = Starlette(
        routes=[Route("/", shown), Route("/ask", questions.asked, methods=["POST"])],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return _guarded(app, port, policy)


class OneByOne:
    """Questions to all arms, answered by one thread in the order they come: models and torch's number of threads are
    the process's own."""

    def __init__(self, arms: Mapping[str, Callable[..., Reply]], top: int) -> None:
        self._arms, self._top, self._waiting = arms, top, 0
        self._turn, self._worker = asyncio.Lock(), ThreadPoolExecutor(1)

    async def asked(self, request: Request) -> Response:
        question = await _question(request)
        if self._waiting == WAITING:
            raise HTTPException(503, f"{WAITING} questions are waiting already; ask again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                if await request.is_disconnected():
                    return Response()  # which nobody reads
                found = await asyncio.get_running_loop().run_in_executor(self._worker, self._replies, question)
        except asyncio.CancelledError as error:
            raise HTTPException(503, "the server was stopped") from error
        finally:
            self._waiting -= 1
        return JSONResponse({"arms": found})

    def _replies(self, question: str) -> list[dict[str, Any]]:
        return [{"arm": arm} | as_json(ask(question, top=self._top)) for arm, ask in self._arms.items()]


async def _question(request: Request) -> str:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "a question is sent as application/json")
    body = await _body(request)
    try:
        given = json.loads(body)
        json.dumps(given, ensure_ascii=False).encode()  # fails on half a character
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"this is not JSON: {error}") from error
    if not isinstance(given, dict) or given.keys() != {"question"} or not isinstance(given["question"], str):
        raise HTTPException(400, 'send {"question": "…"} and nothing else')
    if not given["question"].strip():
        raise HTTPException(400, "the question is empty; ask one")
    if len(given["question"]) > LONGEST:
        raise HTTPException(413, f"the question has {len(given['question']):,} characters; {LONGEST} are read at most")
    return given["question"]


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > BODY:
                    raise HTTPException(413, f"the request is longer than {BODY:,} bytes")
    except (TimeoutError, ClientDisconnect) as error:
        raise HTTPException(408, f"the question did not come within {SECONDS} seconds") from error
    return body


async def _refused(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _failed(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "the question could not be answered; the server's terminal says why"}, 500)


def _guarded(app: ASGIApp, port: int, policy: str) -> ASGIApp:
    """Every response gets the headers, also that of an error; other names than this server's get nothing else."""
    names = {f"{name}:{port}".encode() for name in (HOST, "localhost")}
    elsewhere = JSONResponse({"error": f"this server is http://{HOST}:{port}/ and has no other name"}, 421)
    headers = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    added = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        hosts = [value.lower() for name, value in scope["headers"] if name == b"host"]
        await (app if len(hosts) == 1 and hosts[0] in names else elsewhere)(scope, receive, sending)

    return guarded


def _page(name: str, arms: Mapping[str, object]) -> tuple[str, str]:
    """The page, and the policy that lets it load nothing and run its own script and styles alone."""
    text = Path(__file__).with_name(PAGE).read_text(encoding="utf-8")
    parts = {tag: re.search(rf"(?s)<{tag}[^>]*>(.*?)</{tag}>", text)[1] for tag in ("script", "style")}
    hashes = {
        tag: base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for tag, part in parts.items()
    }  # fmt: skip
    fields = {"name": html.escape(name), "arms": html.escape(" and ".join(arms)), "longest": str(LONGEST)}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: fields[found[1]], text), POLICY.format(**hashes)
