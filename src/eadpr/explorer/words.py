"""The explorer's texts for readers: forms of a positive, rankings, and why something was left out."""

import tomllib
from pathlib import Path

from eadpr.evaluation.awareness import CUT
from eadpr.report.config import ReportArms

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
FORMS, EVIDENCE, RELATIONS = WORDS["forms"], WORDS["evidence"], WORDS["relations"]
PLACEBOS = tuple(name for name in FORMS if name.startswith("placebo"))


def describe_ranking(name: str, settings: ReportArms) -> str:
    """Describe a ranking that is not one arm's, else return nothing."""
    if name in settings.one_hop:
        return f"two hops: the passages of the best paths, learnt on the examples of {settings.one_hop[name]}"
    return "one ranking made of two" if name in settings.fused else ""


def explain_form(variant: str) -> str:
    name = variant.removesuffix(CUT)
    text = FORMS.get(name, f"without what “{name}” takes for evidence")
    return text if name == variant else f"{text}; the encoder does not read that far"
