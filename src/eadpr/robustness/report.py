"""The report's section of how much each arm loses as near-duplicates join the corpus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from eadpr.evaluation.outcomes import MADE
from eadpr.report import markdown as md
from eadpr.report import plots
from eadpr.report.config import Pairs, ReportArms
from eadpr.report.differences import Comparison, Trainings, difference_table, is_fixed
from eadpr.report.summary import MeasuredRows, load_rows, select_set
from eadpr.robustness.config import AMONG, GOALS, PROBE, Robustness
from eadpr.runtime import files
from eadpr.runtime.section import Sets

ReadValues = Callable[[str, int, str], Trainings]  # the values of an arm among so many near-duplicates, in a column


class Scope(NamedTuple):
    """What is compared: arms and pairs of them, without near-duplicates and with the most that joined."""

    arms: Sequence[str]
    pairs: Pairs
    counts: Sequence[int]
    settings: ReportArms

    @property
    def most(self) -> int:
        return self.counts[-1]


def report_robustness(
    outcomes: Path, settings: ReportArms, counts: Robustness, sets: Sets, folder: Path, _: pd.DataFrame
) -> list[str]:
    """Report what each arm loses at worst, then a part for every generator of near-duplicates.

    A `report.Section` once all but the last two arguments are bound; plots go to `folder`.
    """
    arms = settings.robustness.trainings
    scope = Scope([*arms], settings.pair([*arms], arms), counts.counts, settings)  # BM25 was not measured everywhere
    rows = {f"{arm}, {n}": [f"{name}/{n}" for name in names] for arm, names in arms.items() for n in counts.counts}
    generators = settings.robustness.by
    results = {name: load_rows(outcomes / "robustness" / name, rows, sets.evaluate) for name in generators}
    worst = [part for name in sets.evaluate for part in report_worst(results, name, scope)]
    parts = ["# Near-duplicates at their worst", *worst] if worst else []
    for generator, measured in results.items():
        made = files.read_json(outcomes / "robustness" / generator / next(iter(arms.values()))[0] / MADE)
        dropped = ", ".join(f"{n:,} {reason}" for reason, n in made["dropped"].items()) or "none"
        parts += [
            f"# Near-duplicates: {generator}",
            f"{made['near_duplicates']:,} near-duplicates of {made['questions']:,} questions of all sets;"
            f" {made['with_all']:,} have all that were asked for, {made['with_none']:,} have none. Dropped: {dropped}."
            " Every question counts.",
        ]
        for name in sets.evaluate:
            parts += report_set(measured, name, scope)
        points = list_points(measured.rows, scope, sets.evaluate)
        draw = partial(plots.lines, x="near-duplicates per question")
        plots.write(folder / f"robustness-{generator}", points, scope.arms, "As near-duplicates join the corpus", draw)
    return parts


def report_set(measured: MeasuredRows, name: str, scope: Scope) -> list[str]:
    """Return the means of a set, and paired differences where it has near-duplicates."""
    means = select_set(measured.rows, name)
    present = set(means["metric"])
    columns = [metric for metric in (*scope.settings.columns, AMONG) if metric in present]
    parts = [f"## {name}", md.pivot(means, ["%, near-duplicates per question"], measured.outcomes.keys(), columns)]
    if AMONG not in present:
        return [*parts, "No question of this set has near-duplicates of its own and a positive; others join it."]

    def read(arm: str, count: int, metric: str) -> Trainings:
        return measured.outcomes[f"{arm}, {count}"].of_trainings(name, metric)

    compared = [metric for metric in scope.settings.differences if metric in present]
    look_alikes = [compare_among_most(read, pair, [AMONG], scope.most) for pair in scope.pairs]
    return [
        *parts,
        *difference_table(list_changes(read, compared, scope), md.titles(compared), scope.settings),
        f"{md.title(AMONG).capitalize()}: without the rest of the corpus, of a question's positives and its own"
        " near-duplicates alone, whether a positive scores highest; a tie counts as no."
        f" {means[means['metric'] == AMONG]['n'].max():,.0f} questions have both.",
        *difference_table(look_alikes, [md.title(AMONG)], scope.settings),
    ]


def report_worst(results: Mapping[str, MeasuredRows], name: str, scope: Scope) -> list[str]:
    """Return tables, by the first metric that was measured, of the kind without evidence that costs each arm most, and
    of the kind with a wrong answer in its place; nothing for a set without near-duplicates."""
    means = {generator: select_set(measured.rows, name) for generator, measured in results.items()}
    goals = [goal for goal in GOALS if goal in results and AMONG in set(means[goal]["metric"])]
    if not goals:
        return []
    most, measured = scope.most, set(means[goals[0]]["metric"])
    metric = next(metric for metric in (*scope.settings.differences, *scope.settings.columns) if metric in measured)
    shares = {generator: of[of["metric"] == metric].set_index("row")["mean"] for generator, of in means.items()}
    worst = {arm: min(goals, key=lambda goal, row=f"{arm}, {most}": shares[goal][row]) for arm in scope.arms}
    rows = [
        [arm, kind, *(f"{100 * shares[kind][f'{arm}, {n}']:.1f}" for n in (0, most))] for arm, kind in worst.items()
    ]
    title = md.title(metric)
    columns = {f"{title}, worst": worst}
    meaning = "Each arm with its worst kind. The intervals do not count that it was chosen by these very figures."
    if PROBE in results:
        columns[f"{title}, {PROBE} (no goal)"] = dict.fromkeys(worst, PROBE)
        meaning += (
            f" Beside it {PROBE}, a probe without a goal: these state the relation, with a wrong answer, which a"
            " retriever that does not know the fact cannot tell."
        )

    def read(arm: str, count: int, column: str) -> Trainings:
        return results[columns[column][arm]].outcomes[f"{arm}, {count}"].of_trainings(name, metric)

    return [
        f"## {name}",
        "Near-duplicates whose evidence is gone answer nothing, so that none should stand before a positive, however"
        f" the evidence was taken out ({', '.join(goals)}). An arm is judged by the kind that leaves it the least:",
        md.table(["%", "worst kind", f"{title} without near-duplicates", f"{title} with {most} per question"], rows),
        meaning,
        *difference_table(list_changes(read, [*columns], scope), [*columns], scope.settings),
    ]


def list_changes(read: ReadValues, columns: Sequence[str], scope: Scope) -> Iterator[Comparison]:
    """Yield the change by the most near-duplicates for each arm, and the difference of these changes for each pair."""

    def read_change(arm: str, column: str) -> Trainings:
        changed = []
        for without, with_most in zip(read(arm, 0, column), read(arm, scope.most, column), strict=True):
            changed.append(with_most.assign(sums=with_most["sums"] - without["sums"]))  # of the same questions
        return changed

    for arm in scope.arms:
        sides = ((read(arm, scope.most, column), read(arm, 0, column)) for column in columns)
        yield Comparison(f"{arm}: {scope.most} − 0", sides)
    for arm, reference in scope.pairs:
        yield compare_among_most(read, (arm, reference), columns, scope.most)
        sides = ((read_change(arm, column), read_change(reference, column)) for column in columns)
        yield Comparison(f"change of {arm} − change of {reference}", sides, fixed=is_fixed(arm, reference))


def compare_among_most(read: ReadValues, pair: tuple[str, str], columns: Sequence[str], most: int) -> Comparison:
    sides = (tuple(read(arm, most, column) for arm in pair) for column in columns)
    return Comparison(f"{pair[0]} − {pair[1]} at {most}", sides, fixed=is_fixed(*pair))


def list_points(means: pd.DataFrame, scope: Scope, sets: Sequence[str]) -> pd.DataFrame:
    points = []
    for name in sets:
        shares = select_set(means, name).set_index(["row", "metric"])["mean"]
        metrics = [metric for metric in scope.settings.differences if metric in shares.index.levels[1]]
        for metric, arm, n in product(metrics, scope.arms, scope.counts):
            points.append((n, shares[f"{arm}, {n}", metric], arm, metric, name))
    return pd.DataFrame(points, columns=["near_duplicates", "share", "arm", "metric", "question_set"])
