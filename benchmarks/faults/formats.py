"""Small files in every format that users bring, and how the project reads each."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.faults import folders, plain, seeds
from benchmarks.faults.plain import Reading
from benchmarks.faults.seeds import Rows
from eadpr.corpus.formats import shapes
from eadpr.corpus.formats.paq import Paq
from eadpr.corpus.formats.trex_facts import Facts
from eadpr.corpus.prepare import TABLES, prepare
from eadpr.corpus.sources import File, Prepare, Source
from eadpr.settings.add_collection import add_own
from eadpr.storage import tables
from eadpr.writers.given import generate_from_files

SETTINGS = {"split_words": None, "odd_rows": 0.1, "keep_own_documents": False}
FACTS, PAQ = Facts(unseen=[], questions=1000, subset=9, seed=0), Paq(min_questions=1, passages=100, seed=0)
PARAMS = f"collection: x\nprepare: {json.dumps({**SETTINGS, 'add_context_passages': False})}\n"


def ordered(reading: Reading) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in reading.items()}


def some(*names: str) -> Callable[[Reading, Reading], bool]:
    """Compare these alone, since the rest is made by rules of the project."""
    return lambda reading, expected: ordered({n: reading[n] for n in names}) == ordered({n: expected[n] for n in names})


def within(reading: Reading, plain: Reading) -> bool:
    """Passages of the corpus come first; those that only questions have follow."""
    count = len(plain["passages"])
    return reading["passages"][:count] == plain["passages"] and reading["questions"] == plain["questions"]


def sampled(reading: Reading, plain: Reading) -> bool:
    return all(question in plain["questions"] for question in reading["questions"])


def same_words(reading: Reading, plain: Reading) -> bool:
    words = [word for _, title, text in reading["passages"] for word in re.findall(r"\w+", f"{title} {text}")]
    return reading["questions"] == plain["questions"] and set(words) >= set(plain["words"])


class Format(NamedTuple):
    """`changed` are the names of the files that are changed, all where it is empty. `read` is the project's reading,
    `plainly` ours, and `same` compares them, sorted where it is not told otherwise."""

    name: str
    files: Mapping[str, bytes]
    read: Callable[[Path], Reading]
    plainly: Callable[[Path], Reading]
    same: Callable[[Reading, Reading], bool] = lambda reading, expected: ordered(reading) == ordered(expected)
    changed: tuple[str, ...] = ()


def _prepared(format_name: str, *files: dict[str, Any], join: bool = False) -> Callable[[Path], Reading]:
    """Through `prepare` whole; contexts join the corpus with `join`."""
    source = Source.model_validate({"format": format_name, "files": list(files)})

    def read(folder: Path) -> Reading:
        out, settings = folder.parent / "records", Prepare(**SETTINGS, add_context_passages=join)
        report = prepare(source, settings, sources=folder, raw=folder, out=out, facts=FACTS, paq=PAQ)
        records = {name: list(tables.rows(out / f"{name}.parquet", record)) for name, record in TABLES.items()}
        questions = {row.id: row.question for row in records["questions"]}
        assert (report["passages"], report["questions"]) == (len(records["passages"]), len(questions))
        contexts = [(questions[c.question_id], c.role, c.order, c.passage_id, c.grade) for c in records["contexts"]]
        unnamed = re.compile("context-[0-9a-f]{16}")
        return {
            "passages": [(p.id, p.title, p.text) for p in records["passages"] if not unnamed.fullmatch(p.id)],
            "questions": [(q.question, q.answers) for q in records["questions"]],
            "contexts": [(*c[:3], None if unnamed.fullmatch(c[3]) else c[3], c[4]) for c in contexts],
        }

    return read


def _added(*paths: str, **files: str) -> Callable[[Path], Reading]:
    """Return a reading as `stages.add` does it: what it says, and the files that it writes of them."""

    def read(folder: Path) -> Reading:
        (folder.parent / "params.yaml").write_text(PARAMS)
        options = dict.fromkeys(("passages", "questions", "test_questions"))
        options |= {key: folder / name for key, name in files.items()}
        with shapes.recognise([folder / name for name in paths], **options) as collection:
            report = add_own(
                "mine", collection, share=0.5, split_words=None, params=folder.parent / "params.yaml", dry_run=True
            )
            passages = plain.own_passages(plain.rows_of(collection.passages))
            questions = [row for path in collection.questions.values() for row in plain.rows_of(path)]
        assert report.report["passages"] == len(passages)
        return {"passages": passages, **plain.own_questions(questions, scored=False)}

    return read


def _alike(folder: Path) -> Reading:
    generator = generate_from_files([(File(kind="near_duplicates", path="alike.jsonl"), folder / "alike.jsonl")])
    inside = dict(zip(generator.__code__.co_freevars, generator.__closure__, strict=True))["texts"].cell_contents
    return {"alike": [(*question, *text) for question, texts in inside.items() for text in texts]}


def _probed(name: str) -> Callable[[Path], Reading]:
    from eadpr.library import texts

    def read(folder: Path) -> Reading:
        rows = texts.distractors(texts.read_rows(folder / name))
        return {"rows": [(row.question, row.title, row.variants["positive"]) for row in rows]}

    return read


P_TSV, OF_SET = {"psgs.tsv": seeds.table(seeds.PASSAGES, "\t")}, {"set": "x", "split": "train"}
PSGS = {"kind": "passages", "path": "psgs.tsv"}
HOTPOT = "HotpotQA", "pages.jsonl", bytes
HOTPOT_ARCHIVE = "HotpotQA, archive", "pages.tar.bz2", seeds.tarred
ASKED_FACTS = {"P19.jsonl": seeds.FACT, "P20.jsonl": [row | {"uuid": f"v{row['uuid']}"} for row in seeds.FACT]}


def _set_file(kind: str, path: str) -> dict[str, Any]:
    return {"kind": kind, "path": path, **OF_SET}


def _of_dpr(
    name: str, kind: str, files: Mapping[str, bytes], plainly: Callable[[Path], Reading], same=None, **fields: Any
) -> Format:
    """Return a format of passages as DPR's, and another file."""
    listed = [{"kind": kind, "path": path, **fields} for path in files]
    read = _prepared("dpr", PSGS, *listed, join=kind == "ramdocs")
    return Format(name, {**P_TSV, **files}, read, plainly, same or some("questions"), tuple(files))


