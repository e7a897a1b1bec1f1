"""From a recipe's ``[model]`` table to a policy."""

from __future__ import annotations

from typing import Any

from assay.policies.causal_lm import CausalLM
from assay.policies.flow.policy import FlowPolicy, draws
from assay.policies.loading import ModelConfig, sees
from assay.policies.pictures.vision_lm import VisionLM


def load_policy(config: ModelConfig, seed: int = 0) -> Any:
    """Return the policy of a model: a :class:`~assay.policies.causal_lm.CausalLM`, one that sees pictures where the
    model does, or a flow.

    Raises:
        UsageError: see :func:`assay.policies.loading.load_model`.
    """
    if draws(config):
        return FlowPolicy.load(config, seed)
    return (VisionLM if sees(config) else CausalLM).load(config, seed)
