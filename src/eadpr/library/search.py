"""Search a collection as the pipeline left it: an arm's vectors, or tokens, rank its passages for a question."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from eadpr.library.pointing import ScoredSentence, point_by
from eadpr.library.scorers import load_encoders
from eadpr.report.config import ReportArms
from eadpr.report.notes import read_validation
from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets, read
from eadpr.runtime.terminal import printable
from eadpr.search.config import Retrieve
from eadpr.search.retrieve import DenseSearcher
from eadpr.storage.passages import PassageStore

BOLD, QUOTED = ("\033[1m", "\033[0m"), ("«", "»")


class RankedPassage(NamedTuple):
    """A ranked passage; `sentence` is the best one of those that the encoder reads, None where it reads none."""

    rank: int
    score: float
    id: str
    title: str
    text: str
    sentence: ScoredSentence | None


def find_collection(data: Path, name: str) -> Path:
    """Return the collection's folder; raises ValueError where it was not measured."""
    available = sorted(path.parts[-3] for path in data.glob("*/configs/explore.json"))
    if name not in available:
        reason = f"was not measured (measured: {', '.join(available) or 'none'})"
        raise ValueError(f"the collection {name!r} {reason}; a run with collection: {name} in params.yaml does it")
    return data / name


def choose_arm(collection: Path) -> str:
    """Return the encoded active arm that validation prefers, or the first; the first active one where none is."""
    report, _ = read(collection / "configs" / "explore.json", report=ReportArms, sets=Sets)
    encoded = [arm for arm in report.trainings if (collection / "vectors" / arm).exists()]
    validation = read_validation(collection / "training", encoded)
    return validation.preferred if validation else next(iter(encoded or report.trainings))


def find_passages(collection: Path, arm: str, question: str, k: int) -> list[RankedPassage]:
    """Return the `k` best passages as stage `retrieve` ranks them; raises FileNotFoundError for an arm without an index
    and ValueError for an index of other passages or another encoder."""
    if not question.strip():
        raise ValueError("the question is empty; ask in words")
    model, vectors = (collection / name / arm for name in ("models", "vectors"))
    for path in (model, vectors):
        if not path.exists():
            encoded = ", ".join(sorted(file.name for file in (collection / "vectors").glob("*"))) or "none"
            raise FileNotFoundError(f"{path} does not exist; encoded are {encoded}; a run encodes the active arms")
    config = next(collection.glob("configs/*/retrieve.json"))  # any arm's, as these differ in `sets` alone
    settings, _, hardware = read(config, retrieve=Retrieve, sets=Sets, machine=Machine)
    machine.settle(hardware)
    settings = settings.model_copy(update={"depth": k, "candidates": max(k, settings.candidates)})
    path = collection / "records" / "passages.parquet"
    (rows,), (scores,) = DenseSearcher(path, model, vectors, settings, hardware).search([question], "search")
    passages = PassageStore(path).passages(rows[rows >= 0])
    pointed = point_by(load_encoders(str(model)), question, passages)
    return [
        RankedPassage(rank, float(score), *passage[:3], sentences.best)
        for rank, (score, passage, sentences) in enumerate(zip(scores, passages, pointed, strict=False), start=1)
    ]


def write_json(passages: Iterable[RankedPassage]) -> str:
    """Return JSON in ASCII, so that no terminal obeys what a passage holds."""
    rows = [row._asdict() | {"sentence": row.sentence and row.sentence._asdict()} for row in passages]
    return json.dumps(rows, indent=2, allow_nan=False)


def write_text(passages: Iterable[RankedPassage], *, bold: bool) -> str:
    """Return passages for people, each with its sentence in bold type, or in «»."""
    first, last = BOLD if bold else QUOTED
    lines = []
    for row in passages:
        start, end, *_ = row.sentence or (0, 0)
        prefix, best, suffix = map(escape, (row.text[:start], row.text[start:end], row.text[end:]))
        text = f"{prefix}{first}{best}{last}{suffix}" if best else suffix
        lines.append(f"{row.rank}  {row.score:.4f}  {escape(row.title)}  [{escape(row.id)}]\n{text}\n")
    return "\n".join(lines)


def escape(text: str) -> str:
    """Return one line in which a terminal obeys nothing."""
    return printable("".join(" " if c.isspace() else c for c in text))
