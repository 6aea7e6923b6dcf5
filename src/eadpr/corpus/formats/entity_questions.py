"""EntityQuestions (Sciavolino et al., 2021): simple questions, one JSON file per relation and split, alone or in a zip.

They come without passages; evaluation is the mean over relations (the report's macro average).
"""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats.file_rows import Place, check_exists, read_objects
from eadpr.corpus.rows import GivenQuestion

_FILE_NAME = re.compile(r"(?P<relation>P\d+)\.(?P<split>train|dev|test)\.json(\.gz)?")


def read_entity_questions(path: Path) -> Iterator[GivenQuestion]:
    """Read lists of question and answers; relation and split are in the file's name, as in P19.dev.json."""
    number = 0
    for part, match in _parts(path):
        start = number
        for row in read_objects(part):
            number += 1
            question, answers = row.text("question"), row.texts("answers")
            yield GivenQuestion(row.where, number, question, answers, set="entity-questions", **match.groupdict())
        if number == start:
            raise ValueError(f"{part} holds no questions; fill it, or remove it")


def _parts(path: Path) -> Iterator[tuple[Place, re.Match[str]]]:
    """Yield the file itself, or the files of a zip that are named as they should be, in the order of their names."""
    if path.suffix != ".zip":
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            raise ValueError(f"{path}: the name must say relation and split, as P19.dev.json, or end in .zip")
        yield path, match
        return
    check_exists(path)
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is a truncated or damaged zip ({error}); copy or download it again") from error
    with archive:
        for name in sorted(archive.namelist()):
            if match := _FILE_NAME.fullmatch(name.rpartition("/")[2]):
                yield zipfile.Path(archive, name), match
