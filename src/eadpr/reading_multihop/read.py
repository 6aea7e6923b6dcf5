"""Answers and supporting sentences of questions from their ranked paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from eadpr import machine as machines
from eadpr import questions, tables
from eadpr.machine import Machine
from eadpr.progress import progress
from eadpr.reading_multihop.decoding import PathScores, decide, supporting
from eadpr.reading_multihop.inputs import PathInput, collate, path_input
from eadpr.reading_multihop.model import PathReader
from eadpr.reading_multihop.paths import passages_of, ranked_paths
from eadpr.reading_multihop.records import Sentence, SupportedAnswer, sentences_of
from eadpr.records import Passage

BATCH_TOKENS = 16_384  # of paths read at a time, padding included; bounds memory
BLOCK = 1_000  # questions whose passages are held at once, some 20 MB with 10 paths of 2


def read_all(
    reader: PathReader, records: Path, paths: Path, ids: Sequence[str], out: Path, *, depth: int, hardware: Machine
) -> int:
    """Write a `SupportedAnswer` for each of the questions `ids` that has a path, from its first `depth`; returns their
    number. The papers count passages, the contexts: two in a path."""
    asked = {question.id: question.question for question in questions.selected(records / "questions.parquet", ids)}
    found = ranked_paths(paths, asked, depth)

    def predicted() -> Iterator[SupportedAnswer]:
        with progress("read paths", len(asked), "questions") as advance:
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
