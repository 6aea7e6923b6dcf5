"""Stage `near_duplicates`: passages like the positives of the evaluated questions, without an answer (EADPR, Figure 5).

A question's candidates come from a generator until enough are kept or there are no more. Dropped, and counted:
empty       no letter or digit
positive    the same text as the question's positive
holds_answer
repeated    the same text as another candidate of the question
corpus      the same text as a passage of the corpus
shared      the same text as another question's near-duplicate
Texts are the same where only white space differs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from eadpr import cache, files, machine, questions, tables
from eadpr.config import Sets
from eadpr.corpus.given import digest
from eadpr.corpus.sources import LOOK_ALIKES, Source
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.near_duplicates.config import Generation
from eadpr.near_duplicates.generators import Means, generator
from eadpr.near_duplicates.original import Candidate, Generate, Original, original
from eadpr.progress import progress
from eadpr.records import NearDuplicate, Passage
from eadpr.supervision import distractors as distractor_table
from eadpr.supervision.pairs import Pair, first_of_each, pairs
from eadpr.text import has_answer

SHARD = 64  # questions: what a kill can cost


class NearDuplicateInputs(NamedTuple):
    """Folders; `sources` and `raw` are those of the collection's files."""

    sources: Path
    raw: Path
    records: Path
    positives: Path
    distractors: Path


def write_near_duplicates(
    settings: Generation,
    source: Source,
    sets: Sets,
    hardware: Machine,
    *,
    given: ModelFiles,
    inputs: NearDuplicateInputs,
    out: Path,
) -> dict[str, Any]:
    """Write near_duplicates.parquet and report.json, whose content is returned, to the folder `out`.

    Rows are in the order of the questions, then of `number`. Questions without a positive, or without an answer that a
    text can hold, have none: what holds no answer could not be told. Finished shards stay in the cache until `out` is
    written.
    """
    look_alikes = [
        (file, file.local(sources=inputs.sources, raw=inputs.raw))
        for file in source.files
        if settings.generator == "given" and file.kind in LOOK_ALIKES
    ]
    key = _key(settings, sets, hardware, given, inputs, [path for _, path in look_alikes])
    ids = questions.select(inputs.records / "question_sets.parquet", sets.evaluate)
    texts = distractor_table.texts(inputs.distractors / "distractors.parquet", settings.strategy, ids)
    asked = (
        pair
        for pair in first_of_each(pairs(inputs.records, inputs.positives / "positives.parquet", ids))
        if pair.question.sought
    )
    make = generator(settings, Means(hardware, given, look_alikes))
    with cache.workspace("near_duplicates", key) as workspace:
        dropped: Counter[str] = Counter()
        shards = list(_shards(_originals(asked, texts), settings, make, workspace, dropped))
        with files.new_folder(out) as folder:
            counts: Counter[str] = Counter()
            kept = _unlike_all(shards, _in_corpus(inputs.records, shards), dropped)
            tables.write(folder / "near_duplicates.parquet", NearDuplicate, _counted(kept, counts))
            report = _report(settings, len(ids), counts, dropped)
            files.write_json(folder / "report.json", report)
        files.discard(workspace)
    return report


