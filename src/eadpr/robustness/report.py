"""The report's section of how much each arm loses as near-duplicates join the corpus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.config import BM25, ReportArms
from eadpr.evaluation.outcomes import MADE
from eadpr.report import markdown as md
from eadpr.report import plots
from eadpr.report.differences import Comparison, Trainings, difference_table
from eadpr.report.summary import MeasuredRows, measured
from eadpr.robustness.config import AMONG, GOALS, PROBE, Robustness
from eadpr.runtime import files
from eadpr.runtime.section import Sets

At = Callable[[str, int, str], Trainings]  # the values of an arm among so many near-duplicates, in a column
ROBUSTNESS = plots.Plot("As near-duplicates join the corpus", partial(
    plots.lines, at="near_duplicates", share="share", x="near-duplicates per question"
))  # fmt: skip


def of_robustness(
    outcomes: Path, settings: ReportArms, counts: Robustness, sets: Sets, folder: Path, _: pd.DataFrame
) -> list[str]:
    """What each arm loses at worst, then a part for every generator of near-duplicates."""
    arms, most = settings.robustness.trainings, counts.counts[-1]
    shown = settings.only(arms)
    rows = {f"{arm}, {n}": [f"{name}/{n}" for name in names] for arm, names in arms.items() for n in counts.counts}
    by_generator = {
        generator: measured(outcomes / "robustness" / generator, rows, sets.evaluate)
        for generator in settings.robustness.each
    }
    parts = _at_worst(by_generator, shown, most, sets)
    for generator, found in by_generator.items():
        first = outcomes / "robustness" / generator / next(iter(arms.values()))[0] / MADE
        made = files.read_json(first)
        parts += [f"# Near-duplicates: {generator}", _made(made)]
        for name in sets.evaluate:
            whole = md.whole(found.rows, name)
            metrics = [metric for metric in (*settings.columns, AMONG) if metric in set(whole["metric"])]
            parts += [f"## {name}", md.pivot(whole, ["%, near-duplicates per question"], rows.keys(), metrics)]
            parts += _what_changes(found, name, shown, most)
        _write_robustness(folder / f"robustness-{generator}", found, settings, counts.counts, sets)
    return parts


def _what_changes(found: MeasuredRows, name: str, settings: ReportArms, most: int) -> list[str]:
    """Paired differences, and what the column of look-alikes says; of a set whose questions have near-duplicates."""
    if not (n := _with_own(found, name)):
        return ["No question of this set has near-duplicates of its own and a positive; those of other sets join it."]
    compared, at = _compared(found, name, settings), partial(_at, found, name)
    changes = difference_table(_changes(at, compared, settings, most), md.titles(compared), settings)
    said = (
        f"{md.title(AMONG).capitalize()}: without the rest of the corpus, of a question's positives and its own"
        f" near-duplicates alone, whether a positive scores highest; a tie counts as no. {n:,.0f} questions have both."
    )
    rows = (_beside(at, pair, [AMONG], most) for pair in settings.comparisons_of_arms)
    return [*changes, said, *difference_table(rows, [md.title(AMONG)], settings)]


def _with_own(found: MeasuredRows, name: str) -> float:
    """How many questions of the set have a positive and near-duplicates of their own."""
    whole = md.whole(found.rows, name)
    return whole[whole["metric"] == AMONG]["n"].max() if AMONG in set(whole["metric"]) else 0


def _at_worst(by_generator: Mapping[str, MeasuredRows], settings: ReportArms, most: int, sets: Sets) -> list[str]:
    """Of the near-duplicates without evidence, the kind that costs an arm most; beside it those that state the relation
    with a wrong answer."""
    goals = [generator for generator in GOALS if generator in by_generator]
    parts = []
    for name in sets.evaluate:
        if not any(_with_own(by_generator[goal], name) for goal in goals):
            continue
        known = set(md.whole(by_generator[goals[0]].rows, name)["metric"])
        for metric in [metric for metric in (*settings.differences, *settings.columns) if metric in known][:1]:
            parts += [f"## {name}", *_worst_and_probe(by_generator, goals, name, metric, settings, most)]
    return ["# Near-duplicates at their worst", *parts] if parts else []


def _worst_and_probe(
    by_generator: Mapping[str, MeasuredRows],
    goals: Sequence[str],
    name: str,
    metric: str,
    settings: ReportArms,
    most: int,
) -> list[str]:
    shares = {
        generator: md.whole(found.rows, name).set_index(["row", "metric"])["mean"].xs(metric, level="metric")
        for generator, found in by_generator.items()
    }
    worst = {arm: min(goals, key=lambda goal, arm=arm: shares[goal][f"{arm}, {most}"]) for arm in settings.arms}
    title = md.title(metric)
    said = (
        f"Near-duplicates whose evidence is gone answer nothing, so that none should stand before a positive, however"
        f" the evidence was taken out ({', '.join(goals)}). An arm is judged by the kind that leaves it the least:"
    )
    head = ["%", "worst kind", f"{title} without near-duplicates", f"{title} with {most} per question"]
    rows = [
        [arm, worst[arm], *(f"{100 * shares[worst[arm]][f'{arm}, {n}']:.1f}" for n in (0, most))]
        for arm in settings.arms
    ]
    columns = {f"{title}, worst": worst}
    meant = "Each arm with its worst kind. The intervals do not count that it was chosen by these very figures."
    if PROBE in by_generator:
        columns[f"{title}, {PROBE} (no goal)"] = dict.fromkeys(worst, PROBE)
        meant += (
            f" Beside it {PROBE}, a probe without a goal: these state the relation, with a wrong answer, which a"
            " retriever that does not know the fact cannot tell."
        )

    def at(arm: str, n: int, column: str) -> Trainings:
        return _at(by_generator[columns[column][arm]], name, arm, n, metric)

    changes = difference_table(_changes(at, list(columns), settings, most), list(columns), settings)
    return [said, md.table(head, rows), meant, *changes]


def _compared(found: MeasuredRows, name: str, settings: ReportArms) -> list[str]:
    known = set(md.whole(found.rows, name)["metric"])
    return [metric for metric in settings.differences if metric in known]


def _at(found: MeasuredRows, name: str, arm: str, n: int, metric: str) -> Trainings:
    """Among so many near-duplicates."""
    return found.outcomes[f"{arm}, {n}"].of_trainings(name, metric)


def _made(made: dict[str, Any]) -> str:
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in made["dropped"].items()) or "none"
    return (
        f"{made['near_duplicates']:,} near-duplicates of {made['questions']:,} questions of all sets;"
        f" {made['with_all']:,} have all that were asked for, {made['with_none']:,} have none. Dropped: {dropped}."
        " Every question counts."
    )


def _changes(at: At, columns: Sequence[str], settings: ReportArms, most: int) -> Iterator[Comparison]:
    """What the most near-duplicates change for each arm, and whether they change it less for one than for another."""

    def change(arm: str, column: str) -> Trainings:
        pairs = zip(at(arm, most, column), at(arm, 0, column), strict=True)
        return [after.assign(sums=after["sums"] - before["sums"]) for after, before in pairs]  # of the same questions

    for arm in settings.arms:
        yield Comparison(f"{arm}: {most} − 0", ((at(arm, most, column), at(arm, 0, column)) for column in columns))
    for arm, other in settings.comparisons_of_arms:
        yield _beside(at, (arm, other), columns, most)
        changes = ((change(arm, column), change(other, column)) for column in columns)
        yield Comparison(f"change of {arm} − change of {other}", changes, fixed=BM25 in (arm, other))


def _beside(at: At, pair: tuple[str, str], columns: Sequence[str], most: int) -> Comparison:
    """Two arms among the most near-duplicates."""
    pairs = (tuple(at(arm, most, column) for arm in pair) for column in columns)
    return Comparison(f"{pair[0]} − {pair[1]} at {most}", pairs, fixed=BM25 in pair)


def _write_robustness(path: Path, found: MeasuredRows, settings: ReportArms, counts: Sequence[int], sets: Sets) -> None:
    arms, rows = list(settings.robustness.trainings), []
    for name in sets.evaluate:
        shares = md.whole(found.rows, name).set_index(["row", "metric"])["mean"]
        for metric in settings.differences:
            if metric in shares.index.levels[1]:
                rows += [(n, shares[f"{arm}, {n}", metric], arm, metric, name) for arm in arms for n in counts]
    curves = pd.DataFrame(rows, columns=["near_duplicates", "share", "arm", "metric", "question_set"])
    plots.write(path, curves, ROBUSTNESS, arms)
