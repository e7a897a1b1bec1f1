"""From a recipe's ``[model]`` table to a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import CONFIG, FlowPolicy
from assay.policies.loading import ModelConfig, device_of, sees
from assay.policies.pictures.vision_lm import VisionLM


def load_policy(config: ModelConfig, seed: int = 0) -> Any:
    """Return the policy of a model: a :class:`~assay.policies.causal_lm.CausalLM`, one that sees pictures where the
    model does, or a flow.

    Raises:
        UsageError: see :func:`assay.policies.loading.load_model`.
    """
    if draws(config):
        return _flow(config, seed)
    return (VisionLM if sees(config) else CausalLM).load(config, seed)


def draws(config: ModelConfig) -> bool:
    """Whether a recipe's model is a flow."""
    return config.source == "flow" or (Path(config.source).expanduser() / CONFIG).is_file()


def _flow(config: ModelConfig, seed: int) -> FlowPolicy:
    odd = [name for name in ("lora", "quantise") if getattr(config, name) is not None]
    odd += [name for name in ("compile", "freeze_vision", "gradient_checkpointing") if getattr(config, name)]
    odd += ["dtype"] if config.dtype != "float32" else []
    if odd:
        raise UsageError(f"model.{odd[0]}: a flow has none of that, and learns in float32; leave it out")
    if config.source == "flow":
        return FlowPolicy(config.flow, network(config.flow, seed), device_of(config))
    folder = Path(config.source).expanduser()
    own = FlowConfig(**json.loads((folder / CONFIG).read_text(encoding="utf-8")))
    policy = FlowPolicy(own, network(own, seed), device_of(config))
    policy.load_weights(folder)
    return policy
