"""A tokenizer trained on the corpus.

BPE, because of the trainers in `tokenizers` only BPE gives the same file each time; and without a subword prefix or
suffix, with which its alphabet, too, depends on the order of a hash map.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}


def train_bpe(texts: Iterable[str], *, vocabulary: int, lowercase: bool) -> PreTrainedTokenizerFast:
    """Byte-level byte-pair encoding (Sennrich et al., 2016) after BERT's clean-up, in the form `[CLS] a [SEP] b [SEP]`.

    The vocabulary starts with the 5 special tokens, `[PAD]` with id 0, and the 256 bytes, so nothing is ever unknown.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:0 [SEP]:0",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **SPECIAL
    )
