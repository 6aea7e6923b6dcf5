"""Recognise a new collection's layout, and write it as a user's own files.

BEIR's folder, TSVs as of MS MARCO and ir_datasets, SQuAD's JSON, a folder of documents.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from eadpr.corpus.formats.documents import convert_documents
from eadpr.corpus.formats.file_rows import check_exists
from eadpr.corpus.formats.judged import convert_judged
from eadpr.corpus.formats.own import OwnFiles
from eadpr.corpus.formats.squad import convert_squad


@contextmanager
def recognise(
    paths: Sequence[Path], *, passages: Path | None, questions: Path | None, test_questions: Path | None
) -> Iterator[OwnFiles]:
    """Recognise the layout of `paths`, or of the files that the other arguments name. Converted files exist only inside
    the block.

    Raises ValueError or FileNotFoundError for no known layout or a wrong file.
    """
    if not paths and (passages is None or questions is None):
        raise ValueError("give both --passages and --questions")
    with tempfile.TemporaryDirectory(prefix="eadpr-add-") as scratch:
        try:
            if paths:
                yield _convert(paths, Path(scratch))
            else:
                splits = {"train": questions} | ({"test": test_questions} if test_questions else {})
                yield _with_questions(passages, splits, Path(scratch))
        except ValueError as error:  # nobody can look at files in `scratch`: name what they were made of
            origin = f"{' and '.join(map(str, paths or [passages]))}, made into "
            raise ValueError(str(error).replace(f"{scratch}/", origin)) from error


def _with_questions(passages: Path, questions: Mapping[str, Path], out: Path) -> OwnFiles:
    description = f"passages of {passages}, questions of {' and '.join(map(str, questions.values()))}"
    if passages.is_dir():
        passages, unread = convert_documents(passages, out)
        if unread:
            description += f"; not read: {', '.join(f'{count:,} {ending}' for ending, count in unread.items())}"
    return OwnFiles(passages, questions, description=description)


def _convert(paths: Sequence[Path], out: Path) -> OwnFiles:
    if len(paths) == 1 and paths[0].is_dir():
        return convert_judged(paths[0], out)
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give it alone, or files")
        check_exists(path)
        if not path.name.endswith((".json", ".json.gz")):
            raise ValueError(f"{path}: a new collection is a folder, SQuAD's JSON, or --passages and --questions")
    return convert_squad(paths, out)
