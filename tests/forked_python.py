"""A `python` and a `dvc` for tests that start many processes: each is forked from one that has imported the libraries.

Imports of torch and transformers take most of the time of a stage at toy size, and half of the time of `dvc`. A module
(`-m`) or a program (`-c`) runs here as under `python`, in another process with its folder, environment and standard
streams; only libraries are imported already. If the client is killed, so is its program with everything it started.
Tests about imports or the seed of hashes start `sys.executable` instead.
"""

import atexit
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRELOADED = ("typer", "pydantic", "ruamel.yaml", "pyarrow.parquet", "pandas", "regex", "duckdb", "faiss")
PRELOADED += ("torch", "safetensors.torch", "transformers.models.bert.modeling_bert")
PRELOADED += ("transformers.models.t5.modeling_t5", "transformers.models.auto.modeling_auto")
PRELOADED += ("dvc.cli.parser", "dvc.repo.reproduce", "dvc.repo.experiments.executor.local", "dvc.utils.hydra")
PRELOADED += ("dvc.data_cloud", "dvc_data.index.fetch", "dvc_render", "networkx", "pygit2", "dulwich.porcelain")
# Variables that `machine.settle` sets before torch is imported.
SETTLED = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
MODULES = ("stages.", "tests.", "benchmarks.", "dvc", "torch.distributed.run")
MESSAGE = 2**17  # bytes: more than arguments and environment are
CLIENT = """#!{python} -ISB
import json, os, socket, sys
command = {prefix!r} + sys.argv[2 if sys.argv[1:2] == ["-u"] else 1:]
if command[:1] != ["-c"] and not (command[:1] == ["-m"] and command[1].startswith({modules!r})):
    os.execv({python!r}, [{python!r}, *command])
request = json.dumps([command, os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    socket.send_fds(server, [request], [0, 1, 2])
    answer = server.recv(16)
status = int(answer) if answer else 70
if status < 0:
    os.kill(os.getpid(), -status)  # as what was asked for ended
sys.exit(status)
"""


@cache
def folder() -> Path:
    """Make a folder with `python` and `dvc`, to go first in PATH; their server ends with this process."""
    commands = Path(tempfile.mkdtemp(prefix="python-"))
    atexit.register(shutil.rmtree, commands)
    address = str(commands / "socket")
    server = subprocess.Popen(
        [sys.executable, __file__, str(commands / "python"), address], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | SETTLED,
    )  # fmt: skip
    atexit.register(server.communicate)  # closes its standard input
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError(f"{__file__} did not start")
    for name, prefix in (("python", []), ("dvc", ["-m", "dvc"])):
        client = commands / name
        client.write_text(CLIENT.format(python=sys.executable, prefix=prefix, modules=MODULES, address=address))
        client.chmod(0o755)
    return commands


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Run `python` with these arguments in the root of this repository."""
    command = [folder() / "python", *map(str, arguments)]
    environment = os.environ | environment
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def serve(executable: str, address: str) -> None:
    """Fork a process for each request, until standard input is closed; what these start is forked, too."""
    sys.executable = executable
    for name in PRELOADED:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody collects the processes that wait for stages
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(address)
        server.listen(64)
        print("ready", flush=True)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(client)
            client.close()


def _answer(client: socket.socket) -> None:
    request, streams, _, _ = socket.recv_fds(client, MESSAGE, 3)
    stage = os.fork()
    if stage == 0:
        os.setpgid(0, 0)
        client.close()
        _run(*json.loads(request), streams)
    os.setpgid(stage, stage)  # both processes set the group, since either may be first
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(stage)
    if client in select.select([client, ended], [], [])[0]:  # the client sends nothing more: readable means killed
        os.killpg(stage, signal.SIGKILL)
    client.send(str(os.waitstatus_to_exitcode(os.waitpid(stage, 0)[1])).encode(), socket.MSG_NOSIGNAL)
    os._exit(0)


def _run(command: list[str], cwd: str, environment: dict[str, str], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ |= environment
    sys.path[:0] = [cwd, *(os.path.abspath(p) for p in environment.get("PYTHONPATH", "").split(os.pathsep) if p)]
    kind, program, *options = command
    status = 0
    try:
        if kind == "-m":
            sys.argv = [program, *options]
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.argv = [kind, *options]
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve(*sys.argv[1:])
