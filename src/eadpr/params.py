"""Reading and checking params.yaml, and what each stage gets to see of it.

Settings merge as shared sections < `collections.<name>.settings` < `arms.<name>`. Every collection and every arm is
checked, active or not, so that a mistake is found before any work. Only the stage `configs` imports this module: a
stage that read params.yaml itself would rerun at every edit.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from eadpr.config import Section
from eadpr.corpus.sources import SOURCES
from eadpr.model_folders import NO_FILES, ModelFiles, model_files
from eadpr.near_duplicates.config import GENERATORS, Generator, Seq2Seq
from eadpr.params_arms import check_arms
from eadpr.params_edges import check_cycles, check_edges
from eadpr.params_evaluation import check_metrics, check_report, check_robustness
from eadpr.params_model import Collection, Edges, Layout, MultihopOf, Settings
from eadpr.params_multihop import check_multihop
from eadpr.params_questions import check_sets, check_validation
from eadpr.params_readers import check_path_readers, check_promoted, check_readers, check_scoring
from eadpr.reading.config import GOLD, Reader
from eadpr.reading_multihop.config import PathLearning
from eadpr.supervision.config import Annotator
from eadpr.training.config import Base

ARM_SECTIONS = ("encoder", "loss", "train", "negatives", "examples")
STAGES = {
    "fetch": ("source",),
    "prepare": ("source", "prepare", "atlas", "facts", "paq"),
    "bm25": ("bm25", "sets"),
    "positives": ("positives", "sets"),
    "annotator": ("annotator", "annotator_files", "sets", "machine"),
    "evidence": ("evidence", "sets", "machine"),
    "distractors": ("distractors",),
    "evaluate_evidence": ("sets",),
    "encode": ("encode", "machine"),
    "retrieve": ("retrieve", "sets", "machine"),
    "retrieve_multihop": ("beam", "sets", "machine"),
    "fuse": ("fuse", "retrieve", "sets"),
    "probe": ("probe", "sets", "machine"),
    "evaluate": ("evaluate", "sets"),
    "report": ("report", "sets"),
    "robustness": ("robustness", "evaluate", "encode", "sets", "machine"),
    "robustness_report": ("measured", "robustness", "sets"),
    "score_passages": ("machine",),
    "gold_ranking": ("sets",),
    "read": ("read", "sets", "machine"),
    "evaluate_reading": ("read", "sets"),
    "reading_report": ("rankings", "read", "sets"),
    "read_paths": ("read_paths", "machine"),
    "evaluate_path_reading": ("sets",),
    "path_reading_report": ("path_rankings", "sets"),
}
SEQ2SEQ = "near_duplicates.seq2seq"
# Models that no folder or hub name stands for.
BUILT = {"base": ("scratch",), "annotator": ("build", "none"), SEQ2SEQ: (), "reader": (None,), "path_reader": (None,)}
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
GENERATOR_STAGE = ("near_duplicates", "near_duplicates_files", "source", "sets", "machine")
BASE_STAGE = ("base", "base_files", "encoder", "machine")
QUERY_SIDE_STAGE = ("query_side", "machine")
READER_STAGE = ("reader", "reader_files", "machine")
PATH_READER_STAGE = ("path_reader", "path_reader_files", "machine")
MULTIHOP_STAGE = ("loss", "train", "encoder", "two_hop", "machine")
MULTIHOP_SECTIONS = MULTIHOP_STAGE[:-1]
DENOISE_STAGE = ("denoise",)
# Named models and rankings whose overrides are of one section.
NAMED = {
    "bases": "base",
    "query_sides": "query_side",
    "readers": "reader",
    "path_readers": "path_reader",
    "denoised": "denoise",
}
ARM_STAGES = {
    "negatives": ("negatives",),
    "examples": ("examples",),
    "train": ("loss", "train", "encoder", "machine"),
}


def load(path: Path) -> dict[str, Any]:
    """params.yaml as plain values. Anchors are refused: `dvc exp run -S` silently loses what it sets behind one."""
    try:
        text = path.read_text(encoding="utf-8")
        for event in YAML(typ="safe", pure=True).parse(StringIO(text)):
            if getattr(event, "anchor", None) is not None:
                line = event.start_mark.line + 1
                raise ValueError(
                    f"{path}:{line}: anchors and aliases (&{event.anchor}) are not allowed; repeat the value"
                )
        values = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a mapping of sections, found {type(values).__name__}")
    return values


def of_collection(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What `collections` says of the one named."""
    if name not in values["collections"]:
        raise ValueError(
            f"params.yaml: collection: {name!r} is not one of collections ({', '.join(values['collections'])})"
        )
    return values["collections"][name]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the leaves of `over` put in; mappings merge, everything else is replaced whole."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result


