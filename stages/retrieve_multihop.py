"""Find the best paths of two passages for the questions trained on and evaluated on.

Writes the ranking of their passages to --out, the paths to --out/paths.
"""

from eadpr.settings.command import stage


@stage(model="C/models/{model}", vectors="C/vectors/{model}", out="C/rankings/{model}")
def main(beam, sets, machine, *, records, model, vectors, out):
    from eadpr.two_hops.retrieve import retrieve_paths

    count = retrieve_paths(records, model, vectors, out, beam=beam, sets=sets)
    return f"retrieve_multihop: paths for {count:,} questions"
