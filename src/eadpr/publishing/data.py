"""An arm's training data as a folder of the library `datasets`: rows for trainers, and the tables."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

import pyarrow as pa
import pyarrow.parquet as pq

from eadpr.library.texts import join_title
from eadpr.publishing.card import About
from eadpr.publishing.folder import check_new
from eadpr.runtime import files
from eadpr.storage.passages import PassageStore
from eadpr.training.example_set import ExampleSet, read_examples

COLUMNS = ("question", "positive", "negative", "distractor", "placebo")  # the roles of `library.losses`, in their order
ROLES = ("train", "validation")
TEMPLATE = Path(__file__).with_name("data_card.md")


def publish_data(arm: str, collection: Path, out: Path, *, join: str, about: About) -> int:
    """Write the new folder `out`, whole or not at all, and return the number of training rows.

    `collection` is the folder data/<collection>; `join` makes one text of title and text. Memory: the examples. Raises
    FileNotFoundError if the arm has no examples, ValueError if `out` is not empty.
    """
    check_new(out)
    records, examples = collection / "records", collection / "examples" / arm
    sources = {
        "passages": records / "passages.parquet", "questions": records / "questions.parquet",
        "evidence": collection / "evidence.parquet",
        "all_distractors": collection / "distractors" / "distractors.parquet",
        "negatives": collection / "negatives" / arm / "negatives.parquet",
        **{name: examples / f"{name}.parquet" for name in ("examples", "distractors", "placebos")},
    }  # fmt: skip
    with_placebos = sources["placebos"].exists()
    if not with_placebos:
        del sources["placebos"]
    for path in sources.values():
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to build the arm {arm}")
    store, counts = PassageStore(sources["passages"]), {}
    with files.new_folder(out) as folder:
        (folder / "tables").mkdir()
        for name, path in sources.items():
            shutil.copyfile(path, folder / "tables" / f"{name}.parquet")
        for role in ROLES:
            example_set = read_examples(examples, records, store, role, distractors=True, placebos=with_placebos)
            counts[role] = len(example_set.questions)
            if counts[role]:
                rows = list(_training_rows(example_set, store, join))
                (folder / "rows").mkdir(exist_ok=True)
                pq.write_table(pa.Table.from_pylist(rows), folder / "rows" / f"{role}.parquet")
        files.write_text(folder / "README.md", _card(about, counts, sources, join))
    return counts["train"]


def _training_rows(examples: ExampleSet, store: PassageStore, join: str) -> Iterator[dict[str, str]]:
    """Yield each example with its first negative and first distractor; a missing text is empty."""
    placebos = examples.placebos or [None] * len(examples.questions)
    for i, positive in enumerate(examples.positives):
        ((title,), (text,)) = store.titles([positive]), store.texts([positive])
        row = dict.fromkeys(COLUMNS, "")
        row |= {"question": examples.questions[i], "positive": join_title(join, title, text)}
        for negative in examples.negatives[i][:1]:
            row["negative"] = join_title(join, store.titles([negative])[0], store.texts([negative])[0])
        for name, variant in (("distractor", examples.distractors[i]), ("placebo", placebos[i])):
            if variant is not None:
                row[name] = join_title(join, title, variant)
        yield row


def _card(about: About, counts: Mapping[str, int], sources: Mapping[str, Path], join: str) -> str:
    roles = [role for role in ROLES if counts[role]]
    configs = ["- config_name: rows", "  default: true", "  data_files:"]
    for role in roles:
        configs += [f"  - split: {role}", f"    path: rows/{role}.parquet"]
    for name in sources:
        configs += [f"- config_name: {name}", "  data_files:", "  - split: train", f"    path: tables/{name}.parquet"]
    values = about._asdict() | {
        "configs": "\n".join(configs), "join": join, "warning": about.warning,
        "counted": ", ".join(f"{counts[role]:,} for {role}" for role in roles),
    }  # fmt: skip
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values)
