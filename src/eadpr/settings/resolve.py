"""Checking params.yaml, and what each stage gets to see of it: the config files that the stage `configs` writes.

Settings merge as shared sections < `settings` of the collection's own file < `collections.<name>.settings` <
`arms.<name>`. Every collection and every arm is checked, active or not, so that a mistake is found before any work.
Only the stage `configs` imports this module: a stage that read params.yaml itself would rerun at every edit.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eadpr.corpus.sources import LOOK_ALIKES
from eadpr.readers.config import GOLD, Reader, ReaderValues
from eadpr.runtime.model_folders import NO_FILES, is_folder, model_files
from eadpr.runtime.section import Section
from eadpr.settings import checks as params_checks
from eadpr.settings import model as params_model
from eadpr.settings.command import declared
from eadpr.settings.model import Collection, Edges, Layout, Made, ReaderOf, Settings
from eadpr.settings.yaml import MOST, TAKEN, beyond, decided_by, in_own_file, merged, of_collection
from eadpr.settings.yaml import load as load
from eadpr.training.config import Loss

# Values of `model` that are neither a folder nor a hub name.
BUILT = {"base": ("scratch",), "annotator": ("build", "none", "endpoint"), "reader": (None,)}
SHOWN = 80  # characters of a value in a message
HUB_NAME = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def checked(kind: type[Section], values: Any, prefix: str = "", *, path: Path = Path("params.yaml")) -> Any:
    """`values` as a section; raises ValueError with a line for every wrong key, after the file and `prefix`."""
    if far := [f"{path}: {prefix}{key}: no number of more than {MOST:,} is of use" for key in beyond(values)]:
        raise ValueError("\n".join(far))
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            key = (prefix + ".".join(str(part) for part in problem["loc"] if part != "[key]")).rstrip(".")
            found, said = problem["input"], problem["msg"].removeprefix("Value error, ")
            if problem["type"] == "extra_forbidden":
                said = "unknown key"
            shown = "" if isinstance(found, Mapping) else f" (found {short(found)})"
            where = in_own_file(key, found, missing=problem["type"] == "missing") or f"{path}: {key}"
            lines.append(f"{where}: {said}{shown}")
        raise ValueError("\n".join(lines)) from None


def short(found: Any) -> str:
    """A value in a message, cut where it is long."""
    said = repr(found)
    return said if len(said) <= SHOWN else f"{said[: SHOWN - 1]}…"


def configs(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every config file of the active collection and arms, name -> sections. Raises ValueError naming the key."""
    shared = {key: value for key, value in values.items() if key in Settings.model_fields}
    layout = checked(Layout, {key: value for key, value in values.items() if key not in shared})
    of_collection(values, layout.collection)
    _refuse(params_model.unknown_metrics(checked(Settings, shared)))
    _check_path_reader(layout, shared)
    files: dict[str, dict[str, Any]] = {}
    of_arms = _own_sections("arms")
    for name, collection in layout.collections.items():
        if name in TAKEN:
            raise ValueError(
                f"params.yaml: collections.{name}: this name is reserved, because data/{name}/ is {TAKEN[name]}; rename"
                " the collection"
            )
        local = _override(shared, collection.settings, f"collections.{name}.settings.", tuple(Settings.model_fields))
        settings = checked(Settings, local, f"collections.{name}.settings.")
        _check_path_reader(layout, local, f"collections.{name}.settings.")
        _refuse(params_model.unknown_metrics(settings, f" (for collection {name})"), name)
        arms = {}
        for arm, overrides in layout.arms.items():
            per_arm = _override(local, overrides, f"arms.{arm}.", of_arms)
            arms[arm] = checked(Settings, per_arm, f"arms.{arm}.")
        if name == layout.collection:
            files = dict(_files(layout, collection, settings, _named(layout, local, settings, arms)))
    return files


def with_distractors(values: Mapping[str, Any]) -> list[str]:
    """The active arms that learn from distractors or placebos."""
    found = configs(values)
    losses = {arm: Loss(**found[f"{arm}/train.json"]["loss"]) for arm in values["active"]}
    return [arm for arm, loss in losses.items() if loss.needs_distractors or loss.needs_placebos]


