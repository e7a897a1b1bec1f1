"""Whose likelihoods a signal tells: this run's models, or another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.policies.base import Policy


def loaded(scorer: Any, signal: str) -> Any:
    """Return ``policy`` or ``reference``, the names of this run's models, as they are, and another model as a policy.

    Args:
        scorer: a name, a hub id or folder, the folder of a run or of a checkpoint in one, a table of a recipe's
            ``[model]``, or a policy. What is loaded is frozen.
        signal: who asks, for the error.

    Raises:
        UsageError: none of these, or the model cannot be loaded.
    """
    if scorer in ("policy", "reference") or isinstance(scorer, Policy):
        return scorer
    if not isinstance(scorer, str | Mapping):
        raise UsageError(f"signal {signal!r}: a scorer is a name, a table or a policy, not {type(scorer).__name__}")
    from assay.engines.target import resolve
    from assay.policies.loading import ModelConfig
    from assay.policies.policy import load_policy

    if isinstance(scorer, str) and (Path(scorer).expanduser() / "config.toml").is_file():
        policy: Any = resolve(scorer).load()
    else:
        policy = load_policy(ModelConfig(source=scorer) if isinstance(scorer, str) else ModelConfig(**scorer))
    policy.module.requires_grad_(False).eval()
    return policy
