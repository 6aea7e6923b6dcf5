"""Check params.yaml, and make the config file of each stage of it: the work of the stage `configs`.

Settings merge as shared sections < `settings` of the collection's own file < `collections.<name>.settings` <
`arms.<name>`. Every collection and every arm is checked, active or not, so that a mistake is found before any work.
Only the stage `configs` imports this module: a stage that read params.yaml itself would rerun at every edit.
"""

import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eadpr.corpus.rows import excerpt
from eadpr.runtime import stage_code
from eadpr.runtime.files import write_json, write_text
from eadpr.runtime.model_folders import HUB_NAME, NO_FILES, is_folder, model_files
from eadpr.runtime.section import Section
from eadpr.settings.checks import Models, check_settings, compared_placebo
from eadpr.settings.command import Stage
from eadpr.settings.model import Collection, Layout, Settings, check_graph, check_metrics
from eadpr.settings.yaml import SettingError, merged, of_collection
from eadpr.settings.yaml import load as load

Values = dict[str, Any]  # as params.yaml has them, or a config file will

# What `auto` stands for in `train`, and in `query_side` for its learning rate, by the base that encoders start from.
# 2e-5 is DPR's for BERT-base, 3e-5 that of Lee et al. (2021); the rest is ours.
RECIPES: dict[str, tuple[Values, float]] = {
    "scratch": ({"learning_rate": 2e-3, "weight_decay": 0.0, "keep": "last", "validate_every": 300}, 3e-4),
    "pretrained": ({"learning_rate": 2e-5, "weight_decay": 0.01, "keep": "best", "validate_every": 50}, 3e-5),
}
# Values of `model` that are neither a folder nor a hub name.
BUILT = {"base": ("scratch",), "annotator": ("build", "none"), "reader": (None,)}


def fill_in(settings: Values) -> Values:
    """Put the values of RECIPES where `auto` stands in `train` and `query_side`; whether they are right is checked
    afterwards. Without validation questions the last weights are kept, as none can be the best."""
    match settings:
        case {"base": {"model": model}, "train": {**train}, "query_side": {**query_side}}:
            recipe, rate = RECIPES["scratch" if model == "scratch" else "pretrained"]
            if train.get("validation_questions") == 0:
                recipe = recipe | {"keep": "last"}
            train |= {key: value for key, value in recipe.items() if train.get(key) == "auto"}
            if query_side.get("learning_rate") == "auto":
                query_side["learning_rate"] = rate
            return settings | {"train": train, "query_side": query_side}
    return settings


def checked(kind: type[Section], values: Any, prefix: str = "") -> Any:
    """Return `values` as a section. Raises SettingError with a line for every wrong key, behind `prefix`."""
    try:
        return kind.model_validate(fill_in(values))
    except ValidationError as error:
        raise SettingError(*_explain(prefix, *error.errors())) from error


def _explain(prefix: str, first: Mapping[str, Any], *more: Mapping[str, Any]) -> list[Any]:
    """Return key and reason of the first of pydantic's errors, and a pair of them for each other one."""
    key = (prefix + ".".join(str(part) for part in first["loc"] if part != "[key]")).rstrip(".")
    unknown = first["type"] == "extra_forbidden"
    reason = f"unknown key{_suggest(*first['loc'][-2:])}" if unknown else first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_type" and isinstance(first["input"], int | float):  # as the commit 4e12345
        reason += f"; put text that reads as a number in quotes: -S '{key}=\"...\"'"
    if not isinstance(first["input"], Mapping):
        reason += f" (found {excerpt(first['input'])})"
    return [key, reason, *(tuple(_explain(prefix, error)) for error in more)]


def _suggest(*place: int | str) -> str:
    """Ask whether the known key nearest to an unknown one was meant: of a section, or of the whole file."""
    names = [*Settings.model_fields, *Layout.model_fields]
    if len(place) > 1:
        section = Settings.model_fields.get(str(place[0]))
        names = [field.alias or name for name, field in section.annotation.model_fields.items()] if section else []
    near = get_close_matches(str(place[-1]), names, 1)
    return f"; did you mean {near[0]}?" if near else ""


def configs(values: Values) -> dict[str, Values]:
    """Return the sections of every config file of the active collection and arms, by name. Raises SettingError."""
    shared = {key: value for key, value in values.items() if key in Settings.model_fields}
    layout = checked(Layout, {key: value for key, value in values.items() if key not in shared})
    of_collection(values, layout.collection)
    default = checked(Settings, shared)
    check_metrics(default.evaluate, default.report)
    files: dict[str, Values] = {}
    arm_sections = _sections_of("arms")
    for name, collection in layout.collections.items():
        prefix = f"collections.{name}.settings."
        local = _override(shared, collection.settings, prefix, list(Settings.model_fields))
        settings = checked(Settings, local, prefix)
        check_metrics(settings.evaluate, settings.report, prefix)
        arms = {arm: _override(local, over, f"arms.{arm}.", arm_sections) for arm, over in layout.arms.items()}
        for arm, of_arm in arms.items():
            checked(Settings, of_arm, f"arms.{arm}.")
        if name == layout.collection:
            files = dict(_files(layout, collection, settings, _resolve_named(layout, local, settings, arms)))
    return files


