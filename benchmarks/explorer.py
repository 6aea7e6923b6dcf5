"""How large the explorer's page is, and how fast a browser shows it: python -m benchmarks.explorer.

`--page FILE` measures a page that exists. It has no peer, so it stands apart from `python -m benchmarks`.
"""

import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from playwright.sync_api import Browser, Page, sync_playwright

from eadpr.explorer.page import make_page

WORDS, VOCABULARY = 90, 50_000  # of a passage
KEYS = "where is 42"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
READY = "html[data-ready]"


def made_up(questions: int, arms: int, depth: int, passages: int, *, words: int = WORDS) -> bytes:
    """A page as `eadpr.explorer.explore` writes it, words by Zipf's law; questions rank passages near each other."""
    draw = random.Random(0)
    names = ["bm25", *(f"arm{i}" for i in range(1, arms))]
    details = (_detail(draw, i * passages // questions, passages, arms, depth) for i in range(questions))
    texts = [_passage(draw, i, words) for i in range(passages)]
    details = list(details)
    return make_page("made up", _columns(draw, names, questions, depth), details, texts)


def _columns(draw: random.Random, names: list[str], questions: int, depth: int) -> dict[str, Any]:
    metrics = {"top1": ["top-1", "Share.", False], "mrr100": ["MRR@100", "Mean.", False], "aa": ["AA", "Share.", True]}
    means = {name: {metric: [0.5, 0.4, 0.6, questions] for metric in metrics} for name in names}
    types = ["who", "when", "what", "where"]
    whole = {"means": means, "differences": [], "trainings": dict.fromkeys(names, 1)}  # fmt: skip
    return {
        "collection": "made up", "depth": depth, "deepest": 100, "arms": names, "aside": [],
        "descriptions": [""] * len(names),
        "readersOfPaths": [], "evidence": "evidence: the answers", "rows": names,
        "confidence": 0.95, "metrics": metrics, "forms": {},
        "notes": {"collection": [], "sets": {"made/test": []}, "counts": ""},
        "sets": {"made/test": list(range(questions))}, "ids": [f"q{i}" for i in range(questions)],
        "questions": [f"{types[i % 4]} is {' '.join(_words(draw, 6))} {i}?" for i in range(questions)],
        "answers": [[" ".join(_words(draw, 2))] for _ in range(questions)],
        "types": [types[i % 4] for i in range(questions)], "relations": [f"P{i % 7}" for i in range(questions)],
        "relationNames": {f"P{i}": f"relation (P{i})" for i in range(7)},
        "hops": [0] * questions, "hop_types": [None] * questions,
        "first": [[min(draw.randrange(101), draw.randrange(101)) for _ in range(questions)] for _ in names],
        "values": {"aa": [[[draw.randrange(2) for _ in range(questions)], [1] * questions] for _ in names]},
        "overview": {"made/test": whole},
    }  # fmt: skip


def _detail(draw: random.Random, first: int, passages: int, arms: int, depth: int) -> dict[str, Any]:
    """Half of what an arm ranks, the others rank too."""
    near = [(first + draw.randrange(-300, 300)) % passages for _ in range(20 * depth)]
    pool = sorted([*dict.fromkeys(near)][: 3 * depth])
    ranked = [draw.sample(pool, min(depth, len(pool))) for _ in range(arms)]
    scored = [[[number, 80 - i - draw.randrange(100) / 100] for i, number in enumerate(of_arm)] for of_arm in ranked]
    positive = {"passage": pool[0], "given": True, "answers": [0, 4], "gold": [0, 9], "pseudo": [0, 9]}
    positive |= {"removed": {"distractor": [0, 9]}, "scores": {"positive": [80.12] * arms, "masked": [79.5] * arms}}
    return {
        "ranked": scored,
        "hits": [[pool[0], [0, 4]]],
        "relevant": [pool[0]],
        "positives": [positive],
        "read": [],
    }


def _passage(draw: random.Random, i: int, words: int) -> list[str]:
    return [f"p{i}", " ".join(_words(draw, 2)), " ".join(_words(draw, words))]


def _words(draw: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        number, word = int(VOCABULARY ** draw.random()), ""
        while number or not word:
            word += "btdklmnprsvgfh"[number % 14] + "aeiou"[number // 14 % 5]
            number //= 70
        yield word


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium; raises ValueError where it is missing."""
    found = shutil.which("chromium")
    if found is None:
        raise ValueError("chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=[*ARGUMENTS])
        yield opened
        opened.close()


def milliseconds(opened: Page, path: Path) -> tuple[float, list[float]]:
    """Until the page can be used, and of every keystroke in the search until what is left is drawn."""
    opened.goto(f"{path.resolve().as_uri()}#view=questions")
    opened.wait_for_selector(READY, state="attached")
    ready = opened.evaluate("performance.getEntriesByName('ready')[0].startTime")
    typed = """(key) => new Promise((done) => {
        const find = document.getElementById("find"), before = performance.now();
        find.value += key;
        find.dispatchEvent(new Event("input"));
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - before)));
    })"""
    return ready, [opened.evaluate(typed, key) for key in KEYS]


def main(
    file: Path = typer.Option(None, "--page", help="Measure this page, not made-up ones."),
    repeats: int = typer.Option(5, min=1),
) -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as opened:
        pages = {str(file): file}
        if file is None:
            pages = {
                "7,405 questions x 6 x 20": Path(folder) / "hotpot.html",
                "10,000 x 2 x 5": Path(folder) / "b.html",
            }
            for path, sizes in zip(pages.values(), ((7_405, 6, 20, 66_581), (10_000, 2, 5, 10_000)), strict=True):
                path.write_bytes(made_up(*sizes))
        for name, path in pages.items():
            found = [milliseconds(opened.new_page(), path) for _ in range(repeats)]
            ready = statistics.median(of for of, _ in found)
            keys = [key for _, of in found for key in of]
            typer.echo(
                f"{name}: {path.stat().st_size:,} bytes; ready after {ready:.0f} ms; a keystroke takes"
                f" {statistics.median(keys):.0f} ms (at most {max(keys):.0f} ms)"
            )


if __name__ == "__main__":
    typer.run(main)
