"""Thoughts, then an answer of many tokens, and one reference answer that good thoughts make likely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Episode, Prompt, Task, Verdict

OPEN = "="
LETTERS = ".abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is up to ``depth`` thoughts, "=", and an answer; it is right if that is the task's reference.

    Each step of a thought has a grade in [0, 1], the quality of a thought is the mean of its ``depth`` grades (0 for
    steps left out). After a thought of quality q the policy first gives each of the ``keys`` tokens of the reference
    that depend on it the probability low + (high - low) q, and each other one ``bulk``, with normal noise of standard
    deviation ``noise`` on its log-odds. The first ``odd`` tokens of a reference have a probability that has nothing to
    do with q: log-uniform in [0.0001, 0.3], drawn for each thought, as of a synonym that the policy would rather write.
    Thoughts share no parameters. Responses read "ab=ca", see :class:`Spelled`; a wrong token ends an answer.

    Args:
        tasks: questions, each asked equally often.
        branching, depth: thoughts there are, from a node; steps in the longest.
        length: tokens of a reference.
        letters: tokens to choose from at each place of an answer, 2 or more.
        keys: tokens of the reference that depend on the thought; ``None`` for all.
        low, high, bulk, noise, odd: see above.
        eager: logit of ending the thought early, at the start; those of steps are normal.
        spread: their standard deviation.
        alike: a step's letter has the same grade after whatever steps before it.
        insight: added to the logit of a step at the start, times its grade and the mean grade of the steps before it:
            what goes well goes on well.
        shown: the prompt "i/ANSWER" is task i with its answer in sight, and the policy there the Bayesian posterior of
            its thoughts at the start, each weighted by the probability of the reference after it. It is not trained.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: ``letters`` out of range, or more ``keys`` and ``odd`` tokens than the reference has.
    """

    tasks: int = 2
    branching: int = 7
    depth: int = 1
    length: int = 4
    letters: int = 3
    keys: int | None = None
    low: float = 0.3
    high: float = 0.9
    bulk: float = 0.8
    noise: float = 0.0
    odd: int = 0
    eager: float = -2.0
    spread: float = 0.5
    alike: bool = False
    insight: float = 0.0
    shown: bool = False
    steps: int = 150
    prompts: int = 2
    group: int = 8
    lr: float = 0.5
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        keys = self.length - self.odd if self.keys is None else self.keys
        if not 2 <= self.letters < len(LETTERS) or not self.branching < len(LETTERS) or keys + self.odd > self.length:
            raise UsageError(
                f"setting 'references': letters {self.letters} and branching {self.branching} must be below "
                f"{len(LETTERS)}, letters 2 or more, and keys {keys} + odd {self.odd} at most length {self.length}"
            )

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over tasks.

        ``quality``: of thoughts, expected; ``right``: probability of the reference; ``token``: the mean probability
        that the policy as it was at the start gives to a token of the reference that depends on the thought, after the
        thoughts of the trained one; ``diversity``: entropy in nats of the answer given the thought; ``.../start``;
        ``.../area``: means over training of the first two; ``rollouts``.
        """
        world = World.of(self, seed)
        policy = world.policy
        before = world.measure()
        curve: list[dict[str, float]] = []
        engine = Spelling(policy, self.tasks)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        tasks = [Task(str(i), str(i), reference=r, kind="tabular") for i, r in enumerate(world.references)]
        train(policy, tasks, right, arm, training, seed, lambda *_: curve.append(world.measure()), engine)
        return {
            **world.measure(),
            **{f"{k}/start": v for k, v in before.items()},
            **{f"{k}/area": float(np.mean([now[k] for now in curve])) for k in ("quality", "right")},
            "rollouts": engine.sampled,
        }


def right(task: Task, response: str) -> Verdict:
    """Whether a response's answer is the reference."""
    return Verdict.right() if response.rpartition(OPEN)[2] == task.reference else Verdict.wrong()


