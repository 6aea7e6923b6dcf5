"""Read the active collection's files, or generate it, and write its records."""

from eadpr.settings.command import stage


@stage(out="C/records")
def main(source, prepare, atlas, facts, paq, *, sources, raw, out):
    from eadpr.atlas.generate import generate, size
    from eadpr.corpus.prepare import prepare as prepare_records
    from eadpr.corpus.prepare import write_generated

    if source.format == "atlas":
        report = write_generated(generate(atlas), out=out, passages=size(atlas))
    else:
        report = prepare_records(source, prepare, sources=sources, raw=raw, out=out, facts=facts, paq=paq)
    counts = f"{report['passages']:,} passages, {report['questions']:,} questions in {len(report['sets'])} sets"
    return f"prepare: {counts}"
