"""Train a reader, which finds answers in ranked passages or paths. It starts from encoders or from the annotator."""

from eadpr.settings.command import stage


@stage(
    "readers/{reader}.json",
    ranking="C/rankings/{ranking}",
    init="C/{init}",
    out="C/readers/{reader}",
    log="C/reader_logs/{reader}",
)
def main(reader, reader_files, machine, *, records, positives, ranking, init, out, log):
    from eadpr.readers.train import ReaderInputs, train_reader

    inputs = ReaderInputs(records=records, positives=positives, ranking=ranking, init=init)
    steps = train_reader(inputs, out, log, settings=reader, model_files=reader_files, hardware=machine)
    return f"reader: {steps:,} steps"
