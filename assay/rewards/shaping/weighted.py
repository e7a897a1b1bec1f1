"""A weighted sum of rewards, each term logged by itself."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError, nearest
from assay.registry import find, names, part
from assay.rewards.spec import name_of
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.verify.none import told


@part("reward", "weighted")
class WeightedSum(Around):
    """R_i = sum_k w_k R_ik, over the terms that could be told of response i.

    Args:
        terms: what :func:`assay.rewards.spec.reward_of` takes, by the name it is logged under. Or a list of these,
            where a table may have a ``weight``, and ``as``, its name in the log; else a term is logged under its part's
            or its function's own name, the second of a name with a 2 behind it.
        weights: one number per term; 1 where left out.
        untold: what becomes of a response of which some term could not be told: ``drop`` leaves it out of the update;
            ``skip`` leaves the term out of its sum, as where each term is for tasks of another kind (TRL's ``None``),
            and the response out only where no term could be told.

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
        values, tokens, terms = torch.zeros_like(batch.rewards), None, terms_of(found)
        judged = batch.valid & torch.tensor([told(v) for v in batch.verdicts], dtype=torch.bool)
        valid = torch.zeros_like(judged) if self.skips else valid_in(found, batch)
        for name, reward in found.items():
            value, on_tokens = reward.values, reward.tokens
            known = judged if reward.valid is None else judged & reward.valid
            if self.skips:
                valid = valid | known
                value = torch.where(known, value, 0)
                on_tokens = None if on_tokens is None else torch.where(known[:, None], on_tokens, 0)
            values = values + self.weights[name] * value
            if on_tokens is not None:
                tokens = self.weights[name] * on_tokens + (0 if tokens is None else tokens)
                terms[name] = reward.values + torch.where(batch.mask, on_tokens, 0).sum(-1)
            if self.skips:
                # What is not known is in no mean of the log.
                terms[name] = torch.where(known, terms[name], torch.nan)
        return Reward(values, tokens, valid, terms)


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
