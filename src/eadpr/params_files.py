"""What each stage gets to see of params.yaml: the config files that the stage `configs` writes, and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr.commands import declared
from eadpr.model_folders import NO_FILES, ModelFiles, model_files
from eadpr.near_duplicates.config import GENERATORS, Generator, Seq2Seq
from eadpr.params_model import Collection, Layout, Settings
from eadpr.reading.config import GOLD, Reader
from eadpr.supervision.config import Annotator
from eadpr.training.config import Base

SEQ2SEQ = "near_duplicates.seq2seq"
# Models that no folder or hub name stands for.
BUILT = {"base": ("scratch",), "annotator": ("build", "none"), SEQ2SEQ: (), "reader": (None,)}
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def config_files(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and sections of each. `settings` are the collection's; `named` those of each model and ranking, by kind and
    name."""
    named = named | {"generators": dict.fromkeys(layout.robustness.generators, settings)}
    of_all = _of_all(layout, collection, settings, named)
    for config, sections in declared().items():
        kinds = [kind for kind in named if f"{{{kind}}}" in config]
        for kind in kinds:
            for one, own in named[kind].items():
                found = of_all | (_of_generator(own, one) if kind == "generators" else {})
                yield config.format_map({kind: one}), {name: _section(name, own, found) for name in sections}
        if not kinds:
            yield config, {name: _section(name, settings, of_all) for name in sections}


def own_sections(kind: str) -> tuple[str, ...]:
    """Which sections the stages of each of a kind (arms, multihop, ...) have of their own: all but the machine."""
    found = [name for config, sections in declared().items() if f"{{{kind}}}" in config for name in sections]
    return tuple(name for name in dict.fromkeys(found) if name != "machine")


def _section(name: str, own: Settings, found: dict[str, Any]) -> Any:
    """`found` holds those that are not as they stand in params.yaml."""
    if name in found:
        return found[name]
    if name.endswith("_files"):
        key = name.removesuffix("_files")
        return _model_files(key, getattr(own, key)).model_dump()
    return getattr(own, name).model_dump(by_alias=True)


def _of_all(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> dict[str, Any]:
    """The sections that are the same for all and not as they stand in params.yaml."""
    trainings = {arm: [arm] for arm, edges in layout.active.items() if edges.repeats is None}
    for arm, edges in layout.active.items():
        if edges.repeats is not None:
            trainings[edges.repeats].append(arm)
    kinds = {file.kind for file in collection.source.files}
    others = [*layout.fused, *layout.multihop]  # rankings that are rows like arms, but without AA
    readable = {"bm25": ["bm25"]} | trainings | {name: [name] for name in (*others, GOLD)}

    def measured(by: list[str], rows: dict[str, list[str]]) -> dict[str, Any]:
        return {"by": by, "trainings": rows}

    return {
        "source": collection.source.model_dump(by_alias=True),
        "sets": collection.sets.model_dump(by_alias=True),
        "atlas": settings.atlas.model_dump(by_alias=True) if collection.source.format == "atlas" else None,
        "facts": settings.facts.model_dump() if "facts" in kinds else None,
        "paq": settings.paq.model_dump() if "paq" in kinds else None,
        "report": settings.report.model_dump(by_alias=True)
        | {
            "trainings": trainings,
            "fused": others,
            "one_hop": {name: given.of for name, given in layout.multihop.items()},
            "robustness": measured(layout.robustness.generators, _among(layout.robustness.arms, trainings)),
            "reading": measured(layout.reading.readers, _among(layout.reading.rankings, readable)),
            "of_paths": [one for one in layout.reading.readers if named["readers"][one].reader.of_paths],
        },
        "robustness": {"counts": layout.robustness.counts},
    }


def _among(names: list[str], rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of a report with what is in `names` of each; none without any."""
    found = {row: [name for name in of_row if name in names] for row, of_row in rows.items()}
    return {row: of_row for row, of_row in found.items() if of_row}


def _of_generator(settings: Settings, generator: Generator) -> dict[str, Any]:
    """Without the sections of other generators, so that an edit of one reruns that one."""
    found = settings.near_duplicates.model_dump() | {other: None for other in GENERATORS if other != generator}
    files = _model_files(SEQ2SEQ, settings.near_duplicates.seq2seq) if generator == "seq2seq" else NO_FILES
    return {"near_duplicates": found | {"generator": generator}, "near_duplicates_files": files.model_dump()}


def _model_files(key: str, settings: Base | Annotator | Seq2Seq | Reader) -> ModelFiles:
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
