"""Tiny models for images and text, of several families, with random weights, and pictures for them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from assay.media import MARK, Picture
from assay.policies.nano import NanoConfig, NanoVision, nano_tokenizer, nano_vision_model
from assay.policies.pictures.vision_lm import VisionLM
from assay.types import Message

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789 ?:,.\n"
NANO = NanoConfig(hidden=32, layers=2, heads=2, context=256, alphabet=ALPHABET, vision=NanoVision(hidden=32, pixels=48))
TEXT = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
TOWER = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "initializer_range": 0.3,
}
KINDS = ("qwen2_vl", "llava", "idefics3")


def parts(kind: str) -> tuple[Any, Any, Any]:
    """Return a family's model, its tokenizer, and its processor or image processor."""
    if kind == "qwen2_vl":
        return nano_vision_model(NANO, seed=0)
    tokenizer = nano_tokenizer(NANO)
    image, text = tokenizer.convert_tokens_to_ids(MARK), {**TEXT, "vocab_size": len(tokenizer)}
    torch.manual_seed(0)
    if kind == "llava":
        from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
        from transformers.models.clip import CLIPImageProcessorPil

        tower = {**TOWER, "model_type": "clip_vision_model", "projection_dim": 32}
        llava = LlavaConfig(text_config=text, vision_config=tower, image_token_id=image)
        crop = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
        processor: Any = LlavaProcessor(
            crop,
            tokenizer,
            patch_size=8,
            vision_feature_select_strategy="default",
            image_token=MARK,
            num_additional_image_tokens=1,
        )
        return LlavaForConditionalGeneration(llava), tokenizer, processor
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration, Idefics3Processor
    from transformers.models.idefics3 import Idefics3ImageProcessorPil

    tiles = Idefics3ImageProcessorPil(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    processor = Idefics3Processor(tiles, tokenizer, image_seq_len=4)
    text["vocab_size"] = len(tokenizer)
    idefics = Idefics3Config(
        text_config=text, vision_config=TOWER, image_token_id=image, scale_factor=2, pad_token_id=0
    )
    return Idefics3ForConditionalGeneration(idefics), tokenizer, processor


@functools.cache
def sighted(kind: str = "qwen2_vl") -> VisionLM:
    """Return a policy that sees, the same one each time."""
    return VisionLM(*parts(kind))


@functools.cache
def picture(seed: int, height: int = 32, width: int = 48) -> Picture:
    return Picture.of(np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8))


def asked(text: str, *images: Picture) -> tuple[Message, ...]:
    """Return a question as a chat; its text has the marks."""
    return ({"role": "user", "content": text, "images": images},)
