"""A user's own passages and questions: CSV or TSV with a header, JSONL or Parquet, by the file's name.

Long documents are cut into passages of about so many words, at sentence ends where there are any.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eadpr.corpus.formats import file_rows
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.qa_files import list_of
from eadpr.corpus.rows import (
    LARGEST,
    GivenContext,
    GivenPassage,
    GivenPassages,
    GivenQuestion,
    Row,
    digest,
    id_of,
    numbered,
    shown,
)
from eadpr.corpus.sources import NAME, File
from eadpr.storage import engine
from eadpr.storage.records import Span
from eadpr.text.answers import KINDS

LISTS = ("answers", "positives")
# Patterns and what messages say of them.
NAMED = (NAME, "lower-case letters, digits, '.', '_' and '-'")
ALLOWED = {"answer_kind": ("|".join(KINDS), f"one of {', '.join(KINDS)}"), "set": NAMED, "split": NAMED}

# A question's article is the title of its first positive, or else the document that this is a piece of.
_HELD_OUT = """
UPDATE asked SET split = CASE WHEN held_out(coalesce(t.title, question), file) THEN 'test' ELSE 'train' END FROM (
    SELECT a.n, CASE p.title WHEN '' THEN split_part(p.id, '#', 1) ELSE p.title END AS title
    FROM asked a
    LEFT JOIN (SELECT n, min_by(passage_id, c) AS passage_id FROM named WHERE role = 'positive' GROUP BY n) f USING (n)
    LEFT JOIN passages p ON p.id = f.passage_id
    WHERE a.split IS NULL
) t WHERE t.n = asked.n
"""
_OF_SPLIT = "SELECT 1 FROM asked WHERE split = $split AND n <= (SELECT max(n) FROM asked WHERE file = $file) LIMIT 1"

_WRITTEN = re.compile(r"""\[\s*['"].*['"]\s*\]""", re.DOTALL)  # texts, as a list
_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"""[.!?…。！？]["'”’»)\]]*$""")


def passages(path: Path, columns: Columns, *, prefix: str = "") -> Iterator[GivenPassage]:
    """Of `text`, and if wanted `id` and `title`. Without an id it is `prefix` and the passage's number, from 1."""
    first: tuple[str, bool] | None = None
    for row in numbered(columns.renamed(_rows(path))):
        where, number, fields = row
        first = first or (where, "id" in fields)
        if ("id" in fields) is not first[1]:
            said = "an id, but none in" if "id" in fields else "no id, but one in"
            raise ValueError(f"{where}: the passage has {said} {first[0]}; give every passage an id, or none")
        title = fields.get("title")
        yield where, fields.get("id", f"{prefix}{number}"), "" if title is None else title, row.value("text"), None


def missing_columns(files: Mapping[Path, Columns]) -> list[str]:
    """A line for each file whose first row lacks columns."""
    firsts = ((columns, *next(_rows(path), ("", {"": ""}))) for path, columns in files.items())
    return [said for columns, where, row in firsts if where and (said := columns.missing(where, row))]


def in_pieces(given: GivenPassages, words: int) -> GivenPassages:
    """Longer documents as passages `id#1`, `id#2`, … of about so many words, with their title."""
    found = []
    for where, document, title, text, _ in zip(*given, strict=True):
        if len(places := pieces(text, words)) > 1:
            parts = [(f"{document}#{k}", text[start:end]) for k, (start, end) in enumerate(places, start=1)]
        else:
            parts = [(document, text)]
        found += [(where, passage_id, title, part, None) for passage_id, part in parts]
    return GivenPassages(*map(list, zip(*found, strict=True)))


def questions(path: Path, columns: Columns) -> Iterator[GivenQuestion]:
    """Of `question`, and if wanted the other fields of questions; `positives` are passage ids, most evidential first.

    An empty field is as good as none; one value alone stands for a list of it. `grades` are numbers, one for each of
    the positives: how relevant it is.
    """
    for where, number, fields in numbered(_listed(path, columns)):
        lists = {name: _list(fields.get(name)) for name in LISTS}
        filled = {k: v for k, v in fields.items() if k in ("id", "question") or v not in (None, "")}
        row = Row(where, number, filled | lists)
        said = {name: row.optional(name) for name in ("answer_kind", "set", "split", "type", "subject", "relation")}
        for name, (allowed, expected) in ALLOWED.items():
            if said[name] is not None and not re.fullmatch(allowed, said[name]):
                raise ValueError(f"{where}: {name} is {shown(said[name])}, expected {expected}")
        positives = [id_of(value, where, f"positives[{i}]") for i, value in enumerate(lists["positives"])]
        graded: dict[str, float | None] = {}
        for key, grade in zip(positives, _grades(fields.get("grades"), len(positives), where), strict=True):
            if (first := graded.setdefault(key, grade)) != grade:
                raise ValueError(
                    f"{where}: positives has {shown(key)} with the grades {first:g} and {grade:g}; keep one"
                )
        contexts = [GivenContext("positive", i, key, grade=grade) for i, (key, grade) in enumerate(graded.items())]
        said["id"] = row.id("id") if "id" in fields else None
        yield GivenQuestion(where, number, row.text("question"), row.texts("answers"), contexts=contexts, **said)


