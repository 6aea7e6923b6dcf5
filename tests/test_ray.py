"""Work on a Ray cluster of this machine: the bytes of a local run, and errors with their message."""

import inspect
import re

import pytest

from eadpr.runtime import cache, jobs, machine, ray_cluster
from eadpr.runtime.machine import Machine
from eadpr.search.config import Encode
from eadpr.search.encode import encode
from eadpr.storage import engine, tables
from eadpr.storage.records import Passage
from tests import small_collection as small
from tests.supervision_toy import HARDWARE


@pytest.mark.nightly
def test_a_cluster_makes_the_bytes_of_a_local_run(tmp_path, monkeypatch):
    tables.write(tmp_path / "passages.parquet", Passage, small.passages())
    small.write_model(tmp_path / "arm")
    settings = Encode(**small.ENCODE)
    hardware = Machine(**small.MACHINE | {"deterministic": False})  # as this process is; actors would settle
    for out in ("local", "ray"):
        monkeypatch.setenv("EADPR_CACHE", str(tmp_path / "cache" / out))
        encode(
            tmp_path / "passages.parquet", tmp_path / "arm", tmp_path / out, settings=settings, hardware=hardware
        )  # fmt: skip
        monkeypatch.setenv(jobs.ADDRESS, "local")
    assert small.files_of(tmp_path / "ray") == small.files_of(tmp_path / "local")
    with pytest.raises(ValueError, match=r"^shard 1 of 2 makes no sense$"):
        list(jobs.make_shards(lambda: fail, lambda loaded: loaded, [0, 1], hardware))


def fail(number):
    yield 3
    if number == 1:
        raise ValueError("shard 1 of 2 makes no sense")


def test_without_ray_installed_the_message_names_the_file_to_install(monkeypatch):
    monkeypatch.setenv(jobs.ADDRESS, "local")
    monkeypatch.setattr(ray_cluster, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"EADPR_RAY is set .* install requirements/ray\.txt"):
        list(jobs.make_shards(lambda: pytest.fail("loaded"), lambda _: pytest.fail("made"), [0], HARDWARE))


def test_actors_get_all_variables_that_settling_sets_and_that_the_cache_and_joins_read():
    settled = re.findall(r'environ(?:\.setdefault\(|\[)"(\w+)"', inspect.getsource(machine.settle))
    assert set(settled) == set(ray_cluster.SETTLED)
    read = {name for mod in (cache, engine) for name in re.findall(r'environ.get\("(\w+)"', inspect.getsource(mod))}
    assert {"EADPR_CACHE", "EADPR_MEMORY"} <= read <= set(ray_cluster.CARRIED)
