"""Stage `near_duplicates`: passages like the positives of the evaluated questions, without an answer (EADPR, Figure 5).

A question's candidates come from a generator until enough are kept or there are no more. Dropped, and counted:
cut_off, empty, positive, holds_answer  (`original.find_defect`)
repeated    the same text as another candidate of the question
corpus      the same text as a passage of the corpus
shared      the same text as another question's near-duplicate
Texts are the same where only white space differs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eadpr.corpus.sources import LOOK_ALIKES, File, Source
from eadpr.robustness.config import CANDIDATES, Generation, NearDuplicate
from eadpr.robustness.rules import by_rule, removed, reordered, replaced
from eadpr.runtime import files
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import Passage, Span
from eadpr.supervision.fillers import pool_fillers
from eadpr.supervision.pairs import read_pairs
from eadpr.writers.config import Endpoint
from eadpr.writers.endpoint import generate_by_endpoint
from eadpr.writers.given import generate_from_files
from eadpr.writers.original import Candidate, Generate, Original, find_defect, make_original, squash_spaces


def write_near_duplicates(
    settings: Generation, endpoint: Endpoint | None, source: Source | None, sets: Sets, *, sources: Path, raw: Path,
    records: Path, positives: Path, distractors: Path, out: Path,
) -> dict[str, Any]:  # fmt: skip
    """Write near_duplicates.parquet and report.json to the folder `out`, and return the report.

    `endpoint` and `source` are set for the generators that use them; the folders `sources` and `raw` hold the
    collection's files. Rows are in the order of the questions, then of `number`. Questions without a positive, or
    without an answer that a text can hold, have none.
    """
    ids = questions.read_question_ids(records / "question_sets.parquet", sets.evaluate)
    filters = [("strategy", "=", settings.strategy), ("form", "=", "cut"), ("question_id", "in", ids)]
    table, columns = distractors / "distractors.parquet", ["question_id", "passage_id", "removed"]
    rows = pq.read_table(table, columns=columns, filters=filters).to_pylist()
    evidence = {(row["question_id"], row["passage_id"]): [Span(**span) for span in row["removed"]] for row in rows}
    originals = (
        make_original(pair, evidence.get((pair.question.id, pair.passage.id)))
        for pair in read_pairs(records, positives / "positives.parquet", ids, first=True)
        if pair.question.matchable
    )
    dropped: Counter[str] = Counter()
    candidates: list[NearDuplicate] = []
    located = [(file, file.local(sources=sources, raw=raw)) for file in source.files] if source else []
    generate = choose_generator(settings, endpoint, located, records / "passages.parquet")
    with progress(f"near-duplicates by {settings.generator}", None, "questions") as advance:
        for original in originals:
            candidates += near_duplicates(original, settings, generate, dropped)
            advance(1)
    rows = list(_unlike_all(candidates, _in_corpus(records / "passages.parquet", candidates), dropped))
    counts = Counter(row.question_id for row in rows)
    report = {
        "generator": settings.generator,
        "questions": len(ids),
        "with_all": sum(count == settings.per_question for count in counts.values()),
        "with_none": len(ids) - len(counts),
        "near_duplicates": len(rows),
        "dropped": dict(sorted(dropped.items())),
    }
    with files.new_folder(out) as folder:
        tables.write(folder / "near_duplicates.parquet", NearDuplicate, rows)
        files.write_json(folder / "report.json", report)
    return report


def choose_generator(
    settings: Generation, endpoint: Endpoint | None, files: Sequence[tuple[File, Path]], passages: Path
) -> Generate:
    match settings.generator:
        case "removed":
            return by_rule(removed, settings.seed)
        case "replaced":
            return by_rule(replaced, pool_fillers(passages, settings.seed))
        case "reordered":
            return by_rule(reordered, settings.seed)
        case "endpoint":
            return generate_by_endpoint(endpoint, settings.seed)
    return generate_from_files([(file, path) for file, path in files if file.kind in LOOK_ALIKES])


def near_duplicates(
    original: Original, settings: Generation, generate: Generate, dropped: Counter[str]
) -> list[NearDuplicate]:
    """Make at most `per_question`. The generator makes as many as are missing, up to CANDIDATES in all."""
    accepted: dict[str, Candidate] = {}
    requested = 0
    while len(accepted) < settings.per_question and requested < CANDIDATES:
        end = min(CANDIDATES, requested + settings.per_question - len(accepted))
        candidates = generate(original, range(requested, end))
        for candidate in candidates:
            reason = find_defect(original.question, original.positive, candidate.text)
            if reason or squash_spaces(candidate.text) in accepted:
                dropped[reason or "repeated"] += 1
            else:
                accepted[squash_spaces(candidate.text)] = candidate
        if len(candidates) < end - requested:
            break
        requested = end
    return [
        NearDuplicate(original.question.id, original.positive.id, number, settings.generator, *candidate)
        for number, candidate in enumerate(accepted.values())
    ]


def _in_corpus(passages: Path, rows: Iterable[NearDuplicate]) -> set[str]:
    """Return the near-duplicates' texts that a passage of the corpus has too."""
    texts = {squash_spaces(row.text) for row in rows}
    same: set[str] = set()
    with progress("compare with the corpus", tables.count(passages, Passage), "passages") as advance:
        for batch in tables.batches(passages, Passage, columns=["text"]):
            same.update(texts.intersection(map(squash_spaces, batch.column("text").to_pylist())))
            advance(len(batch))
    return same


def _unlike_all(rows: Iterable[NearDuplicate], in_corpus: set[str], dropped: Counter[str]) -> Iterator[NearDuplicate]:
    """Yield the near-duplicates unlike every passage and every earlier one, renumbered within their question."""
    seen: set[str] = set()
    counts: Counter[str] = Counter()
    for row in rows:
        text = squash_spaces(row.text)
        if text in in_corpus or text in seen:
            dropped["corpus" if text in in_corpus else "shared"] += 1
        else:
            seen.add(text)
            yield row._replace(number=counts[row.question_id])
            counts[row.question_id] += 1
