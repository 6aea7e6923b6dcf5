"""The model card of a published arm in the Hub's format, with its measures, from the template card.md."""

import json
import re
from collections.abc import Mapping
from itertools import product, takewhile
from pathlib import Path
from string import Template
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown
from eadpr.report.config import UNTRAINED, Report
from eadpr.report.differences import compare
from eadpr.report.notes import find_unmoved
from eadpr.runtime import files
from eadpr.runtime.terminal import counted
from eadpr.settings.add_collection import SCHEMA
from eadpr.settings.yaml import COLLECTIONS
from eadpr.training.bert import Bert
from eadpr.training.config import NO_PROMPTS
from eadpr.training.encoder import TextEncoder

TEMPLATE = Path(__file__).with_name("card.md")
About = Mapping[str, str | None]  # what a card says of an arm, by the fields of the template
FORBIDS = re.compile(r"\bNC\b|\bnc\b|[Nn]on[- ]?commercial|[Cc]ommercial use(?! (?:is |are )?(?:allowed|permitted))")


def describe_arm(values: Mapping[str, Any], folder: Path, arm: str, *, name: str, license: str) -> About:
    """Return what the card says of an arm by the settings `values`, licences of collection and first model included.

    `name` is what the card's snippets load. Raises ValueError for an inactive arm.
    """
    if arm not in values["active"]:
        missing = "no active arm; add it to active, or" if arm in values["arms"] else "no arm;"
        kind = "no model but a ranking;" if arm in (BM25, *values["fused"]) else missing
        raise ValueError(f"{arm!r} is {kind} publish one of {', '.join(values['active'])}")
    entry = arm
    while entry not in values["bases"]:
        entry = values["active"][entry]["init"] if entry in values["active"] else values["query_sides"][entry]["of"]
    model = files.read_json(folder / "configs" / "bases" / f"{entry}.json")["base"]["model"]
    if model == "scratch":
        base_model, base = None, "It began with random weights and a tokenizer trained on the collection's passages."
    elif Path(model).is_dir():
        card = Path(model) / "README.md"
        stated = ModelCard.load(card).data.license if card.exists() else None
        base_model, base = None, f"It began with the folder `{Path(model).name}` (licence {stated or 'not stated'})."
    else:
        base_model, base = model, f"It began with `{model}`; its licence is in its own card."
    return {
        "name": name, "arm": arm, "collection": folder.name, "data": describe_sources(folder.name), "base": base,
        "base_model": base_model, "license": license,
    }  # fmt: skip


def describe_sources(collection: str) -> str:
    """Return the head comments, with sources and licences, of a collection's file and the files it refers to."""
    path = COLLECTIONS / f"{collection}.yaml"
    if not path.exists():
        return "a user's own, which does not state its licence."
    lines = path.read_text(encoding="utf-8").removeprefix(SCHEMA).splitlines()
    text = " ".join(line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines))
    references = [name for name in dict.fromkeys(re.findall(r"as for ([\w-]+)", text)) if name != collection]
    parts = [text or f"a user's own; {path} does not state its licence."]
    return " ".join([*parts, *(f"Of {name}: {describe_sources(name)}" for name in references)])


def evaluation_stages(folder: Path) -> list[str]:
    """Return the stages that measure the rows of a card, for the folder data/<collection>."""
    trainings = files.read_json(folder / "configs" / "report.json")["report"]["trainings"]
    return ["evaluate_bm25", *(f"evaluate@{name}" for names in trainings.values() for name in names)]


