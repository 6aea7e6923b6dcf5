"""EntityQuestions: simple questions about entities, one JSON file per relation and split, alone or in a zip.

Its questions come without passages; evaluation is the mean over relations (the report's macro average).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus import text_files
from eadpr.corpus.given import GivenQuestion, field_of, text_of, texts_of

SET = "entity-questions"
_NAME = re.compile(r"(?P<relation>P\d+)\.(?P<split>train|dev|test)\.json(\.gz)?")


def questions(path: Path) -> Iterator[GivenQuestion]:
    """Lists of question and answers; relation and split are in the file's name, as in P19.dev.json."""
    row = 0
    for part, named in _parts(path):
        for line, item in text_files.json_items(part):
            row += 1
            where = f"{part}, line {line}"
            yield GivenQuestion(
                where=where,
                row=row,
                question=text_of(field_of(item, where, "question"), where, "question"),
                answers=texts_of(field_of(item, where, "answers"), where, "answers"),
                answer_kind="string",
                set=SET,
                split=named["split"],
                relation=named["relation"],
                item=item,
            )


def _parts(path: Path) -> Iterator[tuple[text_files.Place, re.Match[str]]]:
    """The file itself, or those of a zip that are named as they should be, in the order of their names."""
    if path.suffix != ".zip":
        named = _NAME.fullmatch(path.name)
        if named is None:
            raise ValueError(f"{path}: the name must say relation and split, as P19.dev.json, or end in .zip")
        yield path, named
        return
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put the file there or mend its path in params.yaml")
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is a truncated or damaged zip ({error}); copy or download it again") from error
    with archive:
        for name in sorted(archive.namelist()):
            if named := _NAME.fullmatch(name.rpartition("/")[2]):
                yield zipfile.Path(archive, name), named