def write_configs(values: Values, folder: Path) -> int:
    """Write the config files and the lists of code into `folder`, which exists; return the number of config files."""
    files = configs(values)
    for name, sections in files.items():
        write_json(folder / name, sections)
    for module, files_of_it in stage_code.lists():
        write_text(folder / "code" / f"{module}.txt", files_of_it)
    return len(files)


def _resolve_named(layout: Layout, local: Values, settings: Settings, arms: dict[str, Values]) -> Models:
    """Return the checked settings of the active arms and all other named models and rankings, by kind and name.

    They are the active collection's, and need not fit the settings of other collections. `local` and `arms` are not
    checked yet; the section `base` of an arm and of two hops becomes the base that they start from.
    """
    check_graph(layout, settings.report)
    models: Models = {}
    for kind in ("bases", "query_sides", "fused", "readers"):
        models[kind] = {}
        for name, entry in getattr(layout, kind).items():
            of_paths = kind == "readers" and (local["reader"] | entry.model_extra).get("kind") == "paths"
            section = "path_reader" if of_paths else entry.section
            values = merged(local[section], entry.model_extra)
            if kind == "query_sides":
                values = fill_in(with_base(local | {section: values}, layout, models, name))[section]
            resolved = checked(Settings.model_fields[section].annotation, values, f"{kind}.{name}.")
            models[kind][name] = settings.model_copy(update={entry.section: resolved})
    models["arms"], models["multihop"] = {}, {}
    active: dict[str, Values] = {}
    for arm, edges in layout.active.items():
        seed = {} if edges.repeats is None else {"train": {"seed": edges.seed}}
        active[arm] = merged(arms[edges.repeats or arm], seed)
        values = with_base(active[arm], layout, models, arm)
        models["arms"][arm] = checked(Settings, values, f"arms.{edges.repeats or arm}.")
    for name, entry in layout.multihop.items():
        values = _override(active[entry.of], entry.model_extra, f"multihop.{name}.", _sections_of("multihop"))
        models["multihop"][name] = checked(Settings, with_base(values, layout, models, name), f"multihop.{name}.")
    check_settings(layout, settings, models)
    return models


def with_base(values: Values, layout: Layout, models: Models, name: str) -> Values:
    """Return the values of an active arm, two hops or a query side with the `base` that it starts from in the end."""
    starts = {arm: edges.init for arm, edges in (layout.active | layout.multihop).items()}
    starts |= {query_side: entry.of for query_side, entry in layout.query_sides.items()}
    while name in starts:
        name = starts[name]
    return values | {"base": models["bases"][name].base.model_dump()}


def _override(base: Values, over: Mapping[str, Any], prefix: str, allowed: list[str]) -> Values:
    for section in over:
        if section not in allowed:
            raise SettingError(f"{prefix}{section}", f"cannot be set here; known sections are {', '.join(allowed)}")
    return merged(base, over)


def declared() -> dict[str, list[str]]:
    """Return the sections of each config file of the stages in stages/, by its path as `Stage.config` has it."""
    if importlib.util.find_spec("stages") is None:  # an installed command, which Python does not search the folder for
        if not Path("stages/train.py").is_file():
            raise FileNotFoundError("stages/ does not exist here; run this command at the root of the repository")
        sys.path.append(str(Path.cwd()))
    folder = importlib.import_module("stages").__path__
    mains = [importlib.import_module(f"stages.{module.name}").main for module in pkgutil.iter_modules(folder)]
    return {main.config: main.sections() for main in mains if isinstance(main, Stage)}


def _sections_of(kind: str) -> list[str]:
    """Return the sections that each entry of a kind (arms, multihop, ...) has for itself: all but the shared ones."""
    names = [name for config, sections in declared().items() if _kind_of(config) == kind for name in sections]
    return [name for name in dict.fromkeys(names) if name not in ("machine", "retrieve", "sets")]


def _kind_of(config: str) -> str | None:
    """Return the kind of entries that have a config file each, by the field in the file's path: {arm} is for arms."""
    field = re.search(r"\{(\w+)\}", config)
    return field and (field[1] if field[1] in ("fused", "multihop") else f"{field[1]}s")


