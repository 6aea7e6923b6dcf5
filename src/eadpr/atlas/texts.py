"""The atlas' relations, kinds of entity and pools of words, each read from the TOML file of that name."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field


class Relation(NamedTuple):
    """A relation of relations.toml, which explains the fields."""

    question: str
    value: str
    states: list[str]
    raises: list[str]
    phrase: str | None = None
    compare: str | None = None
    most: bool = False


class Kind(NamedTuple):
    """A kind of kinds.toml, which explains the fields; `filler` begins with the shared ones."""

    count: int
    passages: int
    nouns: list[str]
    relations: list[str]
    lead: list[str]
    filler: list[str]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


def _kinds(tables: dict[str, Any]) -> dict[str, Kind]:
    shared = tables.pop("shared")
    kinds = {}
    for name, table in tables.items():
        filler = [text for key in table.pop("shared", ()) for text in shared[key]] + table.pop("filler", [])
        kinds[name] = Kind(**{"lead": shared["person_lead"]} | table, filler=filler)
    return kinds


RELATIONS = {name: Relation(**table) for name, table in _read("relations.toml").items()}
QUESTIONS = {name: relation.question for name, relation in RELATIONS.items() if name.startswith("P")}  # of T-REx QA
TrexRelation = Annotated[str, Field(pattern=rf"^({'|'.join(QUESTIONS)})$")]
KINDS = _kinds(_read("kinds.toml"))
POOLS = _read("pools.toml")
PERSONS = ("athlete", "musician", "writer", "filmmaker", "architect", "entrepreneur")
ENTITIES = sum(kind.count for kind in KINDS.values())
PASSAGES = sum(kind.count * kind.passages for kind in KINDS.values())
