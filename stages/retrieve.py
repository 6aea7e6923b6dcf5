"""Rank the passages for the questions evaluated on, and trained on if a stage reads that, by an arm's encoders.

Writes a ranking: train.parquet and evaluate.parquet.
"""

from eadpr.settings.command import stage


@stage("{arm}/retrieve.json", model="C/models/{arm}", vectors="C/vectors/{arm}", out="C/rankings/{arm}")
def main(retrieve, sets, machine, *, records, model, vectors, out):
    from eadpr.search.retrieve import retrieve as ranked

    count = ranked(records, model, vectors, out, settings=retrieve, sets=sets, hardware=machine)
    return f"retrieve: ranked passages for {count:,} questions"
