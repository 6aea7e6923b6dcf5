"""A cache of language models' answers, keyed by the request.

Answers cost time or money, and a server need not give the same one twice. So a killed run continues, and no later run
asks the same again.
"""

import json
from collections.abc import Callable
from threading import Lock
from typing import Any

from eadpr.runtime import cache
from eadpr.runtime.files import write_json

_LOCKS = [Lock() for _ in range(256)]  # by a key's first two digits: equal questions in several threads are asked once


def cached_answer(kind: str, key: str, ask: Callable[[], Any]) -> Any:
    """Return the cached JSON value of this fingerprint; without one, the value of `ask`, which is then cached."""
    path = cache.root() / kind / key[:2] / f"{key}.json"
    with _LOCKS[int(key[:2], 16)]:
        if path.exists():
            try:
                return json.loads(path.read_bytes())
            except ValueError:
                cache.set_aside(path)
        answer = ask()
        write_json(path, answer)
    return json.loads(json.dumps(answer))  # with the types that a cache hit has
