"""The stage `read`: what a reader answers to the evaluated questions from the first k passages of a ranking, or paths.

A passage is a path of one.
"""

from collections.abc import Sequence
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

import torch
from torch import Tensor

from eadpr.readers import kinds, shards
from eadpr.readers.config import Read
from eadpr.readers.extractive import ExtractiveReader, in_passes
from eadpr.readers.fid import FusionReader, fused, passage_inputs
from eadpr.readers.inputs import Input
from eadpr.readers.predictions import Prediction, Sentence, Titles, write_official
from eadpr.readers.scores import (
    KINDS,
    PathScores,
    best_spans,
    highest,
    most_probable,
    selected_span,
    sentence_means,
    supporting,
)
from eadpr.readers.selection import PathRows, ranked, ranked_ids, ranked_table, rows_of, sampled
from eadpr.runtime import cache, files
from eadpr.runtime import machine as machines
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Question


def answer_questions(
    records: Path, ranking: Path, reader: Path, out: Path, *, settings: Read, sets: Sets, hardware: Machine
) -> int:
    """Write predictions.parquet and predictions.json, of a reader of paths HotpotQA's official file, to the folder
    `out`; returns the number of questions.

    A question without a ranked passage has no prediction. Where a ranking ends before the last of `top_k`, all of it is
    read. Finished shards stay in the cache until `out` is written. Raises ValueError for a ranked question that is not
    evaluated.
    """
    store = PassageStore(records / "passages.parquet")
    model = kinds.load(reader).to(machines.device())
    settings, of_paths = settings.of(model.settings), model.settings.of_paths
    answers = ANSWERING[model.settings.kind](model, store, settings, hardware)
    table = ranked_table(ranking, "evaluate", hops=of_paths)
    ids = _asked(records / "question_sets.parquet", table, settings, sets)
    questions = {question.id: question for question in read_questions(records / "questions.parquet", ids)}

    def answered(asked: tuple[str, list[list[str]]]) -> list[Prediction]:
        question_id, paths = asked
        return answers(questions[question_id], rows_of(store, paths))

    inputs = [records / "passages.parquet", records / "questions.parquet", table, reader]
    with cache.workspace("readings", machines.key(__file__, inputs, ids, settings, hardware)) as folder:
        asked = (one for one in ranked(table, settings.top_k[-1]) if one[0] in questions)
        with files.new_folder(out) as temporary:
            predictions = temporary / "predictions.parquet"
            shards.write(predictions, Prediction, asked, answered, folder=folder, label="read", total=len(ids))
            rows = list(tables.rows(predictions, Prediction))
            if of_paths:
                write_official(temporary / "predictions.json", rows, Titles(records, ids))
            else:
                files.write_json(temporary / "predictions.json", _entries(questions, rows))
        files.discard(folder)
    return len({row.question_id for row in rows})


def _asked(question_sets: Path, table: Path, settings: Read, sets: Sets) -> list[str]:
    """The ranked questions that are read, in the order of the ranking."""
    members = {name: read_question_ids(question_sets, [name]) for name in sets.evaluate}
    evaluated = frozenset(chain.from_iterable(members.values()))
    wanted = frozenset(chain.from_iterable(sampled(members, settings).values()))
    ids = ranked_ids(table)
    for question_id in ids:
        if question_id not in evaluated:
            raise ValueError(f"{table}: question_id {question_id!r} is in none of sets.evaluate; run `dvc repro`")
    return [question_id for question_id in ids if question_id in wanted]


def _entries(questions: dict[str, Question], rows: list[Prediction]) -> list[dict[str, object]]:
    """Every question with its predictions, as JSON has them: without what is None."""
    found = []
    for question_id, of_one in groupby(rows, key=attrgetter("question_id")):
        asked = questions[question_id]
        given = [{k: v for k, v in row._asdict().items() if v is not None and k != "question_id"} for row in of_one]
        found.append({"id": asked.id, "question": asked.question, "answers": asked.answers, "predictions": given})
    return found


