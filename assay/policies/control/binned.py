"""Actions as bins within bins, chosen one after the other, by values whose softmax the choice is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.policies.control.networks import Networks
from assay.policies.control.policy import ControlPolicy


def soft_advantages(u: Float[Tensor, "*M B"], alpha: float) -> Float[Tensor, "*M B"]:
    """A = u - alpha logsumexp(u / alpha), so that exp(A / alpha) is a distribution over the bins."""
    return alpha * (u / alpha).log_softmax(-1)


class BinnedPolicy(ControlPolicy):
    """Twin values Q_k(s, a) = V_k(s) + sum_i A_k,i[b_i] of an action that is chosen by bins, and the policy they make.

    Every dimension begins as [-1, 1]. Decision i = (level, dimension), level by level, divides what is left of its
    dimension's interval into B parts and keeps part b_i; the action is the middle of what is left at last. The network
    of decision i reads the state, the middles of all dimensions' present intervals (which is how it knows what has been
    chosen before) and which decision it is, and A_k,i = :func:`soft_advantages` of what it says. Then

        alpha log sum over all actions of exp(Q_k(s, a) / alpha) = V_k(s)

    and exp((Q_k - V_k) / alpha) is a policy; the one that acts has at each decision

        pi_i(b) = softmax_b(min(A_1,i[b], A_2,i[b]) / (alpha temperature))

    Quantities beside the entropy: ``twin_q`` ``(N, T, 2)``, Q_k of the step that a token is of, and ``twin_advantages``
    ``(N, T, 2, B)``, A_k,i of every bin.

    Source: ARSQ (arXiv 2502.00288).
    """

    quantities = frozenset({"entropy", "twin_q", "twin_advantages"})

    @property
    def per_step(self) -> int:
        return self.config.levels * self.sizes[1]

    def made(self) -> torch.nn.Module:
        states, actions = self.sizes
        module = torch.nn.Module()
        module.value = Networks(2, states, self.config.hidden, 1)
        module.advantage = Networks(2, states + actions + self.per_step, self.config.hidden, self.config.bins)
        return module

    def chance(self, rng: np.random.Generator) -> np.ndarray:
        return rng.random(self.per_step)

    def values(self, states: Float[Tensor, "M S"]) -> Float[Tensor, "2 M"]:
        """Return V_k(s)."""
        module: Any = self.module
        found: Tensor = module.value(states)[..., 0]
        return found

    def advantages(
        self, states: Float[Tensor, "M S"], middles: Float[Tensor, "M A"], decision: Int[Tensor, "M"]
    ) -> Float[Tensor, "2 M B"]:
        """Return A_k,i of every bin, given the present intervals' middles and which decision it is."""
        module: Any = self.module
        which = torch.nn.functional.one_hot(decision, self.per_step).to(states)
        known = middles if self.config.conditioned else torch.zeros_like(middles)
        return soft_advantages(module.advantage(torch.cat([states, known, which], -1)), self.config.alpha)

    def tokens_of(self, actions: np.ndarray) -> np.ndarray:
        low, width = -np.ones_like(actions, dtype=np.float64), 2.0
        chosen = []
        for _ in range(self.config.levels):
            width /= self.config.bins
            bins = np.clip(((actions - low) / width).astype(np.int64), 0, self.config.bins - 1)
            low = low + bins * width
            chosen.append(bins)
        return np.concatenate(chosen, -1)

    def middles(self, tokens: Int[Tensor, "M P"]) -> Float[Tensor, "M Q A"]:
        """Return the middles of the intervals before each decision and after the last, Q = P + 1: the action."""
        low = torch.full((len(tokens), self.sizes[1]), -1.0, dtype=torch.float64, device=tokens.device)
        width = torch.full_like(low, 2.0)
        found = [low + width / 2]
        for i in range(self.per_step):
            dimension = i % self.sizes[1]
            width[:, dimension] /= self.config.bins
            low[:, dimension] += tokens[:, i] * width[:, dimension]
            found.append(low + width / 2)
        return torch.stack(found, 1).float()

    def decide(
        self, states: Float[Tensor, "M S"], chance: np.ndarray, temperature: float
    ) -> tuple[Int[Tensor, "M P"], Float[Tensor, "M A"], Float[Tensor, "M P"]]:
        count = len(states)
        tokens = torch.zeros(count, self.per_step, dtype=torch.int64, device=states.device)
        logprobs = torch.zeros(count, self.per_step, device=states.device)
        drawn = torch.from_numpy(chance).to(states.device)
        for i in range(self.per_step):
            decision = torch.full((count,), i, dtype=torch.int64, device=states.device)
            found = self.advantages(states, self.middles(tokens)[:, i], decision)
            logp = self._chosen(found, temperature or 1.0)
            if temperature:
                reached = logp.double().exp().cumsum(-1)
                tokens[:, i] = (reached < drawn[:, i : i + 1] * reached[:, -1:]).sum(-1)
            else:
                tokens[:, i] = logp.argmax(-1)
            logprobs[:, i] = logp.gather(-1, tokens[:, i : i + 1])[:, 0]
        return tokens, self.middles(tokens)[:, -1], logprobs

    def read(
        self,
        states: Float[Tensor, "M S"],
        actions: Float[Tensor, "M A"],
        tokens: Int[Tensor, "M P"],
        live: Collection[str],
        temperature: float,
    ) -> tuple[Float[Tensor, "M P"], dict[str, Tensor]]:
        count, steps = tokens.shape
        middles = self.middles(tokens)[:, :-1].flatten(0, 1)
        decision = torch.arange(steps, device=tokens.device).repeat(count)
        all_of = self.advantages(states.repeat_interleave(steps, 0), middles, decision)
        table = all_of.view(2, count, steps, self.config.bins)
        logp = self._chosen(table, temperature)
        out = {}
        if "entropy" in live:
            out["entropy"] = -(logp.exp() * logp).sum(-1)
        if "twin_q" in live:
            own = table.gather(-1, tokens.expand(2, count, steps)[..., None])[..., 0].sum(-1)
            q = (self.values(states) + own).T
            out["twin_q"] = q[:, None].expand(count, steps, 2)
        if "twin_advantages" in live:
            out["twin_advantages"] = table.permute(1, 2, 0, 3)
        return logp.gather(-1, tokens[..., None])[..., 0], out

    def _chosen(self, advantages: Float[Tensor, "2 *M B"], temperature: float) -> Float[Tensor, "*M B"]:
        """Return log pi over the bins."""
        return (advantages.min(0).values / (self.config.alpha * temperature)).log_softmax(-1)
