"""What an index of few bits loses: real passages and questions, vectors of unit length of a pretrained encoder.

    python -m benchmarks.one_bit --data DATA --model MODEL --out FOLDER --rows 36864 RaBitQ IVF256,RaBitQ/nprobe=64

DATA is that of `benchmarks.rehearsal`; MODEL is a folder such as all-MiniLM-L6-v2's. The corpus begins with the
passages that questions are asked about; sentences of all passages, drawn, fill it up to so many rows. Vectors are kept
in FOLDER; more rows go on from there. Encoding, search and the matching of answers are the pipeline's. An index is a
string of faiss.index_factory, and behind a slash may stand settings of its search.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from benchmarks import data as settings
from benchmarks import rehearsal
from benchmarks.rehearsal import Item
from eadpr.runtime import files
from eadpr.search.config import Retrieve
from eadpr.search.encode import as_float16, embed
from eadpr.search.retrieve import find
from eadpr.search.vectors import MANIFEST, Vectors, shard_name, shard_ranges
from eadpr.supervision.spans import sentences
from eadpr.text.answers import AnswerMatcher
from eadpr.training.config import EncoderSettings
from eadpr.training.encoder import TextEncoder, pretrained

SHARD = 2_048
TOP = 20
CANDIDATES = (128, 200, 500, 1_000)
Text = tuple[str, str]  # title, text


def main(
    indexes: list[str] = typer.Argument(..., help="Such as RaBitQ, or IVF256,RaBitQ/nprobe=64."),
    data: Path = typer.Option(..., help="The folder of the collections."),
    model: Path = typer.Option(..., help="The folder of a pretrained encoder."),
    out: Path = typer.Option(..., help="The folder that the vectors are kept in."),
    rows: int = typer.Option(32_768, help="Passages and sentences in all."),
) -> None:
    """Print a row per index and number of candidates: percent of the exact first 20 and 100 that are found, and how
    many points more questions of either set have an answer in the first 20 than by exact search."""
    nq = list(rehearsal._lines(data / "nq-gold" / "nq-gold.jsonl.gz"))
    squad = rehearsal._json_of(data / "squad-open" / "squad-dev.json.gz")
    texts = corpus(data, nq, squad)[:rows]
    encoder = TextEncoder(*pretrained(str(model)), EncoderSettings(**settings.section("encoder")), "passage").eval()
    asked = unit(embed(encoder, encoder.question_ids([one["question"] for one in [*squad, *nq]])))
    vectors = encoded(encoder, texts, out, files.tree_sha256(model))

    def searched(index: str, search: str = "", candidates: int = 1) -> tuple[np.ndarray, np.ndarray]:
        given = Retrieve(**settings.section("retrieve", index=index))
        given = given.model_copy(
            update={"faiss": given.faiss.model_copy(update={"search": search, "candidates": candidates})}
        )
        hits = find(vectors, asked, settings=given, threads=settings.threads(), label=index)
        return hits.rows, answered([one["answers"] for one in [*squad, *nq]], texts, hits.rows[:, :TOP])

    exact, held = searched("exact")
    parts = {"SQuAD": slice(len(squad)), "NQ": slice(len(squad), None)}
    print(f"{vectors.rows:,} x {vectors.dim}; exact:", *(f"{name} {held[of].mean():.2%}" for name, of in parts.items()))
    for one in indexes:
        index, _, search = one.partition("/")
        for candidates in CANDIDATES:
            found, found_held = searched(index, search, candidates)
            recall = (np.mean(list(map(np.isin, exact[:, :k], found))) for k in (TOP, exact.shape[1]))
            lost = (found_held[of].mean() - held[of].mean() for of in parts.values())
            shown = [f"{100 * share:.2f}" for share in recall] + [f"{100 * share:+.2f}" for share in lost]
            print("|", " | ".join([one, str(candidates), *shown]), "|", flush=True)


def corpus(data: Path, nq: Sequence[Item], squad: Sequence[Item]) -> list[Text]:
    """The passages with answers first, then sentences of all, in drawn order; each once."""
    every = [(title, text) for _, text, title in rehearsal.corpus(data, nq)]
    contexts = [context for one in squad for context in one["positive_ctxs"]] + [one["ctxs"][0] for one in nq]
    asked = {(context["title"], context["text"]) for context in contexts}
    cut = sorted({(title, text[start:end]) for title, text in every for start, end in sentences(text)})
    random.Random(0).shuffle(cut)
    return list(dict.fromkeys([*(one for one in every if one in asked), *cut]))


def encoded(encoder: TextEncoder, texts: Sequence[Text], out: Path, model: str) -> Vectors:
    """Shards that are there from a run with fewer rows stay as they are. `model`: a hash of its files."""
    folder = out / model[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for number, (first, end) in enumerate(shard_ranges(len(texts), SHARD)):
        path = folder / shard_name(number)
        if not path.exists() or len(np.load(path, mmap_mode="r")) < end - first:
            ids = encoder.passage_ids(*zip(*texts[first:end], strict=True))
            with files.replacing(path) as temporary, temporary.open("wb") as file:
                np.save(file, as_float16(unit(embed(encoder, ids)), list(map(str, range(first, end)))))
    manifest = {"rows": len(texts), "dim": encoder.dim, "shard_passages": SHARD, "encoder": model}
    files.write_json(folder / MANIFEST, manifest)
    return Vectors(folder)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def answered(answers: Sequence[list[str]], texts: Sequence[Text], rows: np.ndarray) -> np.ndarray:
    """Per question, whether one of its passages holds an answer."""
    matcher = AnswerMatcher()
    found = zip(answers, rows, strict=True)
    return np.array([matcher.matches(own, [texts[row][1] for row in of if row >= 0]).any() for own, of in found])


if __name__ == "__main__":
    typer.run(main)
