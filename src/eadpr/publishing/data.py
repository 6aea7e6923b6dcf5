"""What an arm was trained on as a folder of the library `datasets`: rows for trainers, the tables that they come from,
and the files that Tevatron reads."""

import json
import shutil
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from string import Template

import pyarrow as pa
import pyarrow.parquet as pq

from eadpr.library.texts import join_title
from eadpr.publishing.card import About
from eadpr.publishing.folder import check_new
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage
from eadpr.training.example_set import ExampleSet, read_examples

COLUMNS = ("question", "positive", "negative", "distractor", "placebo")  # the roles of `library.losses`, in their order
ROLES = ("train", "validation")
TEMPLATE = Path(__file__).with_name("data_card.md")


def publish_data(arm: str, made: Path, out: Path, *, join: str, about: About) -> int:
    """Write the new folder `out`, whole or not at all; returns the number of rows to train on. `join` makes one text of
    title and text. Memory: the examples.

    Raises FileNotFoundError where the arm has no examples, ValueError where `out` holds anything.
    """
    check_new(out)
    records, examples = made / "records", made / "examples" / arm
    sources = {
        "passages": records / "passages.parquet", "questions": records / "questions.parquet",
        "evidence": made / "evidence.parquet", "all_distractors": made / "distractors" / "distractors.parquet",
        "negatives": made / "negatives" / arm / "negatives.parquet",
        **{name: examples / f"{name}.parquet" for name in ("examples", "distractors", "placebos")},
    }  # fmt: skip
    if not (with_placebos := sources["placebos"].exists()):
        del sources["placebos"]
    for path in sources.values():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to build the arm {arm}")
    store, counts = PassageStore(sources["passages"]), {}
    with files.new_folder(out) as folder:
        (folder / "tables").mkdir()
        for name, path in sources.items():
            shutil.copyfile(path, folder / "tables" / f"{name}.parquet")
        _write_lines(folder / "tevatron" / "corpus.jsonl", _corpus(sources["passages"], join))
        for role in ROLES:
            found = read_examples(examples, records, store, role, distractors=True, placebos=with_placebos)
            if counts.setdefault(role, len(found.questions)):
                rows = list(_rows(found, store, join))
                (folder / "rows").mkdir(exist_ok=True)
                pq.write_table(pa.Table.from_pylist(rows), folder / "rows" / f"{role}.parquet")
                _write_lines(folder / "tevatron" / f"{role}.jsonl", _tevatron(found, store))
        files.write_text(folder / "README.md", _card(about, counts, sources, join))
    return counts["train"]


def _rows(found: ExampleSet, store: PassageStore, join: str) -> Iterator[dict[str, str]]:
    """The first negative and the first distractor of each example; empty where there is none."""
    placebos = found.placebos or [None] * len(found.questions)
    for i, (question, positive) in enumerate(zip(found.questions, found.positives, strict=True)):
        ((title,), (text,)) = store.titles([positive]), store.texts([positive])
        near = found.negatives[i][:1]
        negative = [join_title(join, *one) for one in zip(store.titles(near), store.texts(near), strict=True)]
        cut = [found.distractors[i], placebos[i]]
        own = ["" if one is None else join_title(join, title, one) for one in cut]
        yield dict(zip(COLUMNS, [question, join_title(join, title, text), *(negative or [""]), *own], strict=True))


def _tevatron(found: ExampleSet, store: PassageStore) -> Iterator[dict]:
    for i, question_id in enumerate(found.question_ids):
        yield {
            "query_id": question_id,
            "query_text": found.questions[i],
            "positive_document_ids": store.ids([found.positives[i]]),
            "negative_document_ids": store.ids(found.negatives[i]),
        }


def _corpus(passages: Path, join: str) -> Iterator[dict]:
    """Without a column `title`, which Tevatron would join with a space."""
    for row in tables.rows(passages, Passage):
        yield {"docid": row.id, "text": join_title(join, row.title, row.text)}


def _write_lines(path: Path, rows: Iterator[dict]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _card(about: About, counts: Mapping[str, int], sources: Mapping[str, Path], join: str) -> str:
    roles = [role for role in ROLES if counts[role]]
    parts = {"rows": [(role, f"rows/{role}.parquet") for role in roles]}
    parts |= {name: [("train", f"tables/{name}.parquet")] for name in sources}
    lines = (
        [f"- config_name: {name}", *["  default: true"] * (name == "rows"), "  data_files:",
         *chain.from_iterable((f"  - split: {split}", f"    path: {path}") for split, path in of)]
        for name, of in parts.items()
    )  # fmt: skip
    counted = ", ".join(f"{counts[role]:,} for {role}" for role in roles)
    values = about._asdict() | {"configs": "\n".join(chain(*lines)), "counted": counted, "join": join}
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values | {"warning": about.warning})
