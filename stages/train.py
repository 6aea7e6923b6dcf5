"""Train an arm's dual encoder: a folder of both encoders, and a log in DVCLive's layout."""

from eadpr.settings.command import stage

REPORT = "eadpr.publishing.trackers:make_report"  # by name: it decides no byte, so an edit of it reruns nothing


@stage(
    "{arm}/train.json",
    examples="C/examples/{arm}",
    init="C/models/{init}",
    out="C/models/{arm}",
    log="C/training/{arm}",
)
def main(loss, train, encoder, machine, *, records, examples, init, out, log):
    from pkgutil import resolve_name

    from eadpr.training import processes

    processes.launch("stages.train", train.processes)
    from eadpr.training.arm import ArmInputs, ArmSettings, train_arm

    inputs = ArmInputs(records=records, examples=examples, init=init)
    with processes.group():
        report = resolve_name(REPORT)(records.parent / "configs", out.name) if processes.first() else None
        steps = train_arm(inputs, out, log, ArmSettings(loss, train, encoder, machine), report)
    return f"train: {steps:,} steps"
