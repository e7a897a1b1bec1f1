"""The built-in nano Llama: a character tokenizer and a small model, trained from scratch."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

ALPHABET = string.digits + string.ascii_letters + string.punctuation + " \n"


class NanoConfig(BaseModel):
    """Shape of the nano model. The defaults are 0.64 million parameters in the layers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    hidden: int = Field(128, gt=0, le=2**16)
    """Width of the residual stream."""
    layers: int = Field(3, gt=0, le=1024)
    """Transformer blocks."""
    heads: int = Field(4, gt=0, le=1024)
    """Attention heads of each; ``hidden`` divides into twice as many."""
    intermediate: int | None = Field(None, gt=0, le=2**18)
    """Width of the MLP; three times ``hidden`` when left out."""
    context: int = Field(512, gt=1, le=10**7)
    """Longest prompt plus response, in tokens."""
    alphabet: str = Field(ALPHABET, min_length=1)
    """Characters the tokenizer knows; any other becomes the unknown token."""

    @model_validator(mode="after")
    def _heads_fit(self) -> NanoConfig:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden = {self.hidden} does not divide into {self.heads} heads of even width")
        return self


def nano_tokenizer(config: NanoConfig) -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token per character, a begin token before each prompt and an end token."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<bos>", "<eos>", "<unk>"]
    vocabulary = {token: i for i, token in enumerate([*special, *dict.fromkeys(config.alphabet)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def nano_model(config: NanoConfig, vocabulary: int, seed: int) -> LlamaForCausalLM:
    """Return a Llama of the given shape with weights drawn from ``seed``, input and output embeddings tied."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    llama = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=config.hidden,
        intermediate_size=config.intermediate or 3 * config.hidden,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.context,
        # The usual 0.02 suits wide models; at this width it leaves the output nearly uniform and learning slow.
        initializer_range=config.hidden**-0.5,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(llama)
