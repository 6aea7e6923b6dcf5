"""Stage `evidence`: which spans of a positive passage make its question answerable, by several strategies.

pseudo    the span without which a QA model finds the answer most surprising (EADPR, section 3.1), or what is handed in
          chooses in its place (`Choose`)
gold      the sentences that hold what the source annotated
sentence  every sentence that holds an answer (PiCL, section 5.3, as do the next two)
window    some tokens around every answer
answer    every answer

Placebos (`placebos`) stand among them, as rows whose span is no evidence.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
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
CHARACTERS = 16  # per token, at least the average of any prose: what is beyond them need not be tokenised to be cut off

_WORD = re.compile(r"\S+")

Request = tuple[str, str]  # input, target
Score = Callable[[int, Sequence[Request]], np.ndarray]  # (index of a model of the manifest, requests) -> nll of each
Glance = Callable[[int, Sequence[Hidden]], list[np.ndarray]]  # the same for `shortlist.hidden_nlls`


class Choose(NamedTuple):
    """Chooses the evidence among the spans of each pair in a QA model's place, by their indices, or None where it could
    not tell; `key` is all that decides what it chooses."""

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
    by: Choose | None = None,
) -> int:
    """Write a row for every strategy and every positive of the questions trained or evaluated on, or the first where
    `settings.positive` says so; returns how many.

    Finished shards stay in the cache until `out` is written.
    """
    manifest = annotator_manifest.read_manifest(annotator_folder)
    if "pseudo" in settings.strategies and not manifest.models and by is None:
        raise ValueError(
            "evidence.strategies holds pseudo, but annotator.model is none; set a model, or leave pseudo out"
        )
    positive_table = positives / "positives.parquet"
    inputs = [records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    key = machine.key(
        __file__, [*inputs, positive_table, annotator_folder], settings, sets, hardware, *(by.key if by else [])
    )
    ids = questions.read_question_ids(records / "question_sets.parquet", [*sets.learnt, *sets.evaluate])
    with cache.workspace("evidence", key) as workspace:
        asked = workspace / "pairs.parquet"
        if not cache.intact(asked):
            with tables.writing(asked, Pair) as append:
                for table in pairs.joined(records, positive_table, ids, settings.positive == "first"):
                    append(table)
            cache.seal(asked)
        total = tables.count(asked, Pair)
        shards = [workspace / f"{number:06d}.parquet" for number in range(-(-total // SHARD))]
        missing = [number for number, shard in enumerate(shards) if not cache.intact(shard)]
        if missing:
            scored = range(len(manifest.models)) if "pseudo" in settings.strategies and by is None else []
            load = functools.partial(qa_model.scoring, annotator_folder, manifest, hardware, scored)
            make = functools.partial(ShardAnnotator, asked, manifest, settings, hardware, shards, SHARD, by)
            done = min(SHARD * (len(shards) - len(missing)), total)
            with progress("evidence", total, "positives", done=done) as advance:
                for count in jobs.make_shards(load, make, missing, hardware):
                    advance(count)
        with tables.writing(out, Evidence) as append:
            for shard in shards:
                append(tables.read(shard, Evidence))
        files.discard(workspace)
    return tables.count(out, Evidence)


class ShardAnnotator:
    """Makes shards by their numbers: finds the evidence of `size` pairs of the file `asked` and writes it to one of the
    files `shards`."""

    def __init__(
        self,
        asked: Path,
        manifest: Manifest,
        settings: EvidenceSettings,
        hardware: Machine,
        shards: Sequence[Path],
        size: int,
        by: Choose | None,
        models: Sequence[QaModel],
    ) -> None:
        self._annotate = Annotate(settings, manifest, *scorers(models.__getitem__, settings, hardware), by)
        self._asked = asked
        self._shards, self._size = shards, size

    def __call__(self, number: int) -> Iterator[int]:
        """Yields the number of pairs once the file is written."""
        found = pairs.read(self._asked, first=number * self._size, count=self._size)
        tables.write(self._shards[number], Evidence, self._annotate(found))
        cache.seal(self._shards[number])
        yield len(found)


class Annotate:
    """Finds the evidence of pairs: rows in the order of the pairs and, for each, of the strategies in the settings."""

    def __init__(
        self,
        settings: EvidenceSettings,
        manifest: Manifest,
        score: Score,
        glance: Glance | None = None,
        by: Choose | None = None,
    ) -> None:
        """`glance` is asked where `settings.shortlist` is set."""
        self.settings, self.manifest, self.score, self.glance, self.by = settings, manifest, score, glance, by
        self.seen = manifest.seen()

    def __call__(self, found: Sequence[Pair]) -> Iterator[Evidence]:
        pseudo = (self._chosen if self.by else self._pseudo)(found) if "pseudo" in self.settings.strategies else {}
        strategies = self.settings.strategies
        for i, pair in enumerate(found):
            rows = {
                strategy: pseudo[i] if strategy == "pseudo" else by_rule(pair, strategy, self.settings)
                for strategy in strategies
                if strategy not in PLACEBOS
            }
            if len(rows) < len(strategies):
                rows |= self._placebos(pair, rows[self.settings.placebo_of])
            yield from (rows[strategy] for strategy in strategies)

    def _pseudo(self, found: Sequence[Pair]) -> dict[int, Evidence]:
        """Candidates of all pairs that one model annotates go to it in one call, so that batches cross questions."""
        rows = {i: _row(pair, "pseudo", self._segments(pair), []) for i, pair in enumerate(found)}
        asked: dict[int, list[int]] = {}
        for i, pair in enumerate(found):
            if pair.target and rows[i].spans:  # some of HotpotQA's pages have no text
                asked.setdefault(self.manifest.model_for(pair.question.id, self.seen), []).append(i)
        for model, indices in sorted(asked.items()):
            rows |= zip(indices, self._by_nll(model, [found[i] for i in indices]), strict=True)
        return rows

    def _by_nll(self, model: int, found: Sequence[Pair]) -> Iterator[Evidence]:
        segments = [self._segments(pair) for pair in found]
        nlls = [np.full(len(spans) + 1, np.nan, dtype=np.float32) for spans in segments]
        lists = [list(range(len(spans))) for spans in segments]
        asked = [list(range(len(spans) + 1)) for spans in segments]
        if self.settings.shortlist is not None:
            glances = self.glance(model, [self._hidden(pair) for pair in found])
            lists = [shortlist.near(glance[:-1], self.settings.shortlist) for glance in glances]
            asked = [listed if len(listed) > 1 else [] for listed in lists]
            for of_pair, glance in zip(nlls, glances, strict=True):
                of_pair[-1] = glance[-1]
        requests = [[made[i] for i in which] for made, which in zip(map(self.requests, found), asked, strict=True)]
        scores = self.score(model, [request for group in requests for request in group])
        ends = np.cumsum([len(group) for group in requests])
        for of_pair, which, scored in zip(nlls, asked, np.split(scores, ends[:-1]), strict=True):
            of_pair[which] = scored
        yield from map(chosen_by_nll, found, segments, nlls, lists)

    def _chosen(self, found: Sequence[Pair]) -> dict[int, Evidence]:
        """Of spans that are no evidence a row has none; where it could not be told, it has them, and none is chosen."""
        rows = {i: _row(pair, "pseudo", self._segments(pair), []) for i, pair in enumerate(found)}
        asked = {i: (pair, self._segments(pair)) for i, pair in enumerate(found) if pair.target and rows[i].spans}
        for i, chosen in zip(asked, self.by.choose(list(asked.values())), strict=True):
            rows[i] = (
                rows[i] if chosen is None else rows[i]._replace(chosen=chosen, spans=rows[i].spans if chosen else [])
            )
        return rows

    def _placebos(self, pair: Pair, evidence: Evidence) -> dict[str, Evidence]:
        """A row for each kind of placebo, with nothing chosen where the pair has none."""
        segmenter = self.settings.segmenter if evidence.strategy == "pseudo" else "sentence"
        found = placebos.pieces(
            pair.passage,
            evidence.chosen_spans,
            pair.held,
            key=f"{pair.question.id}\0{pair.passage.id}",
            segmenter=segmenter,
        )
        return {kind: _row(pair, kind, *_all([piece] if piece else [])) for kind, piece in found.items()}

    def _segments(self, pair: Pair) -> list[Span]:
        return spans.segment(pair.passage, self.settings.segmenter)

    def requests(self, pair: Pair) -> list[Request]:
        """The question with the passage without each of its spans, and last with the whole passage.

        A long passage is cut where the model stops reading, so that each of its many spans does not cost all of it.
        """
        prompt, target = self.manifest.prompt, self.manifest.prompt.cased(pair.target)
        text, read = pair.passage.text, CHARACTERS * self.settings.input_tokens
        whole = text[:read]
        texts = [
            spans.without(text, [span])[:read] if span.start < read else whole for span in self._segments(pair)
        ] + [whole]
        return [(prompt.input(pair.question.question, pair.passage.title, t), target) for t in texts]

    def _hidden(self, pair: Pair) -> Hidden:
        """The last of the `requests`, and where the spans stand in its input."""
        source, target = self.requests(pair)[-1]
        start = self.manifest.prompt.start(pair.question.question, pair.passage.title)
        cased, text = self.manifest.prompt.cased, pair.passage.text
        ends = [[start + len(cased(text[:end])) for end in span] for span in self._segments(pair)]
        return Hidden(source, [Span(*span) for span in ends], target)


def scorers(model_of: Callable[[int], QaModel], settings: EvidenceSettings, hardware: Machine) -> tuple[Score, Glance]:
    """Score with the models of a manifest, by their indices."""

    def by(nlls: Callable) -> Callable:
        def score(index: int, asked: Sequence) -> Any:
            with machine.autocast(hardware):
                return nlls(*model_of(index), asked, input_tokens=settings.input_tokens)

        return score

    return by(answer_nll.answer_nlls), by(shortlist.hidden_nlls)


def chosen_by_nll(pair: Pair, segments: Sequence[Span], nlls: np.ndarray, listed: Sequence[int]) -> Evidence:
    """The span of the shortlist without which the answer is least likely is the evidence, the first one of equals.
    `nlls`, shape (spans + 1,), are those of the answer without each span, NaN where it was not worked out, and, last,
    with the whole passage."""
    scored = [
        ScoredSpan(*span, None if np.isnan(nll) else float(nll)) for span, nll in zip(segments, nlls, strict=False)
    ]
    chosen = listed[int(np.argmax(nlls[listed]))]
    return Evidence(pair.question.id, pair.passage.id, "pseudo", pair.target, scored, [chosen], float(nlls[-1]))


def by_rule(pair: Pair, strategy: str, settings: EvidenceSettings) -> Evidence:
    """The strategies that need no model."""
    found, chosen = RULES[strategy](pair, settings)
    return _row(pair, strategy, found, chosen)


def _sentences(pair: Pair, held: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """The sentences, and which of them share a character with what they are to hold."""
    sentences = spans.segment(pair.passage, "sentence")
    return sentences, spans.overlapping(sentences, held)


def _all(found: list[Span]) -> tuple[list[Span], list[int]]:
    return found, list(range(len(found)))


# A pair to spans of its passage and the indices of those that are evidence.
RULES = {
    "gold": lambda pair, settings: _sentences(pair, pair.gold or []),
    "sentence": lambda pair, settings: _sentences(pair, pair.held),
    "window": lambda pair, settings: _all(windows(pair.passage.text, pair.held, settings.window)),
    "answer": lambda pair, settings: _all(pair.held),
}


def windows(text: str, answers: Sequence[Span], width: int) -> list[Span]:
    """Each answer with `width` words (split at white space) on either side; windows that meet are one."""
    words = [match.span() for match in _WORD.finditer(text)]
    found = []
    for answer in answers:
        inside = [i for i, (start, end) in enumerate(words) if start < answer.end and answer.start < end]
        first, last = max(inside[0] - width, 0), min(inside[-1] + width, len(words) - 1)
        found.append(Span(words[first][0], words[last][1]) if width else answer)
    return merge(found)


def _row(pair: Pair, strategy: str, found: Sequence[Span], chosen: list[int]) -> Evidence:
    plain = [ScoredSpan(*span, None) for span in found]
    return Evidence(pair.question.id, pair.passage.id, strategy, pair.target, plain, chosen, None)
