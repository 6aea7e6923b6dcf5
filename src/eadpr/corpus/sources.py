"""The files of a collection, as `source` in params.yaml or its own file lists them, and how they are prepared."""

from pathlib import Path, PurePosixPath
from typing import Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from eadpr.runtime.section import Section, Sets

NAME = r"^[a-z0-9][a-z0-9._-]*$"  # of question sets and splits
ASK_ALONE = ("training", "questions", "gold", "gold_info")  # bring no passage, unless contexts may join
IN_A_SET = (*ASK_ALONE, "contexts", "ramdocs")
# Kinds that bring questions.
ASKS = ("training", "questions", "contexts", "ramdocs", "facts", "entity_questions", "paq")
BEGIN = {"facts": "trex-", "entity_questions": "entity-questions/", "paq": "paq/"}  # the names of their sets
COLUMNED = ("passages", "questions")
KINDS_WITH = {"set": IN_A_SET, "answer_kind": ASKS, "test_share": ("questions",), "columns": COLUMNED}
LOOK_ALIKES = ("near_duplicates", "ramdocs")  # kinds that bring near-duplicates of their own
LISTED = "files.json"  # beside downloads, what they are


def without_password(url: str) -> str:
    """Return the address as it may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class File(Section):
    """One file of a collection, local (`path`, relative to data/sources/<collection>) or downloaded (`url`).

    `kind`: `passages`; `training` (DPR training JSON or JSONL); `questions` (DPR's headerless TSV, or the format of the
    source where that is `own` or `hotpot`); `contexts` (JSONL of question, answers, ctxs, the positives); `gold` (JSONL
    of question, passage_id, answer, answer_start); `gold_info` (NQ's gold pages; questions without passages get those
    cut from there); `ramdocs` (RAMDocs' JSONL: its documents of type correct are the positives, the others
    near-duplicates); `near_duplicates` (JSONL of text, question or question_id, and if wanted title); `facts`
    (JSONL of sub_label, obj_label, uuid, of the relation that the name says: P19.jsonl); `entity_questions` (JSON of
    question, answers, as P19.dev.json, or a zip of such); `paq` (PAQ's metadata). The last three name their own sets.
    """

    kind: Literal[
        "passages", "training", "questions", "contexts", "gold", "gold_info", "ramdocs", "near_duplicates",
        "facts", "entity_questions", "paq",
    ]  # fmt: skip
    path: str | None = None
    url: str | None = None
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    size: int | None = Field(default=None, ge=0)  # bytes
    rows: int | None = Field(default=None, ge=1)  # that the file has, odd ones too
    set: str | None = Field(default=None, pattern=NAME)
    split: str | None = Field(default=None, pattern=NAME)
    answer_kind: Literal["string", "regex"] | None = None
    test_share: float | None = Field(default=None, gt=0.0, lt=1.0)  # of the questions, held out as split `test`
    columns: dict[str, str] = {}  # by field, where the usual names are not those of this file; empty: in no column

    @property
    def name(self) -> str:
        """The file's name where it is kept."""
        return self.path if self.path is not None else PurePosixPath(unquote(urlsplit(self.url).path)).name

    def local(self, *, sources: Path, raw: Path) -> Path:
        return sources / self.path if self.path is not None else raw / self.name

    def annotates(self, file: Self) -> bool:
        """Tell whether this file says where the evidence of another file's questions stands."""
        same = (self.set, self.split) == (file.set, file.split)
        return same and self.kind in ("gold", "gold_info") and file.kind in ("training", "questions")

    @model_validator(mode="after")
    def _is_one_file_with_fields_of_its_kind(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise ValueError("give exactly one of path (a file below data/sources/<collection>) and url")
        place = self.path if self.url is None else without_password(self.url)
        if self.url is not None and urlsplit(self.url).scheme not in ("http", "https"):
            raise ValueError(f"url {place!r} must begin with http:// or https://")
        parts = PurePosixPath(self.name).parts
        if not parts or self.name.startswith("/") or {"..", "."} & set(parts):
            raise ValueError(f"{place!r} does not name a file below the collection's folder")
        for field, kinds in KINDS_WITH.items():
            if getattr(self, field) not in (None, {}) and self.kind not in kinds:
                raise ValueError(f"{self.name}: files of kind {self.kind} have no {field}")
        if (self.set is None) != (self.split is None):
            raise ValueError(f"{self.name}: give both set and split, or neither")
        return self


class Source(Section):
    """`atlas` is generated and has no files; the others say how files of passages and questions are written."""

    format: Literal["atlas", "dpr", "own", "hotpot"]
    files: list[File] = []

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.format != "atlas" and not any(file.kind in ASKS for file in self.files):
            raise ValueError("files: no file holds questions")
        names = [file.name for file in self.files]
        for file in self.files:
            reason = None
            if names.count(file.name) > 1:
                reason = "is listed twice; names must differ"
            elif file.kind in IN_A_SET and file.set is None and (self.format, file.kind) != ("own", "questions"):
                reason = f"kind {file.kind} needs set and split"
            elif file.kind in ("gold", "gold_info") and not any(map(file.annotates, self.files)):
                reason = f"no file of kind training or questions has set {file.set} and split {file.split}"
            if reason:
                raise ValueError(f"files: {file.name}: {reason}")
        return self

    def of_sets(self, sets: Sets, prepare: "Prepare") -> Self:
        """Drop the question files of unused sets, for format dpr with a file of passages."""
        has_passages = any(file.kind == "passages" for file in self.files)
        if self.format != "dpr" or prepare.add_context_passages or not has_passages:
            return self
        used = [name for names in sets.model_dump().values() for name in names]

        def is_used(file: File) -> bool:
            begin = f"{file.set}/{file.split}" if file.kind in ASK_ALONE else BEGIN.get(file.kind, "")
            return any(name.startswith(begin) for name in used)

        return self.model_copy(update={"files": list(filter(is_used, self.files))})


class Prepare(Section):
    """How the files become records; the comments in settings/defaults.yaml say what each key does."""

    split_words: int | None = Field(ge=20)
    odd_rows: float = Field(ge=0, le=1)
    add_context_passages: bool
    keep_own_documents: bool
