"""Read the active collection's files, or generate it, and write its records."""

from eadpr.commands import stage


@stage()
def main(source, prepare, atlas, facts, paq, *, sources, raw, out):
    from eadpr.atlas.generate import generate
    from eadpr.corpus.prepare import prepare as prepare_records
    from eadpr.corpus.prepare import write_generated

    if source.format == "atlas":
        generated = generate(atlas)
        report = write_generated(generated.blocks(), out=out, passages=len(generated))
    else:
        report = prepare_records(source, prepare, sources=sources, raw=raw, out=out, facts=facts, paq=paq)
    counts = f"{report['passages']:,} passages, {report['questions']:,} questions in {len(report['sets'])} sets"
    return f"prepare: {counts}"
