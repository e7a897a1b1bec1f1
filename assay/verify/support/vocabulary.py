"""A tokenizer of words for small encoders that are trained from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.errors import UsageError


def word_tokenizer(texts: Sequence[str], most: int = 20_000, max_length: int = 256) -> Any:
    """Return a fast tokenizer of transformers whose vocabulary are the words and signs of texts, in lower case.

    One text reads ``[CLS] text [SEP]``, a pair ``[CLS] one [SEP] other [SEP]`` with types 0 and 1.

    Args:
        texts: what the words are of.
        most: of them, the commonest.
        max_length: tokens.

    Raises:
        UsageError: no texts.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if not texts:
        raise UsageError("the vocabulary of an encoder needs texts")
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=most, special_tokens=special))
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
