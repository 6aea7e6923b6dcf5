"""Do other libraries rank as the pipeline does? `python -m benchmarks.publishing FOLDER`, of what `publish` wrote.

The code is that of the folder's own card, run on questions and passages of the collection. A question counts as ranked
alike where no rank's passage has a score of ours further than `CLOSE` (of the score) from that of our own passage at
that rank: passages of equal score may change places.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import typer

CLOSE = 1e-5
SCORES = {  # of the card's blocks, by the name of what they leave
    "sentence-transformers": "scores", "transformers": "of_transformers", 
    "ONNX Runtime": "onnx_scores", "BEIR's calls": "beir_scores", "numpy": "of_numpy",
}  # fmt: skip
STORED = ("numpy", "faiss", "Pyserini")  # score with the float16 vectors


def main(
    folder: Path = typer.Argument(..., help="A published folder."),
    arm: str = typer.Option("eadpr", help="The arm that it was made of."),
    collection: str = typer.Option("atlas", help="Its folder in data/."),
    number: int = typer.Option(1_000, min=1, help="Questions, the first of those evaluated."),
    depth: int = typer.Option(100, min=1, help="Ranks compared."),
    pyserini: bool = typer.Option(False, "--pyserini", help="With Pyserini, which takes a Java process."),
) -> None:
    from eadpr.search.vectors import Vectors
    from eadpr.storage import tables
    from eadpr.storage.questions import read_questions
    from eadpr.storage.records import Passage, Ranked

    made = Path("data") / collection
    passages = list(tables.rows(made / "records" / "passages.parquet", Passage))
    ranked = (row.question_id for row in tables.rows(made / "rankings" / arm / "evaluate.parquet", Ranked))
    ids = list(dict.fromkeys(ranked))[:number]
    by_id = {one.id: one.question for one in read_questions(made / "records" / "questions.parquet", set(ids))}
    questions = [by_id[one] for one in ids]
    ours = reference(made / "models" / arm, questions, [(one.title, one.text) for one in passages])
    vectors = Vectors(made / "vectors" / arm)
    stored = ours.questions @ vectors.take(np.arange(vectors.rows)).astype(np.float32).T
    left = run_card(folder, questions, [(one.title, one.text) for one in passages], pyserini=pyserini)
    typer.echo(f"{len(questions)} questions, {len(passages)} passages; score of rank 1 {ours.scores.max(1).mean():.1f}")
    typer.echo("| consumer | largest difference of a score, as a share of it | same ranking |\n|---|--:|--:|")
    for name, found in others(left, [one.id for one in passages], depth).items():
        expected = stored if name in STORED else ours.scores
        difference, alike = compared(found, expected, depth)
        typer.echo(f"| {name} | {difference:.1e} | {alike} of {len(questions)} |")


class Reference:
    """The pipeline's own vectors and scores, float32."""

    def __init__(self, questions: np.ndarray, passages: np.ndarray) -> None:
        self.questions, self.scores = questions, questions @ passages.T


def reference(model: Path, questions: Sequence[str], passages: Sequence[tuple[str, str]]) -> Reference:
    from eadpr.search.encode import embed
    from eadpr.training.encoder import load

    asking, reading = load(model, "question"), load(model, "passage")
    titles, texts = zip(*passages, strict=True)
    return Reference(embed(asking, asking.question_ids(questions)), embed(reading, reading.passage_ids(titles, texts)))


def run_card(
    folder: Path, questions: Sequence[str], passages: Sequence[tuple[str, str]], *, pyserini: bool = False
) -> dict:
    """What the Python blocks of the folder's card leave behind, with these questions and passages in place of its
    own; Pyserini's block only where it is asked for."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    code = "\n".join(block for block in blocks if pyserini or "jnius" not in block)
    for name, put in (
        ("FOLDER", "HERE"), ("asked", "[question(one) for one in QUESTIONS]"),
        ("passages", "[passage(*one) for one in PASSAGES]"),
    ):  # fmt: skip
        code, done = re.subn(rf"(?m)^{name} = .*$", f"{name} = {put}", code)
        if done != 1:
            raise ValueError(f"{folder / 'README.md'} sets {name} {done} times; publish the folder again")
    left = {"HERE": str(folder), "QUESTIONS": list(questions), "PASSAGES": list(passages)}
    exec(compile(code, str(folder / "README.md"), "exec"), left)
    if "ForBeir" in left:
        beir, rows = left["ForBeir"](), [{"title": title, "text": text} for title, text in passages]
        left["beir_scores"] = beir.encode_queries(questions) @ beir.encode_corpus(rows).T
    return left


def others(left: Mapping, ids: Sequence[str], depth: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and scores, (Q, depth), that each consumer of the card ranks first."""
    found = {}
    for name, made in SCORES.items():
        if made in left:
            scores = np.asarray(left[made])
            rows = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
            found[name] = rows, np.take_along_axis(scores, rows, 1)
    place = {one: row for row, one in enumerate(ids)}
    if "faiss" in left:
        index = left["faiss"].read_index(f"{left['FOLDER']}/vectors/index")
        scores, rows = index.search(left["model"].encode_query(left["asked"]), min(depth, len(ids)))
        found["faiss"] = np.vectorize(lambda row: place[left["ids"][row]])(rows), scores
    if "searcher" in left:
        hits = [left["searcher"].search(one, k=min(depth, len(ids))) for one in left["asked"]]
        rows, scores = ([[place[hit.docid] for hit in of] for of in hits], [[hit.score for hit in of] for of in hits])
        found["Pyserini"] = np.array(rows), np.array(scores)
    return found


def compared(found: tuple[np.ndarray, np.ndarray], expected: np.ndarray, depth: int) -> tuple[float, int]:
    """The largest difference of a score from ours, as a share of it, and the number of questions ranked alike."""
    rows, scores = found
    ours = np.take_along_axis(expected, rows, 1)
    best = -np.sort(-expected, axis=1)[:, :depth]
    size = np.abs(best).clip(min=1)
    return float((np.abs(scores - ours) / size).max()), int((np.abs(ours - best) <= CLOSE * size).all(1).sum())


if __name__ == "__main__":
    typer.run(main)
