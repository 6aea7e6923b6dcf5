"""Studies: named lists of arms, seeds and overrides (data/studies), each expanded into the parameters of one run.

An arm has the same name in every study that trains it with the same settings, so DVC takes its training from the cache.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from eadpr.runtime.section import Section
from eadpr.settings.model import Name
from eadpr.settings.resolve import configs, merged
from eadpr.settings.yaml import of_collection, read_yaml
from eadpr.studies.overrides import apply_overrides, override_key

STUDIES = Path("data/studies")
SEEDED = ("train", "query_side", "reader", "path_reader", "base")  # `base` only where its weights are random
# What params.yaml may make of its active arms, which are not a study's.
OF_ARMS = {"fused": {}, "query_sides": {}, "multihop": {}, "readers": {}, "reading": {"readers": [], "rankings": []}}
SINGLE = ("multihop", "fused", "readers")  # these are made of an arm's first training alone


class StudyArm(Section):
    """An arm as under `active` in params.yaml; one that is trained `once` has the first seed only."""

    negatives: Name
    init: Name
    once: bool = False


class Study(Section):
    """`arms` and `settings` override params.yaml; without `collections` a study is for any collection."""

    about: str = Field(min_length=1)
    seeds: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    active: dict[Name, StudyArm] = Field(min_length=1)
    collections: list[Name] | None = None
    arms: dict[Name, dict[str, Any]] = {}
    settings: dict[str, Any] = {}


def read_studies(folder: Path) -> dict[str, Study]:
    """Read all studies of the YAML files of a folder. Raises ValueError with file and key of a wrong or second one."""
    studies: dict[str, Study] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, values in read_yaml(path).items():
            if name in studies:
                raise ValueError(f"{path}: {name}: another file has a study of this name too; rename one")
            try:
                studies[name] = Study.model_validate(values)
            except ValidationError as error:
                raise ValueError(f"{path}: {name}: {error}") from error
    return studies


def with_seeds(study: Study, seeds: Sequence[int]) -> Study:
    """Return the study with other seeds, for its two-hop trainings too."""
    settings = copy.deepcopy(study.settings)
    for model in settings.get("multihop", {}).values():
        model.get("train", {}).pop("seed", None)  # it then has its arm's
    return study.model_copy(update={"seeds": list(seeds), "settings": settings})


def expand(study: Study, values: Mapping[str, Any], overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values of params.yaml with which one run trains every arm of the study with every seed.

    `values` are from params.yaml; `overrides` win over the study's settings, for every seed. The first seed gives the
    arms their plain names, another one NAME-SEED; random first weights and near-duplicates are of each seed.
    """
    plain = {**values, **OF_ARMS, "robustness": values["robustness"] | {"generators": [], "arms": []}}
    result = merged(merged(copy.deepcopy(plain), study.settings), {"arms": study.arms})
    result["active"] = {arm: edges.model_dump(exclude={"once"}) for arm, edges in study.active.items()}
    if overrides:
        result = apply_overrides(overrides, result)
        configs(result)  # refuses unknown settings before anything here reads them
    _check(study, result, overrides)
    _repeat_arms(study, result, _set_seed(result, study.seeds[0]))
    arms = []
    for arm in result["robustness"]["arms"]:
        arms += [arm, *(name for name, edges in result["active"].items() if edges.get("repeats") == arm)]
    return result | {"robustness": result["robustness"] | {"arms": arms}}


def _check(study: Study, values: Mapping[str, Any], overrides: Sequence[str]) -> None:
    if study.collections is not None and values["collection"] not in study.collections:
        collections = " and ".join(study.collections)
        raise ValueError(f"this study is for {collections}, not for {values['collection']}; choose with --collection")
    if len(set(study.seeds)) < len(study.seeds):
        raise ValueError(f"seeds {study.seeds}: the same training twice is one; leave the second out")
    if len(study.seeds) > 1 and (single := [kind for kind in SINGLE if values[kind]]):
        raise ValueError(f"seeds {study.seeds}: {' and '.join(single)} are of one training; give one --seed at a time")
    for override in overrides:
        if re.search(rf"(^|\.settings\.)({'|'.join(SEEDED)})\.seed$", override_key(override)):
            raise ValueError(f"-S {override}: nothing reads it, as a study sets its seeds; give --seed")


def _set_seed(values: dict[str, Any], seed: int) -> bool:
    """Set the first seed in every section that has one. Returns whether the first weights are random."""
    settings = of_collection(values, values["collection"])["settings"]
    scratch = settings.get("base", {}).get("model", values["base"]["model"]) == "scratch"
    for section in SEEDED if scratch else SEEDED[:-1]:
        values[section]["seed"] = seed
        if "seed" in settings.get(section, {}):  # the collection's value would win
            settings[section]["seed"] = seed
    return scratch


def _repeat_arms(study: Study, values: dict[str, Any], scratch: bool) -> None:
    """Add the arms, query sides and random first encoders of all seeds but the first."""
    active, bases = dict(values["active"]), dict(values["bases"])
    repeated = {arm: edges for arm, edges in active.items() if arm not in study.active or not study.active[arm].once}
    tuned = {name: query_side for name, query_side in values["query_sides"].items() if query_side["of"] in repeated}
    seeded = {*repeated, *tuned, *(bases if scratch else ())}
    for seed in study.seeds[1:]:
        for arm, edges in repeated.items():
            renamed = {field: f"{source}-{seed}" if source in seeded else source for field, source in edges.items()}
            active[f"{arm}-{seed}"] = {"repeats": arm, "seed": seed} | renamed
            if scratch and (base := edges["init"]) in bases:
                values["bases"][f"{base}-{seed}"] = bases[base] | {"seed": seed}
        for name, query_side in tuned.items():
            again = {"of": f"{query_side['of']}-{seed}", "seed": seed}
            values["query_sides"][f"{name}-{seed}"] = query_side | again
    values["active"] = active
