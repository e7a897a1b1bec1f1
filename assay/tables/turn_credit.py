"""What credits of turns estimate, against an exact gradient: ``python -m assay.tables.turn_credit``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.tabular_turns import TabularTurns
from assay.environments.corridor import ACTIONS, Corridor
from assay.method import Method, make_method
from assay.registry import build
from assay.returns import placed_rewards, returns_to_go
from assay.rollout.turns.enumerated import every_episode, player
from assay.rollout.turns.multi_turn import MultiTurn
from assay.tables.cells import spec_of, table
from assay.types import Ask, Group

GROUP = 4
"""Trajectories that are compared."""
COLUMNS = ("pull", "bias", "noise")
ALIKE = 1e-9
"""Less than this is rounding."""

LOO, CENTRED = {"kind": "leave_one_out"}, {"kind": "center"}
CREDITS: dict[str, Mapping[str, Any]] = {
    "the return of the episode": {"name": "reinforce"},
    "RLOO": {"name": "rloo"},
    "GRPO": {"name": "grpo"},
    "GRPO, not divided": {"name": "grpo", "normalise": False},
    "GAE, exact critic, decay 1": {"name": "gae", "decay": 1.0, "whitened": False},
    "GAE, exact critic, decay 0": {"name": "gae", "decay": 0.0, "whitened": False},
    "GAE over turns, exact critic, decay 0.95": {"name": "turn_gae", "whitened": False},
    "GAE over turns, exact critic, discount 0.5": {"name": "turn_gae", "discount": 0.5, "whitened": False},
    "returns at the same turn": {"name": "turn_group", **LOO, "padded": False},
    "returns at the same turn, ended as 0": {"name": "turn_group", **LOO},
    "returns at the same turn, divided": {"name": "turn_group", "padded": False},
    "returns discounted by 0.5, same turn": {"name": "turn_group", **LOO, "discount": 0.5, "padded": False},
    "rewards at the same turn, summed; living alone": {"name": "turn_group", "sums": "after", **LOO, "padded": False},
    "rewards at the same turn, summed; ended as 0": {"name": "turn_group", "sums": "after", **LOO},
    "rewards at the same turn (VPR)": {"name": "turn_group", "sums": "none", **LOO, "padded": False},
    "rewards of the task, summed (IGPO)": {"name": "turn_group", "by": "task", "sums": "after"},
    "returns in the same state": {"name": "turn_group", "by": "state", **LOO},
    "the same beside the episode (GiGPO)": {"name": "turn_group", "by": "state", "episode": 1.0, "discount": 0.95},
    "returns of the same tag": {"name": "turn_group", "by": "tag+task", **LOO},
    "SALT on RLOO": {"name": "salt", "base": "rloo"},
    "SALT on RLOO, window 0": {"name": "salt", "base": "rloo", "window": 0},
}
"""Name -> credit. Rewards are the verdict's score and what turns earned."""


@dataclass(frozen=True, slots=True)
class World:
    """A corridor with one task and a policy.

    Attributes:
        title: what is in it, for people.
        options: of the environment.
        start, goal: of the task.
        stops: the policy goes right with this probability and stops otherwise, and then stops; ``None``: logits are
            drawn with a standard deviation of 1.
    """

    title: str
    options: Mapping[str, Any]
    start: int
    goal: int
    stops: float | None = None


