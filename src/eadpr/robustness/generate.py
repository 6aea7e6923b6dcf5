"""Stage `near_duplicates`: passages like the positives of the evaluated questions, without an answer (EADPR, Figure 5).

A question's candidates come from a generator until enough are kept or there are no more. Dropped, and counted:
cut_off, empty, positive, holds_answer  (`original.find_defect`)
repeated    the same text as another candidate of the question
corpus      the same text as a passage of the corpus
shared      the same text as another question's near-duplicate
Texts are the same where only white space differs.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from eadpr.corpus.rows import digest
from eadpr.robustness.config import Generation
from eadpr.robustness.swapped import removed, reordered, replaced, swapped
from eadpr.runtime import files
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import NearDuplicate, Passage, Span
from eadpr.supervision.fillers import fillers
from eadpr.supervision.pairs import read_pairs
from eadpr.supervision.swaps import Swaps
from eadpr.writers.choose import make_generator
from eadpr.writers.config import Writer
from eadpr.writers.original import Candidate, Generate, Original, find_defect, make_original, squash_spaces


class NearDuplicateInputs(NamedTuple):
    """Folders. `sources` and `raw` hold the collection's files, `ranking` is BM25's."""

    sources: Path
    raw: Path
    records: Path
    positives: Path
    distractors: Path
    ranking: Path


def write_near_duplicates(
    settings: Generation, by: Writer | None, sets: Sets, *, inputs: NearDuplicateInputs, out: Path
) -> dict[str, Any]:
    """Write near_duplicates.parquet and report.json, whose content is returned, to the folder `out`.

    `by` is there for a generator that is no rule. Rows are in the order of the questions, then of `number`. Questions
    without a positive, or without an answer that a text can hold, have none: what holds no answer could not be told.
    """
    ids = questions.read_question_ids(inputs.records / "question_sets.parquet", sets.evaluate)
    evidence = _evidence(inputs.distractors / "distractors.parquet", settings.strategy, ids)
    originals = (
        make_original(pair, evidence.get((pair.question.id, pair.passage.id)))
        for pair in read_pairs(inputs.records, inputs.positives / "positives.parquet", ids, first=True)
        if pair.question.matchable
    )
    dropped: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary, generator(settings, by, inputs) as make:
        made = Path(temporary) / "made.parquet"
        tables.write(made, NearDuplicate, _made(originals, settings, make, dropped))
        with files.new_folder(out) as folder:
            kept = _unlike_all(made, _in_corpus(inputs.records, made), counts, dropped)
            tables.write(folder / "near_duplicates.parquet", NearDuplicate, kept)
            report = _report(settings, len(ids), counts, dropped)
            files.write_json(folder / "report.json", report)
    return report


def _evidence(path: Path, strategy: str, ids: Sequence[str]) -> dict[tuple[str, str], list[Span]]:
    """What the distractor of each positive of the questions `ids` lacks."""
    filters = [("strategy", "=", strategy), ("form", "=", "cut"), ("question_id", "in", ids)]
    found = pq.read_table(path, columns=["question_id", "passage_id", "removed"], filters=filters).to_pylist()
    return {(row["question_id"], row["passage_id"]): [Span(**span) for span in row["removed"]] for row in found}


@contextmanager
def generator(settings: Generation, by: Writer | None, inputs: NearDuplicateInputs) -> Iterator[Generate]:
    """The one at work."""
    match settings.generator:
        case "removed":
            yield removed(settings.seed)
        case "replaced":
            with fillers(
                settings.replaced.fillers, seed=settings.seed, records=inputs.records,
                positives=inputs.positives / "positives.parquet", ranking=inputs.ranking,
            ) as found:  # fmt: skip
                yield replaced(found)
        case "reordered":
            yield reordered(settings.seed)
        case "swapped":
            folds = inputs.positives / "folds.parquet"
            yield swapped(Swaps(settings.seed, records=inputs.records, folds=folds))
        case _:
            yield make_generator(by, settings.seed, sources=inputs.sources, raw=inputs.raw)


def _made(
    originals: Iterator[Original], settings: Generation, make: Generate, dropped: Counter[str]
) -> Iterator[NearDuplicate]:
    """What each question keeps by itself; `dropped` is told what it does not."""
    with progress(f"near-duplicates by {settings.generator}", None, "questions") as advance:
        for one in originals:
            yield from near_duplicates(one, settings, make, dropped)
            advance(1)


def near_duplicates(one: Original, settings: Generation, make: Generate, dropped: Counter[str]) -> list[NearDuplicate]:
    """At most `per_question` of them. The generator is asked for as many as are missing, up to `candidates` in all."""
    kept: dict[str, Candidate] = {}
    asked = 0
    while len(kept) < settings.per_question and asked < settings.candidates:
        end = min(settings.candidates, asked + settings.per_question - len(kept))
        found = make(one, range(asked, end))
        for candidate in found:
            reason = find_defect(one.question, one.positive, candidate.text)
            if reason is None and squash_spaces(candidate.text) in kept:
                reason = "repeated"
            if reason:
                dropped[reason] += 1
            else:
                kept[squash_spaces(candidate.text)] = candidate
        if len(found) < end - asked:
            break
        asked = end
    return [
        NearDuplicate(one.question.id, one.positive.id, number, settings.generator, *candidate)
        for number, candidate in enumerate(kept.values())
    ]


def _in_corpus(records: Path, made: Path) -> frozenset[int]:
    """Digests of the near-duplicates' texts that a passage of the corpus has too."""
    sought = {digest(squash_spaces(row.text)) for row in tables.rows(made, NearDuplicate)}
    found: set[int] = set()
    path = records / "passages.parquet"
    with progress("compare with the corpus", tables.count(path, Passage), "passages") as advance:
        for batch in tables.batches(path, Passage, columns=["text"]):
            found.update(sought.intersection(digest(squash_spaces(text)) for text in batch.column("text").to_pylist()))
            advance(len(batch))
    return frozenset(found)


def _unlike_all(
    made: Path, in_corpus: frozenset[int], counts: Counter[str], dropped: Counter[str]
) -> Iterator[NearDuplicate]:
    """Those unlike every passage and every one before, numbered anew within their question; `counts` is told how many
    each question has."""
    seen: set[int] = set()
    for row in tables.rows(made, NearDuplicate):
        found = digest(squash_spaces(row.text))
        if found in in_corpus:
            dropped["corpus"] += 1
        elif found in seen:
            dropped["shared"] += 1
        else:
            seen.add(found)
            yield row._replace(number=counts[row.question_id])
            counts[row.question_id] += 1


def _report(settings: Generation, asked: int, counts: Counter[str], dropped: Counter[str]) -> dict[str, Any]:
    return {
        "generator": settings.generator,
        "questions": asked,
        "with_all": sum(count == settings.per_question for count in counts.values()),
        "with_none": asked - len(counts),
        "near_duplicates": counts.total(),
        "dropped": dict(sorted(dropped.items())),
    }
