"""What a run or a study will take, before it starts: python -m stages.plan [STUDY]. Measures for about a minute."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eadpr.settings.command import command

if TYPE_CHECKING:
    from eadpr.studies.rates import Rates

SAMPLE = 1_000  # passages and questions that are measured with


def _counts(given: list[str], sets: dict[str, list[str]]) -> dict[str, int]:
    """Of NAME=N; a name is that of the passages or of one of the `sets`."""
    found = {}
    known = ["passages", *dict.fromkeys(name for names in sets.values() for name in names)]
    for each in given:
        name, _, number = each.rpartition("=")
        if name not in known or not number.isdecimal() or not int(number):
            raise ValueError(f"--count {each}: expected NAME=N, N at least 1, with a name of {', '.join(known)}")
        found[name] = int(number)
    return found


def _measured(configs: dict[str, Any], values: dict[str, Any], prepared: Path) -> Rates:
    """With the encoder of the first base and the training of the first arm, on the first passages of a table, if there
    is one."""
    from eadpr.runtime.machine import Machine, settle

    of_arm = configs[f"{next(iter(values['active']))}/train.json"]
    machine = Machine(**of_arm["machine"])
    settle(machine)
    from eadpr.atlas.generate import Atlas
    from eadpr.search.config import Encode
    from eadpr.storage import tables
    from eadpr.storage.records import Passage
    from eadpr.studies import made_texts, rates
    from eadpr.training.arm import ArmSettings
    from eadpr.training.config import Base, EncoderSettings, Loss, Train

    loss = Loss(**of_arm["loss"] | {"balance": "none", "placebo": 0.0})
    arm = ArmSettings(loss, Train(**of_arm["train"]), EncoderSettings(**of_arm["encoder"]), machine)
    base = Base(**configs[f"bases/{next(iter(values['bases']))}.json"]["base"])
    pairs = list(made_texts.long_pairs(Atlas(**values["atlas"]), max(SAMPLE, 2 * arm.train.batch_size)))
    own = islice(tables.rows(prepared, Passage), SAMPLE) if prepared.exists() else rates.distinct(pairs)
    return rates.measured(base, arm, Encode(**configs["encode.json"]["encode"]), list(own), pairs)


@command
def main(
    name: str = typer.Argument(None, metavar="[STUDY]", help="A study of studies.yaml; without one, the pipeline."),
    collection: str = typer.Option(None, help="The collection; by default the study's own, else that of params.yaml."),
    seeds: list[int] = typer.Option([], "--seed", min=0, help="A seed to train with, in place of the study's."),
    set_: list[str] = typer.Option([], "--set", "-S", help="One more override, as for dvc exp run."),
    count: list[str] = typer.Option([], help="passages=N, or SET=N questions, where the collection does not say it."),
    tokens: float = typer.Option(None, min=1, max=1e6, help="Mean tokens of a passage; else of texts measured."),
    text_bytes: float = typer.Option(None, min=1, max=1e9, help="Mean bytes of a passage in records; else not known."),
    ask: bool = typer.Option(False, "--ask", help="Ask servers for the sizes of files that the collection lacks."),
    studies: Path = typer.Option(Path("studies.yaml"), help="The studies."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> str:
    from eadpr.atlas.generate import Atlas, size
    from eadpr.corpus import download
    from eadpr.corpus.sources import Source
    from eadpr.settings.resolve import configs
    from eadpr.storage import tables
    from eadpr.storage.records import Passage
    from eadpr.studies import provenance
    from eadpr.studies.run import applied, check_effect
    from stages.study import resolved

    if name is None and seeds:
        raise ValueError("--seed is for a study, and none is named; name one, or give --set train.seed=N")
    if name is not None:
        changes = resolved(name, collection, seeds, set_, studies, params)[1]
        values = applied(changes, params)
        found = configs(values)
    else:
        chosen = [f"collection={collection}"] if collection else []
        values = applied([*chosen, *set_], params)
        found = configs(values)
        check_effect(set_, applied(chosen, params), values)
    given = _counts(count, found["retrieve.json"]["sets"])
    records = Path("data") / values["collection"] / "records"
    rates = _measured(found, values, records / "passages.parquet")
    from eadpr.studies import plan

    source = Source(**found["fetch.json"]["source"])
    sizes = download.sizes(source, Path("data/sources") / values["collection"], ask=ask)
    atlas = found["prepare.json"]["atlas"]
    known = plan.counts(source, atlas and size(Atlas(**atlas)), records, given)
    times = provenance.times(values)
    of_passage = tokens or rates.of_passage
    if text_bytes is None:
        kept = sum(path.stat().st_size for path in records.glob("*"))
        text_bytes = kept / tables.count(records / "passages.parquet", Passage) if kept else float("nan")
    costs = plan.costs(found, values["active"], times, known, sizes, rates, of_passage=of_passage, text=text_bytes)
    return f"{plan.table(times, costs)}\n\n{plan.notes(known[plan.PASSAGES], rates, of_passage=of_passage)}"
