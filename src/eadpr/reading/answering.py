"""What readers answer from the first k passages of a ranking, or paths: a passage is a path of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr import machine
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.config import Read
from eadpr.reading.extractive import ExtractiveReader, in_passes
from eadpr.reading.fid import FusionReader, fused, passage_inputs
from eadpr.reading.inputs import Input
from eadpr.reading.records import Prediction, Sentence
from eadpr.reading.scores import Decided, Scored, TokenSpan, best_spans, decide, sentence_means, supporting
from eadpr.reading.selection import PathRows
from eadpr.records import Question


class ReadPath(NamedTuple):
    """What a path has to say: its logit, its best span and, of readers of paths, the logits of the kinds of answer and
    of each token's sentence."""

    path: PathRows
    given: Input
    span: TokenSpan | None
    score: float
    kinds_K: np.ndarray | None
    sentences_T: Tensor | None


class ExtractiveAnswerer:
    """The best span of the passage that the reader selects among the first k; of paths the most probable answer of all,
    with the supporting sentences of its path."""

    def __init__(self, reader: ExtractiveReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader = reader
        self._store = store
        self._passages = reader.passages_of(store)
        self._settings = settings
        self._hardware = hardware

    def __call__(self, question: Question, paths: Sequence[PathRows]) -> list[Prediction]:
        """A prediction for every `top_k`, from paths, best first; each is read once."""
        read = self.read(question, paths[: self._settings.top_k[-1]])
        return [self._prediction(question, k, read[:k]) for k in self._settings.top_k]

    @torch.inference_mode()
    def read(self, question: Question, paths: Sequence[PathRows]) -> list[ReadPath]:
        """What each path has to say, in the order given."""
        inputs = self._reader.inputs(question.question, paths, self._passages)
        found: dict[int, ReadPath] = {}
        for part, of_part, passage_PT in in_passes(self._reader, inputs, self._hardware):
            best = best_spans(of_part.start, of_part.end, passage_PT, longest=self._settings.answer_tokens)
            for at, (i, span, score) in enumerate(zip(part, best, of_part.paths.tolist(), strict=True)):
                one = of_part.at(at)
                kinds_K = None if one.kinds is None else one.kinds.cpu().numpy()
                found[i] = ReadPath(paths[i], inputs[i], span, score, kinds_K, one.sentences)
        return [found[i] for i in range(len(paths))]

    def _prediction(self, question: Question, top_k: int, read: list[ReadPath]) -> Prediction:
        of_paths = self._reader.settings.of_paths
        readable = read if of_paths else [one for one in read if one.span]
        if not readable:
            return Prediction(question.id, top_k, "", *[None] * 5)
        if of_paths:
            chosen = decide([Scored(one.score, one.kinds_K, one.span) for one in readable])
        else:
            scores = [one.score for one in readable]
            place = scores.index(max(scores))  # of equals the one ranked first
            chosen = Decided(place, "span", readable[place].span.score)
        best = readable[chosen.path]
        support = self._support(best) if of_paths else None
        if chosen.kind != "span":
            return Prediction(question.id, top_k, chosen.kind, chosen.score, None, best.score, None, None, support)
        place, (first, last) = best.given.characters(best.span.first, best.span.last)
        piece = self._passages.text(best.path[place])[first:last]
        answer = piece.strip()  # a token of byte-level BPE holds the space before its word
        start = first + piece.index(answer)
        return Prediction(
            question.id,
            top_k,
            answer,
            answer_score=chosen.score,
            passage_id=self._store.ids([best.path[place]])[0],
            passage_score=best.score,
            start=start,
            end=start + len(answer),
            support=support,
        )

    def _support(self, one: ReadPath) -> list[Sentence]:
        sentences = self._passages.sentences_in(one.given, one.path)
        sentence_T = torch.from_numpy(sentences.sentence_T)
        scores_S = sentence_means(one.sentences_T.cpu()[: len(sentence_T)], sentence_T, len(sentences.numbers)).numpy()
        ids = self._store.ids(one.path)
        return [Sentence(ids[place], number) for place, number in supporting(scores_S, sentences)]


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
        with machine.autocast(self._hardware):
            states = self._reader.states(inputs)
            return [self._prediction(question, k, states[:k]) for k in self._settings.top_k]

    def _prediction(self, question: Question, top_k: int, states: list[Tensor]) -> Prediction:
        if not states:
            return Prediction(question.id, top_k, "", *[None] * 5)
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
        return Prediction(question.id, top_k, answer, float(scores.sum()), *[None] * 4)


ANSWERING = {"extractive": ExtractiveAnswerer, "paths": ExtractiveAnswerer, "fid": FusionAnswerer}
