"""Make the encoder that every training starts from: a folder of the question's and the passages' encoder."""

from eadpr.settings.command import stage


@stage("bases/{base}.json", out="C/models/{base}")
def main(base, base_files, encoder, *, records, out):
    from eadpr.training.base import make_base
    from eadpr.training.config import settings_of

    parameters = make_base(records / "passages.parquet", out, base=base, settings=encoder, expected=base_files)
    return f"base: an encoder of {parameters:,} parameters ({base.model}): {settings_of(out)}"
