"""S121: how far apart two rewards are, what cannot change a policy left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.policies.tabular import Tree

Array = NDArray[np.float64]
Canonical = Literal["val", "minimal", "epic", "none"]
Norm = Literal["l1", "l2", "linf", "gap"]
Measure = Literal["distance", "angle"]
SMALL = 1e-10
"""A canonical reward whose norm is below this share of the reward's is zero, but for rounding."""


@paper(
    "S121",
    "STARC",
    arxiv="2309.15257",
    seams=["evaluate"],
    essentials={
        "value-adjusted levelling: the advantage of a fixed policy": "test_the_worked_numbers",
        "the least element of what is equivalent": "test_the_minimal_form_is_the_least_of_its_class",
        "0 for shaped, redistributed and scaled rewards, 2 for opposite ones, 1 for none": "test_the_worked_distances",
        "0 exactly for rewards that order policies alike": "test_zero_means_the_same_order_of_policies",
        "norms, angles and the spread of returns": "test_norms",
        "a pseudometric": "test_it_is_a_pseudometric",
        "a form that ignores the transitions is not valid": "test_epic_is_fooled_by_what_cannot_happen",
        "rewards of steps against the outcome's, on a tree of responses": "test_step_rewards_on_a_tree",
        "regret follows the distance": "test_the_setting_of_its_claim",
    },
    choices=(
        "the fixed policy is uniform",
        "the spread of returns is found by policy iteration",
        "a function of finite processes, of which a tree of responses is one; no command measures it",
    ),
)
def starc(
    canonical: Canonical = "val", norm: Norm = "l2", measure: Measure = "distance"
) -> Callable[[MDP, Array, Array], float]:
    """Return d(R1, R2) = m(s(R1), s(R2)), s(R) = c(R) / n(c(R)), or 0 where n(c(R)) is, as a function of an MDP and two
    rewards ``(S, A, S)``.

        val:     c(R)(s, a, s') = E_{S' ~ T(s, a)}[R(s, a, S') + gamma V(S')] - V(s), V the values of the uniform policy
        minimal: the element of least L2 norm of R's class
        epic:    c(R)(s, a, s') = R(s, a, s') + E[gamma R(s', A, S') - R(s, A, S') - gamma R(S, A, S')], all uniform;
                 for comparison: it does not go by T, and is not valid
        none:    R itself

    The class of R is what is had by potentials, R + gamma Phi(s') - Phi(s), and by moving reward between successors so
    that E_{S'}[R(s, a, S')] stays: no policy can be better or worse for it. n is a norm over (s, a, s'), or ``gap``,
    the most less the least return of a policy from the start. m is the distance by the same norm (by L2 with ``gap``),
    or the angle, in radians.

    By L2, d is 0 for rewards that order policies alike and for no others, 2 for opposite ones, 1 where one is trivial.
    A step reward in the form of a potential's change (a value model's progress) has distance 0 to the outcome: as an
    ordinary reward it adds nothing.

    Source: STARC (arXiv 2309.15257).
    """

    def distance(mdp: MDP, first: Array, second: Array) -> float:
        a, b = (standardised(mdp, r, canonical, norm) for r in (first, second))
        if measure == "angle":
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            if not lengths:
                return 0.0 if np.linalg.norm(a) == np.linalg.norm(b) else float(np.pi / 2)
            return float(np.arccos(np.clip((a * b).sum() / lengths, -1, 1)))
        return size(mdp, a - b, "l2" if norm == "gap" else norm)

    return distance


