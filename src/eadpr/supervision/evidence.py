"""Stage `evidence`: which spans of a positive passage make its question answerable, by several strategies.

pseudo    the span without which a QA model finds the answer most surprising (EADPR, section 3.1), or a language
          model's choice (`Choose`)
gold      the sentences that hold what the source annotated
sentence  every sentence that holds an answer (PiCL, section 5.3, as do the next two)
window    some tokens around every answer
answer    every answer

Placebos (`placebos`) are written as further rows; their span is no evidence.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr.runtime import cache, files, jobs, machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import Evidence, ScoredSpan, Span
from eadpr.supervision import annotator_manifest, answer_nll, pairs, placebos, qa_model, shortlist, spans
from eadpr.supervision.annotator_manifest import Manifest
from eadpr.supervision.config import PLACEBOS, EvidenceSettings
from eadpr.supervision.pairs import Pair
from eadpr.supervision.qa_model import QaModel
from eadpr.supervision.shortlist import Hidden
from eadpr.text.answers import merge

SHARD = 1_000  # pairs: what a kill can cost, and how many questions' candidates are batched together; part of the bytes
CHARACTERS = 16  # per token, more than the average of any prose: text beyond these is not tokenised, only to be cut off

_WORD = re.compile(r"\S+")

Request = tuple[str, str]  # input, target
Score = Callable[[int, Sequence[Request]], np.ndarray]  # (index of a model of the manifest, requests) -> nll of each
Glance = Callable[[int, Sequence[Hidden]], list[np.ndarray]]  # the same for `shortlist.hidden_nlls`


class Choose(NamedTuple):
    """A language model that chooses evidence instead of the QA model.

    `choose` takes pairs with their spans and yields, for each, the indices of the evidence, or None for an unreadable
    reply. `key` holds everything that decides the choice.
    """

    choose: Callable[[Sequence[tuple[Pair, list[Span]]]], Iterator[list[int] | None]]
    key: list[Any]


def find_evidence(
    settings: EvidenceSettings,
    sets: Sets,
    hardware: Machine,
    *,
    records: Path,
    positives: Path,
    annotator_folder: Path,
    out: Path,
    chooser: Choose | None = None,
) -> int:
    """Write a row for every strategy and positive of the questions trained or evaluated on; return the number of rows.

    With `settings.positive` set to first, only the first positive of each question is annotated. Finished shards stay
    in the cache until `out` is written.
    """
    pseudo = "pseudo" in settings.strategies
    manifest = annotator_manifest.read_manifest(annotator_folder)
    if pseudo and not manifest.models and chooser is None:
        raise ValueError(
            "evidence.strategies holds pseudo, but annotator.model is none; set a model, or leave pseudo out"
        )
    positive_table = positives / "positives.parquet"
    inputs = [records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    inputs += [positive_table, annotator_folder]
    key = machine.key(__file__, inputs, settings, sets, hardware, *(chooser.key if chooser else []))
    ids = questions.read_question_ids(records / "question_sets.parquet", [*sets.learnt, *sets.evaluate])
    with cache.workspace("evidence", key) as workspace:
        pair_table = workspace / "pairs.parquet"
        if not cache.intact(pair_table):
            with tables.writing(pair_table, Pair) as append:
                for table in pairs.join_pairs(records, positive_table, ids, settings.positive == "first"):
                    append(table)
            cache.seal(pair_table)
        total = tables.count(pair_table, Pair)
        shards = [workspace / f"{number:06d}.parquet" for number in range(-(-total // SHARD))]
        missing = [number for number, shard in enumerate(shards) if not cache.intact(shard)]
        if missing:
            models = range(len(manifest.models)) if pseudo and chooser is None else []
            load = functools.partial(qa_model.load_scorers, annotator_folder, manifest, hardware, models)
            make = functools.partial(ShardAnnotator, pair_table, manifest, settings, hardware, shards, SHARD, chooser)
            done = min(SHARD * (len(shards) - len(missing)), total)
            with progress("evidence", total, "positives", done=done) as advance:
                for count in jobs.make_shards(load, make, missing, hardware):
                    advance(count)
        with tables.writing(out, Evidence) as append:
            for shard in shards:
                append(tables.read(shard, Evidence))
        files.discard(workspace)
    return tables.count(out, Evidence)


@dataclass(frozen=True)
class ShardAnnotator:
    """Writes the evidence of `size` pairs of the file `pair_table` to one of the files `shards`."""

    pair_table: Path
    manifest: Manifest
    settings: EvidenceSettings
    hardware: Machine
    shards: Sequence[Path]
    size: int
    chooser: Choose | None
    models: Sequence[QaModel]

    def __call__(self, number: int) -> Iterator[int]:
        """Write shard `number`, then yield its number of pairs."""
        scorers = make_scorers(self.models.__getitem__, self.settings, self.hardware)
        annotate = Annotate(self.settings, self.manifest, *scorers, self.chooser)
        shard = pairs.read_range(self.pair_table, first=number * self.size, count=self.size)
        tables.write(self.shards[number], Evidence, annotate(shard))
        cache.seal(self.shards[number])
        yield len(shard)


@dataclass(frozen=True)
class Annotate:
    """Finds the evidence of pairs: rows in the order of the pairs, then of the strategies in the settings. `glance` is
    needed with `settings.shortlist` only."""

    settings: EvidenceSettings
    manifest: Manifest
    score: Score
    glance: Glance | None = None
    chooser: Choose | None = None

    def __call__(self, pairs: Sequence[Pair]) -> Iterator[Evidence]:
        strategies = self.settings.strategies
        pseudo = self._find_pseudo(pairs) if "pseudo" in strategies else []
        for i, pair in enumerate(pairs):
            rows = {"pseudo": pseudo[i]} if pseudo else {}
            for strategy in strategies:
                if strategy != "pseudo" and strategy not in PLACEBOS:
                    rows[strategy] = find_by_rule(pair, strategy, self.settings)
            if len(rows) < len(strategies):
                rows |= self._find_placebos(pair, rows[self.settings.placebo_of])
            yield from (rows[strategy] for strategy in strategies)

    def _find_pseudo(self, pairs: Sequence[Pair]) -> list[Evidence]:
        """Return a row for each pair; nothing is chosen for a pair without a target or without text."""
        rows = [_row(pair, "pseudo", self._segments(pair), []) for pair in pairs]
        # Some of HotpotQA's pages have no text.
        askable = [i for i, pair in enumerate(pairs) if pair.target and rows[i].spans]
        if self.chooser:
            self._choose_by_language_model(pairs, rows, askable)
            return rows
        seen, of_model = self.manifest.seen(), defaultdict[int, list[int]](list)
        for i in askable:
            of_model[self.manifest.model_for(pairs[i].question.id, seen)].append(i)
        for model, indices in sorted(of_model.items()):
            for i, row in zip(indices, self._choose_by_nll(model, [pairs[i] for i in indices]), strict=True):
                rows[i] = row
        return rows

    def _choose_by_nll(self, model: int, pairs: Sequence[Pair]) -> Iterator[Evidence]:
        """Score the spans of all pairs in one call, so that batches cross questions."""
        segments = [self._segments(pair) for pair in pairs]
        nlls = [np.full(len(spans) + 1, np.nan, dtype=np.float32) for spans in segments]  # last: the whole passage
        candidates = [list(range(len(spans))) for spans in segments]
        to_score = [list(range(len(spans) + 1)) for spans in segments]
        if self.settings.shortlist is not None:
            glances = self.glance(model, [self._hidden(pair) for pair in pairs])
            for row, glance in zip(nlls, glances, strict=True):
                row[-1] = glance[-1]
            candidates = [shortlist.near(glance[:-1], self.settings.shortlist) for glance in glances]
            # The exact nll of a lone candidate would decide nothing.
            to_score = [indices if len(indices) > 1 else [] for indices in candidates]
        requests: list[Request] = []
        for pair, indices in zip(pairs, to_score, strict=True):
            of_pair = self.requests(pair)
            requests += [of_pair[i] for i in indices]
        scores, position = self.score(model, requests), 0
        for i, pair in enumerate(pairs):
            end = position + len(to_score[i])
            nlls[i][to_score[i]] = scores[position:end]
            position = end
            yield chosen_by_nll(pair, segments[i], nlls[i], candidates[i])

    def _choose_by_language_model(self, pairs: Sequence[Pair], rows: list[Evidence], askable: Sequence[int]) -> None:
        """Put the choices into `rows`. A pair with an unreadable reply keeps its spans, but no choice; a pair without
        evidence gets no spans."""
        questions = [(pairs[i], self._segments(pairs[i])) for i in askable]
        for i, choice in zip(askable, self.chooser.choose(questions), strict=True):
            if choice is not None:
                rows[i] = rows[i]._replace(chosen=choice, spans=rows[i].spans if choice else [])

    def _find_placebos(self, pair: Pair, evidence: Evidence) -> dict[str, Evidence]:
        """Return a row for each kind of placebo; nothing is chosen if the pair has no such piece."""
        pieces = placebos.choose_placebos(
            pair.passage,
            evidence.chosen_spans,
            pair.answer_spans,
            key=f"{pair.question.id}\0{pair.passage.id}",
            segmenter=self.settings.segmenter if evidence.strategy == "pseudo" else "sentence",
        )
        return {
            kind: _row(pair, kind, [piece] if piece else [], [0] if piece else []) for kind, piece in pieces.items()
        }

    def _segments(self, pair: Pair) -> list[Span]:
        return spans.segment(pair.passage, self.settings.segmenter)

    def requests(self, pair: Pair) -> list[Request]:
        """Return the question with the passage without each of its spans, and last with the whole passage. A passage is
        cut where the model stops reading, so that each span of a long one does not cost all of it."""
        prompt, target = self.manifest.prompt, self.manifest.prompt.cased(pair.target)
        text, limit = pair.passage.text, CHARACTERS * self.settings.input_tokens
        whole_text = text[:limit]
        segments = self._segments(pair)
        texts = [spans.without(text, [s])[:limit] if s.start < limit else whole_text for s in segments]
        question, title = pair.question.question, pair.passage.title
        return [(prompt.input(question, title, text), target) for text in [*texts, whole_text]]

    def _hidden(self, pair: Pair) -> Hidden:
        """Return the last of the `requests` with the places of the spans in its input."""
        source, target = self.requests(pair)[-1]
        start = self.manifest.prompt.start(pair.question.question, pair.passage.title)
        cased, text = self.manifest.prompt.cased, pair.passage.text
        hidden = [Span(*(start + len(cased(text[:end])) for end in span)) for span in self._segments(pair)]
        return Hidden(source, hidden, target)


def make_scorers(
    model_of: Callable[[int], QaModel], settings: EvidenceSettings, hardware: Machine
) -> tuple[Score, Glance]:
    """Return the functions that score with the models of a manifest, by their indices."""

    def scorer(nlls: Callable) -> Callable:
        def score(index: int, requests: Sequence) -> Any:
            with machine.autocast(hardware):
                return nlls(*model_of(index), requests, input_tokens=settings.input_tokens)

        return score

    return scorer(answer_nll.answer_nlls), scorer(shortlist.hidden_nlls)


def chosen_by_nll(pair: Pair, segments: Sequence[Span], nlls: np.ndarray, candidates: Sequence[int]) -> Evidence:
    """Choose the candidate without which the answer is least likely, the first of equal ones.

    `nlls`, shape (spans + 1,), are the answer's without each span (NaN if not scored) and, last, with the whole
    passage; `candidates` are indices of spans.
    """
    values = [None if np.isnan(nll) else float(nll) for nll in nlls[:-1]]
    scored = [ScoredSpan(*span, value) for span, value in zip(segments, values, strict=True)]
    chosen = candidates[int(np.argmax(nlls[candidates]))]
    return Evidence(pair.question.id, pair.passage.id, "pseudo", pair.target, scored, [chosen], float(nlls[-1]))


def find_by_rule(pair: Pair, strategy: str, settings: EvidenceSettings) -> Evidence:
    """Find the evidence of a strategy that needs no model."""
    if strategy in ("gold", "sentence"):
        targets = pair.answer_spans if strategy == "sentence" else pair.gold or []
        sentences = spans.segment(pair.passage, "sentence")
        return _row(pair, strategy, sentences, spans.overlapping(sentences, targets))
    pieces = pair.answer_spans
    if strategy == "window":
        pieces = windows(pair.passage.text, pieces, settings.window)
    return _row(pair, strategy, pieces, list(range(len(pieces))))


def windows(text: str, answers: Sequence[Span], width: int) -> list[Span]:
    """Return each answer with `width` words (split at white space) on either side; windows that meet are joined."""
    words = [match.span() for match in _WORD.finditer(text)]
    spans = []
    for answer in answers:
        inside = [i for i, (start, end) in enumerate(words) if start < answer.end and answer.start < end]
        first, last = max(inside[0] - width, 0), min(inside[-1] + width, len(words) - 1)
        spans.append(Span(words[first][0], words[last][1]) if width else answer)
    return merge(spans)


def _row(pair: Pair, strategy: str, spans: Sequence[Span], chosen: list[int]) -> Evidence:
    unscored = [ScoredSpan(*span, None) for span in spans]
    return Evidence(pair.question.id, pair.passage.id, strategy, pair.target, unscored, chosen, None)