WORLDS = {
    "stop or go": World(
        "two rooms: go on with p = 0.3, which pays 1 a turn later, or stop", {"rooms": 2, "moves": 2}, 1, 2, 0.3
    ),
    "outcome": World("three rooms, three moves, the outcome alone", {"rooms": 3, "moves": 3}, 1, 2),
    "paid": World("the same, and 0.5 for each room nearer", {"rooms": 3, "moves": 3, "paid": 0.5}, 1, 2),
    "no clock": World(
        "the same, and keys of states do not tell the time", {"rooms": 3, "moves": 3, "paid": 0.5, "clock": False}, 1, 2
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a group's gradient estimate g = 1/G sum_it A_it grad log pi(a_it), against the exact gradient of J.

    Attributes:
        pull: c = <E g, grad J> / |grad J|^2: how much of the gradient there is in it.
        bias: |E g - c grad J| / |c grad J|: what is beside it.
        noise: sqrt(E |g - E g|^2) / |c grad J|.
    """

    pull: float
    bias: float
    noise: float


class Played:
    """All episodes of a world, played by ``multi_turn``, with what is exact about them."""

    def __init__(self, world: World, group: int = GROUP):
        made = Corridor(**world.options)
        task, moves = made.task_of(world.start, world.goal), world.options["moves"]
        self.engine: TabularTurns = player(made, [task], [ACTIONS], moves)
        policy, tree = self.engine.policy, self.engine.policy.tree
        with torch.no_grad():
            if world.stops is None:
                drawn = np.random.default_rng(0).standard_normal(tuple(policy.logits.shape))
                policy.logits[1:] = torch.from_numpy(drawn)[1:]
            else:
                policy.logits[1:] = torch.tensor([-60.0, -60.0, 60.0], dtype=policy.logits.dtype)
                odds = math.log(world.stops / (1 - world.stops))
                policy.logits[1] = torch.tensor([-60.0, odds, 0.0], dtype=policy.logits.dtype)
        rollout = MultiTurn({"name": "corridor", **world.options}, Sampling(1), turns=moves)
        self.leaves = every_episode(self.engine, [task], rollout)
        self.size, self.task = group, task
        with torch.no_grad():
            self.chances = policy.leaf_logprobs().exp()
            p = policy.log_policy().exp()
        # d log pi(token t of a leaf) / d logits.
        nodes, tokens = tree.nodes[:, 1:], tree.tokens[:, 1:]
        inside = torch.arange(1, tree.depth) < tree.lengths[:, None]
        score = torch.zeros(*nodes.shape, *policy.logits.shape, dtype=p.dtype)
        for leaf, t in inside.nonzero().tolist():
            node = int(nodes[leaf, t])
            score[leaf, t, node] = -p[node]
            score[leaf, t, node, int(tokens[leaf, t])] += 1
        self.score = score.flatten(2)
        self.sets = [s for s in combinations_with_replacement(range(len(tree)), group) if self._chance(s) > 0]
        self.weights = torch.tensor([self._chance(s) for s in self.sets], dtype=p.dtype)
        alone = self.valued(make_method("grpo", reward=["verdict", "turns"]), [(k,) for k in range(len(tree))])
        worth = alone.rewards + alone.token_rewards.sum(-1)  # type: ignore[union-attr]
        self.gradient = torch.einsum("l,l,ltp->p", self.chances, worth, self.score[:, : alone.mask.shape[1]])
        self.returns = returns_to_go(placed_rewards(alone), alone.mask)
        self.values = self._values(nodes, inside)

    def _chance(self, group: tuple[int, ...]) -> float:
        """Probability of drawing these leaves, in any order."""
        ways = math.factorial(len(group))
        for leaf in set(group):
            ways //= math.factorial(group.count(leaf))
        return ways * math.prod(float(self.chances[leaf]) for leaf in group)

    def _values(self, nodes: Tensor, inside: Tensor) -> Tensor:
        """Expected return from each token of each leaf on."""
        size = len(self.engine.policy.logits)
        weight = self.chances[:, None].expand(nodes.shape)
        through = torch.zeros(size, dtype=weight.dtype).index_add_(0, nodes[inside], weight[inside])
        total = torch.zeros(size, dtype=weight.dtype).index_add_(0, nodes[inside], (weight * self.returns)[inside])
        return torch.where(inside, (total / through.clamp(min=1e-300))[nodes], 0)

    def valued(self, method: Method, sets: list[tuple[int, ...]]) -> Batch:
        """Return groups of these leaves with rewards."""
        groups = []
        for k, members in enumerate(sets):
            episodes = tuple(
                replace(self.leaves[leaf].episodes[0], trajectory=f"{k}/{i}") for i, leaf in enumerate(members)
            )
            verdicts = tuple(self.leaves[leaf].verdicts[0] for leaf in members)
            groups.append(Group(Ask(self.task, len(members)), episodes, verdicts))
        return method.worth(Batch.from_groups(groups, torch.float64))

    def measure(self, credit: Mapping[str, Any]) -> Measured:
        """Return what a credit's estimate is like, over all groups there are."""
        method = make_method("grpo", reward=["verdict", "turns"], credit=build("credit", dict(credit)))
        batch = self.valued(method, self.sets)
        leaves = torch.tensor([leaf for members in self.sets for leaf in members])
        batch.signals["values"] = self.values[leaves][:, : batch.mask.shape[1]]
        advantages = method.credit(batch)
        per_sample = torch.einsum("nt,ntp->np", advantages, self.score[leaves][:, : advantages.shape[1]])
        g = per_sample.reshape(len(self.sets), self.size, -1).mean(1)
        mean = (self.weights[:, None] * g).sum(0)
        spread = float((self.weights * (g - mean).square().sum(-1)).sum()) ** 0.5
        length = float(self.gradient.norm())
        pull = float(mean @ self.gradient) / length**2
        if abs(pull) < ALIKE:
            return Measured(0.0, math.inf, math.inf)
        beside = float((mean - pull * self.gradient).norm())
        return Measured(pull, beside / abs(pull * length), spread / abs(pull * length))


INTRODUCTION = f"""
# Credits of turns, against the exact gradient

Made by `python -m assay.tables.turn_credit > docs/turn-credit.md`; do not edit. In a corridor that a tabular policy
plays through `multi_turn` all episodes can be written down (`assay/rollout/turns/enumerated.py`), and with them all
groups of {GROUP}. So expectation and variance of the gradient estimate g that a credit makes of a group are exact:

- *pull*: how much of the gradient of the expected reward (what turns earn, and the outcome) there is in the mean of g.
  A credit that divides by deviations has a scale of its own; 0 is no gradient at all, below 0 is the wrong way.
- *bias*: what else there is in the mean of g, as a share of that. 0 where more samples lead to the right direction.
- *noise*: the standard deviation of g, as a share of that.

The critic is exact, which no learned one is. A biased credit may learn well for all that: what is divided, discounted
or myopic is often less noisy. Where the *living alone* are compared before it is summed, the policy that decides who
lives is told nothing of it: no pull at all in *stop or go*. Who is alone at a turn, or in a state, is compared with
nobody, which is a small bias too.
"""


def page() -> str:
    """Return the page."""
    played = {name: Played(world) for name, world in WORLDS.items()}
    lines = [f"- *{name}*: {world.title};" for name, world in WORLDS.items()]
    header = ["credit", *(f"{name}: {what}" if what == "pull" else what for name in WORLDS for what in COLUMNS)]
    found = []
    for name, credit in CREDITS.items():
        cells = [cell for world in played.values() for cell in cells_of(world.measure(credit))]
        found.append([name, *cells])
    specs = [[name, spec_of(credit)] for name, credit in CREDITS.items()]
    recipes = ["As recipes:", table(["credit", "part"], specs)]
    sections = [INTRODUCTION, "\n".join(lines), table(header, found), *recipes]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def cells_of(found: Measured) -> tuple[str, str, str]:
    """Return a measurement as it is printed."""
    if not found.pull:
        return "0", "–", "–"
    return f"{found.pull:.2f}", f"{0 if found.bias < ALIKE else found.bias:.2g}", f"{found.noise:.2f}"


if __name__ == "__main__":
    print(page(), end="")
