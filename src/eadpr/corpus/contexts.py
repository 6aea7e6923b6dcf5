"""The passages that a source names for a question, as records."""

from __future__ import annotations

import hashlib
from collections import Counter

from eadpr.corpus.given import GivenContext, GivenQuestion, shown, text_of
from eadpr.corpus.gold import Gold
from eadpr.corpus.known import Known, digest
from eadpr.corpus.origin import context_key
from eadpr.corpus.record_files import RecordFiles
from eadpr.corpus.sources import Prepare
from eadpr.records import Context, Passage, Span


class ContextRecords:
    """Turns given contexts into records; those that are not in the corpus are refused or, by setting, join it."""

    def __init__(self, known: Known, records: RecordFiles, settings: Prepare, counts: Counter[str]) -> None:
        self._known, self._records, self._settings, self._counts = known, records, settings, counts
        counts.update(
            dict.fromkeys(
                (
                    "passages_from_contexts", "contexts_with_other_text", "gold_lost_to_other_text",
                    "gold_sentences_missing", "answers_dropped", "patterns_that_never_match",
                ),
                0,
            )
        )  # fmt: skip

    def held_out(self, given: GivenQuestion) -> bool:
        """Whether the question is among the share for testing.

        Drawn by the title of its first positive, so that no title is on both sides, else by its own words; other
        questions make no difference.
        """
        first = next((context.passage_id for context in given.contexts if context.role == "positive"), None)
        title = self._known.title(first) if first is not None else None
        drawn = digest(given.question) if title is None else title
        return drawn < given.test_share * 2**64

    def of(self, given: GivenQuestion, question_id: str, gold: list[Gold]) -> list[Context]:
        return [self._record(given, context, question_id, gold) for context in given.contexts]

    def _record(self, given: GivenQuestion, context: GivenContext, question_id: str, gold: list[Gold]) -> Context:
        passage_id, content = self._passage(given, context)
        shift = self._shift(context, content)
        if shift is None and context.text is not None:
            self._counts["contexts_with_other_text"] += 1
        self._counts["gold_sentences_missing"] += context.gold_missing
        read = {"title": context.title or "", "text": context.text or ""}
        fields = context.fields or {}
        same = content == digest(*read.values()) and all(fields.get(name, read[name]) == read[name] for name in read)
        return Context(
            question_id=question_id,
            passage_id=passage_id,
            role=context.role,
            order=context.order,
            score=context.score,
            title_score=context.title_score,
            gold=self._spans(given, context, gold, shift),
            source_key="" if context.fields is None else context_key(context.fields, same_text=same),
        )

    def _passage(self, given: GivenQuestion, context: GivenContext) -> tuple[str, int]:
        """The id of the context's passage and the digest of that passage's title and text."""
        passage_id = context.passage_id
        if passage_id is None:
            content = f"{context.title or ''}\0{context.text}"
            passage_id = f"context-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        content = self._known.content(passage_id)
        if content is not None:
            return passage_id, content
        where = f"{given.where}: {context.role} {context.order}"
        if not self._settings.add_context_passages or context.text is None:
            raise ValueError(f"{where}: {self._unknown(passage_id, context)}")
        title = context.title or ""
        self._records.passage(Passage(passage_id, title, text_of(context.text, where, "text"), context.sentences))
        self._known.add_later(passage_id, title, context.text)
        self._counts["passages_from_contexts"] += 1
        return passage_id, digest(title, context.text)

    def _unknown(self, passage_id: str, context: GivenContext) -> str:
        if self._known.content(f"{passage_id}#1") is not None:
            return (
                f"document {shown(passage_id)} was split into passages {passage_id}#1, …; name the one meant, or leave"
                " positives empty: the best BM25 passage with an answer is then taken"
            )
        name = "the passage has no id and" if context.passage_id is None else f"passage id {shown(passage_id)}"
        mend = "add it to the passages"
        if context.text is not None:
            mend += ", or set prepare.add_context_passages in params.yaml"
        return f"{name} is not in the corpus; {mend}"

    def _shift(self, context: GivenContext, content: int) -> int | None:
        """By how many characters the context's text begins before the passage's; None where they differ."""
        if context.text is None:
            return None
        title = context.title or ""
        if content == digest(title, context.text):
            return 0
        if self._settings.strip_quotes and content == digest(title, context.text.strip('"')):
            return len(context.text) - len(context.text.lstrip('"'))
        return None

    def _spans(
        self, given: GivenQuestion, context: GivenContext, gold: list[Gold], shift: int | None
    ) -> list[Span] | None:
        if context.role != "positive":
            return None
        found = {span for annotation in gold for span in annotation.spans(given, context) or ()}
        found.update(context.gold or ())
        if not found:
            return None
        if shift is None:
            self._counts["gold_lost_to_other_text"] += 1
            return None
        end = len(context.text.strip('"')) if shift else len(context.text)
        moved = (Span(max(0, start - shift), min(end, stop - shift)) for start, stop in sorted(found))
        return [span for span in moved if span.start < span.end] or None
