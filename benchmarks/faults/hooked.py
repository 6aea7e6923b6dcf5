"""Runs a module as `python -m` does, which gets a signal before or after its n-th call of a function that renames,
flushes or removes a file. What Java and Arrow do by themselves is not counted. FAULT holds the `Fault` as JSON."""

import functools
import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

VARIABLE = "FAULT"
CALLS = ("replace", "rename", "fsync", "unlink", "remove", "rmdir")


class Fault(NamedTuple):
    """`log` gets the number of the process, then a line for each call; `call_number` counts them from 1, 0 is none."""

    log: str
    call_number: int = 0
    after: bool = False
    signal: int = signal.SIGKILL

    def word(self) -> str:
        return json.dumps(self)


def hook(fault: Fault) -> None:
    log = os.open(fault.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.write(log, f"{os.getpid()}\n".encode())
    calls = 0

    def counted(name: str, call: Callable) -> Callable:
        @functools.wraps(call)
        def counting(*arguments: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            faulty = calls == fault.call_number
            os.write(log, f"{name} {arguments[0]}\n".encode())
            if faulty and not fault.after:
                os.kill(os.getpid(), fault.signal)
            done = call(*arguments, **options)
            if faulty and fault.after:
                os.kill(os.getpid(), fault.signal)
            return done

        return counting

    for name in CALLS:
        setattr(os, name, counted(name, getattr(os, name)))


if __name__ == "__main__":
    hook(Fault(*json.loads(os.environ[VARIABLE])))
    module, *sys.argv[1:] = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
