"""Recognise the layout of a new collection, and write it as a user's own files."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eadpr.corpus.formats.columns import NAMES
from eadpr.corpus.formats.documents import convert_documents
from eadpr.corpus.formats.hugging_face import as_file
from eadpr.corpus.formats.judged import convert_judged
from eadpr.corpus.formats.own import OwnFiles, read_raw
from eadpr.corpus.formats.squad import TESTS, convert_squad, is_squad


@contextmanager
def recognise(
    paths: Sequence[Path], *, passages: Path | None, questions: Path | None, test_questions: Path | None
) -> Iterator[OwnFiles]:
    """Recognise the layout of `paths`, or of the other arguments' files. Converted files exist only inside the block.

    Raises ValueError or FileNotFoundError for no known layout or a wrong file.
    """
    if not paths and (passages is None or questions is None):
        raise ValueError("give both --passages and --questions")
    origin = f"{' and '.join(map(str, paths or [passages]))}, made into "
    with tempfile.TemporaryDirectory(prefix="eadpr-add-") as scratch:
        try:
            paths = [as_file(path, Path(scratch)) for path in paths]
            if not paths:
                files = [path and as_file(path, Path(scratch)) for path in (passages, questions, test_questions)]
                yield _name_files(*files, Path(scratch))
            elif len(paths) == 1 and paths[0].is_dir():
                yield convert_judged(paths[0], Path(scratch))
            elif all(map(is_squad, paths)) or all(_has(path, "question") and _has(path, "text") for path in paths):
                yield convert_squad(paths, Path(scratch))
            else:
                yield _name_files(*_tell_apart(paths), Path(scratch))
        except ValueError as error:  # nobody can look at files in `scratch`: name what they were made of
            raise ValueError(str(error).replace(f"{scratch}/", origin)) from error


def _tell_apart(paths: Sequence[Path]) -> tuple[Path, Path, Path | None]:
    """Return passages, questions, and questions to test with: files with a column of questions are questions, and of
    two the one with dev, test or valid in its name is to test with."""
    sets = [path for path in paths if _has(path, "question")]
    passages = [path for path in paths if path not in sets]
    sets.sort(key=lambda path: TESTS.search(path.name) is not None)
    if len(passages) != 1 or not sets or len(sets) > 2 or (len(sets) == 2 and not TESTS.search(sets[1].name)):
        counts = f"{len(passages)} without a column question or query, {len(sets)} with one"
        raise ValueError(
            f"{', '.join(map(str, paths))}: {counts}; give one file or folder of passages and one of questions (or two,"
            " one with dev, test or valid in its name), or say what they are, --passages and --questions; or give a"
            " table alone whose rows have a question and, as text or context, its passage"
        )
    return passages[0], sets[0], sets[1] if len(sets) == 2 else None


def _has(path: Path, field: str) -> bool:
    row = None if path.is_dir() else next(read_raw(path), None)
    return row is not None and not row.fields.keys().isdisjoint(NAMES["probed"][field])


def _name_files(passages: Path, questions: Path, test_questions: Path | None, out: Path) -> OwnFiles:
    splits = {"train": questions} | ({"test": test_questions} if test_questions else {})
    description = f"passages of {passages}, questions of {' and '.join(map(str, splits.values()))}"
    description = description.replace(f"{out}/", "")
    if passages.is_dir():
        passages, unread = convert_documents(passages, out)
        if unread:
            description += f"; not read: {unread}"
    return OwnFiles(passages, splits, description=description)