def _grades(value: Any, count: int, where: str) -> list[float | None]:
    if value in (None, "") or not count:
        return [None] * count
    found = value
    if isinstance(value, str):  # a cell
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = value
    found = found if isinstance(found, list) else [found]
    if len(found) != count or not all(_is_grade(one) for one in found):
        raise ValueError(f"{where}: grades is {shown(value)}, expected a list of {count} numbers above 0, as positives")
    return [float(one) for one in found]


def _is_grade(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LARGEST


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def hold_out(connection: engine.Connection, files: Sequence[tuple[File, Path]]) -> None:
    """Draw the splits that the table `asked` leaves open, a file's `test_share` of them for testing, by whole articles
    where positives are given; the tables `named` and `passages` tell these. The draw of a title is always the same."""
    shares = {file.name: (path, file.test_share) for file, path in files if file.test_share is not None}
    if not shares:
        return
    connection.create_function(
        "held_out", lambda drawn, file: digest(drawn) < shares[file][1] * 2**64, ["VARCHAR", "VARCHAR"], "BOOLEAN"
    )
    drawn = engine.first(connection, "SELECT 1 FROM asked WHERE split IS NULL LIMIT 1")
    connection.execute(_HELD_OUT)
    for name, (path, share) in shares.items():
        for split in ("train", "test"):
            if not engine.first(connection, _OF_SPLIT, {"split": split, "file": name}):
                if not drawn:
                    raise ValueError(
                        f"{path}: every question says its split, and none says {split}; name one so, or remove the"
                        " column split"
                    )
                raise ValueError(
                    f"{path}: a share of {share} (test_share) left no question for {split}, because whole titles are"
                    " held out; give more questions, a file with test questions (--test-questions), or another share"
                )


def probed_rows(path: Path, columns: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of question, answers, text and perhaps title, id and answer_kind, with their places."""
    return _listed(path, Columns("probed", columns))


def _listed(path: Path, columns: Columns) -> Iterator[tuple[str, dict[str, Any]]]:
    return _with_lists(columns.renamed(_rows(path)), cells=bool(_separated(path)))


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    name = path.name.removesuffix(".gz")
    if delimiters := _separated(path):
        return file_rows.tsv(path, delimiters=delimiters)
    if not name.endswith((".jsonl", ".json", ".parquet")):
        raise ValueError(
            f"{path}: the name must end in .csv, .tsv, .jsonl or .parquet (.gz may follow all but the last)"
        )
    return file_rows.parquet(path) if name.endswith(".parquet") else file_rows.objects(path)


def _separated(path: Path) -> str:
    """What may separate the cells of the file, by its name; empty where it has none."""
    return {"tsv": "\t", "csv": ",;\t"}.get(path.name.removesuffix(".gz").rpartition(".")[2], "")


def _with_lists(given: Iterator[tuple[str, dict[str, Any]]], *, cells: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """A text of LISTS may be a list written as a literal: in cells where it begins with a bracket, in files that know
    lists where it looks like one of texts and is no regular expression."""
    for where, row in given:
        for name in LISTS:
            if isinstance(text := row.get(name), str) and (
                text.startswith("[") if cells else _WRITTEN.fullmatch(text) and row.get("answer_kind") != "regex"
            ):
                row[name] = list_of(text, where, name)
        yield where, row


def pieces(text: str, words: int) -> list[Span]:
    """Where the pieces stand: in order, nothing but white space between them, at most 1.5 * `words` words each.

    A piece takes sentences until the next one would make it longer than `words`, but is at least half of that; a
    sentence longer than `words` is cut between words; a last piece below a quarter joins the one before it.
    """
    found = [Span(*match.span()) for match in _WORD.finditer(text)]
    if len(found) <= words:
        return [Span(0, len(text))]
    groups: list[list[Span]] = [[]]
    for sentence in _sentences(text, found, words):
        if len(groups[-1]) + len(sentence) > words and len(groups[-1]) >= words / 2:
            groups.append([])
        groups[-1] += sentence
    if len(groups) > 1 and len(groups[-1]) < words / 4 and len(groups[-2]) + len(groups[-1]) <= 1.5 * words:
        last = groups.pop()
        groups[-1] += last
    return [Span(group[0].start, group[-1].end) for group in groups]


def _sentences(text: str, found: list[Span], words: int) -> Iterator[list[Span]]:
    """The words of each sentence, or of each part of at most `words` words of a longer one."""
    sentence: list[Span] = []
    for i, word in enumerate(found):
        sentence.append(word)
        if i + 1 == len(found) or len(sentence) == words or _ends(text, word, found[i + 1]):
            yield sentence
            sentence = []


def _ends(text: str, word: Span, following: Span) -> bool:
    if "\n" in text[word.end : following.start]:
        return True
    # A lower-case letter after a full stop is an abbreviation's.
    return bool(_SENTENCE_END.search(text[word.start : word.end])) and not text[following.start].islower()
