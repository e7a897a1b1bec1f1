"""Rewards of turns, found by what their latent factors say of the return: a decoder whose sum over an episode fits
it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.engines.asking import judge_of
from assay.errors import UsageError
from assay.ops.turns import Turns, turns_of
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.process.factors import Layout, evaluate, write
from assay.signals.base import Models


def decomposition(
    r: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], returns: Float[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """RD: (mean_t r_t - R / T)^2 of each trajectory, which is (sum_t r_t - R)^2 / T^2; steps outside ``mask`` are
    none."""
    length = mask.sum(-1).clamp(min=1)
    return ((torch.where(mask, r, 0).sum(-1) - returns) / length) ** 2


def randomised(
    r: Float[Tensor, "B T"],
    chosen: Bool[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    returns: Float[Tensor, "B"],
    unbiased: bool = True,
) -> Float[Tensor, "B"]:
    """RRD: (mean over K chosen steps of r - R / T)^2, less (1 - K / T) Var(r) / K, the variance that choosing adds to
    it.

    The variance is the sample's (divided by K - 1), 0 for a single step. With all steps chosen it is
    :func:`decomposition`.
    """
    length, k = mask.sum(-1).clamp(min=1), chosen.sum(-1).clamp(min=1)
    mean = torch.where(chosen, r, 0).sum(-1) / k
    loss = (mean - returns / length) ** 2
    if not unbiased:
        return loss
    spread = torch.where(chosen, (r - mean[:, None]) ** 2, 0).sum(-1) / (k - 1).clamp(min=1)
    return loss - (1 - k / length) * spread / k


def by_step(factors: Float[Tensor, "M d"], agents: Sequence[int]) -> Float[Tensor, "T A d"]:
    """Return the factors of a trajectory's turns by step and agent; NaN where an agent had no such turn."""
    who = {agent: i for i, agent in enumerate(sorted(set(agents)))}
    step = [agents[:m].count(agent) for m, agent in enumerate(agents)]
    out = torch.full((max(step) + 1, len(who), factors.shape[1]), torch.nan)
    out[step, [who[agent] for agent in agents]] = factors
    return out


def shares(table: Turns, paid: Float[Tensor, "N"]) -> Float[Tensor, "M"]:
    """Return what an episode was paid in equal parts on the last turns of its agents."""
    out, whole = torch.zeros(len(table), dtype=paid.dtype), table.trajectory.tolist()
    last = {(one, agent): m for m, (one, agent) in enumerate(zip(whole, table.agent, strict=True))}
    final, many = dict(zip(whole, table.sample.tolist(), strict=True)), Counter(one for one, _ in last)
    for (one, _), m in last.items():
        out[m] = paid[final[one]] / many[one]
    return out