@dataclass(frozen=True, eq=False)
class MDP:
    """A finite decision process without a reward.

    Attributes:
        transitions: ``(S, A, S)`` chances of successors; of a terminal state they play no part.
        gamma: discount, in [0, 1]; 1 only where every policy ends.
        start: ``(S,)`` chances to begin in a state; uniform if left out.
        terminal: ``(S,)`` bool: no return after it.

    Raises:
        UsageError: chances that do not sum to 1, or ``gamma`` out of range, or 1 where a policy may go on for ever.
    """

    transitions: Array
    gamma: float
    start: Array = field(default_factory=lambda: np.zeros(0))
    terminal: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        states = len(self.transitions)
        if not len(self.terminal):
            object.__setattr__(self, "terminal", np.zeros(states, dtype=bool))
        if not len(self.start):
            object.__setattr__(self, "start", np.full(states, 1 / states))
        live = ~self.terminal
        if not np.allclose(self.transitions[live].sum(-1), 1) or not np.isclose(self.start.sum(), 1):
            raise UsageError("S121: the chances of successors, and of the start, have to sum to 1")
        if not 0 <= self.gamma <= 1 or (self.gamma == 1 and not self._ends()):
            raise UsageError(f"S121: gamma {self.gamma:g} must be in [0, 1], and below 1 where a policy may not end")

    def _ends(self) -> bool:
        """Whether every policy ends: no transition leads round to where it came from."""
        live = np.flatnonzero(~self.terminal)
        leads = (self.transitions[np.ix_(live, np.arange(self.transitions.shape[1]), live)] > 0).any(1)
        reach = np.linalg.matrix_power(leads.astype(float), max(len(live), 1))
        return not bool(reach.any())

    @property
    def uniform(self) -> Array:
        """``(S, A)`` the policy that takes all actions alike."""
        return np.full(self.transitions.shape[:2], 1 / self.transitions.shape[1])

    def expected(self, reward: Array) -> Array:
        """``(S, A)`` E_{S' ~ T(s, a)}[R(s, a, S')]; 0 in terminal states."""
        found: Array = np.where(self.terminal[:, None], 0.0, (self.transitions * reward).sum(-1))
        return found

    def values(self, reward: Array, policy: Array) -> Array:
        """``(S,)`` V of a policy ``(S, A)``."""
        live = ~self.terminal
        moves = np.einsum("sa,sat->st", policy, self.transitions) * live[:, None] * live[None]
        found: Array = np.linalg.solve(
            np.eye(len(live)) - self.gamma * moves, (policy * self.expected(reward)).sum(-1) * live
        )
        return found

    def actions(self, reward: Array, policy: Array) -> Array:
        """``(S, A)`` Q of a policy."""
        after = np.where(self.terminal, 0, self.values(reward, policy))
        found: Array = np.where(
            self.terminal[:, None], 0, self.expected(reward) + self.gamma * self.transitions @ after
        )
        return found

    def ret(self, reward: Array, policy: Array) -> float:
        """J: the expected return of a policy from the start."""
        return float(self.start @ self.values(reward, policy))

    def best(self, reward: Array) -> Array:
        """``(S, A)`` an optimal deterministic policy, by policy iteration."""
        chosen = np.zeros(len(self.transitions), dtype=int)
        while True:
            q = self.actions(reward, self.of(chosen))
            better = np.where(q.max(1) > q[np.arange(len(q)), chosen] + 1e-12, q.argmax(1), chosen)
            if (better == chosen).all():
                return self.of(chosen)
            chosen = better

    def of(self, chosen: NDArray[np.int64]) -> Array:
        """``(S, A)`` the policy that takes these actions."""
        found: Array = np.eye(self.transitions.shape[1])[chosen]
        return found

    def policies(self) -> list[Array]:
        """Every deterministic policy of what is not terminal."""
        each = [range(1 if end else self.transitions.shape[1]) for end in self.terminal]
        return [self.of(np.array(chosen)) for chosen in product(*each)]


def canonicalised(mdp: MDP, reward: Array, canonical: Canonical = "val") -> Array:
    """Return c(R) ``(S, A, S)``, see :func:`starc`; 0 on what follows terminal states."""
    live = ~mdp.terminal
    reward = np.where(live[:, None, None], reward, 0.0)
    if canonical == "none":
        return reward
    if canonical == "val":
        advantage = np.where(
            live[:, None], mdp.actions(reward, mdp.uniform) - mdp.values(reward, mdp.uniform)[:, None], 0
        )
        return np.broadcast_to(advantage[:, :, None], reward.shape).copy()
    if canonical == "epic":
        mean = reward.mean((1, 2))
        return reward + mdp.gamma * mean[None, None, :] - mean[:, None, None] - mdp.gamma * reward.mean()
    basis = equivalences(mdp)
    flat = reward[live].ravel()
    least = flat - basis.T @ np.linalg.lstsq(basis.T, flat, rcond=None)[0]
    out = np.zeros_like(reward)
    out[live] = least.reshape(out[live].shape)
    return out


