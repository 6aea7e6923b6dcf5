"""Encode all passages to float16 vectors: a folder of shards and vectors.json."""

from eadpr.settings.command import stage


@stage(model="C/models/{model}", out="C/vectors/{model}")
def main(encode, machine, *, records, model, out):
    from eadpr.search.encode import encode as encode_passages

    count = encode_passages(records / "passages.parquet", model, out, settings=encode, hardware=machine)
    return f"encode: {count:,} passages"
