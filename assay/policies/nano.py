"""The built-in nano Llama: a character tokenizer and a small model, trained from scratch."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assay.media import MARK

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2VLForConditionalGeneration

ALPHABET = string.digits + string.ascii_letters + string.punctuation + " \n"


class NanoVision(BaseModel):
    """Shape of the nano model's vision tower."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    hidden: int = Field(64, gt=0, le=2**16)
    """Width; it divides into four heads of even width."""
    layers: int = Field(2, gt=0, le=1024)
    """Transformer blocks."""
    patch: int = Field(8, gt=0, le=64)
    """Pixels on a side of a patch; four patches make a position."""
    pixels: int = Field(64, gt=0, le=4096)
    """Most pixels on a side of a square picture; a larger one is made smaller."""

    @model_validator(mode="after")
    def _divides(self) -> NanoVision:
        if self.hidden % 16:
            raise ValueError(f"hidden = {self.hidden} does not divide into four heads of a width that four divides")
        if self.pixels < 2 * self.patch:
            raise ValueError(f"pixels = {self.pixels} are fewer than two patches of {self.patch}")
        return self


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
    vision: NanoVision | None = None
    """Shape of a vision tower: the model is then a Qwen2-VL, which sees pictures."""

    @model_validator(mode="after")
    def _heads_fit(self) -> NanoConfig:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden = {self.hidden} does not divide into {self.heads} heads of even width")
        return self


def nano_tokenizer(config: NanoConfig) -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token per character, a begin token before each prompt and an end token."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<bos>", "<eos>", "<unk>", *([] if config.vision is None else [MARK])]
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
        additional_special_tokens=[] if config.vision is None else [MARK],
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


def nano_vision_model(
    config: NanoConfig, seed: int
) -> tuple[Qwen2VLForConditionalGeneration, PreTrainedTokenizerFast, Any]:
    """Return a Qwen2-VL of the given shape with weights drawn from ``seed``, its tokenizer and its image processor."""
    import torch
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    from transformers.models.qwen2_vl import Qwen2VLImageProcessorPil

    assert config.vision is not None
    tokenizer, tower = nano_tokenizer(config), config.vision
    # Three axes of rotary positions share a head's pairs: a quarter for time, the rest for height and width.
    pairs = config.hidden // config.heads // 2
    plane = 3 * pairs // 8
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate or 3 * config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "max_position_embeddings": config.context,
        "initializer_range": config.hidden**-0.5,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": [pairs - 2 * plane, plane, plane],
        },
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
    }
    vision = {
        "depth": tower.layers,
        "embed_dim": tower.hidden,
        "hidden_size": config.hidden,
        "num_heads": 4,
        "mlp_ratio": 3,
        "patch_size": tower.patch,
        "temporal_patch_size": 1,
        "initializer_range": tower.hidden**-0.5,
    }
    image: Any = tokenizer.convert_tokens_to_ids(MARK)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2VLForConditionalGeneration(
            Qwen2VLConfig(text_config=text, vision_config=vision, image_token_id=image, tie_word_embeddings=True)
        )
    processor = Qwen2VLImageProcessorPil(
        patch_size=tower.patch,
        temporal_patch_size=1,
        merge_size=2,
        min_pixels=(2 * tower.patch) ** 2,
        max_pixels=tower.pixels**2,
    )
    return model, tokenizer, processor
