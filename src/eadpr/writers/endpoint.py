"""The client of OpenAI-compatible servers, and their cached completions (`POST <url>/chat/completions`).

Answers cost time or money and may differ, so they are kept by what was asked: a killed run continues, none asks again.

The key is read from the environment, sent, and written nowhere. The package `openai` would take a key that the settings
do not name, send it along redirects, show it in a server's complaint, and give up after half a minute.
"""

import json
import os
import re
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from eadpr.runtime import cache
from eadpr.runtime.files import read_json, write_json
from eadpr.writers.config import Endpoint, fill_prompt
from eadpr.writers.original import Candidate, Generate, Original, candidate_seed

TIMEOUT = (30.0, 300.0)  # seconds to connect, and without a byte
LONGEST, LARGEST = 3600, 1 << 24  # seconds and bytes of a reply
PARAMETERS = {"model", "temperature", "top_p", "max_tokens"}  # the settings that a request repeats
AT_ONCE = 8  # requests
COMPLAINT = 300  # characters of a reply that an error shows
# With HTTP 400 and these words a server refuses these messages, by a filter or as too long; other messages may pass.
REFUSED = re.compile(r"content_filter|context_length_exceeded|exceed_context_size|maximum context length")
FOR_ALL = "is too large"  # with these words max_tokens is refused, for all messages
INCOMPLETE = ("length", "content_filter")  # finish reasons of half a text
PASSING = (408, 409, 425, 429, *range(500, 600))  # states
# Two minutes of growing pauses in all: a limit per minute passes meanwhile.
RETRY = Retry(total=7, backoff_factor=1, status_forcelist=PASSING, allowed_methods=None, raise_on_status=False)
SESSION = requests.Session()
for scheme in ("http://", "https://"):
    SESSION.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE, max_retries=RETRY))


def generate_by_endpoint(settings: Endpoint, seed: int) -> Generate:
    """Return a generator that asks for a text by each number; one that was cut off or refused is None."""

    def generate(original: Original, numbers: range) -> list[Candidate]:
        question, title = original.question, original.positive.title
        if not original.text:
            return []
        prompt = fill_prompt(settings.prompt, question=question.question, title=title, text=original.text)
        seeds = [candidate_seed(seed, question.id, number) % 2**31 for number in numbers]  # what servers accept
        with ThreadPoolExecutor(AT_ONCE) as pool:
            texts = pool.map(lambda seed: complete(settings, prompt, seed=seed), seeds)
            return [Candidate(title, text) for text in texts]

    return generate


def complete_all(settings: Endpoint, prompts: Iterable[str], *, seed: int) -> list[str | None]:
    """Return the answer to each prompt as `complete` does; AT_ONCE requests are under way."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda prompt: complete(settings, prompt, seed=seed), prompts))


def complete(settings: Endpoint, prompt: str, *, seed: int) -> str | None:
    """Return the model's answer without outer white space, from the cache if this was asked before.

    None stands for an answer that was cut off, at max_tokens or by a filter, and for a prompt that the server refuses.
    Raises ValueError if the key is missing, OSError if there is no usable answer.
    """
    address = f"{settings.url.rstrip('/')}/chat/completions"
    messages = [{"role": "user", "content": prompt}]
    body = {"messages": messages, **settings.model_dump(include=PARAMETERS), "seed": seed}
    # The names in key and value are those of caches that users have paid for.
    key = cache.fingerprint(address, body, ("text", "whole"))
    path = cache.root() / "endpoint" / key[:2] / f"{key}.json"
    if path.exists():
        answer = read_json(path)
    else:
        answer = _request(address, body, read_key(settings.key_variable))
        if answer is None:  # not kept: another filter or a longer context may take it tomorrow
            return None
        write_json(path, answer)
    return answer["text"].strip() if answer["whole"] else None


def read_key(variable: str | None) -> str | None:
    """Return the key in this environment variable, None if none is named."""
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        return key
    none = "name no key_variable for a server that wants none (in params.yaml endpoint.key_variable: null)"
    raise ValueError(f"key_variable: the environment variable {variable} is not set; set it to your key, or {none}")


def _request(address: str, body: dict[str, Any], key: str | None) -> dict[str, Any] | None:
    """Send a request, again after failures that may pass, and return the answer, None where the server refuses it."""

    def authorise(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if key is not None:
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    # `auth` is passed even without a key: requests would look for one in ~/.netrc.
    options = {"timeout": TIMEOUT, "allow_redirects": False, "stream": True}
    with SESSION.post(address, json=body, auth=authorise, **options) as response:
        reply = _read(response).decode(errors="replace")
    complaint = repr((reply.replace(key, "<key>") if key else reply)[:COMPLAINT])
    if response.status_code == 400 and REFUSED.search(reply) and FOR_ALL not in reply:
        return None
    if response.status_code != 200:
        status = response.status_code
        raise OSError(f"{address} answers HTTP {status}: {complaint}; check endpoint and the key, or run again later")
    try:
        choice = json.loads(reply)["choices"][0]
        text = choice["message"].get("content") or ""  # empty if the model refuses
        text = text.encode(errors="replace").decode()  # half a surrogate pair is no text
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        advice = "is the address that of an OpenAI-compatible server?"
        raise OSError(f"{address} answers without choices[0].message: {complaint}; {advice}") from error
    return {"asked": body, "text": text, "whole": choice.get("finish_reason") not in INCOMPLETE}


def _read(response: requests.Response) -> bytes:
    """Return the unpacked body; raises OSError for one without end."""
    body, began = b"", time.monotonic()
    for chunk in response.iter_content(1 << 16):
        body += chunk
        if len(body) > LARGEST or time.monotonic() - began > LONGEST:
            limits = f"{LARGEST:,} bytes or {LONGEST:,} s"
            raise OSError(f"{response.url} answers with more than {limits}; is it an OpenAI-compatible server?")
    return body