def _key(
    settings: Generation,
    sets: Sets,
    hardware: Machine,
    given: ModelFiles,
    inputs: NearDuplicateInputs,
    own: Sequence[Path],
) -> str:
    """Of all that decides the candidates."""
    read = [inputs.records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    read += [inputs.positives / "positives.parquet", inputs.distractors / "distractors.parquet", *own]
    of_model = []
    if settings.generator == "seq2seq":
        of_model = [hardware.model_dump(), given.model_dump(), machine.libraries(), machine.device()]
    hashes = [files.sha256(path) for path in read]
    return cache.fingerprint(settings.model_dump(), sets.model_dump(), of_model, hashes, cache.code(__file__))


def _originals(asked: Iterable[Pair], texts: dict[tuple[str, str], str]) -> Iterator[Original]:
    for pair in asked:
        yield original(pair, texts.get((pair.question.id, pair.passage.id)))


def _shards(
    originals: Iterator[Original], settings: Generation, make: Generate, workspace: Path, dropped: Counter[str]
) -> Iterator[Path]:
    """Tables of what each question keeps by itself; `dropped` is told what it does not."""
    number = 0
    with progress(f"near-duplicates by {settings.generator}", None, "questions") as advance:
        while shard := list(islice(originals, SHARD)):
            path, counted = (workspace / f"{number:06d}.{suffix}" for suffix in ("parquet", "json"))
            if not path.exists():
                of_shard: Counter[str] = Counter()
                rows = [row for one in shard for row in near_duplicates(one, settings, make, of_shard)]
                files.write_json(counted, of_shard)
                tables.write(path, NearDuplicate, rows)  # last: it says that the shard is whole
            dropped.update(json.loads(counted.read_text(encoding="utf-8")))
            advance(len(shard))
            yield path
            number += 1


def near_duplicates(one: Original, settings: Generation, make: Generate, dropped: Counter[str]) -> list[NearDuplicate]:
    """At most `per_question` of them. The generator is asked for as many as are missing, up to `candidates` in all."""
    kept: dict[str, Candidate] = {}
    asked = 0
    while len(kept) < settings.per_question and asked < settings.candidates:
        end = min(settings.candidates, asked + settings.per_question - len(kept))
        found = make(one, range(asked, end))
        for candidate in found:
            if reason := _unfit(candidate, one, kept):
                dropped[reason] += 1
            else:
                kept[_plain(candidate.text)] = candidate
        if len(found) < end - asked:
            break
        asked = end
    return [
        NearDuplicate(one.question.id, one.positive.id, number, settings.generator, *candidate)
        for number, candidate in enumerate(kept.values())
    ]


def _unfit(candidate: Candidate, one: Original, kept: dict[str, Candidate]) -> str | None:
    if not any(character.isalnum() for character in candidate.text):
        return "empty"
    if _plain(candidate.text) == _plain(one.positive.text):
        return "positive"
    if has_answer(one.question.answers, candidate.text, one.question.answer_kind):
        return "holds_answer"
    return "repeated" if _plain(candidate.text) in kept else None


def _plain(text: str) -> str:
    return " ".join(text.split())


def _in_corpus(records: Path, shards: Sequence[Path]) -> frozenset[int]:
    """Digests of the near-duplicates' texts that a passage of the corpus has too."""
    sought = {digest(_plain(row.text)) for row in _rows(shards)}
    found: set[int] = set()
    path = records / "passages.parquet"
    with progress("compare with the corpus", tables.count(path, Passage), "passages") as advance:
        for batch in tables.batches(path, Passage, columns=["text"]):
            found.update(sought.intersection(digest(_plain(text)) for text in batch.column("text").to_pylist()))
            advance(len(batch))
    return frozenset(found)


def _unlike_all(shards: Sequence[Path], in_corpus: frozenset[int], dropped: Counter[str]) -> Iterator[NearDuplicate]:
    """Those unlike every passage and every one before, numbered anew within their question."""
    seen: set[int] = set()
    numbers: Counter[str] = Counter()
    for row in _rows(shards):
        found = digest(_plain(row.text))
        if found in in_corpus:
            dropped["corpus"] += 1
        elif found in seen:
            dropped["shared"] += 1
        else:
            seen.add(found)
            yield row._replace(number=numbers[row.question_id])
            numbers[row.question_id] += 1


def _rows(shards: Sequence[Path]) -> Iterator[NearDuplicate]:
    for shard in shards:
        yield from tables.rows(shard, NearDuplicate)


def _counted(rows: Iterable[NearDuplicate], counts: Counter[str]) -> Iterator[NearDuplicate]:
    for row in rows:
        counts[row.question_id] += 1
        yield row


def _report(settings: Generation, asked: int, counts: Counter[str], dropped: Counter[str]) -> dict[str, Any]:
    return {
        "generator": settings.generator,
        "questions": asked,
        "with_all": sum(count == settings.per_question for count in counts.values()),
        "with_none": asked - len(counts),
        "near_duplicates": counts.total(),
        "dropped": dict(sorted(dropped.items())),
    }
