"""A dress rehearsal of the preset wiki18.

    python -m benchmarks.rehearsal --data DATA --out FOLDER -- eadpr study 001-table2 --collection wiki18 …

Writes every file that data/collections/wiki18.yaml downloads, in DPR's formats, from real collections (DATA has
squad-open, nq-gold, ramdocs and hotpot-sample). It writes what the real files have too: contexts whose passage the
corpus lacks, titles that many passages share, a question without a positive. It serves them on 127.0.0.1 and runs the
command in a clone of this repository, whose preset says where they are and how many passages; all else is as it is.
"""

import csv
import gzip
import json
import random
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).resolve().parent.parent
PRESET = Path("data/collections/wiki18.yaml")
HOST = "https://dl.fbaipublicfiles.com"
LOST = 500  # every so many contexts one names a passage that the corpus lacks
OTHERS = ("trivia", "curatedtrec", "webquestions", "squad1")
Item = dict[str, Any]


def main(
    command: list[str] = typer.Argument(None, help="What runs in the clone while the files are served."),
    data: Path = typer.Option(..., help="The folder of the collections."),
    out: Path = typer.Option(..., help="A new folder for the files and the clone."),
) -> None:
    """Make the files and the clone in `out` and run the command there; the exit code is the command's."""
    out.mkdir(parents=True)
    files, clone = out / "files", out / "clone"
    rows = write(data, files)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    handler = partial(SimpleHTTPRequestHandler, directory=str(files))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        preset = clone / PRESET
        preset.write_text(pointed(preset.read_text(), f"http://127.0.0.1:{server.server_address[1]}", rows))
        code = subprocess.run(command, cwd=clone, check=False).returncode if command else 0
        server.shutdown()
    raise typer.Exit(code)


def pointed(preset: str, host: str, passages: int) -> str:
    """The preset with another host and number of passages; how many questions a file holds is left open."""
    opened = re.sub(r"(?m)^    rows: \d+$", "    rows:", preset.replace(HOST, host))
    return opened.replace("    rows:", f"    rows: {passages}", 1)  # the passages come first


def write(data: Path, out: Path) -> int:
    """All files of the preset; returns the number of passages."""
    drawn = random.Random(0)
    nq = list(_lines(data / "nq-gold" / "nq-gold.jsonl.gz"))
    passages = corpus(data, nq)
    _tsv(out / "dpr/wikipedia_split/psgs_w100.tsv.gz", [("id", "text", "title"), *passages])
    of_title: dict[str, list[tuple[str, str, str]]] = {}
    for passage in passages:
        of_title.setdefault(passage[2], []).append(passage)
    beyond = count(len(passages) + 1)

    def with_negatives(item: Item, number: int) -> Item:
        """Hard ones of the positive's title, others from anywhere, as DPR's files have both."""
        positives = {context["passage_id"] for context in item["positive_ctxs"]}
        near = of_title[item["positive_ctxs"][0]["title"]] if positives else []
        hard = [_context(one) for one in drawn.sample(near, min(len(near), 5)) if one[0] not in positives]
        others = [_context(one) for one in drawn.sample(passages, 3) if one[0] not in positives]
        if number % LOST == 0:
            hard.append({**others[0], "passage_id": str(next(beyond))})
        return item | {"hard_negative_ctxs": hard, "negative_ctxs": others}

    def training(name: str, items: Sequence[Item]) -> None:
        _json(out / f"dpr/data/retriever/biencoder-{name}.json.gz", list(map(with_negatives, items, count())))

    squad = {part: _json_of(data / f"squad-open/squad-{part}.json.gz") for part in ("train", "dev")}
    gold = {part: list(_lines(data / f"squad-open/squad-{part}.gold.jsonl.gz")) for part in ("train", "dev")}
    training("nq-train", [*squad["train"], {**squad["train"][0], "question": "nowhere?", "positive_ctxs": []}])
    training("nq-adv-hn-train", squad["train"])
    training("nq-dev", squad["dev"][:1_000])
    for part, rows in (("train", gold["train"]), ("dev", gold["dev"][:1_000])):
        pages = (_page(row["question"], passages[int(row["passage_id"]) - 1], [row["answer"]]) for row in rows)
        _json(out / f"dpr/data/nq_gold_info/nq-{part}_gold_info.json.gz", {"data": list(pages)})
    first = {(passage[2], passage[1]): passage for passage in reversed(passages)}
    told = (
        _page(one["question"], first[one["ctxs"][0]["title"], one["ctxs"][0]["text"]], one["answers"]) for one in nq
    )
    _json(out / "dpr/data/nq_gold_info/nq-test_gold_info.json.gz", {"data": list(told)})
    asked = [(one["question"], str(one["answers"])) for one in nq]
    _tsv(out / "dpr/data/retriever/nq-test.qa.csv", asked)
    for number, name in enumerate(OTHERS):
        first, last = 100 * number, 100 * number + 100
        of_dev = squad["dev"][1_000:]
        made = {"train": squad["train"][first:last], "dev": of_dev[first:last], "test": of_dev[1_000:][first:last]}
        if name == "curatedtrec":  # whose answers are patterns
            made = {split: [_pattern(item) for item in items] for split, items in made.items()}
        training(f"{name}-train", made["train"])
        training(f"{name}-dev", made["dev"])
        rows = [(item["question"], str(item["answers"])) for item in made["test"]]
        _tsv(out / f"dpr/data/retriever/{name}-test.qa.csv{'.gz' if name == 'trivia' else ''}", rows)
    return len(passages)


def corpus(data: Path, nq: Iterable[Item]) -> list[tuple[str, str, str]]:
    """Id, text and title, numbered from 1: squad-open's, whose ids stay as they are, then those of the others."""
    with gzip.open(data / "squad-open" / "psgs.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        found = [(text, title) for _, text, title in list(csv.reader(file, delimiter="\t"))[1:]]
    found += [(context["text"], context["title"]) for one in nq for context in one["ctxs"]]
    for one in _lines(data / "ramdocs" / "RAMDocs_test.jsonl.gz"):
        found += [(document["text"], one["question"]) for document in one["documents"] if "\0" not in document["text"]]
    for part in ("train", "dev"):
        for one in _json_of(data / "hotpot-sample" / f"hotpot_{part}_distractor.json.gz"):
            found += [("".join(sentences).strip(), title) for title, sentences in one["context"]]
            found += [(sentence.strip(), title) for title, sentences in one["context"] for sentence in sentences[1:2]]
    texts = (one for one in found if one[0].strip())
    return [(str(number), text.replace("\0", ""), title) for number, (text, title) in enumerate(texts, start=1)]


def _context(passage: tuple[str, str, str]) -> Item:
    return {"title": passage[2], "text": passage[1], "score": 0.0, "title_score": 0, "passage_id": passage[0]}


def _pattern(item: Item) -> Item:
    return item | {"answers": [re.escape(answer) for answer in item["answers"]]}


def _page(question: str, passage: tuple[str, str, str], answers: list[str]) -> Item:
    return {
        "question": question, "question_tokens": question, "title": passage[2], "context": passage[1],
        "example_id": 0, "short_answers": answers,
    }  # fmt: skip


def _json_of(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def _lines(path: Path) -> Iterator[Item]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _opened(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    opener: Callable = gzip.open if path.suffix == ".gz" else open
    return opener(path, "wt", encoding="utf-8", newline="")


def _json(path: Path, content: Any) -> None:
    with _opened(path) as file:
        json.dump(content, file)


def _tsv(path: Path, rows: Iterable[Sequence[str]]) -> None:

    with _opened(path) as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    typer.run(main)