def _named(
    layout: Layout, local: dict[str, Any], settings: Settings, arms: dict[str, Settings]
) -> dict[str, dict[str, Settings]]:
    """Settings of the active arms and all other named models and rankings, by kind and name, checked. They are of the
    active collection, and need not fit the settings of others."""
    named: dict[str, dict[str, Settings]] = {}
    for kind in ("bases", "query_sides", "fused", "readers", "denoised"):
        named[kind] = {}
        for one, given in getattr(layout, kind).items():
            of_paths, kind_ = _of_paths(given, local), Settings.model_fields[given.section].annotation
            values = merged(_path_reader(local) if of_paths else local[given.section], given.model_extra)
            own = checked(kind_, values, f"{kind}.{one}: {'path_reader' if of_paths else given.section}.")
            named[kind][one] = settings.model_copy(update={given.section: own})
    _refuse(params_model.problems(layout, settings.report), layout.collection)
    named["arms"] = {arm: _trained(arms, arm, edges) for arm, edges in layout.active.items()}
    named["multihop"] = {}
    for model, given in layout.multihop.items():
        values, prefix = named["arms"][given.of].model_dump(by_alias=True), f"multihop.{model}."
        values = _override(values, given.model_extra, prefix, _own_sections("multihop"))
        named["multihop"][model] = checked(Settings, values, prefix)
    _refuse(params_checks.problems(layout, settings, named), layout.collection)
    return named


def _refuse(problems: Iterable[str], collection: str = "") -> None:
    for problem in problems:  # only the first: those behind it may follow from it
        raise ValueError(f"params.yaml: {problem}{decided_by(collection, problem)}")


def _of_paths(given: Made, local: dict[str, Any]) -> bool:
    return isinstance(given, ReaderOf) and (local["reader"] | given.model_extra).get("kind") == "paths"


def _path_reader(local: dict[str, Any]) -> dict[str, Any]:
    """`path_reader` lies over `reader`."""
    return merged(local["reader"], local["path_reader"] | {"kind": "paths"})


def _check_path_reader(layout: Layout, local: dict[str, Any], prefix: str = "") -> None:
    """Whether its values fit each other, and those of the section `reader`, matters only to readers of kind paths."""
    prefix = f"{prefix}path_reader."
    if "kind" in local["path_reader"]:
        where = _where(f"{prefix}kind", local["path_reader"]["kind"])
        raise ValueError(f"{where}: cannot be set here; set `kind` in the section reader, or in an entry of readers")
    any_of_paths = any(_of_paths(given, local) for given in layout.readers.values())
    checked(Reader if any_of_paths else ReaderValues, _path_reader(local), prefix)


def _trained(arms: dict[str, Settings], arm: str, edges: Edges) -> Settings:
    """Settings of an active arm; a repeated arm's with another seed."""
    if edges.repeats is None:
        return arms[arm]
    repeated = arms[edges.repeats]
    return repeated.model_copy(update={"train": repeated.train.model_copy(update={"seed": edges.seed})})


