"""Take the given positives of the evaluated questions for a ranking: evaluate.parquet."""

from eadpr.settings.command import stage


@stage(out="C/rankings/{ranking}")
def main(sets, *, records, positives, out):
    from eadpr.readers.selection import write_gold

    count = write_gold(records, positives, out, sets=sets)
    return f"gold_ranking: positives of {count:,} questions"
