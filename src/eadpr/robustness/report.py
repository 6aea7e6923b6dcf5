"""The report's section of how much each arm loses as near-duplicates join the corpus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.outcomes import MADE
from eadpr.report import markdown as md
from eadpr.report import plots
from eadpr.report.config import Pairs, ReportArms, Sampling
from eadpr.report.differences import Comparison, Trainings, difference_table, is_fixed
from eadpr.report.summary import MeasuredRows, load_rows, select_set
from eadpr.robustness.config import AMONG, GOALS, PROBE, Robustness
from eadpr.runtime import files
from eadpr.runtime.section import Sets

ReadValues = Callable[[str, int, str], Trainings]  # the values of an arm among so many near-duplicates, in a column
ROBUSTNESS = plots.Plot("As near-duplicates join the corpus", partial(
    plots.lines, x_column="near_duplicates", y_column="share", x="near-duplicates per question"
))  # fmt: skip


def report_robustness(
    outcomes: Path, settings: ReportArms, counts: Robustness, sets: Sets, folder: Path, _: pd.DataFrame
) -> list[str]:
    """Report what each arm loses at worst, then a part for every generator of near-duplicates.

    A `report.Section` once all but the last two arguments are bound; plots go to `folder`.
    """
    arms, most, sampling = settings.robustness.trainings, counts.counts[-1], settings
    pairs = settings.pair([*arms], arms)  # BM25 was not measured everywhere
    rows = {f"{arm}, {n}": [f"{name}/{n}" for name in names] for arm, names in arms.items() for n in counts.counts}
    generators = settings.robustness.active
    results = {name: load_rows(outcomes / "robustness" / name, rows, sets.evaluate) for name in generators}
    parts = []
    for name in sets.evaluate:
        parts += worst_kinds(results, name, [*settings.differences, *settings.columns], [*arms], pairs, most, sampling)
    if parts:
        parts.insert(0, "# Near-duplicates at their worst")
    for generator, of_generator in results.items():
        first = next(iter(arms.values()))[0]
        generation = files.read_json(outcomes / "robustness" / generator / first / MADE)
        parts += [f"# Near-duplicates: {generator}", describe_near_duplicates(generation)]
        for name in sets.evaluate:
            means = select_set(of_generator.rows, name)
            present = set(means["metric"])
            metrics = [metric for metric in (*settings.columns, AMONG) if metric in present]
            parts += [f"## {name}", md.pivot(means, ["%, near-duplicates per question"], rows.keys(), metrics)]
            compared = [metric for metric in settings.differences if metric in present]
            parts += changes_of_set(of_generator, name, compared, [*arms], pairs, most, sampling)
        curves = robustness_points(of_generator.rows, settings.differences, [*arms], counts.counts, sets.evaluate)
        plots.write(folder / f"robustness-{generator}", curves, ROBUSTNESS, [*arms])
    return parts


def changes_of_set(
    results: MeasuredRows,
    name: str,
    metrics: Sequence[str],
    arms: Sequence[str],
    pairs: Pairs,
    most: int,
    sampling: Sampling,
) -> list[str]:
    """Return paired differences and an explanation of look-alikes, for a set that has near-duplicates."""
    n = count_with_look_alikes(results, name)
    if not n:
        return ["No question of this set has near-duplicates of its own and a positive; those of other sets join it."]

    def read(arm: str, count: int, metric: str) -> Trainings:
        return results.outcomes[f"{arm}, {count}"].of_trainings(name, metric)

    look_alikes = [compare_among_most(read, pair, [AMONG], most) for pair in pairs]
    return [
        *difference_table(changes(read, metrics, arms, pairs, most), md.titles(metrics), sampling),
        f"{md.title(AMONG).capitalize()}: without the rest of the corpus, of a question's positives and its own"
        f" near-duplicates alone, whether a positive scores highest; a tie counts as no. {n:,.0f} questions have both.",
        *difference_table(look_alikes, [md.title(AMONG)], sampling),
    ]


def count_with_look_alikes(results: MeasuredRows, name: str) -> float:
    """Return how many questions of the set have a positive and near-duplicates of their own."""
    means = select_set(results.rows, name)
    return means[means["metric"] == AMONG]["n"].max() if AMONG in set(means["metric"]) else 0


def worst_kinds(
    results: Mapping[str, MeasuredRows],
    name: str,
    metrics: Sequence[str],
    arms: Sequence[str],
    pairs: Pairs,
    most: int,
    sampling: Sampling,
) -> list[str]:
    """Return tables, by the first of `metrics` that was measured, of the kind without evidence that costs each arm
    most, and of the kind that states the relation with a wrong answer; nothing for a set without near-duplicates."""
    goals = [generator for generator in GOALS if generator in results]
    if not any(count_with_look_alikes(results[goal], name) for goal in goals):
        return []
    present = set(select_set(results[goals[0]].rows, name)["metric"])
    metric = next((metric for metric in metrics if metric in present), None)
    if metric is None:
        return []
    shares = {}
    for generator, of_generator in results.items():
        means = select_set(of_generator.rows, name)
        shares[generator] = means[means["metric"] == metric].set_index("row")["mean"]
    title = md.title(metric)
    worst, rows = {}, []
    for arm in arms:
        worst[arm] = min(goals, key=lambda goal, row=f"{arm}, {most}": shares[goal][row])
        remaining = [f"{100 * shares[worst[arm]][f'{arm}, {n}']:.1f}" for n in (0, most)]
        rows.append([arm, worst[arm], *remaining])
    head = ["%", "worst kind", f"{title} without near-duplicates", f"{title} with {most} per question"]
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
        md.table(head, rows),
        meaning,
        *difference_table(changes(read, [*columns], arms, pairs, most), [*columns], sampling),
    ]


def describe_near_duplicates(generation: Mapping[str, Any]) -> str:
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in generation["dropped"].items()) or "none"
    return (
        f"{generation['near_duplicates']:,} near-duplicates of {generation['questions']:,} questions of all sets;"
        f" {generation['with_all']:,} have all that were asked for, {generation['with_none']:,} have none."
        f" Dropped: {dropped}. Every question counts."
    )


def changes(
    read: ReadValues, columns: Sequence[str], arms: Sequence[str], pairs: Pairs, most: int
) -> Iterator[Comparison]:
    """Yield the change by the most near-duplicates for each arm, and the difference of these changes for each pair."""

    def read_change(arm: str, column: str) -> Trainings:
        changed = []
        for without, with_most in zip(read(arm, 0, column), read(arm, most, column), strict=True):
            changed.append(with_most.assign(sums=with_most["sums"] - without["sums"]))  # of the same questions
        return changed

    for arm in arms:
        sides = ((read(arm, most, column), read(arm, 0, column)) for column in columns)
        yield Comparison(f"{arm}: {most} − 0", sides)
    for arm, reference in pairs:
        yield compare_among_most(read, (arm, reference), columns, most)
        sides = ((read_change(arm, column), read_change(reference, column)) for column in columns)
        yield Comparison(f"change of {arm} − change of {reference}", sides, fixed=is_fixed(arm, reference))


def compare_among_most(read: ReadValues, pair: tuple[str, str], columns: Sequence[str], most: int) -> Comparison:
    sides = (tuple(read(arm, most, column) for arm in pair) for column in columns)
    return Comparison(f"{pair[0]} − {pair[1]} at {most}", sides, fixed=is_fixed(*pair))


def robustness_points(
    means: pd.DataFrame, metrics: Sequence[str], arms: Sequence[str], counts: Sequence[int], sets: Sequence[str]
) -> pd.DataFrame:
    points = []
    for name in sets:
        shares = select_set(means, name).set_index(["row", "metric"])["mean"]
        for metric in metrics:
            if metric in shares.index.levels[1]:
                points += [(n, shares[f"{arm}, {n}", metric], arm, metric, name) for arm in arms for n in counts]
    return pd.DataFrame(points, columns=["near_duplicates", "share", "arm", "metric", "question_set"])
