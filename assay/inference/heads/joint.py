"""Reward and remaining length of a response in the making, predicted together, and what a set of them is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.inference.heads.value_head import check_width, read_head
from assay.inference.scoring.base import Score
from assay.policies.base import Policy
from assay.registry import part
from assay.rewards.step_models.states import states, width
from assay.types import Ask, Episode, Group, Task

EDGES = (0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


@dataclass(frozen=True, slots=True)
class Bins:
    """The table of outcomes: ``rewards`` values evenly spread over [0, 1], times ranges of remaining tokens.

    Range l is [edges_l, edges_{l+1}), the last one open; outcome (r, l) is number l + (ranges) r.

    Args:
        rewards: 2 for right and wrong; 7 for the values 0, 1/6, ..., 1.
        edges: ascending, the first 0; the paper's 9 edges are 8 ranges.
    """

    rewards: int = 2
    edges: tuple[int, ...] = EDGES

    def __post_init__(self) -> None:
        if self.rewards < 2 or len(self.edges) < 2 or self.edges[0] != 0 or list(self.edges) != sorted(set(self.edges)):
            raise UsageError("bins: needs 2 or more rewards, and ascending edges of lengths that begin with 0")

    @property
    def lengths(self) -> int:
        return len(self.edges) - 1

    def of(self, length: float, reward: float) -> int:
        """Return the number of an outcome, the reward taken to the nearest value."""
        place = int(np.searchsorted(self.edges[1:-1], length, side="right"))
        return place + self.lengths * round(float(reward) * (self.rewards - 1))

    @property
    def values(self) -> NDArray[np.float64]:
        """Reward of each bin."""
        return np.linspace(0, 1, self.rewards)

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Remaining tokens that each range stands for, its middle."""
        return (np.array(self.edges[:-1]) + np.array(self.edges[1:]) - 1) / 2


Table = NDArray[np.float64]
"""Joint probabilities ``(rewards, lengths)`` of one response."""


def expected_max(values: NDArray[np.float64], marginals: Sequence[NDArray[np.float64]]) -> float:
    """Return E[max_i X_i] of independent X_i over ascending ``values``, by the product of their distributions."""
    if not marginals:
        return 0.0
    below = np.prod([np.cumsum(m) for m in marginals], axis=0)
    return float(values @ np.diff(below, prepend=0.0))


def utility(
    tables: Sequence[Table], values: NDArray[np.float64], tokens: NDArray[np.float64], beta: float, a: float
) -> float:
    """Return U = E[max V] - beta (a E[sum L] + (1 - a) E[max L]) of independent responses; nothing is worth 0.

    A beginning that is to be continued twice is in ``tables`` twice.

    Args:
        tables: of each response, see :data:`Table`.
        values, tokens: of the bins.
        beta: what a token costs.
        a: share of the cost that is of compute (all tokens), the rest of waiting (the longest).
    """
    total = sum(float(t.sum(0) @ tokens) for t in tables)
    longest = expected_max(tokens, [t.sum(0) for t in tables])
    return expected_max(values, [t.sum(1) for t in tables]) - beta * (a * total + (1 - a) * longest)


def choose(
    live: Sequence[Table],
    done: Sequence[Table],
    bins: Bins,
    beta: float,
    a: float,
    most: int,
    copies: int = 1,
    least: int = 0,
    begun: int | None = None,
    new: int | None = None,
) -> list[int]:
    """Return which of ``live`` to continue, one entry for each copy, by adding the best while U grows.

    What is in ``done`` counts for its value and costs nothing more. Then whatever U is better without is taken out.

    Args:
        live: beginnings, and a fresh start if that is possible.
        done: whole responses.
        bins: of the tables.
        beta, a: see :func:`utility`.
        most: entries at most.
        copies: of one beginning at most.
        least: entries that are added whether they pay or not.
        begun: how many of ``live``, from the first on, are beginnings, which go on once without being new samples; all
            of them unless given.
        new: new samples at most: further copies of beginnings, and copies of what comes after them; any number unless
            given.
    """
    begun = len(live) if begun is None else begun

    def affordable(chosen: Sequence[int]) -> bool:
        return new is None or len(chosen) - len({i for i in chosen if i < begun}) <= new

    def worth(chosen: Sequence[int]) -> float:
        cost = utility([live[i] for i in chosen], bins.values, bins.tokens, beta, a) - expected_max(
            bins.values, [live[i].sum(1) for i in chosen]
        )
        return cost + expected_max(bins.values, [t.sum(1) for t in [*done, *(live[i] for i in chosen)]])

    chosen: list[int] = []
    here = worth(chosen)
    while len(chosen) < most:
        more = [i for i in range(len(live)) if chosen.count(i) < copies and affordable([*chosen, i])]
        options = [(worth([*chosen, i]), -i) for i in more]
        if not options or (max(options)[0] <= here + 1e-12 and len(chosen) >= least):
            break
        here, last = max(options)
        chosen.append(-last)
    while len(chosen) > max(least, 0):
        options = [(worth(chosen[:k] + chosen[k + 1 :]), k) for k in range(len(chosen))]
        if not options or max(options)[0] <= here + 1e-12:
            break
        here, k = max(options)
        del chosen[k]
    return sorted(chosen)


