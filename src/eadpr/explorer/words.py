"""The explorer's texts for readers: forms of a positive, rankings, and why something was left out."""

from eadpr.evaluation.awareness import CUT
from eadpr.report.config import ReportArms

# Forms of a positive that are scored: the variants of pair scores.
FORMS = {
    "positive": "as it is",
    "masked": "without the answer",
    "distractor": "without its evidence (the distractor)",
    "placebo": "without another sentence (a placebo)",
    "placebo_second": "without yet another sentence (a placebo)",
    "placebo_words": "without as many other words (a placebo)",
    "placebo_inside": "without other words of its evidence (a placebo)",
}
PLACEBOS = tuple(name for name in FORMS if name.startswith("placebo"))
# The evidence that is removed to make a distractor, by strategy.
EVIDENCE = {
    "pseudo": "pseudo-evidence, found by the annotator",
    "gold": "evidence: the sentences that hold what the source marked",
    "sentence": "evidence: the sentences that hold an answer",
    "window": "evidence: some words around the answers",
    "answer": "evidence: the answers themselves",
}
# Wikidata's names of the relations that T-REx QA and EntityQuestions ask about.
RELATIONS = {
    "P17": "country", "P19": "place of birth", "P20": "place of death", "P26": "spouse", "P30": "continent",
    "P36": "capital", "P40": "child", "P50": "author", "P69": "educated at", "P106": "occupation",
    "P112": "founded by", "P127": "owned by", "P131": "located in the administrative territorial entity",
    "P136": "genre", "P159": "headquarters location", "P170": "creator", "P175": "performer",
    "P176": "manufacturer", "P264": "record label", "P276": "location", "P407": "language of work or name",
    "P413": "position played on team", "P495": "country of origin", "P740": "location of formation",
    "P800": "notable work",
}  # fmt: skip


def name_relation(code: str) -> str:
    return f"{RELATIONS[code]} ({code})" if code in RELATIONS else code


def describe_ranking(name: str, settings: ReportArms) -> str:
    """Describe a ranking that is not one arm's, else return nothing."""
    if name in settings.one_hop:
        return f"two hops: the passages of the best paths, learnt on the examples of {settings.one_hop[name]}"
    return "one ranking made of two" if name in settings.fused else ""


def explain_form(variant: str) -> str:
    name = variant.removesuffix(CUT)
    text = FORMS.get(name, f"without what “{name}” takes for evidence")
    return text if name == variant else f"{text}; the encoder does not read that far"
