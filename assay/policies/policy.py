"""From a recipe's ``[model]`` table to a policy."""

from __future__ import annotations

from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig, sees
from assay.policies.pictures.vision_lm import VisionLM


def load_policy(config: ModelConfig, seed: int = 0) -> CausalLM:
    """Return the policy of a model: one that sees pictures where the model does.

    Raises:
        UsageError: see :func:`assay.policies.loading.load_model`.
    """
    return (VisionLM if sees(config) else CausalLM).load(config, seed)
