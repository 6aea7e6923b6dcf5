"""The stage `read_paths`: answers and supporting sentences of the evaluated questions, from the best paths of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from eadpr import files, questions, tables
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.progress import progress
from eadpr.reading_multihop.config import ReadPaths
from eadpr.reading_multihop.decoding import PathScores, decide, supporting
from eadpr.reading_multihop.inputs import PathInput, collate, path_input
from eadpr.reading_multihop.model import PathReader, load
from eadpr.reading_multihop.official import Titles, write_official
from eadpr.reading_multihop.paths import check_known, passages_of, ranked_paths
from eadpr.reading_multihop.records import RankedPath, Sentence, SupportedAnswer, sentences_of
from eadpr.records import Passage

BATCH_TOKENS = 16_384  # of paths read at a time, padding included; bounds memory
BLOCK = 1_000  # questions whose passages are held at once, some 40 MB with 20 paths of 2


def read_paths(records: Path, paths: Path, reader: Path, out: Path, *, settings: ReadPaths, hardware: Machine) -> int:
    """Write predictions.parquet and predictions.json, HotpotQA's official file, to the folder `out`; returns the number
    of questions. A question without a path has no prediction."""
    model = load(reader).to(machines.device())
    ranking = paths / "evaluate.parquet"
    ids = list(dict.fromkeys(tables.read(ranking, RankedPath, columns=["question_id"])["question_id"].to_pylist()))
    with files.new_folder(out) as folder:
        predictions = folder / "predictions.parquet"
        count = read_all(model, records, ranking, ids, predictions, depth=settings.paths, hardware=hardware)
        found = tables.rows(predictions, SupportedAnswer)
        write_official(folder / "predictions.json", found, Titles(records, ids))
    return count


def read_all(
    reader: PathReader, records: Path, paths: Path, ids: Sequence[str], out: Path, *, depth: int, hardware: Machine
) -> int:
    """Write a `SupportedAnswer` for each of the questions `ids` that has a path, from its first `depth`; returns their
    number."""
    asked = {question.id: question.question for question in questions.selected(records / "questions.parquet", ids)}
    check_known(ids, asked, paths, records)
    found = ranked_paths(paths, asked, depth)

    def predicted() -> Iterator[SupportedAnswer]:
        with progress("read_paths", len(asked), "questions") as advance:
            while block := list(islice(found, BLOCK)):
                wanted = (passage_id for _, own in block for path in own for passage_id in path)
                passages = passages_of(records / "passages.parquet", wanted)
                for question_id, own in block:
                    yield read(reader, question_id, asked[question_id], own, passages, hardware)
                    advance(1)

    return tables.write(out, SupportedAnswer, predicted())


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
