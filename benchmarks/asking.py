"""How far `ask` can be trusted: `python -m benchmarks.asking`, on what `dvc repro` made.

Questions of a set are asked twice: as they are, and with every passage left out that holds an answer, so that the best
of those that lack one are read. To the second the right reply is that no answer was found; nothing is made up for it.
`--fit` prints WEIGHTS and BIAS of eadpr.asking.candidates, fitted to the same replies instead of measuring them. Fit to
questions that neither the arm nor the annotator learnt from, and measure on others.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

RIDGE = 0.001  # weight of the squared weights of standardised features in --fit


class Asked(NamedTuple):
    """`held`: a passage that was read holds an answer; `answered`: a reply that is not "no answer found"."""

    held: bool
    right: bool
    answered: bool
    score: float


def main(
    collection: str = typer.Option("atlas", help="Its folder in data/."),
    questions: str = typer.Option("atlas/test", help="The question set."),
    number: int = typer.Option(200, min=1, help="Questions drawn from it."),
    arm: str = typer.Option("eadpr", help="The arm that finds the passages."),
    top: int = typer.Option(5, min=1, help="Passages read."),
    seed: int = typer.Option(0, help="Draws the questions."),
    fit: bool = typer.Option(False, "--fit", help="Print constants fitted to these questions."),
) -> None:
    from eadpr.asking.ask import loaded
    from eadpr.runtime.machine import settle
    from eadpr.storage import questions as sets
    from stages.evidence import main as evidence_stage

    made = Path("data") / collection
    evidence, _, _, machine = evidence_stage.read(made / "configs" / "evidence.json")
    settle(machine)
    ids = sets.select(made / "records" / "question_sets.parquet", [questions])
    chosen = np.random.default_rng(seed).permutation(ids)[:number].tolist()
    rows = [one for one in sets.selected(made / "records" / "questions.parquet", chosen) if one.sought]
    ask = loaded(made, [arm], evidence, machine)[arm]
    if fit:
        weights, bias = fitted([one for row in rows for one in labelled(row, ask.keywords, top)])
        typer.echo(f"{len(rows)} questions of {questions}: {weights}, BIAS {bias:.2f}")
        return
    began = time.perf_counter()
    as_ranked = [asked(row, ask, ask.keywords["find"], top) for row in rows]
    seconds = (time.perf_counter() - began) / len(rows)
    lacking = [asked(row, ask, without_answers(ask.keywords["find"], row), top) for row in rows]
    typer.echo(f"{arm}, {len(rows)} questions of {questions}, {top} passages, {seconds:.2f} s a question")
    typer.echo(summary(as_ranked, lacking))


def asked(row, ask: Callable, find: Callable, top: int) -> Asked:
    from eadpr.text.answers import exact_match_normal, has_answer

    reply = ask(row.question, top=top, find=find)
    best = reply.readings[reply.place].answer if reply.place is not None else ""
    right = exact_match_normal(best) in map(exact_match_normal, row.answers)
    held = any(has_answer(row.answers, one.passage.text, row.answer_kind) for one in reply.found)
    return Asked(held, right, reply.answer is not None, reply.score)


def without_answers(find: Callable, row) -> Callable:
    """Finds only passages that hold no answer; searches ever deeper, until there are enough of them or no more."""
    from eadpr.text.answers import has_answer

    def lacking(question: str, top: int) -> list:
        depth, kept = top, []
        while len(kept) < top:
            depth *= 4
            found = find(question, depth)
            kept = [one for one in found if not has_answer(row.answers, one.passage.text, row.answer_kind)]
            if len(found) < depth:
                break
        return kept[:top]

    return lacking


def labelled(row, reading: dict, top: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(features, which are right) of the candidates, once as ranked and once without an answer."""
    from eadpr.asking.ask import read
    from eadpr.text.answers import exact_match_normal

    answers = set(map(exact_match_normal, row.answers))
    both = []
    for find in (reading["find"], without_answers(reading["find"], row)):
        found = read(row.question, **(reading | {"find": find, "top": top}))[1]
        if found:
            right = np.array([exact_match_normal(one.answer) in answers for one in found])
            both.append((np.array([one.features for one in found]), right))
    return both


def fitted(asked: Sequence[tuple[np.ndarray, np.ndarray]]):
    """(weights, bias) that make the right candidates of each question, or none where none is right, likeliest."""
    import torch

    from eadpr.asking.candidates import Features

    features = np.concatenate([features for features, _ in asked])
    mean, spread = features.mean(0), features.std(0)
    spread[spread == 0] = 1.0
    scaled, right = (
        torch.tensor((features - mean) / spread),
        torch.tensor(np.concatenate([right for _, right in asked])),
    )
    of = torch.tensor(np.repeat(np.arange(len(asked)), [len(right) for _, right in asked]))
    answerable = torch.tensor([bool(right.any()) for _, right in asked])
    w = torch.zeros(features.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        odds = (scaled @ w[:-1] + w[-1]).clamp(max=50).exp()
        none = torch.zeros(len(asked), dtype=torch.float64)
        known = torch.where(answerable, none.index_add(0, of, odds * right), 1.0)
        value = ((1 + none.index_add(0, of, odds)).log() - known.log()).mean() + RIDGE * (w[:-1] ** 2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    *weights, bias = w.detach().numpy() / np.append(spread, 1.0)
    return Features(*np.round(weights, 2).tolist()), float(bias - weights @ mean)


def summary(as_ranked: Sequence[Asked], lacking: Sequence[Asked]) -> str:
    held = [one for one in as_ranked if one.held]
    right = [one.score for one in as_ranked if one.right]
    wrong = [one.score for one in as_ranked if not one.right]
    none = [one.score for one in lacking]
    return "\n".join(
        [
            f"an answer among the passages: {len(held)}; of these answered right {share(held, right=True)},"
            f" wrong {share(held, right=False)}, best candidate right {sum(one.right for one in held)}",
            f"no answer among the passages: no answer found for {sum(not one.answered for one in lacking)}"
            f" of {len(lacking)}",
            f"AUROC of the score: right against wrong {auroc(right, wrong):.3f}, right against those without an answer"
            f" {auroc(right, none):.3f}, against both {auroc(right, wrong + none):.3f}",
        ]
    )


def share(replies: Sequence[Asked], *, right: bool) -> str:
    found = sum(one.answered and one.right is right for one in replies)
    return f"{found} ({100 * found / max(len(replies), 1):.1f} of 100)"


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How often one of `higher` is above one of `lower`, ties as halves; nan where there is none of either."""
    if not higher or not lower:
        return float("nan")
    above = np.subtract.outer(higher, lower)
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


if __name__ == "__main__":
    typer.run(main)