def equivalences(mdp: MDP) -> Array:
    """Return rewards ``(K, D)`` that no policy can gain by and that span all of these: potentials, and rewards moved
    between successors. D goes over (s, a, s') of states that are not terminal."""
    states, actions, _ = mdp.transitions.shape
    live = np.flatnonzero(~mdp.terminal)
    rows = []
    for x in live:
        row = np.zeros((states, actions, states))
        row[:, :, x] += mdp.gamma
        row[x] -= 1
        rows.append(row[live].ravel())
    for i, s in enumerate(live):
        for a in range(actions):
            chances = mdp.transitions[s, a]
            _, _, turns = np.linalg.svd(chances[None])
            for free in turns[1:]:  # orthogonal to the chances
                row = np.zeros((len(live), actions, states))
                row[i, a] = free
                rows.append(row.ravel())
    return np.array(rows)


def standardised(mdp: MDP, reward: Array, canonical: Canonical = "val", norm: Norm = "l2") -> Array:
    """Return s(R), see :func:`starc`."""
    c = canonicalised(mdp, reward, canonical)
    scale = np.abs(np.where(mdp.terminal[:, None, None], 0, reward)).max(initial=0.0)
    n = size(mdp, c, norm)
    return c / n if n > SMALL * scale else np.zeros_like(c)


def size(mdp: MDP, reward: Array, norm: Norm) -> float:
    """Return n of a reward."""
    if norm == "gap":
        return mdp.ret(reward, mdp.best(reward)) - mdp.ret(reward, mdp.best(-reward))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return float(np.linalg.norm(reward.ravel(), order))


def regret(mdp: MDP, true: Array, proxy: Array) -> float:
    """Return the most that is lost of the true return by a deterministic policy that the proxy calls no worse than
    another, as a share of the spread of the true return; 0 where that has none."""
    policies = mdp.policies()
    own = np.array([mdp.ret(true, p) for p in policies])
    theirs = np.array([mdp.ret(proxy, p) for p in policies])
    spread = own.max() - own.min()
    no_worse = theirs[None, :] >= theirs[:, None] - 1e-9
    lost = np.where(no_worse, own[:, None] - own[None, :], -np.inf).max()
    return float(lost / spread) if spread > 1e-12 else 0.0


def of_tree(tree: Tree, step: Callable[[tuple[int, ...]], float] | None = None) -> tuple[MDP, Array, Array]:
    """Return the process of writing a response, its outcome's reward, and another that is given for every step.

    States are the nodes of the tree and, last, one end; tokens that a node does not have stay out of it: they end with
    the reward of the first. The discount is 1.

    Args:
        tree: its leaves have outcomes.
        step: reward of the step to a path, the outcome at leaves not included; 0 if left out.
    """
    nodes, width = tree.children.shape
    end, paths = nodes, {tuple(p): float(r) for p, r in zip(tree.paths, tree.rewards.tolist(), strict=True)}
    begins: dict[tuple[int, ...], int] = {}
    for path in paths:
        for k in range(len(path)):
            node = tree.node(path[:k])
            assert node is not None
            begins[path[:k]] = int(node)
    transitions = np.zeros((nodes + 1, width, nodes + 1))
    outcome, steps = (np.zeros((nodes + 1, width, nodes + 1)) for _ in range(2))
    for prefix, node in begins.items():
        known = [a for a in range(width) if (*prefix, a) in paths or (*prefix, a) in begins]
        for a in range(width):
            path = (*prefix, a if a in known else known[0])
            after = begins.get(path, end)
            transitions[node, a, after] = 1
            outcome[node, a, after] = paths.get(path, 0.0)
            steps[node, a, after] = step(path) if step is not None else 0.0
    start = np.eye(nodes + 1)[begins[()]]
    return MDP(transitions, 1.0, start, np.arange(nodes + 1) == end), outcome, steps


claims(
    Claim(
        paper="S121",
        text="Among rewards that are shaped, redistributed, noisy or wrong, those at a larger distance lose more of "
        "the true return, where what cannot change a policy is left out; where it is not, the order says less.",
        setting="proxies",
        arms={by: {"canonical": by} for by in ("val", "none", "epic", "minimal")},
        better="val",
        baseline="none",
        measure="rank",
    )
)
