"""Every test runs without network (loopback aside), with its own cache and the same hypothesis examples each time."""

import importlib
import ipaddress
import os
import signal
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
if os.path.exists("/dev/nvidiactl"):  # what tests compare are a CPU's bytes; `python -m benchmarks.gpu` is for cards
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the cores
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # and what waits in the stages they start must not keep one busy
ROOT = Path(__file__).resolve().parent.parent
# What is started in the background ignores interrupts, and so would the commands that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # for the processes that tests start

_connect = socket.socket.connect


def _connect_to_loopback(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        host = "127.0.0.1" if address[0] == "localhost" else address[0]
        if not ipaddress.ip_address(host).is_loopback:
            raise AssertionError(f"a test tried to reach {address}")
    return _connect(self, address)


socket.socket.connect = _connect_to_loopback


@pytest.fixture(params=["torch", "transformers", "tokenizers", "code"])
def update_library(request, monkeypatch):
    """Pretend that a library that decides a model's bytes has another version, or that our own code was edited."""

    def update() -> None:
        if request.param == "code":
            monkeypatch.setattr("eadpr.runtime.cache.code", lambda module: f"edited {module}")
            return
        library = importlib.import_module(request.param)
        monkeypatch.setattr(library, "__version__", f"{library.__version__}+other")

    return update


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def one_thread():
    with threads(1):
        yield


@pytest.fixture
def two_threads():
    with threads(2):
        yield


@contextmanager
def threads(count):
    """Puts back the number from before, whatever the test sets."""
    import torch

    old_count = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(old_count)


def pytest_collection_modifyitems(items):
    """The slow ones first, so that no worker is left alone with one in the end; of these first what is not made from
    `built`, so that one worker is busy with it while another builds that."""
    items.sort(key=lambda item: (item.get_closest_marker("pipeline") is None, "built" in item.fixturenames))


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """The collection of `training_toy` and `base/`; tests that change anything write their own."""
    from tests.training_toy import write_all

    return write_all(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def placed(toy, tmp_path_factory):
    """The same with placebos."""
    from tests.training_toy import with_placebos

    return with_placebos(toy, tmp_path_factory.mktemp("placed"))


@pytest.fixture(scope="session")
def built(tmp_path_factory, worker_id):
    """The small pipeline after `dvc repro`, committed. Tests that change anything work on a copy."""
    from tests.small_pipeline import Project, create

    folder = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        folder = folder.parent  # of all workers; the first that comes builds it
    project, done = Project(folder / "built" / "project"), folder / "built" / "done"
    with FileLock(folder / "built.lock"):
        if not done.exists():
            create(project.folder)
            project.dvc("repro")
            project.commit("built")
            done.touch()
    return project
