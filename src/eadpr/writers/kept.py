"""Answers of language models, kept in the cache by what was asked: they cost time or money, and a server need not give
the same one twice. So a killed run goes on, and no later one asks again."""

import json
from collections.abc import Callable
from threading import Lock
from typing import Any

from eadpr.runtime import cache
from eadpr.runtime.files import write_json

_LOCKS = [Lock() for _ in range(256)]  # by the first two digits of a key: equal questions side by side are asked once


def kept(kind: str, key: str, make: Callable[[], Any]) -> Any:
    """The JSON value that `make` gave for this fingerprint once."""
    path = cache.root() / kind / key[:2] / f"{key}.json"
    with _LOCKS[int(key[:2], 16)]:
        if path.exists():
            try:
                return json.loads(path.read_bytes())
            except ValueError:
                cache.set_aside(path)
        made = make()
        write_json(path, made)
    return json.loads(json.dumps(made))  # as it is read the next time