def measure_table(outcomes: Path, arm: str, report: Mapping[str, Any], sets: list[str]) -> str:
    """Return a table of the report's columns, computed with its settings. Each question set has a column for the arm,
    one for BM25 and, if they are active, for what the report compares the arm with and for the untrained encoder."""
    settings = Report(**{name: report[name] for name in Report.model_fields})
    head, columns = ["%"], []
    references = [*(settings.references(arm) or [settings.baseline]), UNTRAINED]
    active = [row for row in references if row in report["trainings"]]
    for name, row in product(sets, dict.fromkeys([arm, *active, BM25])):
        table = Outcomes([outcomes / f"{row}.parquet"])
        sides = ((table.of_trainings(name, metric), [], False) for metric in settings.columns)
        intervals = [difference and difference.interval for difference in compare(sides, settings)]
        most = max((interval.n for interval in intervals if interval), default=0)
        head.append(f"{row}, {name} ({counted(most, 'question')})")
        columns.append([markdown.bounded(interval) if interval else markdown.NONE for interval in intervals])
    rows = [[markdown.title(metric), *cells] for metric, *cells in zip(settings.columns, *columns, strict=True)]
    return markdown.table(head, [row for row in rows if {*row[1:]} != {markdown.NONE}])


def write_card(about: About, folder: Path, encoder: TextEncoder, *, vectors: bool, commit: str) -> str:
    """Return the text of the card of an arm of the folder data/<collection>; `encoder` is the one of passages."""
    report = files.read_json(folder / "configs" / "report.json")
    training, settings = files.read_json(folder / "configs" / about["arm"] / "train.json"), encoder.settings
    training |= {"encoder": settings.model_dump(), "loss": training["loss"] | {"scale": settings.loss_scale}}
    sections = [f'"{name}": {json.dumps(training[name], ensure_ascii=False)}' for name in ("encoder", "loss", "train")]
    values = {
        **about, **settings.model_dump(), **_expressions(encoder), "commit": commit,
        "dim": encoder.token_dim or encoder.dim, "scale": f"{settings.loss_scale:g}",
        "question_prompt": repr(settings.prompts.question), "passage_prompt": repr(settings.prompts.passage),
        "measured": measure_table(folder / "outcomes", about["arm"], report["report"], report["sets"]["evaluate"]),
        "confidence": f"{100 * report['report']['confidence']:g}", "training": "{" + ",\n ".join(sections) + "}",
    }  # fmt: skip
    pieces = re.split(r"<!-- (\w+) -->\n", TEMPLATE.read_text(encoding="utf-8"))
    optional = {
        "vectors": vectors, "forbidden": FORBIDS.search(f"{about['data']} {about['base']}"),
        "prompts": settings.prompts != NO_PROMPTS, "unmoved": find_unmoved(folder / "training", [about["arm"]]),
        "undecided": about["license"] == "other", "pooler": isinstance(encoder.model, Bert),
    }  # fmt: skip
    blocks = {"always", settings.title, *(name for name, present in optional.items() if present)}
    blocks |= {"token"} if encoder.token_dim else {"vector", "one" if settings.shared else "two", settings.similarity}
    body = "".join(piece for name, piece in zip(pieces[1::2], pieces[2::2], strict=True) if name in blocks)
    metadata = ModelCardData(
        license=about["license"], base_model=about["base_model"], library_name="sentence-transformers",
        model_name=about["name"], pipeline_tag="sentence-similarity", tags=["dense-retrieval", "eadpr"],
        license_name="see-below" if about["license"] == "other" else None,
    )  # fmt: skip
    return f"---\n{metadata.to_yaml()}\n---\n\n{Template(body).substitute(values)}"


def _expressions(encoder: TextEncoder) -> dict[str, str]:
    """Return the card's expressions of a question and a passage, the separator by which one string gets the tokens of
    a passage, whose title and text may be a pair, and options of loading."""
    question, passage, separator = "text.strip()", "text.strip()", " "
    if encoder.settings.title == "pair":
        question = """text.replace("’", "'").strip()"""
        token = encoder.tokenizer.sep_token or ""
        pair = encoder.passage_ids(["title"], ["text"])
        # RoBERTa's pairs have two.
        separator = 2 * token if encoder.passage_ids([""], [f"title{2 * token}text"]) == pair else token
    if encoder.settings.title != "none":
        passage = f'f"{{title.strip()}}{separator}{{text.strip()}}" if title.strip() else text.strip()'
    # Our folders of BERT have no pooler, of which transformers would report that it has random weights.
    options = ', model_kwargs={"add_pooling_layer": False}' if isinstance(encoder.model, Bert) else ""
    return {"question": question, "passage": passage, "separator": separator, "options": options}
