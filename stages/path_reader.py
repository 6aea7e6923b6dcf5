"""Train a reader of paths, which answers multi-hop questions and names the sentences that support the answer."""

from eadpr.commands import stage


@stage("path_readers/{path_readers}.json")
def main(path_reader, path_reader_files, machine, *, records, positives, ranking, init, out, log):
    from eadpr.machine import settle

    settle(machine, spinning=False)
    from eadpr.reading.train import ReaderInputs, train_reader

    inputs = ReaderInputs(records=records, positives=positives, ranking=ranking, init=init)
    steps = train_reader(inputs, out, log, settings=path_reader, model_files=path_reader_files, hardware=machine)
    return f"path_reader: {steps:,} steps"
