"""A language model behind an OpenAI-compatible address (`POST <url>/chat/completions`), and how any such is asked.

Answers are kept (`kept`). The key is read from the environment, sent, and written nowhere; a short one is no secret.
"""

import json
import os
import re
import time
from collections.abc import Callable
from threading import BoundedSemaphore
from typing import Any, NamedTuple, TypeVar

import requests

from eadpr.runtime import cache
from eadpr.writers.config import Asked
from eadpr.writers.kept import kept

TRIES = 8  # two minutes in all: a limit per minute passes meanwhile
PAUSE = 1.0  # seconds before the second try; doubled every time, longer where the server asks for it
LONGEST_PAUSE = 120.0  # seconds
TIMEOUT = (30.0, 300.0)  # seconds to connect, and without a byte
SENT = {"model", "temperature", "top_p", "max_tokens"}  # settings that are parameters of a request
AGAIN = (408, 409, 425, 429)  # states of HTTP that pass, beside those of 500 and above
AT_ONCE = 8  # requests
UNDER_WAY = BoundedSemaphore(AT_ONCE)  # of all threads: evidence has several workers for a GPU
SHOWN = 300  # characters of a server's complaint
SECRET = 16  # characters of a key: local servers are given shorter ones, mere words such as EMPTY
# How servers say, with HTTP 400, that their filter refuses these messages, or that a model cannot read so many; not
# that max_tokens "is too large", which is so of all messages.
REFUSED = re.compile(r"content_filter|context_length_exceeded|exceed_context_size|maximum context length")
FOR_ALL = "is too large"
CUT_OFF = ("length", "content_filter")  # reasons to end of half a text

Read = TypeVar("Read")


class Passing(Exception):
    """A failure that may pass; `pause` is how many seconds the server asks to wait."""

    def __init__(self, said: str, pause: float = 0.0) -> None:
        super().__init__(said)
        self.pause = pause


class Unanswerable(OSError):
    """These messages get no answer, however often they are sent; others may."""


class Completion(NamedTuple):
    """`whole` says that it was cut off neither at max_tokens nor by a filter."""

    text: str
    whole: bool


def ask(settings: Asked, messages: list[dict[str, str]], *, seed: int | None = None) -> Completion:
    """The answer, without outer white space; empty where the model refuses, and not whole where the server does.
    `seed` is sent, to tell answers apart.

    Raises ValueError where the key is missing, OSError where no answer that makes sense can be had, or one that holds
    the key.
    """
    address = f"{settings.url.rstrip('/')}/chat/completions"
    body = {"messages": messages, **settings.model_dump(include=SENT)} | ({} if seed is None else {"seed": seed})

    def make() -> dict[str, Any]:
        key = key_of(settings.key_variable)
        found = reply(address, body, key, _completion, "choices[0].message")
        if key is not None and len(key) >= SECRET and key in found.text:
            raise OSError(
                f"a reply of {address} holds the key of endpoint.key_variable ({settings.key_variable}), so it is not"
                " kept; find out why the server repeats it, or set key_variable to null for a server that wants none"
            )
        return {"asked": body, **found._asdict()}

    try:
        found = kept("endpoint", cache.fingerprint(address, body, Completion._fields), make)
    except Unanswerable:  # not kept: another filter or a longer context may take it tomorrow
        return Completion("", whole=False)
    return Completion(found["text"].strip(), found["whole"])


def key_of(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ValueError(
            f"key_variable: the environment variable {variable} is not set; set it to your key, or name no"
            " key_variable for a server that wants none (in params.yaml endpoint.key_variable: null)"
        )
    if not (key.isascii() and key.isprintable()):  # http.client would refuse it with a message that shows it
        raise ValueError(
            f"key_variable: the environment variable {variable} holds a line break or another"
            " character that no header of HTTP can; set it to the key alone"
        )
    return key


def reply(address: str, body: dict[str, Any], key: str | None, read: Callable[[str], Read | None], sought: str) -> Read:
    """What `read` finds in a reply; asked again where that is None, as `sought` is not there."""
    for tried in range(1, TRIES + 1):
        try:
            return _attempt(address, body, key, read, sought)
        except (Passing, requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            if tried == TRIES:
                raise OSError(f"{address} gave no answer in {TRIES} tries ({error}); run again later") from None
            time.sleep(min(LONGEST_PAUSE, max(PAUSE * 2 ** (tried - 1), getattr(error, "pause", 0.0))))
    raise AssertionError("unreachable")


def _attempt(
    address: str, body: dict[str, Any], key: str | None, read: Callable[[str], Read | None], sought: str
) -> Read:
    def authorised(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if key is not None:
            request.headers["Authorization"] = f"Bearer {key}"
        return request  # given even without a key: requests would look for one in ~/.netrc

    with (
        UNDER_WAY,
        requests.post(address, json=body, auth=authorised, timeout=TIMEOUT, allow_redirects=False) as response,
    ):
        said = response.content.decode(errors="replace")
        shown = repr(_masked(said, key)[:SHOWN])
        if response.status_code in AGAIN or response.status_code >= 500:
            asked = response.headers.get("Retry-After", "").strip()  # a date is passed over
            raise Passing(f"HTTP {response.status_code}: {shown}", float(asked) if asked.isdecimal() else 0.0)
        if response.status_code == 400 and REFUSED.search(said) and FOR_ALL not in said:
            raise Unanswerable(f"{address} refuses the text: {shown}")
        if response.status_code != 200:
            raise OSError(
                f"{address} answers HTTP {response.status_code} {_masked(response.reason, key)}: {shown}; check"
                " endpoint and the key"
            )
        found = read(said)
    if found is None:
        raise Passing(f"an answer without {sought}: {shown}; is the address that of an OpenAI-compatible server?")
    return found


def _masked(said: str, key: str | None) -> str:
    """Without the key, in whatever way JSON escapes it."""
    if key is None:
        return said
    return re.sub("".join(rf"(?:\\*{re.escape(c)}|\\+(?i:u{ord(c):04x}))" for c in key), "<key>", said)


def _completion(said: str) -> Completion | None:
    """None where there is none."""
    try:
        choice = json.loads(said)["choices"][0]
        text, reason = choice["message"].get("content"), choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # also a number too long to read
        return None
    if not (text is None or isinstance(text, str)):
        return None
    text = (text or "").encode(errors="replace").decode()  # half a surrogate pair is no text
    return Completion(text, reason not in CUT_OFF)
