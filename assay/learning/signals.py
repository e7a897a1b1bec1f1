"""Computes, once per step, the union of the signals that the parts of a method need."""

from __future__ import annotations

from collections.abc import Collection

import torch

from assay.batch import Batch
from assay.errors import UsageError, nearest
from assay.policies.base import DRAWING_QUANTITIES, QUANTITIES, Policy
from assay.signals.base import Models, Signal

ALIASES = {"entropy": "policy_entropy"}


def source(name: str) -> tuple[str, str]:
    """Return which model, and which quantity of it, the signal ``policy_X`` or ``reference_X`` stands for."""
    model, _, quantity = ALIASES.get(name, name).partition("_")
    return model, quantity


def name_of(need: str | Signal) -> str:
    return need if isinstance(need, str) else need.name


def wants_reference(needs: Collection[str | Signal]) -> bool:
    """Whether some signal reads the policy that RL began with."""
    return any(
        source(n)[0] == "reference" if isinstance(n, str) else "reference" in getattr(n, "models", ()) for n in needs
    )


def check_signals(needs: Collection[str | Signal], live: Collection[str], policy: Policy) -> None:
    """Raise UsageError for a signal nobody can compute, or two of one name."""
    known = {f"{m}_{q}" for m in ("policy", "reference") for q in ("logprobs", *QUANTITIES, *DRAWING_QUANTITIES)} | {
        *ALIASES
    }
    wanted = set(live)
    names = [name_of(n) for n in needs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two parts of the method bring a signal {name!r} of their own; give both the same one")
    for name in (n for n in needs if isinstance(n, str)):
        if name.partition("@")[0] not in known:
            raise UsageError(f"the method needs the signal {name!r}, which is not known{nearest(name, known)}")
        wanted.add(source(name)[1])
    for name in wanted - {"logprobs"}:
        if name.partition("@")[0] not in policy.quantities:
            raise UsageError(f"the method needs {name!r}, which a {type(policy).__name__} policy does not give")


def compute_signals(batch: Batch, needs: Collection[str | Signal], models: Models) -> None:
    """Fill ``batch.signals`` with the union of ``needs``: one pass per model for all that are quantities of it."""
    by_model: dict[str, list[str]] = {}
    for name in sorted(n for n in needs if isinstance(n, str)):
        by_model.setdefault(source(name)[0], []).append(name)
    for model, names in by_model.items():
        found = models.quantities(batch, {source(n)[1] for n in names}, model)
        batch.signals.update({name: found[source(name)[1]] for name in names})
    with torch.no_grad(), models.together():
        for signal in sorted((n for n in needs if not isinstance(n, str)), key=name_of):
            batch.signals[signal.name] = signal(batch, models)
            if getattr(signal, "whole", False):
                batch.whole |= {signal.name}
