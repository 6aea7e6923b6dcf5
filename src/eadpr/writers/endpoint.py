"""The client of OpenAI-compatible servers, and their cached completions (`POST <url>/chat/completions`).

The key is read from the environment, sent, and written nowhere. The package `openai` would take a key that the settings
do not name, send it along redirects, show it in a server's complaint, and give up after half a minute.
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
from eadpr.writers.answer_cache import cached_answer
from eadpr.writers.config import EndpointTask

TRIES = 8  # two minutes in all: a limit per minute passes meanwhile
PAUSE = 1.0  # seconds before the second try; doubled every time, longer if the server asks for it
LONGEST_PAUSE = 120.0  # seconds
TIMEOUT = (30.0, 300.0)  # seconds to connect, and without a byte
PARAMETERS = {"model", "temperature", "top_p", "max_tokens"}  # the settings that a request repeats
TEMPORARY = (408, 409, 425, 429)  # HTTP states, and all from 500 on
AT_ONCE = 8  # requests
UNDER_WAY = BoundedSemaphore(AT_ONCE)  # shared by all threads: evidence has several workers for a GPU
COMPLAINT = 300  # characters of a reply that an error shows
SECRET = 16  # characters of a key; a shorter one is no secret, since local servers take mere words such as EMPTY
# With HTTP 400 and these words a server refuses these messages, by a filter or as too long; other messages may pass.
REFUSED = re.compile(r"content_filter|context_length_exceeded|exceed_context_size|maximum context length")
FOR_ALL = "is too large"  # with this word max_tokens is refused, for all messages
INCOMPLETE = ("length", "content_filter")  # finish reasons of half a text

Parsed = TypeVar("Parsed")


class Unanswerable(OSError):
    """The server refuses these messages and will refuse them again; others it may answer."""


class Completion(NamedTuple):
    """`finished` is False if the text was cut off, at max_tokens or by a filter."""

    text: str
    finished: bool


def complete(settings: EndpointTask, messages: list[dict[str, str]], *, seed: int | None = None) -> Completion:
    """Return the model's answer without outer white space, from the cache if these messages were sent before.

    The text is empty if the model refuses; if the server does, it is unfinished too. `seed` is sent, so that each seed
    has its own answer. Raises ValueError if the key is missing, OSError if there is no usable answer or if it holds the
    key.
    """
    address = f"{settings.url.rstrip('/')}/chat/completions"
    body = {"messages": messages, **settings.model_dump(include=PARAMETERS)}
    if seed is not None:
        body["seed"] = seed

    def request() -> dict[str, Any]:
        key = read_key(settings.key_variable)
        answer = post(address, body, key, _parse_completion, "choices[0].message")
        if key is not None and len(key) >= SECRET and key in answer.text:
            raise OSError(
                f"a reply of {address} holds the key of endpoint.key_variable ({settings.key_variable}), so it is not"
                " kept; find out why the server repeats it, or set key_variable to null for a server that wants none"
            )
        return {"asked": body, "text": answer.text, "whole": answer.finished}

    try:
        # The names in key and value are those of caches that users have paid for.
        answer = cached_answer("endpoint", cache.fingerprint(address, body, ("text", "whole")), request)
    except Unanswerable:  # not cached: another filter or a longer context may take it tomorrow
        return Completion("", finished=False)
    return Completion(answer["text"].strip(), answer["whole"])


def read_key(variable: str | None) -> str | None:
    """Return the key in this environment variable, None if none is named."""
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


def post(
    address: str, body: dict[str, Any], key: str | None, parse: Callable[[str], Parsed | None], expected: str
) -> Parsed:
    """Send a request, again after failures that may pass, and return the parsed reply.

    `parse` returns None for a reply without `expected`, which the error then names.
    """

    def authorise(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if key is not None:
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    failure, pause = "", 0.0
    for attempt in range(TRIES):
        if attempt:
            time.sleep(min(LONGEST_PAUSE, pause))
        pause = PAUSE * 2**attempt
        try:
            # `auth` is passed even without a key: requests would look for one in ~/.netrc.
            with (
                UNDER_WAY,
                requests.post(address, json=body, auth=authorise, timeout=TIMEOUT, allow_redirects=False) as response,
            ):
                status, text = response.status_code, response.content.decode(errors="replace")
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            failure = str(error)
            continue
        complaint = repr(_mask_key(text, key)[:COMPLAINT])
        if status == 200:
            if (parsed := parse(text)) is not None:
                return parsed
            failure = f"an answer without {expected}: {complaint}; is the address that of an OpenAI-compatible server?"
        elif status in TEMPORARY or status >= 500:
            failure = f"HTTP {status}: {complaint}"
            seconds = response.headers.get("Retry-After", "").strip()  # a date is ignored
            pause = max(pause, float(seconds) if seconds.isdecimal() else 0.0)
        elif status == 400 and REFUSED.search(text) and FOR_ALL not in text:
            raise Unanswerable(f"{address} refuses the text: {complaint}")
        else:
            reason = _mask_key(response.reason, key)
            raise OSError(f"{address} answers HTTP {status} {reason}: {complaint}; check endpoint and the key")
    raise OSError(f"{address} gave no answer in {TRIES} tries ({failure}); run again later")


def _mask_key(text: str, key: str | None) -> str:
    """Replace the key, in every way that JSON may escape it."""
    if key is None:
        return text
    return re.sub("".join(rf"(?:\\*{re.escape(c)}|\\+(?i:u{ord(c):04x}))" for c in key), "<key>", text)


def _parse_completion(reply: str) -> Completion | None:
    try:
        choice = json.loads(reply)["choices"][0]
        text, reason = choice["message"].get("content"), choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # also a number too long to read
        return None
    if not (text is None or isinstance(text, str)):
        return None
    text = (text or "").encode(errors="replace").decode()  # half a surrogate pair is no text
    return Completion(text, reason not in INCOMPLETE)
