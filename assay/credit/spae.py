"""Credit for the steps of a response by confidence and correctness of what it would answer after each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.ops import broadcast, group_mean, outcome, whiten
from assay.registry import part
from assay.rollout.probes import probes_of
from assay.signals.base import Models
from assay.signals.likelihood import encoder, text_of_reference
from assay.signals.pattern_steps import PatternSteps

PROBED = {
    "name": "probed",
    "inner": "dynamic",
    "steps": PatternSteps(pattern=r"\.\n\n"),
    "probes": 5,
    "probe_tokens": 10,
    "temperature": 0.6,
    "last": False,
    "score": False,
    "forced": "",
    "header": "**Final Answer**\n\\boxed{",
}
"""How SPAE has responses sampled and probed."""


@dataclass(frozen=True, slots=True)
class ProbeCorrectness:
    """Signal ``probe_correctness`` ``(N, K)``: mean_m pi(y*_m | x, prefix_k, what was put after it, y*_<m).

    K places are those where the rollout ``probed`` probed, y* is the reference, pi the policy as it is before the
    update, at temperature 1. NaN where there is no place, no reference that is a text or a number, or no room for it.
    """

    name = "probe_correctness"
    whole = True

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N K"]:
        context = getattr(models.policy, "context", None)
        encode = encoder(models)
        at: list[list[int]] = []
        what: list[list[np.ndarray]] = []
        sizes = []
        for episode, task in zip(batch.episodes, batch.tasks, strict=True):
            reference = text_of_reference(task)
            body = encode(reference) if reference else np.zeros(0, dtype=np.int64)
            texts = [np.concatenate([np.asarray(p.between, dtype=np.int64), body]) for p in probes_of(episode)]
            places = [p.at for p in probes_of(episode)]
            room = np.inf if context is None else context - len(episode.prompt)
            fits = [a + len(x) <= room for a, x in zip(places, texts, strict=True)]
            # Places rise, so that those with room come first.
            kept = [*fits, False].index(False) if len(body) else 0
            at.append(places[:kept])
            what.append(texts[:kept])
            sizes.append(len(body))
        found = models.continuations(batch, at, what, temperature=1.0)
        out = torch.full(found.shape[:2], torch.nan, dtype=found.dtype)
        for i, (texts, size) in enumerate(zip(what, sizes, strict=True)):
            for k, text in enumerate(texts):
                out[i, k] = found[i, k, len(text) - size : len(text)].exp().mean()
        return out


@part("credit", "spae")
@dataclass(frozen=True, slots=True)
class SPAE:
    """A_it = whitened (f_k (R_i - mean_g R) + xi g_k) for a token t of step k, over all tokens of the batch.

        Phi_k = 1.5 acc_k conf_k + 0.5 acc_k - conf_k
        f_k   = 1 - alpha (1 - exp(-C_k)),   C_k the number of steps before k with Phi > saturation
        g_k   = exp(D_k) - mean exp(D),      D = Phi_k - Phi_{k-1}, brought to [0, 1] over the batch

    acc is the signal ``probe_correctness``, conf the confidence of the answers that the rollout ``probed`` sampled
    after step k. D of a response's first step is 0 before it is scaled. What follows the last place, such as the
    answer, has f = 1 and g = 0. A step where Phi is not known has g = 0 and does not saturate; all D equal, g is 0.
    Means and bounds go over the steps of active samples. Where alpha and xi are 0 it is ``reinforce++-baseline``.

    Source: SPAE (arXiv 2601.03823).

    Args:
        alpha: how much of the outcome's advantage saturation takes at most, in [0, 1].
        xi: weight of the potential's change.
        saturation: see above.
        epsilon: added to the variance.
    """

    alpha: float = 0.5
    xi: float = 0.5
    saturation: float = 0.9
    epsilon: float = 1e-8
    signal: ProbeCorrectness = field(default_factory=ProbeCorrectness)

    group_relative = True
    level = "token"
    rollout = PROBED

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal})

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "batch std over tokens"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        centred = broadcast(rewards - group_mean(rewards, batch.group, batch.active), batch)
        phi, at = potentials(batch)
        fade = faded(phi, self.alpha, self.saturation)
        gain = shaped(phi, batch.active[:, None])
        place = torch.arange(batch.mask.shape[1])
        factor, bonus = torch.ones_like(centred), torch.zeros_like(centred)
        begin = torch.zeros_like(at[:, :1])
        for k in range(at.shape[1]):
            inside = (place >= begin) & (place < at[:, k, None])
            factor = torch.where(inside, fade[:, k, None], factor)
            bonus = torch.where(inside, gain[:, k, None], bonus)
            begin = torch.maximum(begin, at[:, k, None])
        return whiten(factor * centred + self.xi * bonus, batch.mask & batch.active[:, None], self.epsilon)


def potentials(batch: Batch) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """Return Phi at each place, NaN where not known, and after how many tokens that is, 0 where there is none."""
    acc = batch.signals["probe_correctness"].to(batch.rewards.dtype)
    found = [probes_of(episode) for episode in batch.episodes]
    width = max(map(len, found), default=0)
    conf = torch.full((len(batch), width), torch.nan, dtype=acc.dtype)
    at = torch.zeros((len(batch), width), dtype=torch.int64)
    for i, probes in enumerate(found):
        for k, probe in enumerate(probes):
            at[i, k] = probe.at
            conf[i, k] = torch.nan if probe.confidence is None else probe.confidence
    acc = torch.nn.functional.pad(acc, (0, width - acc.shape[1]), value=torch.nan)
    return step_potential(acc, conf), at


def step_potential(acc: Float[Tensor, "*A"], conf: Float[Tensor, "*A"]) -> Float[Tensor, "*A"]:
    """Phi = 1.5 acc conf + 0.5 acc - conf, in [-1, 1]: 1 where sure and right, -1 where sure and wrong."""
    return 1.5 * acc * conf + 0.5 * acc - conf


def faded(phi: Float[Tensor, "N K"], alpha: float, saturation: float) -> Float[Tensor, "N K"]:
    """Return f, see :class:`SPAE`."""
    before = torch.nn.functional.pad((phi > saturation).to(phi.dtype).cumsum(1), (1, 0))[:, :-1]
    return 1 - alpha * (1 - torch.exp(-before))


def shaped(phi: Float[Tensor, "N K"], known: Bool[Tensor, "N #K"]) -> Float[Tensor, "N K"]:
    """Return g, see :class:`SPAE`; 0 outside ``known`` and where Phi is not."""
    change = torch.diff(phi, dim=1, prepend=phi[:, :1])
    told = known & ~change.isnan()
    values = change[told]
    if not values.numel():
        return torch.zeros_like(phi)
    least, most = values.min(), values.max()
    scaled = ((change - least) / (most - least).clamp(min=1e-12)).exp()
    return torch.where(told, scaled - scaled[told].mean(), 0)
