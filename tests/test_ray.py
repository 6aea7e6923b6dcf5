"""Encoding and evidence as Ray Data jobs on a cluster of this machine: the bytes of a local run, also after a death."""

import inspect
import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from eadpr.runtime import cache, cluster, jobs, machine
from eadpr.storage import engine, tables
from eadpr.storage.records import Passage
from eadpr.supervision.annotator import build_annotator
from tests import small_collection as small
from tests.on_ray import on_ray
from tests.supervision_toy import HARDWARE, SEPARATE, annotator_settings, write_collection


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Passages and a model to encode them with, questions and a QA model to annotate them with."""
    folder = tmp_path_factory.mktemp("collection")
    tables.write(folder / "passages.parquet", Passage, small.passages())
    small.write_model(folder / "arm")
    records, positives = write_collection(folder)
    settings = annotator_settings(continuation_steps=1, answering_steps=1)
    build_annotator(settings, SEPARATE, HARDWARE, records=records, positives=positives, out=folder / "annotator")
    return folder


@pytest.mark.nightly
def test_a_worker_that_dies_loses_nothing_and_doubles_nothing(collection, tmp_path):
    done = on_ray("-m", "tests.killed_worker", collection, tmp_path, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for worker in ("Encoder", "Annotator"):
        died = (tmp_path / worker / "died").read_text()
        made = [line.split() for line in (tmp_path / worker / "made").read_text().splitlines()]
        assert sorted(number for number, _ in made) == ["0", "1", "2"]
        makers = dict(made)
        assert makers["1"] != died
        assert done.stdout.strip() not in (died, *makers.values())

    assert small.files_of(tmp_path / "ray") == small.files_of(tmp_path / "local")


def test_an_error_of_a_worker_ends_the_stage_with_its_message(monkeypatch, tmp_path):
    """Ray is played: its actor runs here."""

    def work(number):
        yield 3
        if number == 1:
            raise ValueError("the vector of passage 'p7' has a component that is no number")

    class Rows(list):
        def map(self, actor, fn_constructor_args, **_):
            made = actor(*fn_constructor_args)
            return SimpleNamespace(iter_rows=lambda: map(made, self))

    data = SimpleNamespace(
        DataContext=SimpleNamespace(get_current=SimpleNamespace), ActorPoolStrategy=SimpleNamespace,
        from_items=lambda rows, **_: Rows(rows),
    )  # fmt: skip
    ray = SimpleNamespace(data=data, nodes=lambda: [{"Alive": True, "Resources": {"CPU": 2.0}}])
    monkeypatch.setenv(cluster.ADDRESS, "local")
    monkeypatch.setattr(cluster, "connect", lambda _: nullcontext(ray))
    monkeypatch.setattr(machine, "settle", lambda _: None)
    monkeypatch.chdir(tmp_path)
    done = jobs.make_shards(lambda: work, lambda loaded: loaded, [0, 1], HARDWARE)
    assert next(done) == 3
    with pytest.raises(ValueError, match=r"^the vector of passage 'p7' has a component that is no number$"):
        next(done)


def test_without_ray_installed_the_message_says_so(monkeypatch):
    monkeypatch.setenv(cluster.ADDRESS, "local")
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="EADPR_RAY is set"):
        list(jobs.make_shards(lambda: pytest.fail("loaded"), lambda _: pytest.fail("made"), [0], HARDWARE))


def test_actors_get_all_variables_that_settling_sets():
    assert set(re.findall(r'environ\["(\w+)"\]', inspect.getsource(machine.settle))) == set(cluster.SETTLED)


def test_actors_get_where_work_is_kept_and_how_much_memory_joins_take():
    read = {name for of in (cache, engine) for name in re.findall(r'environ.get\("(\w+)"', inspect.getsource(of))}
    assert {"EADPR_CACHE", "EADPR_MEMORY"} <= read <= set(cluster.CARRIED)
