"""What a run takes, before it starts: stages, bytes and hours, by arithmetic from counts and from rates measured here.

As if nothing of earlier runs was kept, by one process, one stage after another.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.sources import ASKS, Source
from eadpr.report import markdown as md
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.studies import trainings as describe
from eadpr.studies.rates import Rates
from eadpr.training.config import OTHERS, Loss, Train

PASSAGES = "passages"  # in `Counts`, beside the question sets
RANKED = 8  # bytes of a ranked passage in a table, as atlas's take
UNKNOWN = "?"
MANY = 10**12  # questions to hold out, where a set's number is not known: validations ask as many as they may


class Cost(NamedTuple):
    """Of all runs of a stage: bytes to download and to keep, seconds. None: not estimated, NaN: not known."""

    download: float | None = None
    keep: float | None = None
    seconds: float | None = None


def counts(source: Source, atlas: int | None, records: Path, given: Mapping[str, int]) -> dict[str, int]:
    """Passages, and questions by set, as far as they are known: what is `given`, else what was prepared, else what the
    collection's files are to hold. `atlas` is the size of the generated collection; one of another size that was
    prepared says nothing of it."""
    found: dict[str, int] = {}
    rows = [file.rows for file in source.files if file.kind == PASSAGES]
    if rows and None not in rows:
        found[PASSAGES] = sum(rows)
    for file in source.files:
        if file.kind in ASKS and file.set and file.rows:
            found[f"{file.set}/{file.split}"] = found.get(f"{file.set}/{file.split}", 0) + file.rows
    if atlas is not None:
        found[PASSAGES] = atlas
    prepared = tables.count(records / "passages.parquet", Passage) if records.is_dir() else None
    if prepared is not None and atlas in (None, prepared):
        found = {PASSAGES: prepared}
        found |= describe.set_members(records)["name"].value_counts().to_dict()
    found |= given
    if PASSAGES not in found:
        raise ValueError("how many passages the collection has is not known; give --count passages=N")
    return found


def carved(questions: int, share: float) -> int:
    """How many of a training set are held out, as `supervision.positives.carve` does where the titles fit."""
    return min(math.ceil(share * questions), questions - 1)


def steps(
    train: Train, sets: Sequence[str], found: Mapping[str, int], *, share: float = 0.0, most: int | None = None
) -> int:
    """Optimiser steps; `share` of the questions is held out, and of the others `most` are trained on. Raises ValueError
    where they hang on a set whose number of questions is not known."""
    times = {name: train.upsample.get(name, train.upsample.get(OTHERS, 1)) for name in sets}
    if train.steps is None and (unknown := [name for name in sets if times[name] and name not in found]):
        raise ValueError(
            f"how many questions {unknown[0]} has is not known, and train.steps is null; give --count {unknown[0]}=N or"
            " its rows in the collection's file"
        )
    left = {name: found[name] - carved(found[name], share) for name in sets if name in found}
    asked, trained = sum(times[name] * count for name, count in left.items()), sum(left.values())
    distinct = sum(count for name, count in left.items() if times[name])
    if most is not None and trained > most:
        asked, distinct = asked * most // trained, distinct * most // trained
    return train.total_steps(distinct, asked)


def training_seconds(loss: Loss, train: Train, steps: int, held_out: int, rates: Rates, of_passage: float) -> float:
    """Of steps, and of the validations between them: a pass over the questions with their positives and negatives, and
    one over the pool of passages that they are ranked in."""
    each = describe.passages_per_question(loss, train)
    questions = steps * train.batch_size * train.accumulation
    learning = questions * (rates.of_question + each * of_passage) / rates.tokens
    times = -(-steps // train.validate_every) if train.validate_every else 1
    asked = min(train.validation_questions, held_out)
    pool = asked * (2 + train.hard_negatives + train.validation_hard_negatives)
    return learning + times * pool * of_passage / rates.of_passage / rates.passages


def costs(
    configs: Mapping[str, Any],
    active: Mapping[str, Any],
    times: Mapping[str, int],
    found: Mapping[str, int],
    downloads: Mapping[str, int | None],
    rates: Rates,
    *,
    of_passage: float,
    text: float,
) -> dict[str, Cost]:
    """By stage. `of_passage`: mean tokens; `text`: bytes of a passage in records, NaN where not known."""
    sets, nan = configs["retrieve.json"]["sets"], math.nan
    passages, encoder = found[PASSAGES], 4 * rates.weights
    ranked = sum(found.get(name, nan) for name in {*sets["train"], *sets["evaluate"], *sets["validation"]})
    share = 0.0 if sets["validation"] else configs["positives.json"]["positives"]["validation"]
    held_out = sum(found.get(name, MANY) for name in sets["validation"])
    held_out += sum(carved(found.get(name, MANY), share) for name in sets["train"])
    fetched = sum(nan if size is None else size for size in downloads.values())
    learning = encoding = models = 0.0
    for arm in active:
        sections = configs[f"{arm}/train.json"]
        loss, train = Loss(**sections["loss"]), Train(**sections["train"])
        most = configs[f"{arm}/examples.json"]["examples"]["questions"]
        taken = steps(train, sets["train"], found, share=share, most=most)
        learning += training_seconds(loss, train, taken, held_out, rates, of_passage)
        models += encoder * (1 if sections["encoder"]["shared"] else 2)
        encoding += passages * of_passage / rates.of_passage / rates.passages
    lists = {name: ranked * RANKED * configs[f"{name}.json"][name]["depth"] for name in ("bm25", "retrieve")}
    return {
        "fetch": Cost(fetched, fetched),
        "prepare": Cost(keep=passages * text),
        "bm25": Cost(keep=lists["bm25"]),
        "base": Cost(keep=times["base"] * encoder),
        "train": Cost(keep=models, seconds=learning),
        "encode": Cost(keep=times["encode"] * passages * rates.dim * 2, seconds=encoding),
        "retrieve": Cost(keep=times["retrieve"] * lists["retrieve"]),
    }


def table(times: Mapping[str, int], of: Mapping[str, Cost]) -> str:
    """A row per stage that runs, and what is known in all."""
    rows = [[stage, f"{count:,}", *_cells(of.get(stage, Cost()))] for stage, count in times.items() if count]
    total = []
    for shown, column in zip((size, size, duration), zip(*of.values(), strict=True), strict=True):
        known = [value for value in column if value is not None and not math.isnan(value)]
        total.append(shown(sum(known)) + f" + {UNKNOWN}" * (len(known) < len(column) - column.count(None)))
    rows.append(["**in all**", f"{sum(times.values()):,}", *total])
    return md.table(["stage", "times", "to download", "to keep", "time"], rows)


def _cells(cost: Cost) -> list[str]:
    return [size(cost.download), size(cost.keep), duration(cost.seconds)]


def size(number: float | None) -> str:
    """Bytes in decimal units."""
    return _shown(number, [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")])


def duration(seconds: float | None) -> str:
    return _shown(seconds, [(3600, "h"), (60, "min"), (1, "s")])


def _shown(number: float | None, units: Sequence[tuple[float, str]]) -> str:
    if number is None:
        return md.NONE
    if math.isnan(number):
        return UNKNOWN
    scale, unit = next((of for of in units if number >= of[0]), units[-1])
    value = number / scale
    return f"{value:.1f} {unit}" if value < 10 and scale > 1 else f"{value:,.0f} {unit}"


def notes(passages: int, rates: Rates, *, of_passage: float) -> str:
    """What was measured, what is arithmetic, and what is left out; the rest of `table`."""
    weights = f"{rates.weights / 1e6:,.1f} million random weights"
    encoded = f"{rates.passages:,.1f} passages of {rates.of_passage:.0f} tokens encoded"
    texts = f"{passages:,} passages of {of_passage:.0f} tokens, questions of {rates.of_question:.0f}"
    return f"""\
Measured here, on {rates.device}, per second: {encoded}, {rates.tokens:,.0f} tokens trained on,
by an encoder of {weights}.

Arithmetic: {texts}; {rates.dim} dimensions of 2 bytes, 4 bytes a weight, {RANKED} bytes a ranked passage.
Training is with its validations. It is as if nothing was kept of earlier runs, and one stage ran after another.

{md.NONE} is not estimated: evidence, BM25, search and probe take time too, Lucene's index and models of the hub room.
The time in all is of train and encode alone: annotator, readers, query-side and two-hop training take time too.
{UNKNOWN} is not known: --ask, --text-bytes and --count tell it.
"""