class ExtractiveAnswerer:
    """The best span of the passage that the reader selects among the first k; of paths the most probable answer of all,
    by MDR's reader the highest, with the supporting sentences of its path."""

    def __init__(self, reader: ExtractiveReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader = reader
        self._marked = reader.marks is not None
        self._store = store
        self._passages = reader.passages_of(store)
        self._settings = settings
        self._hardware = hardware

    def __call__(self, question: Question, paths: Sequence[PathRows]) -> list[Prediction]:
        """A prediction for every `top_k`, from paths, best first; each is read once."""
        paths = paths[: self._settings.top_k[-1]]
        inputs = self._reader.inputs(question.question, paths, self._passages)
        found = self.scores(inputs)
        return [self._prediction(question, k, paths, inputs, found[:k]) for k in self._settings.top_k]

    @torch.inference_mode()
    def scores(self, inputs: Sequence[Input]) -> list[PathScores]:
        """What each path has to say, in the order given."""
        found: dict[int, PathScores] = {}
        for part, of_part, passage_PT in in_passes(self._reader, inputs, self._hardware):
            options = {"longest": self._settings.answer_tokens, "normed": not self._marked}
            best = best_spans(of_part.start, of_part.end, passage_PT, **options)
            for at, (i, span, score) in enumerate(zip(part, best, of_part.paths.tolist(), strict=True)):
                one = of_part.at(at)
                kinds_K = None if one.kinds is None else one.kinds.cpu().numpy()
                found[i] = PathScores(score, span, kinds_K, one.sentences)
        return [found[i] for i in range(len(inputs))]

    def _prediction(
        self, question: Question, top_k: int, paths: Sequence[PathRows], inputs: list[Input], found: list[PathScores]
    ) -> Prediction:
        of_paths = self._reader.settings.of_paths
        decide = highest if self._marked else most_probable if of_paths else selected_span
        chosen = decide(found)
        if chosen is None:
            return Prediction(question.id, top_k, "")
        best, path, given = found[chosen.path], paths[chosen.path], inputs[chosen.path]
        support = self._support(path, given, best.sentences_T) if of_paths else None
        told = Prediction(question.id, top_k, chosen.kind, chosen.score, passage_score=best.path, support=support)
        if chosen.kind != "span":
            return told
        place, span = given.characters(best.span.first, best.span.last)
        if place >= len(path):
            return told._replace(answer=KINDS[1:][place - len(path)])
        piece = self._passages.piece(path[place], span)
        answer = piece.strip()  # a token of byte-level BPE holds the space before its word
        start = span.start + piece.index(answer)
        told = told._replace(answer=answer, passage_id=self._store.ids([path[place]])[0])
        return told if start < 0 else told._replace(start=start, end=start + len(answer))

    def _support(self, path: PathRows, given: Input, sentences_T: Tensor) -> list[Sentence]:
        sentences = self._passages.sentences_in(given, path)
        sentence_T = torch.from_numpy(sentences.sentence_T)
        scores_S = sentence_means(sentences_T.cpu()[: len(sentence_T)], sentence_T, len(sentences.numbers)).numpy()
        ids = self._store.ids(path)
        chosen = supporting(scores_S, sentences, of_each=not self._marked)
        return [Sentence(ids[place], number) for place, number in chosen]


class FusionAnswerer:
    """What Fusion-in-Decoder writes; greedy decoding."""

    def __init__(self, reader: FusionReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader = reader
        self._store = store
        self._settings = settings
        self._hardware = hardware

    @torch.inference_mode()
    def __call__(self, question: Question, paths: Sequence[PathRows]) -> list[Prediction]:
        """A prediction for every `top_k`, from paths of one passage, best first; each passage is encoded once."""
        rows = [row for path in paths[: self._settings.top_k[-1]] for row in path]
        inputs = passage_inputs(self._reader, self._store, question, rows)
        with machines.autocast(self._hardware):
            states = self._reader.states(inputs)
            return [self._prediction(question, k, states[:k]) for k in self._settings.top_k]

    def _prediction(self, question: Question, top_k: int, states: list[Tensor]) -> Prediction:
        if not states:
            return Prediction(question.id, top_k, "")
        model, tokenizer = self._reader.model, self._reader.tokenizer
        made = model.generate(
            **fused(states),
            do_sample=False,
            num_beams=1,
            max_new_tokens=self._settings.output_tokens,
            output_scores=True,
            return_dict_in_generate=True,
        )
        scores = model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        answer = tokenizer.decode(made.sequences[0], skip_special_tokens=True).strip()
        return Prediction(question.id, top_k, answer, float(scores.sum()))


ANSWERING = {"extractive": ExtractiveAnswerer, "paths": ExtractiveAnswerer, "fid": FusionAnswerer}
