"""Download the active collection's files, checked, and check its local ones."""

from eadpr.settings.command import stage


@stage(out="C/raw")
def main(source, *, sources, out):
    from eadpr.corpus.download import fetch

    new = fetch(source, sources=sources, out=out)
    summary = f"fetch: {sum(file.url is not None for file in source.files)} of {len(source.files)} files downloaded"
    if not new:
        return summary
    pins = sources / "pins.json"
    return f"fetch: recorded sha256 and size of {', '.join(new)} in {pins}; commit it to git\n{summary}"
