"""The stage `read`: a reader's answers to the evaluated questions from the first k passages of a ranking, or paths.

A passage is a path of length one.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import torch
from torch import Tensor

from eadpr.readers import kinds, scores
from eadpr.readers.config import Read
from eadpr.readers.extractive import ExtractiveReader, compute_logits, group_passes
from eadpr.readers.fid import FusionReader, decoder_inputs, tokenize_passages
from eadpr.readers.inputs import Input
from eadpr.readers.predictions import Prediction, Sentence
from eadpr.readers.scores import PathScores
from eadpr.readers.selection import PathRows, path_rows, ranking_table, read_ranked_paths
from eadpr.runtime import cache, files, machine, parallel
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.storage.records import Question

SHARD = 64  # questions: what a kill can cost


def answer_questions(
    records: Path, ranking: Path, reader: Path, out: Path, *, settings: Read, hardware: Machine
) -> int:
    """Write predictions.parquet to the folder `out`; return the number of questions.

    A question without a ranked passage has no prediction. A ranking shorter than the last of `top_k` is read to its
    end. Finished shards stay in the cache until `out` is written.
    """
    store = PassageStore(records / "passages.parquet")
    model = kinds.load(reader).to(machine.device())
    settings, of_paths = settings.for_reader(model.settings), model.settings.of_paths
    answerer = ANSWERERS[model.settings.kind](model, store, settings, hardware)
    table = ranking_table(ranking, "evaluate", hops=of_paths)
    ids = [question_id for question_id, _ in read_ranked_paths(table, depth=1)]
    questions = {question.id: question for question in read_questions(records / "questions.parquet", ids)}

    def answer(shard: list[tuple[str, list[list[str]]]], advance: Callable[[int], None]) -> Iterator[Prediction]:
        for question_id, paths in shard:
            yield from answerer(questions[question_id], path_rows(store, paths))
            advance(1)

    inputs = [records / "passages.parquet", records / "questions.parquet", table, reader]
    with cache.workspace("readings", machine.key(__file__, inputs, ids, settings, hardware)) as folder:
        ranked = read_ranked_paths(table, settings.top_k[-1])
        done = min(SHARD * sum(1 for _ in folder.glob("*.parquet.sha256")), len(ids))
        with (
            files.new_folder(out) as temporary,
            tables.writing(temporary / "predictions.parquet", Prediction) as append,
            progress("read", len(ids), "questions", done=done) as advance,
        ):
            for number in count():
                if not (shard := list(islice(ranked, SHARD))):
                    break
                path = folder / f"{number:06d}.parquet"
                if not cache.intact(path):
                    tables.write(path, Prediction, answer(shard, advance))
                    cache.seal(path)
                append(tables.read(path, Prediction))
        files.discard(folder)
    return len(ids)


class ExtractiveAnswerer:
    """Answers with the best span of the passage that the reader selects among the first k.

    A reader of paths gives the most probable answer of all paths, with the supporting sentences of its path.
    """

    def __init__(self, reader: ExtractiveReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader, self._store = reader, store
        self._settings, self._hardware = settings, hardware
        self._passages = reader.load_passages(store)

    def __call__(self, question: Question, paths: Sequence[PathRows]) -> list[Prediction]:
        """Return a prediction for every `top_k`, from paths, the best first; each is read once."""
        paths = paths[: self._settings.top_k[-1]]
        inputs = self._reader.inputs(question.question, paths, self._passages)
        scored = self.score_paths(inputs)
        return [self._predict(question, k, paths, inputs, scored[:k]) for k in self._settings.top_k]

    @torch.inference_mode()
    def score_paths(self, inputs: Sequence[Input]) -> list[PathScores]:
        scored: dict[int, PathScores] = {}
        groups = group_passes(inputs)
        passes = ([inputs[i] for i in group] for group in groups)
        results = parallel.spread(lambda part: compute_logits(self._reader, part, self._hardware), passes)
        for places, (batch, passage_PT) in zip(groups, results, strict=True):
            spans = scores.best_spans(batch.start, batch.end, passage_PT, longest=self._settings.answer_tokens)
            for row, (i, span, score) in enumerate(zip(places, spans, batch.paths.tolist(), strict=True)):
                logits = batch.row(row)
                kinds_K = None if logits.kinds is None else logits.kinds.cpu().numpy()
                scored[i] = PathScores(score, span, kinds_K, logits.sentences)
        return [scored[i] for i in range(len(inputs))]

    def _predict(
        self, question: Question, top_k: int, paths: Sequence[PathRows], inputs: list[Input], scored: list[PathScores]
    ) -> Prediction:
        of_paths = self._reader.settings.of_paths
        choice = scores.most_probable(scored) if of_paths else scores.selected_span(scored)
        if choice is None:
            return Prediction(question.id, top_k, "")
        best, path, path_input = scored[choice.path], paths[choice.path], inputs[choice.path]
        support = self._support(path, path_input, best.sentences_T) if of_paths else None
        prediction = Prediction(question.id, top_k, choice.kind, support=support)
        if choice.kind != "span":
            return prediction
        place, span = path_input.characters(best.span.first, best.span.last)
        piece = self._passages.text(path[place])[span.start : span.end]
        answer = piece.strip()  # a token of byte-level BPE holds the space before its word
        start = span.start + piece.index(answer)
        (passage_id,) = self._store.ids([path[place]])
        return prediction._replace(answer=answer, passage_id=passage_id, start=start, end=start + len(answer))

    def _support(self, path: PathRows, path_input: Input, sentences_T: Tensor) -> list[Sentence]:
        sentences = self._passages.sentences_in(path_input, path)
        sentence_T = torch.from_numpy(sentences.sentence_T)
        logits_T = sentences_T.cpu()[: len(sentence_T)]
        means_S = scores.sentence_means(logits_T, sentence_T, len(sentences.numbers)).numpy()
        ids = self._store.ids(path)
        return [Sentence(ids[place], number) for place, number in scores.supporting(means_S, sentences)]


class FusionAnswerer:
    """Answers as Fusion-in-Decoder writes, by greedy decoding."""

    def __init__(self, reader: FusionReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader, self._store = reader, store
        self._settings, self._hardware = settings, hardware

    @torch.inference_mode()
    def __call__(self, question: Question, paths: Sequence[PathRows]) -> list[Prediction]:
        """Return a prediction for every `top_k`, from paths of one passage, the best first; each is encoded once."""
        rows = [row for path in paths[: self._settings.top_k[-1]] for row in path]
        inputs = tokenize_passages(self._reader, self._store, question, rows)
        with machine.autocast(self._hardware):
            states = self._reader.states(inputs)
            return [self._predict(question, k, states[:k]) for k in self._settings.top_k]

    def _predict(self, question: Question, top_k: int, states: list[Tensor]) -> Prediction:
        if not states:
            return Prediction(question.id, top_k, "")
        model, tokenizer = self._reader.model, self._reader.tokenizer
        greedy = {"do_sample": False, "num_beams": 1, "max_new_tokens": self._settings.output_tokens}
        (generated,) = model.generate(**decoder_inputs(states), **greedy)
        return Prediction(question.id, top_k, tokenizer.decode(generated, skip_special_tokens=True).strip())


ANSWERERS = {"extractive": ExtractiveAnswerer, "paths": ExtractiveAnswerer, "fid": FusionAnswerer}
