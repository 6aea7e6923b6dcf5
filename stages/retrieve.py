"""Rank the passages for the questions trained on and evaluated on, by an arm's encoders.

Writes a ranking: train.parquet and evaluate.parquet.
"""

from eadpr.settings.command import stage


@stage(model="C/models/{model}", vectors="C/vectors/{model}", out="C/rankings/{model}")
def main(retrieve, sets, machine, *, records, model, vectors, out):
    from eadpr.search.retrieve import retrieve as ranked

    count = ranked(records, model, vectors, out, settings=retrieve, sets=sets, hardware=machine)
    return f"retrieve: ranked passages for {count:,} questions"