def checked(kind: type[Section], values: Any, prefix: str = "", *, path: Path = Path("params.yaml")) -> Any:
    """`values` as a section; raises ValueError with a line for every wrong key, after the file and `prefix`."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            key = prefix + ".".join(str(part) for part in problem["loc"] if part != "[key]")
            said = "unknown key" if problem["type"] == "extra_forbidden" else problem["msg"]
            shown = "" if problem["type"] == "missing" else f" (found {problem['input']!r})"
            lines.append(f"{path}: {key}: {said}{shown}")
        raise ValueError("\n".join(lines)) from None


def configs(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every config file of the active collection and arms, name -> sections. Raises ValueError naming the key."""
    shared_names = set(Settings.model_fields)
    shared = {k: v for k, v in values.items() if k in shared_names}
    layout = checked(Layout, {k: v for k, v in values.items() if k not in shared_names})
    of_collection(values, layout.collection)
    check_metrics(checked(Settings, shared))
    files: dict[str, dict[str, Any]] = {}
    for name, collection in layout.collections.items():
        if name == SOURCES:
            raise ValueError(
                f"params.yaml: collections.{name}: this name is reserved, because data/{SOURCES}/ is where the files of"
                " all collections lie; rename the collection"
            )
        local = _override(shared, collection.settings, f"collections.{name}.settings.", tuple(Settings.model_fields))
        settings = checked(Settings, local, f"collections.{name}.settings.")
        check_metrics(settings, f" (for collection {name})")
        arms = {}
        for arm, overrides in layout.arms.items():
            per_arm = _override(local, overrides, f"arms.{arm}.", ARM_SECTIONS)
            arms[arm] = checked(Settings, per_arm, f"arms.{arm}.")
        named = {
            kind: {
                one: checked(Settings, merged(local, {section: _own(given)}), f"{kind}.{one}: ")
                for one, given in getattr(layout, kind).items()
            }
            for kind, section in NAMED.items()
        }
        if name == layout.collection:
            check_sets(collection, name)
            check_edges(layout)
            trained = {arm: _trained(arms, arm, edges) for arm, edges in layout.active.items()}
            check_validation(layout, settings)
            check_arms(layout, settings, trained)
            check_report(layout, settings)
            check_robustness(layout, settings)
            check_promoted(layout, trained, named["denoised"])
            check_readers(layout, settings, named["readers"])
            check_scoring(layout, named["readers"])
            check_cycles(layout)
            multihop = {model: _multihop(trained, model, given) for model, given in layout.multihop.items()}
            check_multihop(layout, settings, trained, multihop)
            check_path_readers(layout, settings, named["path_readers"])
            files = dict(_files(layout, collection, settings, named | {"multihop": multihop, "arms": trained}))
    return files


def _own(given: Section | dict[str, Any]) -> dict[str, Any]:
    """The overrides that a named model or ranking comes with, less the edges of the DAG."""
    return given if isinstance(given, dict) else given.model_extra


def _multihop(trained: dict[str, Settings], model: str, given: MultihopOf) -> Settings:
    """The settings of its arm with its own overrides."""
    of_arm = trained[given.of].model_dump(by_alias=True)
    prefix = f"multihop.{model}."
    return checked(Settings, _override(of_arm, given.model_extra, prefix, MULTIHOP_SECTIONS), prefix)


def _trained(arms: dict[str, Settings], arm: str, edges: Edges) -> Settings:
    """Settings of an active arm; a repeated arm's with another seed."""
    if edges.repeats is None:
        return arms[arm]
    repeated = arms[edges.repeats]
    return repeated.model_copy(update={"train": repeated.train.model_copy(update={"seed": edges.seed})})


