"""Made-up tables of any number of questions: records, a ranking and distractors, drawn from hashes by the engine.

A passage is eighty words of a vocabulary of 50,000, rare ones less often. Each question has three given positives (one
in ten has none), answers from the first of them, and a ranking of forty passages that holds its positives.
"""

from pathlib import Path
from typing import NamedTuple

from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Distractor, Passage, Question, Ranked, SetMember

SET = "made/train"
WORDS, VOCABULARY, DEPTH, POSITIVES = 80, 50_000, 40, 3


class MadeUp(NamedTuple):
    """Folders, as the stages take them."""

    records: Path
    ranking: Path
    distractors: Path


def make(folder: Path, questions: int, passages: int, *, seed: int = 0) -> MadeUp:
    """Write the tables of `questions` questions over `passages` passages; memory does not grow with them."""
    made = MadeUp(folder / "records", folder / "bm25", folder / "distractors")
    queries = {
        made.records / "passages.parquet": (Passage, _PASSAGES),
        made.records / "questions.parquet": (Question, _QUESTIONS),
        made.records / "question_sets.parquet": (SetMember, _MEMBERS),
        made.records / "contexts.parquet": (Context, _CONTEXTS),
        made.ranking / "train.parquet": (Ranked, _RANKED),
        made.distractors / "distractors.parquet": (Distractor, _DISTRACTORS),
    }
    with engine.connect() as connection:
        connection.execute(f"CREATE MACRO draw(a, b, n) AS hash(a, b, {seed}) % n")
        connection.execute(f"CREATE MACRO number(u) AS (pow(u % 1000000 / 1e6, 3) * {VOCABULARY})::INT")
        # Words are spelt in syllables: a search for one meets its first letter as often as in prose.
        connection.execute(
            "CREATE MACRO syllable(n) AS substr('btdklmnprsvgfh', 1 + n % 14, 1) || substr('aeiou', 1 + n // 14 % 5, 1)"
        )
        connection.execute("CREATE MACRO spelt(n) AS syllable(n) || syllable(n // 70) || syllable(n // 4900) || 'n'")
        connection.execute("CREATE MACRO word(u) AS spelt(number(u))")
        connection.execute("CREATE MACRO word_of(p, k) AS word(draw(p, k, 1000000))")
        # In steps of at most a sixty-fourth of the passages, so that no two of a question's are the same.
        connection.execute(f"CREATE MACRO step(q) AS 1 + draw(q, 999, {max(passages // 64, 1)})")
        connection.execute(
            f"CREATE MACRO passage_of(q, k) AS ((draw(q, 1000, {passages}) + k * step(q)) % {passages})::BIGINT"
        )
        for path, (record, query) in queries.items():
            engine.write(connection, query.format(questions=questions, passages=passages), path, record)
    tables.write(made.ranking / "evaluate.parquet", Ranked, ())
    return made


_TEXT = f"list_aggregate(list_transform(range({WORDS}), k -> word_of(i, k)), 'string_agg', ' ')"
_PASSAGES = f"""SELECT 'p' || i AS id, 'Title ' || i // 5 AS title, {_TEXT} AS text,
    NULL::STRUCT("start" INT, "end" INT)[] AS sentences
    FROM range({{passages}}) t(i) ORDER BY i"""
_QUESTIONS = """SELECT 'q' || i AS id, 'Where is ' || i || '?' AS question,
    [word_of(passage_of(i, 0), 7) || ' ' || word_of(passage_of(i, 0), 8), word_of(passage_of(i, 0), 20)] AS answers,
    'string' AS answer_kind, NULL::VARCHAR AS subject, NULL::VARCHAR AS relation,
    NULL::VARCHAR AS type, NULL::VARCHAR[] AS hops
    FROM range({questions}) t(i) ORDER BY i"""
_MEMBERS = """SELECT 'made' AS question_set, 'train' AS split, 'q' || i AS question_id
    FROM range({questions}) t(i) ORDER BY i"""
_CONTEXTS = f"""SELECT 'q' || i AS question_id, 'p' || passage_of(i, k) AS passage_id, 'positive' AS role, k AS "order",
    NULL::FLOAT AS grade, NULL::STRUCT("start" INT, "end" INT)[] AS gold, NULL::VARCHAR AS title
    FROM range({{questions}}) t(i), range({POSITIVES}) u(k) WHERE i % 10 > 0 ORDER BY i, k"""
_RANKED = f"""SELECT 'q' || i AS question_id, 'p' || passage_of(i, (k + i) % {DEPTH}) AS passage_id,
    1 + k AS rank, 50 - k AS score FROM range({{questions}}) t(i), range({DEPTH}) u(k) ORDER BY i, k"""
_DISTRACTORS = f"""SELECT 'q' || i AS question_id, 'p' || passage_of(i, k) AS passage_id, 'sentence' AS strategy,
    0 AS level, 'cut' AS form, 'Without: ' || i AS text, [{{{{'start': 0, 'end': 9}}}}] AS removed
    FROM range({{questions}}) t(i), range({POSITIVES}) u(k) WHERE i % 10 > 0 ORDER BY i, k"""
