"""The encoders that trainings start from: pretrained ones, or a small random BERT with a tokenizer of the corpus.

The tokenizer is BPE, as no other trainer in `tokenizers` gives the same file each time; and without a subword prefix or
suffix, which would make its alphabet depend on the order of a hash map.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from tokenizers.normalizers import BertNormalizer, Normalizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from eadpr.runtime import files, model_folders
from eadpr.runtime.model_folders import NO_FILES, ModelFiles
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.config import Base, EncoderSettings, ResolvedSettings
from eadpr.training.encoder import TextEncoder, load_pair, load_pretrained, save

POSITIONS = 512  # BERT's; more where inputs are longer
SCRATCH = ResolvedSettings(pooling="mean", shared=True, question_tokens=32, passage_tokens=160)
SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}


def make_base(
    passages: Path, out: Path, *, base: Base, settings: EncoderSettings, expected: ModelFiles = NO_FILES
) -> int:
    """Write the folder `out` with the same encoder on both sides, or with both encoders of a folder that has two.

    Returns the number of parameters. Raises ValueError for a folder that does not hold `expected`.
    """
    # `shared` as the model is, whatever the arms set: they all start from the same bytes.
    settings = settings.model_copy(update={"shared": not model_folders.sides_differ(base.model)})
    if base.model == "scratch":
        resolved = settings.resolve(SCRATCH)
        encoders = [TextEncoder(*_scratch(passages, base=base, settings=resolved), resolved)]
    else:
        model_folders.check(base.model, expected)
        if model_folders.has_two_sides(base.model):
            encoders = list(dict.fromkeys(load_pair(Path(base.model), settings)))
        else:
            encoders = [load_pretrained(base.model, settings, revision=base.revision, setting="base.model")]
    with files.new_folder(out) as folder:
        save(folder, encoders[0], encoders[-1])
    return sum(parameter.numel() for encoder in encoders for parameter in encoder.parameters())


def _scratch(passages: Path, *, base: Base, settings: ResolvedSettings) -> tuple:
    """Return a random BERT and its tokenizer: after BERT's clean-up, in the form `[CLS] a [SEP] b [SEP]`."""
    texts, normalizer = sampled_texts(passages, base.tokenizer_passages), BertNormalizer(lowercase=base.lowercase)
    forms = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:0 [SEP]:0"}
    tokenizer = byte_level_bpe(texts, vocabulary=base.vocabulary, special=SPECIAL, normalizer=normalizer, **forms)
    sizes = {"hidden_size": base.hidden, "intermediate_size": base.intermediate, "num_hidden_layers": base.layers}
    sizes |= {"num_attention_heads": base.heads, "vocab_size": len(tokenizer)}
    positions = max(POSITIONS, settings.question_tokens, settings.passage_tokens)
    config = BertConfig(**sizes, max_position_embeddings=positions, pad_token_id=tokenizer.pad_token_id)
    torch.manual_seed(base.seed)
    return BertModel(config, add_pooling_layer=False), tokenizer


def sampled_texts(passages: Path, count: int) -> Iterator[str]:
    """Yield `title text` of at most `count` passages, evenly spaced over the corpus."""
    interval = -(-tables.count(passages, Passage) // count)
    return (f"{row.title} {row.text}" for row in islice(tables.rows(passages, Passage), 0, None, interval))


def byte_level_bpe(
    texts: Iterable[str], *, vocabulary: int, special: Mapping[str, str], normalizer: Normalizer, single: str, pair: str
) -> PreTrainedTokenizerFast:
    """Train byte-level byte-pair encoding (Sennrich et al., 2016); `single`, `pair` are the forms of one text and two.

    The vocabulary starts with the special tokens, in their order, and the 256 bytes, so no text is unknown.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    names, characters = list(special.values()), sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=names, initial_alphabet=characters, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    used = [(token, tokenizer.token_to_id(token)) for token in special.values() if token in f"{single} {pair}"]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=used)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **special
    )
