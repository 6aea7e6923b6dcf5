"""What each stage gets to see of params.yaml: the config files that the stage `configs` writes, and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr.model_folders import NO_FILES, ModelFiles, model_files
from eadpr.near_duplicates.config import GENERATORS, Generator, Seq2Seq
from eadpr.params_model import Collection, Layout, Settings
from eadpr.reading.config import GOLD, Reader
from eadpr.reading_multihop.config import PathLearning
from eadpr.supervision.config import Annotator
from eadpr.training.config import Base

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
FUSE_STAGE = ("fuse", "retrieve", "sets")
READER_STAGE = ("reader", "reader_files", "machine")
PATH_READER_STAGE = ("path_reader", "path_reader_files", "machine")
MULTIHOP_STAGE = ("loss", "train", "encoder", "two_hop", "machine")
DENOISE_STAGE = ("denoise",)
ARM_STAGES = {
    "negatives": ("negatives",),
    "examples": ("examples",),
    "train": ("loss", "train", "encoder", "machine"),
}


def config_files(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and sections of each. `settings` are the collection's; `named` those of each model and ranking, by kind and
    name."""
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
    for ranking, own in named["fused"].items():
        yield f"fused/{ranking}.json", {name: section(own, name) for name in FUSE_STAGE}
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