class JointHead(torch.nn.Module):
    """P(reward, remaining length) = softmax(W h + b) of hidden states ``(..., D)``, ``(..., rewards, lengths)``.

    Args:
        size: D, see :func:`~assay.rewards.step_models.states.width`.
        bins: the outcomes.
    """

    def __init__(self, size: int, bins: Bins):
        super().__init__()
        self.bins = bins
        self.linear = torch.nn.Linear(size, bins.rewards * bins.lengths)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "... R L"]:
        p = self.linear(hidden).softmax(-1)
        return p.reshape(*p.shape[:-1], self.bins.rewards, self.bins.lengths)

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        from safetensors.torch import save_file

        meta = {"rewards": str(self.bins.rewards), "edges": ",".join(map(str, self.bins.edges))}
        save_file(self.state_dict(), path, metadata=meta)

    @classmethod
    def load(cls, path: str | Path) -> JointHead:
        """Read what :meth:`save` wrote; raise UsageError where it is not there."""
        weights, meta = read_head(path, "joint")
        bins = Bins(int(meta["rewards"]), tuple(map(int, meta["edges"].split(","))))
        head = cls(weights["linear.weight"].shape[1], bins)
        head.load_state_dict(weights)
        return head

    @torch.no_grad()
    def tables(self, policy: Policy, episodes: Sequence[Episode]) -> list[Table]:
        """Return the table after the last token of each response or beginning; after the prompt, where it is empty."""
        check_width(self.linear, policy)
        begun = [i for i, e in enumerate(episodes) if len(e.tokens)]
        rows: dict[int, Tensor] = {}
        for i, h in zip(begun, states(policy, [episodes[i] for i in begun]), strict=True):
            rows[i] = h[-1]
        fresh = [i for i in range(len(episodes)) if i not in rows]
        rows |= zip(fresh, start_states(policy, [episodes[i] for i in fresh]), strict=True)
        weight = self.linear.weight
        return [self(rows[i].to(weight)).double().cpu().numpy() for i in range(len(episodes))]


@torch.no_grad()
def start_states(policy: Policy, episodes: Sequence[Episode]) -> list[Float[Tensor, "D"]]:
    """Return the state after each prompt, from which the first token is predicted."""
    if not episodes:
        return []
    if getattr(policy, "tree", None) is not None:
        nodes = policy.starts([e.prompt for e in episodes])  # type: ignore[attr-defined]
        return list(torch.nn.functional.one_hot(nodes, width(policy)).float())
    one = [Episode(e.prompt, np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool), None, "", "length") for e in episodes]
    batch = Batch.from_groups([Group(Ask(Task("", ""), 1), (e,)) for e in one])
    return list(policy.forward(batch, {"hidden"}).live["hidden"][:, 0].float())


@part("scorer", "joint")
@dataclass(frozen=True)
class ByJointHead:
    """The reward that a joint head on the engine's own policy expects after the last token; it costs no tokens.

    Args:
        head: a :class:`JointHead`, or the file of one.
    """

    head: JointHead | str

    def __post_init__(self) -> None:
        if not isinstance(self.head, JointHead):
            object.__setattr__(self, "head", JointHead.load(self.head))

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        policy = getattr(engine, "policy", None)
        if policy is None:
            raise UsageError("scorer 'joint' reads the policy itself, which this engine does not give")
        assert isinstance(self.head, JointHead)
        found = self.head.tables(policy, [e for _, e in pairs])
        return [Score(float(t.sum(1) @ self.head.bins.values)) for t in found]

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return 0
