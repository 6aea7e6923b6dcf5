"""Stage `evidence`: which spans of a positive passage make its question answerable, by several strategies.

pseudo    the span without which a QA model finds the answer most surprising (EADPR, section 3.1), or that is most
          relevant to the question, or that a language model names (ours, where no answer is known)
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
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from eadpr.runtime import cache, files, machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import Evidence, ScoredSpan, Span
from eadpr.supervision import pairs, placebos
from eadpr.supervision.config import PLACEBOS, EvidenceSettings
from eadpr.supervision.manifest import Manifest, Request, Score, read_manifest
from eadpr.supervision.pairs import Pair
from eadpr.text import spans
from eadpr.text.answers import merge

SHARD = 1_000  # pairs: what a kill can cost, and how many questions' candidates are batched together; part of the bytes
CHARACTERS = 16  # per token, more than the average of any prose: text beyond these is not tokenised, only to be cut off

_WORD = re.compile(r"\S+")
Choose = Callable[[Sequence[Pair]], list[list[int]]]  # pairs -> indices of the spans of each that are its evidence


def find_evidence(
    settings: EvidenceSettings, sets: Sets, hardware: machine.Machine, *, records: Path, positives: Path,
    annotator_folder: Path, out: Path, choose: functools.partial | None = None,
) -> int:  # fmt: skip
    """Write a row for every strategy and positive (`settings.positive`: each or the first) of the questions trained or
    evaluated on; return the number of rows. Finished shards stay in the cache until `out` is written. `choose` is a
    `Choose` with its settings bound, for the annotator's models."""
    from eadpr.runtime import jobs  # torch comes with it, which rules do not need
    from eadpr.supervision import qa_model

    manifest = read_manifest(annotator_folder)
    if manifest.relevance:  # in bfloat16 the relevances of sentences would tie
        hardware = hardware.model_copy(update={"precision": "float32"})
    positive_table = positives / "positives.parquet"
    inputs = [records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    inputs += [positive_table, annotator_folder]
    key = machine.key(__file__, inputs, settings, sets, hardware, *(choose.args if choose else ()))
    ids = questions.read_question_ids(records / "question_sets.parquet", [*sets.learnt, *sets.evaluate])
    with cache.workspace("evidence", key) as workspace:
        pair_table = workspace / "pairs.parquet"
        if not cache.intact(pair_table):
            joined = pairs.read_pairs(records, positive_table, ids, first=settings.positive == "first")
            tables.write(pair_table, Pair, joined)
            cache.seal(pair_table)
        total = tables.count(pair_table, Pair)
        shards = [workspace / f"{number:06d}.parquet" for number in range(-(-total // SHARD))]
        missing = [number for number, shard in enumerate(shards) if not cache.intact(shard)]
        if missing:
            models = range(len(manifest.models)) if "pseudo" in settings.strategies else []
            load = functools.partial(qa_model.load_scorers, annotator_folder, manifest, hardware, models)
            make = functools.partial(annotate_shards, pair_table, manifest, settings, hardware, choose, shards, SHARD)
            done = min(SHARD * (len(shards) - len(missing)), total)
            with progress("evidence", total, "positives", done=done) as advance:
                for count in jobs.make_shards(load, make, missing, hardware):
                    advance(count)
        with tables.writing(out, Evidence) as append:
            for shard in shards:
                append(tables.read(shard, Evidence))
        files.discard(workspace)
    return tables.count(out, Evidence)


def annotate_shards(
    pair_table: Path, manifest: Manifest, settings: EvidenceSettings, hardware: machine.Machine, choose: Choose | None,
    shards: Sequence[Path], size: int, models: Sequence[Any],
) -> Callable[[int], Iterator[int]]:  # fmt: skip
    """Return the function that writes the evidence of `size` pairs to the shard of a number, and yields their count."""
    from eadpr.supervision.answer_nll import make_scorer

    annotate = Annotate(settings, manifest, make_scorer(models.__getitem__, manifest, settings, hardware), choose)

    def write_shard(number: int) -> Iterator[int]:
        shard = pairs.read_range(pair_table, first=number * size, count=size)
        tables.write(shards[number], Evidence, annotate(shard))
        cache.seal(shards[number])
        yield len(shard)

    return write_shard


@dataclass(frozen=True)
class Annotate:
    """Finds the evidence of pairs: rows in the order of the pairs, then of the strategies in the settings."""

    settings: EvidenceSettings
    manifest: Manifest
    score: Score | None  # None where no strategy is pseudo
    choose: Choose | None = None

    def __call__(self, pairs: Sequence[Pair]) -> Iterator[Evidence]:
        strategies = self.settings.strategies
        pseudo = self._find_pseudo(pairs) if "pseudo" in strategies else []
        for i, pair in enumerate(pairs):
            rows = {"pseudo": pseudo[i]} if pseudo else {}
            for strategy in strategies:
                if strategy != "pseudo" and strategy not in PLACEBOS:
                    rows[strategy] = find_by_rule(pair, strategy, self.settings)
            if len(rows) < len(strategies):
                evidence, key = rows[self.settings.placebo_of].chosen_spans, f"{pair.question.id}\0{pair.passage.id}"
                pieces = placebos.choose_placebos(pair.passage, evidence, pair.answer_spans, key=key)
                for kind, piece in pieces.items():
                    rows[kind] = _row(pair, kind, [piece] if piece else [], [0] if piece else [])
            yield from (rows[strategy] for strategy in strategies)

    def _find_pseudo(self, pairs: Sequence[Pair]) -> list[Evidence]:
        """Return a row for each pair. Nothing is chosen without a model or text, or by a QA model without a target."""
        segments = [spans.segment(pair.passage) for pair in pairs]
        rows = [_row(pair, "pseudo", cut, []) for pair, cut in zip(pairs, segments, strict=True)]
        if self.choose:
            return [row._replace(chosen=chosen) for row, chosen in zip(rows, self.choose(pairs), strict=True)]
        # Some of HotpotQA's pages have no text.
        askable = [i for i, pair in enumerate(pairs) if (self.manifest.relevance or pair.target) and segments[i]]
        askable = askable if self.manifest.models else []
        indices_by_model = defaultdict[int, list[int]](list)
        for i, model in zip(askable, self.manifest.assign([pairs[i].question.id for i in askable]), strict=True):
            indices_by_model[model].append(i)
        for model, indices in sorted(indices_by_model.items()):
            requests = [self.requests(pairs[i]) for i in indices]
            nlls = self.score(model, list(chain(*requests)))  # of all pairs, so that batches cross questions
            ends = np.cumsum([len(of_pair) for of_pair in requests])
            for i, nlls_of_pair in zip(indices, np.split(nlls, ends[:-1]), strict=True):
                rows[i] = choose_by_nll(pairs[i], segments[i], nlls_of_pair)
        return rows

    def requests(self, pair: Pair) -> list[Request]:
        """Return the question with the passage without each of its spans (or to match with each), and last with all. A
        passage is cut where the model stops reading, so that each span of a long one does not cost all of it."""
        prompt, target = self.manifest.prompt, self.manifest.prompt.cased(pair.target)
        text, limit = pair.passage.text, CHARACTERS * self.settings.input_tokens
        whole_text = text[:limit]
        segments = spans.segment(pair.passage)
        question, title = pair.question.question, pair.passage.title
        if self.manifest.relevance == "match":
            texts = [text[slice(*s)] for s in segments]
        else:
            texts = [spans.without(text, [s])[:limit] if s.start < limit else whole_text for s in segments]
        if self.manifest.relevance:
            return [(question, title, text) for text in [*texts, whole_text]]
        return [(prompt.input(question, title, text), target) for text in [*texts, whole_text]]


def choose_by_nll(pair: Pair, segments: Sequence[Span], nlls: np.ndarray) -> Evidence:
    """Choose the span without which the answer is least likely, the first of equal ones.

    `nlls`, shape (spans + 1,), are the answer's without each span and, last, with the whole passage.
    """
    scored = [ScoredSpan(*span, float(nll)) for span, nll in zip(segments, nlls[:-1], strict=True)]
    chosen = int(np.argmax(nlls[:-1]))
    return Evidence(pair.question.id, pair.passage.id, "pseudo", pair.target, scored, [chosen], float(nlls[-1]))


def find_by_rule(pair: Pair, strategy: str, settings: EvidenceSettings) -> Evidence:
    """Find the evidence of a strategy that needs no model."""
    match strategy:
        case "gold" | "sentence":
            targets = pair.answer_spans if strategy == "sentence" else pair.gold or []
            sentences = spans.segment(pair.passage)
            return _row(pair, strategy, sentences, spans.overlapping(sentences, targets))
        case "window":
            pieces = windows(pair.passage.text, pair.answer_spans, settings.window)
        case "answer":
            pieces = pair.answer_spans
        case _:
            raise ValueError(f"no rule finds evidence of strategy {strategy!r}")
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
