"""A hidden key to be written within a budget of symbols, by a policy that sees how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.papers.multimodal_eval.s032_vb_vs_vf import LETTERS, Planted, planted_tasks
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.verify.base import Verifier


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of ``length`` out of ``symbols``; the right symbol advances, a wrong one begins anew, success ends it.

    The policy is a table over progress and starts with the right symbol at probabilities that rise from ``first`` to
    ``last``, the others sharing the rest. The return of a response is H - T for one that succeeds
    after T of at most H symbols, else 0. A run trains from the same start at each budget H by itself.

    An arm may give a table ``setting`` of knobs that differ for it alone (steps, group, epochs, mini_batches), as long
    as steps x group, the responses sampled at each budget, are the same in all.

    Args:
        length, symbols: of the key.
        first, last: see above.
        budgets: H, rising.
        steps, group, lr, optimizer, epochs, mini_batches: of training; one task per step.

    Raises:
        UsageError: fewer than two budgets, they do not rise, or a key of one symbol.
    """

    length: int = 6
    symbols: int = 4
    first: float = 0.35
    last: float = 0.8
    budgets: tuple[int, ...] = (12, 24, 48, 96)
    steps: int = 40
    group: int = 100
    lr: float = 0.1
    optimizer: Literal["sgd", "adam"] = "adam"
    epochs: int = 1
    mini_batches: int = 1

    def __post_init__(self) -> None:
        if len(self.budgets) < 2 or list(self.budgets) != sorted(set(self.budgets)) or self.length < 2:
            raise UsageError("setting 'keys': give two budgets or more, rising, and a key of two symbols or more")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact expected returns in symbols.

        For each H: ``return@H``, and ``success@H`` its probability of success. ``growth``: return at the largest budget
        less that at the smallest, so that of two arms the difference of it is the growth of their gap. ``share``: mean
        over budgets of the return divided by H. ``start/...`` of the returns, and of ``sigma``, their standard
        deviation at the largest budget. ``rollouts``.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        here = replace(self, **knobs)
        if set(knobs) - {"steps", "group", "epochs", "mini_batches"} or here.sampled != self.sampled:
            raise UsageError(
                "an arm may change steps, group, epochs and mini_batches of its setting, at equal rollouts"
            )
        return here._run(method, seed)

    @property
    def sampled(self) -> int:
        return self.steps * self.group

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        [task] = planted_tasks(1, self.length, self.symbols, seed)
        out: dict[str, float] = {}
        engines = []
        for h in self.budgets:
            policy = self.policy(task.reference["key"])
            engine = Counting(policy)
            training = Training(
                self.steps,
                1,
                self.group,
                self.lr,
                self.optimizer,
                self.epochs,
                self.mini_batches,
                max_tokens=h,
            )
            out[f"start/return@{h}"], out["start/sigma"], _ = moments(policy.chances(), h)
            train(policy, [task], spelled(h), method, training, seed, engine=engine)
            out[f"return@{h}"], _, out[f"success@{h}"] = moments(policy.chances(), h)
            engines.append(engine)
        return {
            **out,
            "growth": out[f"return@{self.budgets[-1]}"] - out[f"return@{self.budgets[0]}"],
            "share": float(np.mean([out[f"return@{h}"] / h for h in self.budgets])),
            "rollouts": float(sum(e.sampled for e in engines)),
        }

    def policy(self, key: str) -> KeyPolicy:
        """Return the policy at the start."""
        right = torch.linspace(self.first, self.last, self.length, dtype=torch.float64)
        logits = (1 - right)[:, None].div(self.symbols - 1).log().repeat(1, self.symbols)
        codes = torch.tensor([LETTERS.index(c) for c in key])
        logits[torch.arange(self.length), codes] = right.log()
        return KeyPolicy(logits, codes)


def spelled(horizon: int) -> Verifier:
    """Return :class:`~assay.papers.multimodal_eval.s032_vb_vs_vf.Planted` for responses that are paths such as
    ``0/2/1``.
    """
    judge = Planted(horizon)
    return lambda task, response: judge(task, "".join(LETTERS[code] for code in path_of(response) or ()))


def moments(p: np.ndarray, horizon: int) -> tuple[float, float, float]:
    """Return mean and standard deviation of the return H - T, and P(T <= H), exactly.

    Args:
        p: as :meth:`KeyPolicy.chances` returns it.
        horizon: H.
    """
    length = len(p) - 1
    state, done, mean, square = np.zeros(length + 1), 0.0, 0.0, 0.0
    state[0] = 1.0
    for t in range(1, horizon + 1):
        moved = np.zeros(length + 1)
        moved[1:length] = (state * p)[: length - 1]
        moved[1] += state[length] * p[length]
        now = float(state[length - 1] * p[length - 1])
        moved[length] = float((state * (1 - p)).sum())
        state, done = moved, done + now
        mean, square = mean + (horizon - t) * now, square + (horizon - t) ** 2 * now
    return mean, float(np.sqrt(max(square - mean**2, 0.0))), done


class Graph(Tree):
    """Decisions whose children may lead back, so that paths have no longest; the leaves cannot be enumerated."""

    @property
    def depth(self) -> int:
        return 2**30


class KeyPolicy(TabularPolicy):
    """A softmax at each progress, and one more at progress 0 after a wrong symbol, as node 0 is where no node leads.

    Args:
        logits: ``(length, symbols)``.
        key: ``(length,)`` codes of the right symbols.
    """

    def __init__(self, logits: Float[Tensor, "K W"], key: Int[Tensor, "K"]):
        length, symbols = logits.shape
        children = torch.full((length + 1, symbols), length)
        places = torch.arange(length)
        children[places, key] = torch.where(places + 1 < length, places + 1, -1)
        children[length, key[0]] = 1
        super().__init__(Graph(children, torch.ones(1, dtype=torch.float64), ("",)), torch.cat([logits, logits[:1]]))
        self.key = key

    def chances(self) -> np.ndarray:
        """Probability of the right symbol at each progress, that of progress 0 again last, ``(length + 1,)``."""
        with torch.no_grad():
            return np.asarray(self.log_policy().exp()[torch.arange(len(self.logits)), self.right].numpy())

    @property
    def right(self) -> Int[Tensor, "K"]:
        return torch.cat([self.key, self.key[:1]])
