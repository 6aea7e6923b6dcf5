"""Let a reader of paths answer the evaluated questions and name the sentences that support the answers.

Writes predictions.parquet and predictions.json.
"""

from eadpr.commands import stage


@stage()
def main(read, read_paths, sets, machine, *, records, ranking, reader, out):
    from eadpr.machine import settle

    settle(machine)
    from eadpr.reading.read import read as answered

    count = answered(records, ranking, reader, out, settings=read_paths.of(read), sets=sets, hardware=machine)
    return f"read_paths: {reader.name} answered {count:,} questions from {ranking.name}"
