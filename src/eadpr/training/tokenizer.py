"""Tokenizers trained on the corpus.

BPE, because of the trainers in `tokenizers` only BPE gives the same file each time; and without a subword prefix or
suffix, with which its alphabet, too, depends on the order of a hash map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}


def train_bpe(texts: Iterable[str], *, vocabulary: int, lowercase: bool) -> PreTrainedTokenizerFast:
    """The tokenizer of an encoder: after BERT's clean-up, in the form `[CLS] a [SEP] b [SEP]`; `[PAD]` has id 0."""
    return byte_level_bpe(
        texts,
        vocabulary=vocabulary,
        special=SPECIAL,
        normalizer=normalizers.BertNormalizer(lowercase=lowercase),
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:0 [SEP]:0",
    )


def byte_level_bpe(
    texts: Iterable[str],
    *,
    vocabulary: int,
    special: Mapping[str, str],
    normalizer: normalizers.Normalizer,
    single: str,
    pair: str,
) -> PreTrainedTokenizerFast:
    """Byte-level byte-pair encoding (Sennrich et al., 2016); `single` and `pair` are the forms of one text and of two.

    The vocabulary starts with the special tokens, in their order, and the 256 bytes, so nothing is ever unknown.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(special.values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    used = [(token, tokenizer.token_to_id(token)) for token in special.values() if token in f"{single} {pair}"]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=used)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **special
    )
