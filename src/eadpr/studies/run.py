"""Studies: named lists of arms, seeds and overrides, each one table, expanded into the overrides of one `dvc exp run`.

Arms have the same name in every study that trains them with the same settings, so DVC takes a training that another
study has done from its cache.
"""

import copy
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pandas as pd
from pydantic import Field

from eadpr.runtime.section import Section
from eadpr.settings.model import Name, Settings
from eadpr.settings.resolve import checked, configs, load, merged
from eadpr.settings.yaml import leaves, of_collection, own_settings

PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[A-Za-z_][\w/-]*", re.IGNORECASE)  # needs no quotes
Seed = Annotated[int, Field(ge=0)]
SEEDED = ("train", "query_side", "reader", "path_reader", "base")  # the last only where it is drawn
SINGLE = ("multihop", "fused", "readers")  # made of an arm's first training alone


class StudyArm(Section):
    """As under `active` in params.yaml. `once`: trained with the first seed only; its differences then have no
    star."""

    negatives: Name
    init: Name
    once: bool = False


class Grid(Section):
    """`arm` once for every combination of the values of two settings (by dotted name, rows first), and the metrics that
    are drawn over them."""

    arm: Name
    rows: str
    row_values: list[float] = Field(min_length=1)
    columns: str
    column_values: list[float] = Field(min_length=1)
    metrics: list[str] = Field(min_length=1)

    def names(self) -> list[list[str]]:
        """Arms by row, then column."""
        first, second = (axis.rpartition(".")[2] for axis in (self.rows, self.columns))
        return [
            [f"{self.arm}-{first}-{row:g}-{second}-{column:g}".replace(".", "_") for column in self.column_values]
            for row in self.row_values
        ]

    def cells(self, active: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
        """The trainings of each, by the values of the two settings, which name the axes."""
        labels = ([f"{value:g}" for value in values] for values in (self.row_values, self.column_values))
        names = pd.DataFrame(self.names(), *labels).rename_axis(index=self.rows, columns=self.columns)
        return names.map(lambda name: trainings(active, name))

    def arms(self) -> dict[str, dict[str, Any]]:
        """What each differs in from `arm`."""
        pairs = itertools.product(self.row_values, self.column_values)
        settings = [merged(_nested(self.rows, row), _nested(self.columns, column)) for row, column in pairs]
        return dict(zip(itertools.chain(*self.names()), settings, strict=True))


class Study(Section):
    """`arms` adds to those of params.yaml, `settings` are overrides of anything in it; `collections` None: for any.

    `pictures` are SVGs of the report, by name, that belong to the table.
    """

    about: str = Field(min_length=1)
    seeds: list[Seed] = Field(min_length=1)
    active: dict[Name, StudyArm] = Field(min_length=1)
    collections: list[Name] | None = None
    grid: Grid | None = None
    pictures: list[Name] = []
    arms: dict[Name, dict[str, Any]] = {}
    settings: dict[str, Any] = {}


def read_study(path: Path, name: str) -> Study:
    """Raises ValueError naming the file and what is wrong in it, or the studies there are."""
    found = load(path)
    if name not in found:
        raise ValueError(f"{path} has no study {name!r}; it has {', '.join(found)}")
    return checked(Study, found[name], f"{name}.", path=path)


def seeded(study: Study, seeds: Sequence[int]) -> Study:
    """The study with other seeds, of two-hop trainings too."""
    settings = copy.deepcopy(study.settings)
    for own in settings.get("multihop", {}).values():
        own.get("train", {}).pop("seed", None)  # they have their arm's then
    return study.model_copy(update={"seeds": list(seeds), "settings": settings})


def expanded(study: Study, values: Mapping[str, Any], changes: Sequence[str] = ()) -> dict[str, Any]:
    """The values of params.yaml with which one run trains every arm of the study with every seed; the overrides
    `changes` win over what the study says, and are of every seed.

    The first seed gives the arms their own names, another one NAME-SEED. Random first weights are drawn with the seed
    too; a pretrained encoder is the same for all. What is measured of an arm among near-duplicates is measured of each.
    """
    study = _with_grid(study, values)
    result = merged(merged(copy.deepcopy(dict(values)), study.settings), {"arms": study.arms})
    result["active"] = {arm: edges.model_dump(exclude={"once"}) for arm, edges in study.active.items()}
    if changes:
        result = changed(changes, result)
        configs(result)  # refuses what is no setting, before anything here reads it
    if study.collections is not None and (chosen := result["collection"]) not in study.collections:
        known = " and ".join(study.collections)
        raise ValueError(f"studies.yaml: this study is for {known}, not for {chosen}; choose with --collection")
    if len(set(study.seeds)) < len(study.seeds):
        raise ValueError(f"seeds {study.seeds}: each may stand once, as the same training twice is one; leave it out")
    if len(study.seeds) > 1 and (single := [kind for kind in SINGLE if result[kind]]):
        raise ValueError(f"seeds {study.seeds}: {' and '.join(single)} are of one training; give one --seed at a time")
    bases, (first, *others) = dict(result["bases"]), study.seeds
    settings = of_collection(result, result["collection"])["settings"]
    drawn = settings.get("base", {}).get("model", result["base"]["model"]) == "scratch"
    for section in SEEDED if drawn else SEEDED[:-1]:
        seed = f"{section}.seed"
        if given := [one for one in changes if seed in (key := _key(one), key.partition(".settings.")[2])]:
            raise ValueError(f"-S {given[0]}: nothing reads it, as a study says its seeds; give --seed")
        result[section]["seed"] = first
        if "seed" in settings.get(section, {}):  # which would win
            settings[section]["seed"] = first
    active = dict(result["active"])
    once = {arm for arm, edges in study.active.items() if edges.once}
    repeated = {arm: edges for arm, edges in active.items() if arm not in once}
    tuned = {name: given for name, given in result["query_sides"].items() if given["of"] in repeated}
    own = {*repeated, *tuned, *(bases if drawn else ())}
    for seed in others:
        for arm, sources in repeated.items():
            again = {field: f"{source}-{seed}" if source in own else source for field, source in sources.items()}
            active[f"{arm}-{seed}"] = {"repeats": arm, "seed": seed} | again
            if drawn and (base := sources["init"]) in bases:
                result["bases"][f"{base}-{seed}"] = bases[base] | {"seed": seed}
        for name, given in tuned.items():
            result["query_sides"][f"{name}-{seed}"] = given | {"of": f"{given['of']}-{seed}", "seed": seed}
    measured = result["robustness"]
    arms = [name for arm in measured["arms"] for name in trainings(active, arm)]
    return result | {"active": active, "robustness": measured | {"arms": arms}}


def trainings(active: Mapping[str, Mapping[str, Any]], arm: str) -> list[str]:
    """The active arm and those that repeat it."""
    return [arm, *(name for name, edges in active.items() if edges.get("repeats") == arm)]


def _with_grid(study: Study, values: Mapping[str, Any]) -> Study:
    """The arms of the grid among the others; a study's seeds hold for them too."""
    if study.grid is None:
        return study
    arm = study.grid.arm
    if arm not in study.active:
        raise ValueError(f"studies.yaml: grid.arm: {arm!r} is not in active ({', '.join(study.active)})")
    own = merged(values["arms"], study.arms).get(arm, {})
    arms = {name: merged(copy.deepcopy(own), changed) for name, changed in study.grid.arms().items()}
    active = study.active | dict.fromkeys(arms, study.active[arm])
    return study.model_copy(update={"arms": study.arms | arms, "active": active})


def _nested(name: str, value: Any) -> dict[str, Any]:
    """`a.b` with a value as {a: {b: value}}."""
    for key in reversed(name.split(".")):
        value = {key: value}
    return value


def overrides(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """What `dvc exp run -S` takes (Hydra's grammar) to make `after` of `before`.

    In `collections` everything is added or replaced (`++`): what a collection's own file says is not in params.yaml.
    """
    either = "++" if prefix.startswith("collections.") else ""
    for key in before:
        if key not in after:
            yield f"~{prefix}{key}"
    for key, value in after.items():
        if key not in before:
            yield f"{either or '+'}{prefix}{key}={_literal(value)}"
        elif isinstance(value, Mapping) and isinstance(before[key], Mapping):
            yield from overrides(before[key], value, f"{prefix}{key}.")
        elif value != before[key]:
            yield f"{either}{prefix}{key}={_literal(value)}"


def applied(changes: Sequence[str], params: Path) -> dict[str, Any]:
    """The values that `apply` makes of a parameter file, which stays as it is."""
    return changed(changes, load(params))


def changed(changes: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The same of values."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "params.json"  # YAML takes a second
        path.write_text(json.dumps(values), encoding="utf-8")
        apply(changes, path)
        return json.loads(path.read_text(encoding="utf-8"))


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def check_effect(given: Sequence[str], before: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raises ValueError where one of the overrides `given` changes a shared setting that nothing reads: the active
    collection, or every arm, has a value of its own. `values` are those that the overrides have made of `before`."""
    collection, own = values["collection"], own_settings(values)
    for override in given:
        plain, key = override.lstrip("+~"), _key(override)
        if wins := [name for name in own if f"{name}.".startswith(f"{key}.")]:
            raise ValueError(
                f"-S {override}: nothing reads it, as the collection {collection} has its own {', '.join(wins)}; write"
                f" -S ++collections.{collection}.settings.{plain}"
            )
        arms = {edges.get("repeats", arm) for arm, edges in values["active"].items()}
        theirs = [dict(leaves(values["arms"].get(arm, {}))) for arm in arms]
        if all(key in settings for settings in theirs) and _is_for_naught(key.split("."), before, values):
            raise ValueError(
                f"-S {override}: nothing reads it, as every active arm has its own {key}; write -S arms.ARM.{plain} for"
                " each that it is for"
            )


def _is_for_naught(path: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a shared setting differs, and with its earlier value every stage would get what it gets."""
    if path[0] not in Settings.model_fields:
        return False
    undone = copy.deepcopy(dict(after))
    inner, old = undone, before
    for key in path[:-1]:
        inner, old = inner[key], old.get(key, {})
    if inner.get(path[-1]) == old.get(path[-1]):
        return False
    inner.pop(path[-1], None)
    if path[-1] in old:
        inner[path[-1]] = old[path[-1]]
    try:
        return configs(undone) == configs(dict(after))
    except ValueError:  # what reads it, refuses it
        return False


def outdone(study: Study, values: Mapping[str, Any]) -> list[str]:
    """The settings of a study, by dotted name, that the active collection has other values of its own for."""
    own = own_settings(values)
    return [name for name, value in leaves(study.settings) if own.get(name, value) != value]


def apply(changes: Sequence[str], params: Path) -> None:
    """Write what `dvc exp run -S` writes to a parameter file; refuses what dvc refuses."""
    from dvc.exceptions import InvalidArgumentError
    from dvc.utils.hydra import apply_overrides

    try:
        apply_overrides(params, list(changes))
    except InvalidArgumentError as error:
        raise ValueError(f"{error}: {error.__cause__}") from error


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, str) and not PLAIN.fullmatch(value):
        return "'" + value.replace("'", "\\'") + "'"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
