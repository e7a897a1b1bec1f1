"""A weighted sum of rewards, each term logged by itself."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError, nearest
from assay.registry import find, names, part
from assay.rewards.spec import name_of
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.verify.none import told


@part("reward", "weighted")
class WeightedSum(Around):
    """R_i = sum_k w_k R_ik.

    Args:
        terms: what :func:`assay.rewards.spec.reward_of` takes, by the name it is logged under. Or a list of these,
            where a table may have a ``weight``, and ``as``, its name in the log; else a term is logged under its part's
            or its function's own name, the second of a name with a 2 behind it.
        weights: one number per term; 1 where left out.
        untold: what becomes of a response of which some term is not known: ``drop`` leaves it out of the update;
            ``skip`` leaves the term out of its sum, as TRL does, so that each term may be for tasks of a kind of its
            own, and the response out only where no term is known, or its verifier failed.

    Raises:
        UsageError: a weight is for no term, or is no finite number.
    """

    def __init__(
        self,
        terms: Mapping[str, Any] | Sequence[Any],
        weights: Mapping[str, float] | None = None,
        untold: Literal["drop", "skip"] = "drop",
    ):
        listed: dict[str, Any] = {}
        if not isinstance(terms, Mapping):
            terms, listed = named(terms)
        for name, weight in (weights or {}).items():
            if name not in terms:
                raise UsageError(f"reward 'weighted' has a weight for {name!r} but no such term{nearest(name, terms)}")
            listed[name] = weight
        for name, weight in listed.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
                raise UsageError(f"reward 'weighted': the weight of {name!r} is {weight!r}, not a finite number")
        super().__init__(terms)
        self.weights = {name: float(listed.get(name, 1.0)) for name in self.inner}
        self.skips = untold == "skip"

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        known = {name: _known(reward, batch) for name, reward in found.items()} if self.skips else {}
        values, tokens, terms = torch.zeros_like(batch.rewards), None, terms_of(found)
        for name, whole in found.items():
            reward = _zero_outside(whole, known[name]) if self.skips else whole
            values = values + self.weights[name] * reward.values
            if reward.tokens is not None:
                tokens = self.weights[name] * reward.tokens + (0 if tokens is None else tokens)
                terms[name] = reward.values + torch.where(batch.mask, reward.tokens, 0).sum(-1)
        if not self.skips:
            return Reward(values, tokens, valid_in(found, batch), terms)
        valid = torch.zeros_like(batch.valid)
        for name, here in known.items():
            valid = valid | here
            terms[name] = torch.where(here, terms[name], torch.nan)  # what is not known is in no mean of the log
        return Reward(values, tokens, valid, terms)


def _known(reward: Reward, batch: Batch) -> Bool[Tensor, "N"]:
    """Samples that a term is known of, and whose verifier did not fail."""
    judged = batch.valid & torch.tensor([told(v) for v in batch.verdicts], dtype=torch.bool)
    return judged if reward.valid is None else judged & reward.valid


def _zero_outside(reward: Reward, known: Bool[Tensor, "N"]) -> Reward:
    tokens = None if reward.tokens is None else torch.where(known[:, None], reward.tokens, 0)
    return replace(reward, values=torch.where(known, reward.values, 0), tokens=tokens)


def _check_keys(term: Mapping[str, Any]) -> None:
    """Raise UsageError for a key that was to be ``weight``."""
    name = term.get("name", "function")
    known = inspect.signature(find("reward", name)).parameters if name in names("reward") else {}
    for key in term:
        if key not in (*known, "name", "as", "weight") and get_close_matches(key, ["weight"], cutoff=0.7):
            raise UsageError(f"a term of the reward has no {key!r}; did you mean 'weight'?")


def named(terms: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the terms of a list by their names in the log, and the weights of those that have one."""
    if isinstance(terms, str):
        raise UsageError(f"reward 'weighted': terms = {terms!r} is no table or list of rewards")
    out: dict[str, Any] = {}
    weights = {}
    for term in terms:
        spec, weight, name = term, None, None
        if isinstance(term, Mapping):
            _check_keys(term)
            spec = {k: v for k, v in term.items() if k not in ("weight", "as")}
            weight, name = term.get("weight"), term.get("as")
        base = name = name or name_of(spec)
        while name in out:
            name = f"{base} {sum(k == base or k.startswith(f'{base} ') for k in out) + 1}"
        out[name] = spec
        if weight is not None:
            weights[name] = weight
    return out, weights
