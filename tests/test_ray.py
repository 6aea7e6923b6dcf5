"""Encoding and evidence as Ray Data jobs on a cluster of this machine: the bytes of a local run, also after a death."""

import inspect
import re

import pytest
from safetensors.torch import load_file, save_file

from eadpr import cache, cluster, engine, jobs, machine, tables
from eadpr.records import Passage
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


def test_an_error_of_a_worker_ends_the_stage_with_its_message(collection, tmp_path):
    config = small.write_config(tmp_path / "encode.json", encode=small.ENCODE, machine=small.MACHINE)
    weights = small.write_model(tmp_path / "diverged") / "passage_encoder" / "model.safetensors"
    save_file({name: 1e6 * tensor for name, tensor in load_file(weights).items()}, weights, metadata={"format": "pt"})
    options = {"--config": config, "--records": collection, "--model": tmp_path / "diverged", "--out": tmp_path / "out"}
    words = [word for option in options.items() for word in option]
    done = on_ray("-m", "stages.encode", *words, folder=tmp_path)
    assert done.returncode == 1
    message = r"^error: the vector of passage 'p\d+' has a component .* lower the learning rate"
    assert re.search(message, done.stderr, re.MULTILINE), done.stderr
    assert not (tmp_path / "out").exists()


def test_without_ray_installed_the_message_says_so(monkeypatch):
    monkeypatch.setenv(cluster.ADDRESS, "local")
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"Ray is asked for \(local, by --ray or EADPR_RAY\), but not installed"):
        list(jobs.run(lambda: pytest.fail("loaded"), lambda _: pytest.fail("made"), [0], HARDWARE))


def test_actors_get_all_variables_that_settling_sets():
    assert set(re.findall(r'environ\["(\w+)"\]', inspect.getsource(machine.settle))) == set(jobs.SETTLED)


def test_actors_get_where_work_is_kept_and_how_much_memory_joins_take():
    read = {name for of in (cache, engine) for name in re.findall(r'environ.get\("(\w+)"', inspect.getsource(of))}
    assert {"EADPR_CACHE", "EADPR_MEMORY"} <= read <= set(jobs.CARRIED)
