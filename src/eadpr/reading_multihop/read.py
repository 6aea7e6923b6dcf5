"""The stage `read_paths`: answers and supporting sentences of the evaluated questions, from the best paths of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache as cached
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from eadpr import cache, files, questions, tables
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.reading import shards
from eadpr.reading_multihop.config import ReadPaths
from eadpr.reading_multihop.decoding import PathScores, decide, supporting
from eadpr.reading_multihop.inputs import PathInput, collate, path_input
from eadpr.reading_multihop.model import PathReader, load
from eadpr.reading_multihop.official import Titles, write_official
from eadpr.reading_multihop.paths import check_known, passages_of, ranked_paths
from eadpr.reading_multihop.records import RankedPath, Sentence, SupportedAnswer, sentences_of
from eadpr.records import Passage

BATCH_TOKENS = 16_384  # of paths read at a time, padding included; bounds memory
BLOCK = 16 * shards.SHARD  # questions whose passages are held at once, some 40 MB with 20 paths of 2


class Asked(NamedTuple):
    """A question's paths, and what gives the passages of its block by id: they are read when first asked for."""

    question_id: str
    paths: list[list[str]]
    passages: Callable[[], Mapping[str, Passage]]


def read_paths(records: Path, paths: Path, reader: Path, out: Path, *, settings: ReadPaths, hardware: Machine) -> int:
    """Write predictions.parquet and predictions.json, HotpotQA's official file, to the folder `out`; returns the number
    of questions. A question without a path has no prediction. Finished shards stay in the cache until `out` is
    written."""
    model = load(reader).to(machines.device())
    ranking = paths / "evaluate.parquet"
    ids = list(dict.fromkeys(tables.read(ranking, RankedPath, columns=["question_id"])["question_id"].to_pylist()))
    with cache.workspace("path_readings", _fingerprint(records, ranking, reader, settings, hardware)) as kept:
        made = list(read_all(model, records, ranking, ids, kept, depth=settings.paths, hardware=hardware))
        with files.new_folder(out) as folder:
            predictions = folder / "predictions.parquet"
            found = chain.from_iterable(tables.rows(shard, SupportedAnswer) for shard in made)
            count = tables.write(predictions, SupportedAnswer, found)
            found = tables.rows(predictions, SupportedAnswer)
            write_official(folder / "predictions.json", found, Titles(records, ids))
        files.discard(kept)
    return count


def read_all(
    reader: PathReader, records: Path, paths: Path, ids: Sequence[str], folder: Path, *, depth: int, hardware: Machine
) -> Iterator[Path]:
    """Shards, in `folder`, of a `SupportedAnswer` for each of the questions `ids` that has a path, from its first
    `depth`."""
    asked = {question.id: question.question for question in questions.selected(records / "questions.parquet", ids)}
    check_known(ids, asked, paths, records)

    def answered(one: Asked) -> list[SupportedAnswer]:
        return [read(reader, one.question_id, asked[one.question_id], one.paths, one.passages(), hardware)]

    found = _in_blocks(ranked_paths(paths, asked, depth), records / "passages.parquet")
    return shards.shards(folder, SupportedAnswer, found, answered, label="read_paths", total=len(asked))


def _in_blocks(found: Iterator[tuple[str, list[list[str]]]], passages: Path) -> Iterator[Asked]:
    while block := list(islice(found, BLOCK)):
        wanted = [passage_id for _, own in block for path in own for passage_id in path]
        of_block = cached(partial(passages_of, passages, wanted))
        for question_id, own in block:
            yield Asked(question_id, own, of_block)


def read(
    reader: PathReader,
    question_id: str,
    question: str,
    paths: Sequence[Sequence[str]],
    passages: Mapping[str, Passage],
    hardware: Machine,
) -> SupportedAnswer:
    """`paths` are passage ids, at least one path."""
    read_ = [[passages[passage_id] for passage_id in path] for path in paths]
    inputs = [
        path_input(reader.tokenizer, question, path, [sentences_of(p) for p in path], reader.settings) for path in read_
    ]
    scores = scored(reader, inputs, hardware)
    found = decide(scores, inputs, reader.settings.answer_tokens)
    one = inputs[found.path]
    answer = found.kind
    if found.span is not None:
        first, last = found.span
        text = read_[found.path][one.passage_T[first]].text
        answer = text[one.offsets_T2[first, 0] : one.offsets_T2[last, 1]]
    sentences = supporting(scores[found.path].sentence_S, one)
    path = paths[found.path]
    return SupportedAnswer(question_id, answer, [Sentence(path[place], number) for place, number in sentences])


@torch.inference_mode()
def scored(reader: PathReader, inputs: Sequence[PathInput], hardware: Machine) -> list[PathScores]:
    """In the order of the inputs, without padding."""
    size = max(1, BATCH_TOKENS // max(len(one.ids_T) for one in inputs))
    found = []
    for start in range(0, len(inputs), size):
        part = inputs[start : start + size]
        with machines.autocast(hardware):
            batch = reader(collate(part, reader.tokenizer.pad_token_id).to(machines.device()))
        path, kind, begin, end, sentence = (scores.double().cpu().numpy() for scores in batch)
        for i, one in enumerate(part):
            length, count = len(one.ids_T), len(one.sentences)
            kept = (
                np.ascontiguousarray(row) for row in (kind[i], begin[i, :length], end[i, :length], sentence[i, :count])
            )
            found.append(PathScores(float(path[i]), *kept))
    return found


def _fingerprint(records: Path, ranking: Path, reader: Path, settings: ReadPaths, hardware: Machine) -> str:
    hashes = [files.sha256(path) for path in (records / "passages.parquet", records / "questions.parquet", ranking)]
    sections = [section.model_dump() for section in (settings, hardware)]
    made_with = [machines.libraries(), machines.device(), cache.code(__file__)]
    return cache.fingerprint(hashes, files.tree_sha256(reader), sections, made_with)