def _override(base: dict[str, Any], over: Mapping[str, Any], prefix: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    for key in over:
        if key not in allowed:
            raise ValueError(f"params.yaml: {prefix}{key}: cannot be set here; known sections are {', '.join(allowed)}")
    return merged(base, over)


def _model_files(key: str, settings: Base | Annotator | Seq2Seq | Reader | PathLearning) -> ModelFiles:
    if settings.model in BUILT[key]:
        return NO_FILES
    if not Path(settings.model).is_dir():
        if not HUB_NAME.fullmatch(settings.model):
            raise ValueError(
                f"params.yaml: {key}.model: {settings.model!r} is neither a folder, relative to the repository's root"
                " or absolute, nor a hub name such as bert-base-uncased"
            )
    elif settings.revision is not None:
        raise ValueError(
            f"params.yaml: {key}.revision: {settings.revision!r} is of hub names, but {key}.model {settings.model!r}"
            " is a folder; set it to null"
        )
    return model_files(settings.model)


def _files(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """`settings` are the collection's; `named` those of each model and ranking, by kind and name."""
    trainings = {arm: [arm] for arm, edges in layout.active.items() if edges.repeats is None}
    for arm, edges in layout.active.items():
        if edges.repeats is not None:
            trainings[edges.repeats].append(arm)
    kinds = {file.kind for file in collection.source.files}
    measured = {row: [arm for arm in of_row if arm in layout.robustness.arms] for row, of_row in trainings.items()}
    measured = {row: of_row for row, of_row in measured.items() if of_row}
    others = [*layout.fused, *layout.multihop]  # rankings that are rows like arms, but without AA
    rows = {"bm25": ["bm25"]} | trainings | {name: [name] for name in others}
    readable = rows | {GOLD: [GOLD]}
    read = {row: [name for name in of_row if name in layout.reading.rankings] for row, of_row in readable.items()}
    read = {row: of_row for row, of_row in read.items() if of_row}
    of_all = {
        "source": collection.source.model_dump(by_alias=True),
        "sets": collection.sets.model_dump(by_alias=True),
        "atlas": settings.atlas.model_dump(by_alias=True) if collection.source.format == "atlas" else None,
        "facts": settings.facts.model_dump() if "facts" in kinds else None,
        "paq": settings.paq.model_dump() if "paq" in kinds else None,
        "annotator_files": _model_files("annotator", settings.annotator).model_dump(),
        "report": settings.report.model_dump(by_alias=True) | {"trainings": trainings, "fused": others},
        "measured": settings.report.model_dump(by_alias=True) | {"trainings": measured, "fused": []},
        "robustness": {"counts": layout.robustness.counts},
        "rankings": settings.report.model_dump(by_alias=True) | {"trainings": read, "fused": []},
        "path_rankings": settings.report.model_dump(by_alias=True)
        | {"trainings": {name: [name] for name in layout.path_reading.rankings}, "fused": []},
    }

    def section(of: Settings, name: str) -> Any:
        return of_all[name] if name in of_all else getattr(of, name).model_dump(by_alias=True)

    for stage, names in STAGES.items():
        yield f"{stage}.json", {name: section(settings, name) for name in names}
    for generator in layout.robustness.generators:
        given = _of_generator(settings, generator)
        rest = {name: section(settings, name) for name in GENERATOR_STAGE if name not in given}
        yield f"near_duplicates/{generator}.json", given | rest
    for base, own in named["bases"].items():
        given = {"base_files": _model_files("base", own.base).model_dump()}
        yield f"bases/{base}.json", given | {name: section(own, name) for name in BASE_STAGE if name not in given}
    for model, own in named["query_sides"].items():
        yield f"query_sides/{model}.json", {name: section(own, name) for name in QUERY_SIDE_STAGE}
    for reader, own in named["readers"].items():
        given = {"reader_files": _model_files("reader", own.reader).model_dump()}
        yield f"readers/{reader}.json", given | {name: section(own, name) for name in READER_STAGE if name not in given}
    for reader, own in named["path_readers"].items():
        given = {"path_reader_files": _model_files("path_reader", own.path_reader).model_dump()}
        rest = {name: section(own, name) for name in PATH_READER_STAGE if name not in given}
        yield f"path_readers/{reader}.json", given | rest
    for model, own in named["multihop"].items():
        yield f"multihop/{model}.json", {name: section(own, name) for name in MULTIHOP_STAGE}
    for ranking, own in named["denoised"].items():
        yield f"denoised/{ranking}.json", {name: section(own, name) for name in DENOISE_STAGE}
    for arm, own in named["arms"].items():
        for stage, names in ARM_STAGES.items():
            yield f"{arm}/{stage}.json", {name: section(own, name) for name in names}


def _of_generator(settings: Settings, generator: Generator) -> dict[str, Any]:
    """Without the sections of other generators, so that an edit of one reruns that one."""
    found = settings.near_duplicates.model_dump() | {other: None for other in GENERATORS if other != generator}
    files = _model_files(SEQ2SEQ, settings.near_duplicates.seq2seq) if generator == "seq2seq" else NO_FILES
    return {"near_duplicates": found | {"generator": generator}, "near_duplicates_files": files.model_dump()}