@part("reward", "latent_reward")
class LatentReward:
    """r_hat_t = f(phi(turn t)) on each turn's last own token, where sum_t r_hat_t fits what episodes were paid.

    Where several agents act (``Turn.info["agent"]``) step t is the t-th turn of each, and what the episode was paid is
    fitted by the sum over agents and steps, sum_t sum_i f(phi(turn t of agent i)).

    phi is a function from what is known of a turn (:class:`~assay.rewards.process.factors.Layout`) to factors. It is
    written by a model at the first batch, checked on that batch's turns and fixed
    (:func:`~assay.rewards.process.factors. write`), or read from a file. f is a small network, fitted to the
    trajectories of all policies so far by :func:`decomposition` or :func:`randomised`. Until it has been fitted once,
    an episode is paid what it was paid, of several agents each as much of it.

    Args:
        engine: who writes phi; with ``path`` nobody.
        path: a Python file with ``evaluation_func(obs)``.
        task: what the model is told of the task.
        n, tries: candidates, and corrections of the merged function.
        loss: ``sum`` for the decomposition, ``random`` for the randomised one.
        k: steps of the latter, at most all.
        unbiased: see :func:`randomised`.
        layers, width, lr: of f, and of Adam.
        updates, batch: steps of the fit after a batch, and trajectories in each.
        every: batches between fits.
        capacity: trajectories that are kept.

    Raises:
        UsageError: neither an engine nor a path, or a number below 1.

    Source: LaRe (arXiv 2412.11120) and its authors' code; RRD from arXiv 2111.13485.
    """

    def __init__(
        self,
        engine: Any = None,
        path: Path | None = None,
        task: str = "",
        n: int = 5,
        tries: int = 5,
        loss: Literal["sum", "random"] = "random",
        k: int = 10,
        unbiased: bool = True,
        layers: int = 3,
        width: int = 64,
        lr: float = 3e-4,
        updates: int = 100,
        batch: int = 64,
        every: int = 1,
        capacity: int = 10_000,
    ):
        if (engine is None) == (path is None):
            raise UsageError("reward 'latent_reward': needs an engine that writes the factors, or a path to their file")
        if min(n, k, layers, width, updates, batch, every, capacity) < 1 or tries < 0:
            raise UsageError("reward 'latent_reward': numbers must be at least 1, and tries at least 0")
        self.engine = None if engine is None else judge_of(engine, "who writes factors")
        self.source = "" if path is None else Path(path).read_text(encoding="utf-8")
        self.task, self.n, self.tries, self.kind, self.k, self.unbiased = task, n, tries, loss, k, unbiased
        self.layers, self.width, self.lr, self.updates, self.size, self.every = layers, width, lr, updates, batch, every
        self.kept: deque[tuple[Tensor, float]] = deque(maxlen=capacity)
        self.layout: Layout | None = None
        self.decoder: torch.nn.Sequential | None = None
        self.seen = 0
        self.fitted = False

    def start(self, models: Models) -> None:
        self.models = models

    def factors(self, batch: Batch) -> tuple[Any, Tensor]:
        """Return the batch's turns and their factors ``(M, d)``; the first time, have the function written."""
        table = turns_of(batch)
        if self.layout is None:
            self.layout = Layout.of(table.records)
        rows = self.layout.rows(table, batch)
        if not self.source:
            assert self.engine is not None
            seed = int(self.models.rng.integers(2**31))
            self.source = write(self.engine, self.task, self.layout, rows, self.n, self.tries, seed)
        return table, torch.from_numpy(evaluate(self.source, rows)).float()

    def __call__(self, batch: Batch) -> Reward:
        paid, told = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype), judged(batch)
        if not self.fitted:
            table = turns_of(batch)
            if not any(table.agent):
                return Reward(torch.where(told, paid, 0), valid=told, terms={"paid": paid})
            worth = shares(table, torch.where(told, paid, 0))
        else:
            assert self.decoder is not None
            table, factors = self.factors(batch)
            with torch.no_grad():
                worth = self.decoder(factors)[:, 0].to(batch.rewards)
        tokens, sums = torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype), torch.zeros_like(batch.rewards)
        for m, turn in enumerate(table.records):
            row = int(table.sample[m])
            sums[row] += worth[m]
            own = batch.mask[row, : turn.end].nonzero()
            if len(own):
                tokens[row, own[-1, 0]] += worth[m]
        return Reward(torch.zeros_like(sums), tokens, told, {"latent": sums, "paid": paid})

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Keep the batch's trajectories, and every few batches fit f; metrics ``latent/loss`` and
        ``latent/factors``."""
        table, factors = self.factors(batch)
        for one in table.trajectory.unique().tolist():
            mine = table.trajectory == one
            last = int(table.sample[mine][-1])
            if bool(batch.valid[table.sample[mine]].all()) and batch.verdicts[last].passed is not None:
                steps = by_step(factors[mine], [agent for agent, own in zip(table.agent, mine, strict=True) if own])
                self.kept.append((steps, float(batch.verdicts[last].score)))
        self.seen += 1
        if not self.kept or self.seen % self.every:
            return {}
        if self.decoder is None:
            self.make(factors.shape[1])
        losses = [self.fit(models.rng) for _ in range(self.updates)]
        self.fitted = True
        return {"latent/loss": float(np.mean(losses)), "latent/factors": float(factors.shape[1])}

    def make(self, inputs: int) -> None:
        """Make f and its optimiser."""
        sizes = [inputs, *[self.width] * (self.layers - 1)]
        hidden = [m for a, b in pairwise(sizes) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
        with torch.random.fork_rng():
            torch.manual_seed(int(self.models.rng.integers(2**62)))
            self.decoder = torch.nn.Sequential(*hidden, torch.nn.Linear(sizes[-1], 1))
        self.optimizer = torch.optim.Adam(self.decoder.parameters(), lr=self.lr)

    def fit(self, rng: np.random.Generator) -> float:
        """Take a step on trajectories drawn from those that are kept; return the loss."""
        assert self.decoder is not None
        drawn = [self.kept[i] for i in rng.integers(len(self.kept), size=self.size)]
        steps, returns = [x if x.dim() == 3 else x[:, None] for x, _ in drawn], torch.tensor([r for _, r in drawn])
        padded = torch.full((len(steps), *map(max, zip(*(x.shape for x in steps), strict=True))), torch.nan)
        for row, x in zip(padded, steps, strict=True):
            row[: x.shape[0], : x.shape[1]] = x
        acts = ~padded.isnan().any(-1)
        mask = acts.any(-1)
        r = torch.where(acts, self.decoder(padded.nan_to_num())[..., 0], 0).sum(-1)
        if self.kind == "sum":
            loss = decomposition(r, mask, returns).mean()
        else:
            order = torch.from_numpy(rng.random(mask.shape)).masked_fill(~mask, 2.0).argsort(-1).argsort(-1)
            loss = randomised(r, mask & (order < self.k), mask, returns, self.unbiased).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def state_dict(self) -> dict[str, Any]:
        made = self.decoder is not None
        return {
            "source": self.source,
            "layout": None if self.layout is None else [list(self.layout.tags), list(self.layout.notes)],
            "decoder": self.decoder.state_dict() if self.decoder is not None else None,
            "inputs": self.decoder[0].in_features if self.decoder is not None else 0,
            "optimizer": self.optimizer.state_dict() if made else None,
            "kept": list(self.kept),
            "seen": self.seen,
            "fitted": self.fitted,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source, self.seen, self.fitted = state["source"], state["seen"], state["fitted"]
        self.layout = None if state["layout"] is None else Layout(*map(tuple, state["layout"]))
        self.kept = deque(state["kept"], maxlen=self.kept.maxlen)
        if state["decoder"] is not None:
            self.make(state["inputs"])
            assert self.decoder is not None
            self.decoder.load_state_dict(state["decoder"])
            self.optimizer.load_state_dict(state["optimizer"])
