"""The commands `eadpr publish` and `eadpr convert`."""

from functools import partial
from pathlib import Path

import typer


def publish(
    arm: str = typer.Argument(..., help="A trained, measured active arm."),
    to: Path = typer.Option(..., help="New folder, written whole or not at all."),
    vectors: bool = typer.Option(False, "--vectors", help="Write the vectors of the collection's passages too."),
    license: str = typer.Option("other", help="The folder's licence as the Hub names it, e.g. cc-by-sa-4.0."),
    collection: str = typer.Option(None, help="By default the one in params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> str:
    """Publish an arm as a folder that other libraries load: eadpr publish ARM --to FOLDER."""
    from eadpr.publishing import card, folder
    from eadpr.report.notes import find_unmoved
    from eadpr.settings.yaml import load, of_collection
    from eadpr.studies import provenance
    from eadpr.studies.status import unfinished

    values = load(params)
    source = Path("data") / (collection or values["collection"])
    of_collection(values, source.name)  # refuses one that nothing describes
    about = card.describe_arm(values, source, arm, name=to.name, license=license)
    if stages := unfinished(values | {"collection": source.name}, card.evaluation_stages(source)):
        raise ValueError(f"{stages[0]} of {source.name} has yet to run, its measures may be old; `eadpr repro` runs it")
    write_card = partial(card.write_card, about, source, vectors=vectors, commit=provenance.commit())
    folder.publish(arm, source, to, vectors=vectors, card=write_card)
    note = ", as it began: no validation was better than the first" if find_unmoved(source / "training", [arm]) else ""
    return f"publish: {arm} of {source.name} in {to}{note}; for the card's code, FOLDER is {str(to.resolve())!r}"


def convert_checkpoint(
    checkpoints: list[Path] = typer.Argument(..., help="DPR's .cp, the files of both encoders, or a model folder."),
    out: Path = typer.Option(..., help="New folder: of two encoders or a model."),
    architecture: str = typer.Option(
        "bert-base-uncased", help="Model whose config and tokenizer the encoders have: name or folder."
    ),
) -> str:
    """Turn a published DPR checkpoint into a model folder: eadpr convert hf_bert_base.cp --out models/dpr-nq.

    A model folder with pickled weights becomes one with safetensors. Nothing but tensors and plain values is loaded.
    """
    from eadpr.training.convert import convert, convert_folder

    if len(checkpoints) == 1 and checkpoints[0].is_dir():
        return f"convert: {convert_folder(checkpoints[0], out):,} parameters in {out}"
    parameters = convert(checkpoints, out, architecture=architecture)
    next_command = f"dvc exp run -S base.model={out} -S encoder.shared=false"
    return f"convert: two encoders of together {parameters:,} parameters in {out}\nnext: {next_command}"
