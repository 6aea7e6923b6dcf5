"""Build the QA models that annotate evidence, or name the one to use."""

from eadpr.settings.command import stage


@stage(out="C/annotator")
def main(annotator, annotator_files, sets, machine, *, records, positives, out):
    from eadpr.supervision.annotator import build_annotator

    manifest = build_annotator(
        annotator, sets, machine, records=records, positives=positives, out=out, model_files=annotator_files
    )
    return f"{len(manifest.models)} annotators ({manifest.source})"
