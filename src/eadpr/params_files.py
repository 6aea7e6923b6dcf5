"""What each stage gets to see of params.yaml: the config files that the stage `configs` writes, and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr.commands import declared
from eadpr.config import Section
from eadpr.model_folders import NO_FILES, model_files
from eadpr.near_duplicates.config import GENERATORS
from eadpr.params_model import Collection, Layout, Settings
from eadpr.reading.config import GOLD

# Values of `model` that are neither a folder nor a hub name.
BUILT = {"base": ("scratch",), "annotator": ("build", "none"), "reader": (None,)}
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def config_files(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and sections of each. `settings` are the collection's; `named` those of each model and ranking, by kind and
    name."""
    named = named | {"generators": dict.fromkeys(layout.robustness.generators, settings)}
    of_all = _of_all(layout, collection, settings, named)
    for config, sections in declared().items():
        kind = next((kind for kind in named if f"{{{kind}}}" in config), None)
        for one, own in named[kind].items() if kind else [("", settings)]:
            found = of_all | (_of_generator(own, one) if kind == "generators" else {})
            given = {name: found[name] if name in found else _section(own, name) for name in sections}
            yield config.format_map({kind: one}), given


def own_sections(kind: str) -> tuple[str, ...]:
    """Which sections the stages of each of a kind (arms, multihop, ...) have of their own: all but the machine."""
    found = [name for config, sections in declared().items() if f"{{{kind}}}" in config for name in sections]
    return tuple(name for name in dict.fromkeys(found) if name != "machine")


def _section(own: Settings, name: str) -> dict[str, Any]:
    if name.endswith("_files"):
        key = name.removesuffix("_files")
        return _model_files(key, getattr(own, key))
    return getattr(own, name).model_dump(by_alias=True)


def _of_all(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> dict[str, Any]:
    """The sections that are the same for all and not as they stand in params.yaml."""
    trainings = {arm: [arm] for arm, edges in layout.active.items() if edges.repeats is None}
    for arm, edges in layout.active.items():
        if edges.repeats is not None:
            trainings[edges.repeats].append(arm)
    kinds = {collection.source.format, *(file.kind for file in collection.source.files)}
    others = [*layout.fused, *layout.multihop]  # rankings that are rows like arms, but without AA
    readable = {"bm25": ["bm25"]} | trainings | {name: [name] for name in (*others, GOLD)}
    reading, robustness = layout.reading, layout.robustness
    return {
        "source": collection.source.model_dump(by_alias=True),
        "sets": collection.sets.model_dump(by_alias=True),
        **{name: _section(settings, name) if name in kinds else None for name in ("atlas", "facts", "paq")},
        "report": settings.report.model_dump(by_alias=True)
        | {
            "trainings": trainings,
            "fused": others,
            "one_hop": {name: given.of for name, given in layout.multihop.items()},
            "robustness": {"by": robustness.generators, "trainings": _among(robustness.arms, trainings)},
            "reading": {"by": reading.readers, "trainings": _among(reading.rankings, readable)},
            "of_paths": [one for one in reading.readers if named["readers"][one].reader.of_paths],
        },
        "robustness": {"counts": robustness.counts},
    }


def _among(names: list[str], rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of a report with what is in `names` of each; none without any."""
    found = {row: [name for name in of_row if name in names] for row, of_row in rows.items()}
    return {row: of_row for row, of_row in found.items() if of_row}


def _of_generator(own: Settings, generator: str) -> dict[str, Any]:
    """Without the sections of other generators, so that an edit of one reruns that one."""
    found = _section(own, "near_duplicates") | {other: None for other in GENERATORS if other != generator}
    seq2seq = own.near_duplicates.seq2seq
    files = _model_files("near_duplicates.seq2seq", seq2seq) if generator == "seq2seq" else NO_FILES.model_dump()
    return {"near_duplicates": found | {"generator": generator}, "near_duplicates_files": files}


def _model_files(key: str, settings: Section) -> dict[str, Any]:
    """Hashes of the files of a section's model, where that is a folder."""
    model, revision = settings.model, settings.revision
    if model in BUILT.get(key, ()):
        return NO_FILES.model_dump()
    if not Path(model).is_dir():
        if not HUB_NAME.fullmatch(model):
            raise ValueError(
                f"params.yaml: {key}.model: {model!r} is neither a folder, relative to the repository's root or"
                " absolute, nor a hub name such as bert-base-uncased"
            )
    elif revision is not None:
        raise ValueError(
            f"params.yaml: {key}.revision: {revision!r} is of hub names, but {key}.model {model!r} is a folder; set it"
            " to null"
        )
    return model_files(model).model_dump()