def _files(layout: Layout, collection: Collection, settings: Settings, models: Models) -> Iterator[tuple[str, Values]]:
    """Yield name and sections of each config file. `settings` are the collection's, `models` the entries'."""
    models = models | {"generators": dict.fromkeys(layout.robustness.generators, settings)}
    shared = _shared_sections(layout, collection, settings, models)
    learnt = {layout.active[arm].negatives for arm, its in models["arms"].items() if its.negatives.kind == "ranked"}
    learnt |= {name for fused in layout.fused.values() for name in (fused.first, fused.second)}
    learnt |= {reader.ranking for reader in layout.readers.values()}  # stages read training questions of all these
    for config, sections in declared().items():
        kind = _kind_of(config)
        for name, resolved in models[kind].items() if kind else [("", settings)]:
            derived = dict(shared)
            if kind == "generators":  # without the settings of others, so that an edit of one reruns only that one
                derived |= {
                    "near_duplicates": _section(resolved, "near_duplicates") | {"generator": name},
                    "endpoint": _section(resolved, "endpoint") if name == "endpoint" else None,
                    "source": shared["source"] if name == "given" else None,
                }
            if kind == "arms":
                derived["examples"] = _section(resolved, "examples") | {"placebos": compared_placebo(resolved)}
                derived["sets"] = shared["sets"] | ({} if name in learnt else {"train": [], "validation": []})
            values = {key: derived[key] if key in derived else _section(resolved, key) for key in sections}
            yield re.sub(r"\{\w+\}", name, config), values
    # An input of no stage, so that it reruns nothing: `publishing.trackers` reads it.
    yield "report_to.json", {arm: resolved.train.report_to for arm, resolved in models["arms"].items()}


def _section(resolved: Settings, name: str) -> Values:
    if (key := name.removesuffix("_files")) != name:
        return _model_files(key, getattr(resolved, key))
    return getattr(resolved, name).model_dump(by_alias=True)


def _shared_sections(layout: Layout, collection: Collection, settings: Settings, models: Models) -> Values:
    """Return the sections that are the same for all entries, and not as they stand in params.yaml."""
    kinds = {collection.source.format, *(file.kind for file in collection.source.files)}
    robustness = layout.robustness
    by_part = any(models["arms"][arm].encoder.unit != "passage" for arm in robustness.arms)
    return {
        "source": collection.source.of_sets(collection.sets, settings.prepare).model_dump(by_alias=True),
        "sets": collection.sets.model_dump(by_alias=True),
        **{name: _section(settings, name) if name in kinds else None for name in ("atlas", "facts", "paq")},
        "endpoint": _section(settings, "endpoint") if settings.annotator.kind == "endpoint" else None,
        "report": settings.report.model_dump(by_alias=True) | _report_rows(layout, settings, models),
        "robustness": {"counts": robustness.counts}
        | ({"candidates": settings.retrieve.candidates} if by_part else {}),  # nothing new for runs without such arms
    }  # fmt: skip


def _report_rows(layout: Layout, settings: Settings, models: Models) -> Values:
    # Of each arm itself, then its repeats by seed, in which order two arms are paired.
    trainings = {arm: [arm] for arm, edges in layout.active.items() if edges.repeats is None}
    for arm, edges in sorted(layout.active.items(), key=lambda item: item[1].seed or 0):
        if edges.repeats is not None:
            trainings[edges.repeats].append(arm)
    robustness, reading = layout.robustness, layout.reading
    ranked = {"bm25": ["bm25"]} | trainings
    fused = [*layout.fused, *layout.multihop]  # rankings that have a row as arms do, but no answer awareness
    readable = ranked | {name: [name] for name in fused}
    return {
        "trainings": trainings,
        "fused": fused,
        "one_hop": {name: entry.of for name, entry in layout.multihop.items()},
        "robustness": _measured_by(robustness.generators, ranked, robustness.arms),
        "reading": _measured_by(reading.readers, readable, reading.rankings),
        "strategy": settings.probe.strategy,
        "annotated": settings.probe.annotated,
        "of_paths": [name for name in reading.readers if models["readers"][name].reader.of_paths],
        "bases": sorted({re.sub(r"^/.*/", "", resolved.base.model) for resolved in models["bases"].values()}),
        "seeds": sorted({models["arms"][arm].train.seed for arm in layout.active}),
    }


def _measured_by(measurers: list[str], rows: dict[str, list[str]], names: list[str]) -> Values:
    """Return the rows with their trainings that are in `names`, and what measures them, if there are any."""
    trainings = {row: chosen for row, listed in rows.items() if (chosen := [name for name in listed if name in names])}
    return {"by": measurers if trainings else [], "trainings": trainings}


def _model_files(section: str, settings: Section) -> Values:
    """Return the hashes of the files of a section's model, if it is a folder."""
    model, revision = settings.model, settings.revision
    if model in BUILT.get(section, ()):
        return NO_FILES.model_dump()
    if not is_folder(model) and not HUB_NAME.fullmatch(model):
        reason = f"{excerpt(model)} is neither a folder, from the repository's root or absolute, nor a hub name"
        raise SettingError(f"{section}.model", f"{reason}, as bert-base-uncased")
    if is_folder(model) and revision is not None:
        raise SettingError(f"{section}.revision", f"{revision!r} is for hub names; set null for the folder {model!r}")
    return model_files(model).model_dump()
