"""EntityQuestions (Sciavolino et al., 2021): simple questions, one JSON file per relation and split, alone or in a zip.

They come without passages; evaluation is the mean over relations (the report's macro average).
"""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats.file_rows import Place, open_unpacked, read_objects
from eadpr.corpus.rows import GivenQuestion

_FILE_NAME = re.compile(r"(.*/)?(?P<relation>P\d+)\.(?P<split>train|dev|test)\.json(\.gz)?")


def read_entity_questions(path: Path) -> Iterator[GivenQuestion]:
    """Read lists of question and answers; relation and split are in the file's name, as in P19.dev.json.

    The files of a zip that are named so are read in the order of their names.
    """
    if path.suffix == ".zip":
        with open_unpacked(path) as file, zipfile.ZipFile(file) as archive:
            names = sorted(filter(_FILE_NAME.fullmatch, archive.namelist()))
            if len(set(names)) < len(names):
                raise zipfile.BadZipFile("a name stands twice")
            yield from _read_parts([zipfile.Path(archive, name) for name in names])
    elif _FILE_NAME.fullmatch(path.name):
        yield from _read_parts([path])
    else:
        raise ValueError(f"{path}: the name must say relation and split, as P19.dev.json, or end in .zip")


def _read_parts(parts: list[Place]) -> Iterator[GivenQuestion]:
    rows = ((part.name, row) for part in parts for row in read_objects(part))
    for number, (name, row) in enumerate(rows, start=1):
        question, answers, of_name = row.text("question"), row.texts("answers"), _FILE_NAME.fullmatch(name).groupdict()
        yield GivenQuestion(row.where, number, question, answers, set="entity-questions", **of_name)
