"""Whose likelihoods a signal tells: this run's models, or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError
from assay.policies.base import Policy


def loaded(scorer: Any, signal: str) -> Any:
    """Return ``policy`` or ``reference``, the names of this run's models, as they are, and another model as a policy.

    Args:
        scorer: a name, a hub id or folder, a table of a recipe's ``[model]``, or a policy. What is loaded is frozen.
        signal: who asks, for the error.

    Raises:
        UsageError: none of these, or the model cannot be loaded.
    """
    if scorer in ("policy", "reference") or isinstance(scorer, Policy):
        return scorer
    if not isinstance(scorer, str | Mapping):
        raise UsageError(f"signal {signal!r}: a scorer is a name, a table or a policy, not {type(scorer).__name__}")
    from assay.policies.loading import ModelConfig
    from assay.policies.policy import load_policy

    config = ModelConfig(source=scorer) if isinstance(scorer, str) else ModelConfig(**scorer)
    policy = load_policy(config)
    policy.module.requires_grad_(False).eval()
    return policy
