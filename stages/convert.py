"""Turn a published checkpoint into a model folder: eadpr convert hf_bert_base.cp --out models/dpr-nq."""

from eadpr.publishing.command import convert_checkpoint as main
from eadpr.settings.user_command import run

if __name__ == "__main__":
    run(main)
