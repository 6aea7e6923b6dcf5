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
    from eadpr.readers.train import train_reader

    folders = {"records": records, "positives": positives, "ranking": ranking, "init": init}
    steps = train_reader(reader, reader_files, machine, **folders, out=out, log=log)
    return f"reader: {steps:,} steps"
