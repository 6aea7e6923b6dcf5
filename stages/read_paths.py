"""Let a reader of paths answer the evaluated questions and name the sentences that support the answers.

Writes predictions.parquet and predictions.json.
"""

from eadpr.commands import stage


@stage()
def main(read_paths, machine, *, records, paths, reader, out):
    from eadpr.machine import settle

    settle(machine)
    from eadpr.reading_multihop.read import read_paths as answered

    count = answered(records, paths, reader, out, settings=read_paths, hardware=machine)
    return f"read_paths: {reader.name} answered {count:,} questions from {paths.name}"