def _of_own(name: str, passages: str, questions: str, pack: Callable[[Rows], bytes]) -> Format:
    graded = [row | {"grades": [1.0] * len(row["positives"])} for row in seeds.ASKED]
    files = {passages: pack(seeds.PASSAGES), questions: pack(graded)}
    read = _prepared("own", {"kind": "passages", "path": passages}, {"kind": "questions", "path": questions})
    return Format(name, files, read, plain.own_files(passages, questions))


FORMATS = (
    _of_own("own JSONL", "p.jsonl", "q.jsonl", seeds.lines),
    _of_own("own JSON list", "p.json", "q.json", lambda rows: json.dumps(rows, indent=1).encode()),
    _of_own("own CSV", "p.csv", "q.csv", lambda rows: seeds.table(rows, ",")),
    _of_own("own TSV", "p.tsv", "q.tsv", lambda rows: seeds.table(rows, "\t")),
    _of_own("own Parquet", "p.parquet", "q.parquet", seeds.parquet),
    _of_own("own gzip", "p.jsonl.gz", "q.jsonl.gz", lambda rows: seeds.zipped_twice(seeds.lines(rows))),
    Format(
        "DPR training",
        {**P_TSV, "train.json": json.dumps(seeds.TRAINING, indent=1).encode(), "gold.jsonl": seeds.lines(seeds.GOLD)},
        _prepared("dpr", PSGS, _set_file("training", "train.json"), _set_file("gold", "gold.jsonl"), join=True),
        plain.training,
    ),
    Format(
        "DPR qa.csv and gold_info",
        {**P_TSV, "q.qa.csv": seeds.QA, "gold.json": json.dumps(seeds.GOLD_INFO).encode()},
        _prepared("dpr", PSGS, _set_file("questions", "q.qa.csv"), _set_file("gold_info", "gold.json")),
        plain.qa_csv,
        some("questions", "passages"),
    ),
    _of_dpr(
        "DPR contexts",
        "contexts",
        {"ctxs.jsonl": seeds.lines([{"question": "who?", "answers": ["Alpha"], "ctxs": seeds.CONTEXTS}])},
        lambda folder: plain.dpr_questions(plain.rows_of(folder / "ctxs.jsonl"), {"ctxs": "positive"}),
        some("questions", "contexts"),
        **OF_SET,
    ),
    _of_dpr("RAMDocs", "ramdocs", {"ramdocs.jsonl": seeds.lines(seeds.RAMDOCS)}, plain.ramdocs, **OF_SET),
    _of_dpr("T-REx facts", "facts", {path: seeds.lines(rows) for path, rows in ASKED_FACTS.items()}, plain.facts),
    _of_dpr("EntityQuestions", "entity_questions", {"P19.dev.json": seeds.ENTITIES}, plain.entities("P19.dev.json")),
    _of_dpr(
        "EntityQuestions, zip",
        "entity_questions",
        {"e.zip": seeds.zipped({"a/P19.dev.json": seeds.ENTITIES, "a/P20.dev.json": seeds.ENTITIES})},
        plain.entities("e.zip"),
    ),
    _of_dpr("PAQ", "paq", {"paq.jsonl": seeds.lines(seeds.PAQ_ROWS)}, plain.paq, sampled),
    *(
        Format(
            name,
            {pages: pack(seeds.lines(seeds.PAGES)), "hotpot.json": json.dumps(seeds.HOTPOT).encode()},
            _prepared("hotpot", PSGS | {"path": pages}, _set_file("questions", "hotpot.json"), join=True),
            plain.hotpot(pages),
            within,
        )
        for name, pages, pack in (HOTPOT, HOTPOT_ARCHIVE)
    ),
    Format("near-duplicates", {"alike.jsonl": seeds.lines(seeds.ALIKE)}, _alike, plain.alike),
    *(
        Format(name, dict(zip(paths, data, strict=True)), _added("."), plain.judged(*paths))
        for name, data, paths in (
            ("BEIR", seeds.BEIR, ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv", "qrels/test.tsv")),
            ("MS MARCO", seeds.TSVS, ("collection.tsv", "queries.tsv", "qrels.train.tsv", "qrels.dev.small.tsv")),
            ("ir_datasets", seeds.TSVS, ("docs.tsv", "queries.tsv", "train.qrels", "dev.qrels")),
        )
    ),
    Format(
        "SQuAD",
        {"squad.json": json.dumps(seeds.SQUAD).encode(), "dev.json": seeds.DEV_SQUAD},
        _added("squad.json", "dev.json"),
        plain.squad,
    ),
    Format(
        "documents",
        {"docs/a.txt": b"Alpha is here.\n", "docs/b.md": seeds.DOCUMENT.encode()}
        | dict.fromkeys(("q.jsonl", "t.jsonl"), seeds.lines([{"question": "who?", "answers": ["Alpha"]}])),
        _added(passages="docs", questions="q.jsonl", test_questions="t.jsonl"),
        plain.words,
        same_words,
    ),
    *(
        Format(f"rows to probe, {name}", {name: data}, _probed(name), plain.probed(name))
        for name, data in (("rows.jsonl", seeds.lines(seeds.PROBED)), ("rows.csv", seeds.table(seeds.PROBED, ",")))
    ),
    Format("kept passages", folders.COPY, folders.read_copy, lambda _: {"passages": folders.ROWS}),
    Format("a model folder", folders.MODEL, folders.read_model, folders.plain_model),
)
