"""The other end of `runner.Worker`: one line in, one line of JSON out."""

import importlib
import json
import os
import sys


def main() -> None:
    call = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not stand among the answers
    work = getattr(importlib.import_module(call["module"]), call["function"])(**call["arguments"])
    for _ in sys.stdin:
        print(json.dumps(work()), file=answers, flush=True)


if __name__ == "__main__":
    main()