@dataclass(slots=True)
class Thought:
    """A thought of a task: how good it is, and the decisions (nodes, tokens) that make it and the reference after it.

    ``own`` ends with "=".
    """

    task: int
    quality: float
    token: float
    own: tuple[list[int], list[int]]
    answer: tuple[list[int], list[int]]


@dataclass(slots=True)
class World:
    """The policy of a seed, and what is known of its thoughts."""

    policy: Spelled
    references: list[str]
    thoughts: list[Thought]
    _cells: tuple[torch.Tensor, ...] = field(init=False)

    def __post_init__(self) -> None:
        def table(rows: list[list[int]]) -> torch.Tensor:
            width = max(map(len, rows))
            return torch.tensor([row + [-1] * (width - len(row)) for row in rows])

        self._cells = tuple(
            table([getattr(t, part)[k] for t in self.thoughts]) for part in ("own", "answer") for k in (0, 1)
        )

    @classmethod
    def of(cls, setting: Setting, seed: int) -> World:
        """Return the world of a seed."""
        rng = np.random.default_rng([seed, 23])
        s = setting
        answers = rng.integers(1, s.letters, (s.tasks, s.length)).tolist()

        def answer(i: int, j: int) -> Any:
            if j == s.length:
                return 1.0
            return [answer(i, j + 1) if token == answers[i][j] else 0.0 for token in range(s.letters)]

        def node(i: int, k: int) -> list[Any]:
            return [answer(i, 0), *(node(i, k + 1) for _ in range(s.branching if k < s.depth else 0))]

        tree = Tree.of([node(i, 0) for _ in range(1 + s.shown) for i in range(s.tasks)])
        children = tree.children.tolist()
        logits = s.spread * rng.standard_normal(tree.children.shape)
        thoughts: list[Thought] = []
        keys = s.length - s.odd if s.keys is None else s.keys
        for i in range(s.tasks):
            alike = [grades_of(s.branching, rng) for _ in range(s.depth)] if s.alike else None
            which = set((s.odd + rng.permutation(s.length - s.odd)[:keys]).tolist())
            todo: list[tuple[int, list[float], list[int], list[int]]] = [(children[0][i], [], [], [])]
            while todo:
                here, grades, nodes, tokens = todo.pop()
                quality = sum(grades) / s.depth
                if len(grades) < s.depth:
                    logits[here, 0] = s.eager
                    steps = alike[len(grades)] if alike else grades_of(s.branching, rng)
                    for token, grade in enumerate(steps, 1):
                        logits[here, token] += s.insight * grade * (sum(grades) / max(len(grades), 1))
                        todo.append((children[here][token], [*grades, grade], [*nodes, here], [*tokens, token]))
                at, chain = children[here][0], list[int]()
                for j, token in enumerate(answers[i]):
                    p = s.low + (s.high - s.low) * quality if j in which else s.bulk
                    if j not in which:
                        p = 1 / (1 + (1 / p - 1) * np.exp(-s.noise * rng.standard_normal()))
                    if j < s.odd:
                        p = float(np.exp(rng.uniform(np.log(1e-4), np.log(0.3))))
                    logits[at, : s.letters] = np.log((1 - p) / (s.letters - 1))
                    logits[at, token] = np.log(p)
                    chain.append(at)
                    at = children[at][token]
                token_p = s.low + (s.high - s.low) * quality
                thoughts.append(Thought(i, quality, token_p, ([*nodes, here], [*tokens, 0]), (chain, answers[i])))
        if s.shown:
            for i in range(s.tasks):
                condition(logits, children, children[0][i], children[0][s.tasks + i], answers[i])
        return cls(
            Spelled(tree, torch.from_numpy(logits)), ["".join(LETTERS[t] for t in row) for row in answers], thoughts
        )

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Return what :meth:`Setting.run` measures."""
        logp = self.policy.log_policy()
        entropy = self.policy.node_entropy()
        nodes, tokens, chain, reference = self._cells
        own = torch.where(nodes >= 0, logp[nodes, tokens], 0).sum(-1).exp()
        steps = logp[chain, reference]
        reach = torch.nn.functional.pad(steps.cumsum(-1)[:, :-1], (1, 0)).exp()
        tasks = len(self.references)
        quality, token = (torch.tensor([getattr(t, k) for t in self.thoughts]) for k in ("quality", "token"))
        return {
            "quality": float((own * quality).sum()) / tasks,
            "right": float((own * steps.sum(-1).exp()).sum()) / tasks,
            "token": float((own * token).sum()) / tasks,
            "diversity": float((own * (reach * entropy[chain]).sum(-1)).sum()) / tasks,
        }


def grades_of(branching: int, rng: np.random.Generator) -> list[float]:
    """Return the grades of the steps at a node, from 0 to 1 in random order."""
    return [float(g) for g in rng.permutation(branching) / max(branching - 1, 1)]


def condition(logits: np.ndarray, children: list[list[int]], plain: int, shown: int, answer: Sequence[int]) -> float:
    """Make ``shown`` the posterior of ``plain`` given the answer; return the probability of the answer from there."""

    def chances(node: int) -> np.ndarray:
        z = logits[node, : sum(c != 0 for c in children[node])]
        p = np.exp(z - z.max())
        return np.asarray(p / p.sum())

    told, here, there = 1.0, children[plain][0], children[shown][0]
    for token in answer:
        told *= float(chances(here)[token])
        logits[there] = logits[here]
        here, there = children[here][token], children[there][token]
    prior = chances(plain)
    after = [
        told,
        *(
            condition(logits, children, a, b, answer)
            for a, b in zip(children[plain][1:], children[shown][1:], strict=True)
            if a
        ),
    ]
    joint = prior * after
    logits[shown, : len(joint)] = np.log(joint.clip(1e-300))
    return float(joint.sum())


class Spelled(TabularPolicy):
    """A tabular policy whose paths below a task read as text: the first token 0 is "=", others are letters."""

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return the tokens of a text; it has no end-of-sequence token."""
        return np.asarray([0 if c == OPEN else LETTERS.index(c) for c in text], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return "".join(LETTERS[t] for t in tokens).replace(LETTERS[0], OPEN, 1)

    def continuations(self, batch: Any, at: Any, what: Any, temperature: float = 1.0) -> Any:
        """See :class:`assay.policies.base.Policy`; what leaves the tree is impossible: minus infinity throughout."""
        legal, there = [], []
        for episode, points, texts in zip(batch.episodes, at, what, strict=True):
            row = []
            for point, text in zip(points, texts, strict=True):
                path = [*episode.prompt.tolist(), *episode.tokens[:point].tolist(), *text.tolist()]
                row.append(self.leads(path) if len(text) else True)
            there.append(row)
            legal.append([t if ok else t[:0] for t, ok in zip(texts, row, strict=True)])
        found = super().continuations(batch, at, legal, temperature)
        width = max((len(t) for texts in what for t in texts), default=0)
        found = torch.nn.functional.pad(found, (0, width - found.shape[2]))
        for i, row in enumerate(there):
            for k, ok in enumerate(row):
                if not ok:
                    found[i, k, : len(what[i][k])] = -torch.inf
        return found

    def leads(self, path: Sequence[int]) -> bool:
        """Whether a path from the root stays in the tree."""
        inner = self.tree.node(path[:-1])
        return (
            inner is not None and path[-1] < self.tree.children.shape[1] and bool(self.tree.children[inner, path[-1]])
        )

    def twin(self) -> Spelled:
        return Spelled(self.tree, self.logits, self.logits.dtype)


class Spelling(Counting):
    """An engine whose episodes read as the policy spells them."""

    policy: Spelled

    def __init__(self, policy: Spelled, tasks: int):
        super().__init__(policy)
        self.tasks = tasks

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return the path to a task, as it is or with its answer in sight."""
        task, _, answer = str(prompt).partition("/")
        return np.asarray([int(task) + (self.tasks if answer else 0)], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.policy.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.policy.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[replace(e, text=self.decode(e.tokens)) for e in row] for row in super().generate(requests)]