def _override(base: dict[str, Any], over: Mapping[str, Any], prefix: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    for key in over:
        if key not in allowed:
            raise ValueError(
                f"{_where(f'{prefix}{key}', over[key])}: cannot be set here; known sections are {', '.join(allowed)}"
            )
    return merged(base, over)


def _where(key: str, value: Any) -> str:
    return in_own_file(key, value, missing=False) or f"params.yaml: {key}"


def _files(
    layout: Layout, collection: Collection, settings: Settings, named: dict[str, dict[str, Settings]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and sections of each. `settings` are the collection's; `named` those of each model and ranking, by kind and
    name."""
    named = named | {"generators": dict.fromkeys(layout.robustness.generators, settings)}
    of_all = _of_all(layout, collection, settings, named)
    for config, sections in declared().items():
        kind = next((kind for kind in named if f"{{{kind}}}" in config), None)
        for one, own in named[kind].items() if kind else [("", settings)]:
            found = of_all | (_of_kind[kind](collection, own, one) if kind in _of_kind else {})
            given = {name: found[name] if name in found else _section(own, name) for name in sections}
            yield config.format_map({kind: one}), given


def _own_sections(kind: str) -> tuple[str, ...]:
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
    for arm, edges in sorted(layout.active.items(), key=lambda one: one[1].seed or 0):  # as two arms' are paired
        if edges.repeats is not None:
            trainings[edges.repeats].append(arm)
    repeats = [arm for arm, edges in layout.active.items() if edges.repeats is not None]
    kinds = {collection.source.format, *(file.kind for file in collection.source.files)}
    others = [*layout.fused, *layout.multihop]  # rankings that are rows like arms, but without AA
    ranked = {"bm25": ["bm25"]} | trainings
    readable = ranked | {name: [name] for name in (*others, GOLD)}
    reading, robustness = layout.reading, layout.robustness
    return {
        "source": collection.source.of_sets(collection.sets, settings.prepare).model_dump(by_alias=True),
        "sets": collection.sets.model_dump(by_alias=True),
        **_of_written(collection, settings),
        "endpoint": _asked(settings, "evidence") if settings.annotator.model == "endpoint" else None,
        **{name: _section(settings, name) if name in kinds else None for name in ("atlas", "facts", "paq")},
        "report": settings.report.model_dump(by_alias=True)
        | {
            "trainings": trainings,
            "fused": others,
            "one_hop": {name: given.of for name, given in layout.multihop.items()},
            "robustness": {"by": robustness.generators, "trainings": _among(robustness.rows, ranked)},
            "reading": {"by": reading.readers, "trainings": _among(reading.rankings, readable)},
            "strategy": settings.probe.strategy,
            "of_paths": [one for one in reading.readers if named["readers"][one].reader.of_paths],
        },
        "robustness": {"counts": robustness.counts},
        "explore": {
            "rankings": [*ranked, *repeats, *others, *layout.denoised, *reading.gold],
            "near_duplicates": robustness.counts if robustness.generators else [],
        },
    }


def _among(names: list[str], rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of a report with what is in `names` of each; none without any."""
    found = {row: [name for name in of_row if name in names] for row, of_row in rows.items()}
    return {row: of_row for row, of_row in found.items() if of_row}


def _of_generator(collection: Collection, own: Settings, generator: str) -> dict[str, Any]:
    """Without the settings of other generators, so that an edit of one reruns that one."""
    found = _section(own, "near_duplicates") | {"generator": generator}
    replaced = {} if generator == "replaced" else {"replaced": None}
    return {"near_duplicates": found | replaced, "writer": _writer(collection, own, generator)}


def _of_written(collection: Collection, own: Settings) -> dict[str, Any]:
    by = own.written.by if "written" in own.distractors.forms else ""
    return {"written": _section(own, "written") if by else None, "writer": _writer(collection, own, by)}


def _writer(collection: Collection, own: Settings, by: str) -> dict[str, Any] | None:
    """None where `by` is none that writes."""
    found = {"by": by, "model_files": NO_FILES.model_dump(), "texts": [], "machine": None}
    match by:
        case "endpoint":
            return found | {"settings": _asked(own, "writing")}
        case "seq2seq":
            here = {"model_files": _model_files(by, own.seq2seq), "machine": _section(own, "machine")}
            return found | {"settings": _section(own, by)} | here
        case "given":
            texts = [file.model_dump() for file in collection.source.files if file.kind in LOOK_ALIKES]
            return found | {"settings": _section(own, by), "texts": texts}
    return None


def _asked(own: Settings, use: str) -> dict[str, Any]:
    """The server and what it is asked for one use of it."""
    found = _section(own, "endpoint")
    uses = {name: found.pop(name) for name in ("writing", "evidence")}
    return found | uses[use]


def _of_arm(collection: Collection, own: Settings, arm: str) -> dict[str, Any]:
    """What else its examples must hold for its loss."""
    return {"examples": _section(own, "examples") | {"placebos": params_checks.compared_with(own)}}


_of_kind = {"generators": _of_generator, "arms": _of_arm}


def _model_files(key: str, settings: Section) -> dict[str, Any]:
    """Hashes of the files of a section's model, where that is a folder."""
    model, revision = settings.model, settings.revision
    if model in BUILT.get(key, ()):
        return NO_FILES.model_dump()
    if not is_folder(model):
        if not HUB_NAME.fullmatch(model):
            raise ValueError(
                f"params.yaml: {key}.model: {short(model)} is neither a folder, relative to the repository's root or"
                " absolute, nor a hub name such as bert-base-uncased"
            )
    elif revision is not None:
        raise ValueError(
            f"params.yaml: {key}.revision: {revision!r} is of hub names, but {key}.model {model!r} is a folder; set it"
            " to null"
        )
    return model_files(model).model_dump()
