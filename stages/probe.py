"""Score each evaluation question with its positive, its distractor and its masked passage: a table of pair scores."""

from eadpr.settings.command import stage


@stage(model="C/models/{model}", out="C/pairs/{model}.parquet")
def main(probe, sets, machine, *, records, positives, distractors, model, out):
    from eadpr.search.probe import probe as probed

    tables = positives / "positives.parquet", distractors / "distractors.parquet"
    count = probed(records, *tables, model, out, settings=probe, sets=sets, hardware=machine)
    return f"probe: scored the pairs of {count:,} questions"
