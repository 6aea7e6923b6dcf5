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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from eadpr import cache, files, machine, questions, tables
from eadpr.config import Sets
from eadpr.corpus.given import digest
from eadpr.corpus.sources import LOOK_ALIKES, File, Source
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.near_duplicates.config import PROBE, Generation
from eadpr.near_duplicates.generators import Candidate, Generate, Original, given, original
from eadpr.near_duplicates.kinds import removed, reordered, replaced, swapped
from eadpr.progress import progress
from eadpr.records import NearDuplicate, Passage, Span
from eadpr.supervision.fillers import fillers
from eadpr.supervision.pairs import first_of_each, pairs
from eadpr.supervision.swaps import Swaps
from eadpr.text import has_answer

SHARD = 64  # questions: what a kill can cost


class NearDuplicateInputs(NamedTuple):
    """Folders. `sources` and `raw` hold the collection's files, `ranking` is BM25's."""

    sources: Path
    raw: Path
    records: Path
    positives: Path
    distractors: Path
    ranking: Path


def write_near_duplicates(
    settings: Generation,
    source: Source,
    sets: Sets,
    hardware: Machine,
    *,
    model_files: ModelFiles,
    inputs: NearDuplicateInputs,
    out: Path,
) -> dict[str, Any]:
    """Write near_duplicates.parquet and report.json, whose content is returned, to the folder `out`.

    `model_files` are those of a model folder as the stage `configs` saw them. Rows are in the order of the questions,
    then of `number`. Questions without a positive, or without an answer that a text can hold, have none: what holds no
    answer could not be told. Finished shards stay in the cache until `out` is written.
    """
    files_given = [file for file in source.files if settings.generator == "given" and file.kind in LOOK_ALIKES]
    look_alikes = [(file, file.local(sources=inputs.sources, raw=inputs.raw)) for file in files_given]
    key = _key(settings, sets, hardware, model_files, [*_read(settings, inputs), *(path for _, path in look_alikes)])
    ids = questions.select(inputs.records / "question_sets.parquet", sets.evaluate)
    evidence = _evidence(inputs.distractors / "distractors.parquet", settings.strategy, ids)
    originals = (
        original(pair, evidence.get((pair.question.id, pair.passage.id)))
        for pair in first_of_each(pairs(inputs.records, inputs.positives / "positives.parquet", ids))
        if pair.question.sought
    )
    with (
        cache.workspace("near_duplicates", key) as workspace,
        generator(settings, hardware, model_files, look_alikes, inputs) as make,
    ):
        dropped: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        shards = list(_shards(originals, settings, make, workspace, dropped))
        with files.new_folder(out) as folder:
            kept = _unlike_all(shards, _in_corpus(inputs.records, shards), counts, dropped)
            tables.write(folder / "near_duplicates.parquet", NearDuplicate, kept)
            report = _report(settings, len(ids), counts, dropped)
            files.write_json(folder / "report.json", report)
        files.discard(workspace)
    return report


def _read(settings: Generation, inputs: NearDuplicateInputs) -> list[Path]:
    """The tables that decide the candidates."""
    read = [inputs.records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    read += [inputs.positives / "positives.parquet", inputs.distractors / "distractors.parquet"]
    if settings.generator == PROBE:
        read.append(inputs.positives / "folds.parquet")
    if settings.replaced and settings.replaced.fillers == "ranked":
        read += [inputs.ranking / "train.parquet", inputs.ranking / "evaluate.parquet"]
    return read


def _evidence(path: Path, strategy: str, ids: Sequence[str]) -> dict[tuple[str, str], list[Span]]:
    """What the distractor of each positive of the questions `ids` lacks."""
    filters = [("strategy", "=", strategy), ("form", "=", "cut"), ("level", "=", 0), ("question_id", "in", ids)]
    found = pq.read_table(path, columns=["question_id", "passage_id", "removed"], filters=filters).to_pylist()
    return {(row["question_id"], row["passage_id"]): [Span(**span) for span in row["removed"]] for row in found}


def _key(settings: Generation, sets: Sets, hardware: Machine, model_files: ModelFiles, read: Sequence[Path]) -> str:
    """A fingerprint of all that decides the candidates."""
    of_model = []
    if settings.generator == "seq2seq":
        of_model = [hardware.model_dump(), model_files.model_dump(), machine.libraries(), machine.device()]
    hashes = [files.sha256(path) for path in read]
    return cache.fingerprint(settings.model_dump(), sets.model_dump(), of_model, hashes, cache.code(__file__))


@contextmanager
def generator(
    settings: Generation,
    hardware: Machine,
    model_files: ModelFiles,
    look_alikes: Sequence[tuple[File, Path]],
    inputs: NearDuplicateInputs,
) -> Iterator[Generate]:
    """The one at work. Only its module is imported: those by rule need no torch."""
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
        case "given":
            yield given(settings.given, look_alikes)
        case "endpoint":
            from eadpr.near_duplicates.endpoint import endpoint

            yield endpoint(settings.endpoint, settings.seed)
        case "seq2seq":
            from eadpr.near_duplicates.seq2seq import seq2seq

            yield seq2seq(settings.seq2seq, settings.seed, hardware=hardware, files=model_files)


def _shards(
    originals: Iterator[Original], settings: Generation, make: Generate, workspace: Path, dropped: Counter[str]
) -> Iterator[Path]:
    """Tables of what each question keeps by itself; `dropped` is told what it does not."""
    with progress(f"near-duplicates by {settings.generator}", None, "questions") as advance:
        for number, first in enumerate(originals):
            shard = [first, *islice(originals, SHARD - 1)]
            path, counted = (workspace / f"{number:06d}.{suffix}" for suffix in ("parquet", "json"))
            if not path.exists():
                of_shard: Counter[str] = Counter()
                rows = [row for one in shard for row in near_duplicates(one, settings, make, of_shard)]
                files.write_json(counted, of_shard)
                tables.write(path, NearDuplicate, rows)  # last: it says that the shard is whole
            dropped.update(json.loads(counted.read_text(encoding="utf-8")))
            advance(len(shard))
            yield path


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
    sought = {digest(_plain(row.text)) for shard in shards for row in tables.rows(shard, NearDuplicate)}
    found: set[int] = set()
    path = records / "passages.parquet"
    with progress("compare with the corpus", tables.count(path, Passage), "passages") as advance:
        for batch in tables.batches(path, Passage, columns=["text"]):
            found.update(sought.intersection(digest(_plain(text)) for text in batch.column("text").to_pylist()))
            advance(len(batch))
    return frozenset(found)


def _unlike_all(
    shards: Sequence[Path], in_corpus: frozenset[int], counts: Counter[str], dropped: Counter[str]
) -> Iterator[NearDuplicate]:
    """Those unlike every passage and every one before, numbered anew within their question; `counts` is told how many
    each question has."""
    seen: set[int] = set()
    for shard in shards:
        for row in tables.rows(shard, NearDuplicate):
            found = digest(_plain(row.text))
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
