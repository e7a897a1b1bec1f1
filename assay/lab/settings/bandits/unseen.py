"""Questions as vectors, answers as sequences of tokens, a small network: measured on questions that RL never asks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Spent, Training, pass_at, train
from assay.lab.settings.tree import COVERED, Counting, Noisy
from assay.policies.tabular import TabularPolicy, Tree, text_of
from assay.types import Task

UNTRAINED: dict[str, Any] = {
    "steps": 0,
    "prompts": 1,
    "group": 1,
    "lr": 0.0,
    "optimizer": "adam",
    "epochs": 1,
    "mini_batches": 1,
    "rollouts": None,
    "shown": False,
    "false_negative": 0.0,
    "false_positive": 0.0,
}
"""What has no part in the policy at the start."""

FREE = {"steps", "prompts", "group", "epochs", "mini_batches"}
"""Knobs that an arm may have for itself: they say how the same rollouts are used."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy whose answers share parameters, as a language model's do, and all of whose probabilities are known.

    A question is a normal vector of ``features`` numbers, its answers are the branching^depth sequences of ``depth``
    tokens, and ``right`` of them are right: those that one random network, the truth, finds likeliest. The policy is a
    network of one hidden layer over the question and the answer so far. Beforehand it reads ``read`` questions with
    answers: right ones for the ``known`` share of questions on one side of a random plane, and for the others those
    that a second random network finds likeliest, so that there are fields it is good at and fields in which it is
    consistently wrong. RL asks ``questions`` others, and everything is measured on ``unseen`` further ones.

    Because questions share parameters, a step too large or an estimate too noisy does harm elsewhere, and certainty
    spreads to questions that were never asked. An arm may give a table ``setting`` of knobs that differ for it alone
    (steps, prompts, group, epochs, mini_batches), as long as the rollouts in all are the same.

    Args:
        questions, unseen, read: how many of each.
        branching, depth, right: of answers.
        features, hidden: sizes of the network; the truth has the same.
        known: share of questions that the policy reads right answers to.
        smoothing: share of the probability of what it reads that is spread over all answers.
        warmup: supervised steps of Adam, at a rate of 0.01.
        shown: each question has a solution, one of its right answers at random, for methods that learn from solutions.
        false_negative, false_positive: how often the verifier errs on a right, a wrong response, drawn anew each time.
        rollouts: training ends after the step in which so many responses have been sampled, if that is not after
            ``steps``; for arms that sample more in a step than others.
        steps, prompts, group, lr, optimizer, epochs, mini_batches: of RL.

    Raises:
        UsageError: as many right answers as there are, or none.
    """

    questions: int = 64
    unseen: int = 64
    read: int = 512
    branching: int = 4
    depth: int = 3
    right: int = 4
    features: int = 16
    hidden: int = 64
    known: float = 0.5
    smoothing: float = 0.3
    warmup: int = 300
    shown: bool = False
    false_negative: float = 0.0
    false_positive: float = 0.0
    rollouts: int | None = None
    steps: int = 100
    prompts: int = 8
    group: int = 8
    lr: float = 3e-3
    optimizer: Literal["sgd", "adam"] = "adam"
    epochs: int = 1
    mini_batches: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.right < self.branching**self.depth:
            raise UsageError(
                f"setting 'unseen': right = {self.right} of {self.branching**self.depth} leaves nothing to learn"
            )

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy on unseen questions, means over them.

        ``final``: probability of a right answer; ``area``: its mean over the responses sampled; ``hard`` and
        ``hard/area``: the same on questions of fields it was wrong in; ``greedy``: share whose likeliest answer is
        right; ``pass@8``, ``pass@64``; ``covered``: share of right answers with a probability of at least 0.001;
        ``diversity``: entropy in nats among right answers; ``entropy``: of all answers; ``start``: ``final`` before
        RL; ``train``: ``final`` on the questions asked, and not on unseen ones;
        ``rollouts``: episodes sampled.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - FREE:
            raise UsageError(f"an arm may change {', '.join(sorted(FREE))} of its setting alone")
        return replace(self, **knobs)._run(method, seed)

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        policy, known = self.world(seed)
        new = np.arange(self.questions + self.unseen) >= self.questions
        verifier = Noisy(TabularVerifier(policy.tree), self.false_negative, self.false_positive, seed)
        training = Training(
            self.steps, self.prompts, self.group, self.lr, self.optimizer, self.epochs, self.mini_batches
        )
        engine, spent, curve = Counting(policy), list[int](), list[tuple[float, float]]()

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            p = policy.chances()
            spent.append(engine.sampled)
            curve.append((float(p[new].mean()), float(p[new & ~known].mean())))
            if self.rollouts is not None and engine.sampled >= self.rollouts:
                raise Spent

        start = float(policy.chances()[new].mean())
        with suppress(Spent):
            train(policy, self._tasks(policy, seed), verifier, method, training, seed, watch, engine)
        p, answers = policy.chances(), policy.answers()[new]
        correct = policy.correct[new]
        good = answers * correct
        among = good / good.sum(-1, keepdims=True).clip(1e-300)
        best = np.take_along_axis(correct, answers.argmax(-1)[:, None], -1)
        area, hard = np.average(curve, axis=0, weights=np.diff([0, *spent])) if curve else (start, start)
        return {
            "start": start,
            "final": float(p[new].mean()),
            "area": float(area),
            "hard": float(p[new & ~known].mean()),
            "hard/area": float(hard),
            "greedy": float(best.mean()),
            **{f"pass@{k}": pass_at(p[new], k) for k in (8, 64)},
            "covered": float(((good >= COVERED).sum(-1) / correct.sum(-1)).mean()),
            "diversity": _nats(among),
            "entropy": _nats(answers),
            "train": float(p[~new].mean()),
            "rollouts": engine.sampled,
        }

    def world(self, seed: int) -> tuple[Answering, np.ndarray]:
        """Return the policy at the start, over the questions asked and then the unseen ones, and which it knows."""
        policy, known = _world(replace(self, **UNTRAINED), seed)
        return policy.twin(), known

    def _tasks(self, policy: Answering, seed: int) -> list[Task]:
        rng = np.random.default_rng([seed, 13])
        tasks = []
        for i in range(self.questions):
            right = policy.shape.steps[1][int(rng.choice(np.flatnonzero(policy.correct[i])))]
            solution = text_of(right.tolist()) if self.shown else None
            tasks.append(Task(str(i), text_of(policy.paths[i]), kind="tabular", solution=solution))
        return tasks


@lru_cache(maxsize=64)
def _world(setting: Setting, seed: int) -> tuple[Answering, np.ndarray]:
    """See :meth:`Setting.world`. Kept, since every arm of a seed starts from it."""
    rng = np.random.default_rng([seed, 7])
    count = setting.read + setting.questions + setting.unseen
    x = rng.standard_normal((count, setting.features))
    shape = Shape(setting.branching, setting.depth)
    inputs = shape.inputs(x)

    def network(gain: float) -> tuple[Tensor, Tensor]:
        inner = rng.standard_normal((setting.hidden, inputs.shape[-1])) * inputs.shape[-1] ** -0.5
        out = gain * rng.standard_normal((setting.branching, setting.hidden)) * setting.hidden**-0.5
        return torch.from_numpy(inner), torch.from_numpy(out)

    def likeliest() -> np.ndarray:
        p = shape.log_answers(_logits(inputs, *network(3.0))).numpy()
        chosen = np.zeros_like(p)
        np.put_along_axis(chosen, np.argsort(-p, axis=-1, kind="stable")[:, : setting.right], 1.0, axis=-1)
        return chosen

    truth, error = likeliest(), likeliest()
    side = x @ rng.standard_normal(setting.features)
    known = side <= np.quantile(side, setting.known)
    read, rest = slice(None, setting.read), slice(setting.read, None)
    taught = torch.from_numpy(np.where(known[:, None], truth, error)[read])
    labels = (1 - setting.smoothing) * taught / setting.right + setting.smoothing / taught.shape[1]
    weights = [w.requires_grad_() for w in network(1.0)]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    for step in range(setting.warmup):
        some = slice(step * 128 % setting.read, step * 128 % setting.read + 128)
        optimizer.zero_grad()
        loss = -(labels[some] * shape.log_answers(_logits(inputs[read][some], *weights))).sum(-1).mean()
        loss.backward()
        optimizer.step()
    inner, out = (w.detach() for w in weights)
    return Answering(shape, inputs[rest], truth[rest], inner, out), known[rest]


def _logits(inputs: Tensor, inner: Tensor, out: Tensor) -> Tensor:
    return torch.tanh(inputs @ inner.mT) @ out.mT


@dataclass(frozen=True)
class Shape:
    """The tree of one question's answers: nodes depth first, leaves from left to right."""

    branching: int
    depth: int

    @cached_property
    def prefixes(self) -> list[tuple[int, ...]]:
        """Tokens that lead to each node."""

        def under(path: tuple[int, ...]) -> list[tuple[int, ...]]:
            deeper = len(path) < self.depth - 1
            return [path, *(p for a in range(self.branching) if deeper for p in under((*path, a)))]

        return under(())

    @cached_property
    def steps(self) -> tuple[Int[Tensor, "L D"], Int[Tensor, "L D"]]:
        """The nodes and tokens on the way to each leaf."""
        at = {path: i for i, path in enumerate(self.prefixes)}
        leaves = list(itertools.product(range(self.branching), repeat=self.depth))
        return torch.tensor([[at[leaf[:t]] for t in range(self.depth)] for leaf in leaves]), torch.tensor(leaves)

    def inputs(self, x: np.ndarray) -> Float[Tensor, "Q K I"]:
        """Return questions ``(Q, F)`` beside the tokens so far, one-hot by place and as heavy as a few numbers."""
        codes = np.zeros((len(self.prefixes), (self.depth - 1) * self.branching))
        for row, path in zip(codes, self.prefixes, strict=True):
            row[[place * self.branching + token for place, token in enumerate(path)]] = 2.0
        size = (len(x), len(codes))
        parts = [np.broadcast_to(x[:, None], (*size, x.shape[1])), np.broadcast_to(codes, (*size, codes.shape[1]))]
        return torch.from_numpy(np.concatenate(parts, -1))

    def log_answers(self, logits: Float[Tensor, "Q K W"]) -> Float[Tensor, "Q L"]:
        """Log-probability of each answer to each question."""
        nodes, tokens = self.steps
        return logits.log_softmax(-1)[:, nodes, tokens].sum(-1)

    def forest(self, correct: np.ndarray) -> tuple[Tree, list[tuple[int, ...]]]:
        """Return the trees of all questions below one root, and the path to each: its number in digits.

        Digits keep the table of the whole tree as narrow as that of one question.

        Args:
            correct: rewards ``(Q, L)``.
        """
        count, nodes, base = len(correct), len(self.prefixes), self.branching
        digits = 1
        while base**digits < count:
            digits += 1
        paths = list(itertools.islice(itertools.product(range(base), repeat=digits), count))
        first = {path: i * nodes + 1 for i, path in enumerate(paths)}
        inner = sorted({path[:k] for path in paths for k in range(1, digits)})
        first |= {path: 1 + count * nodes + i for i, path in enumerate(inner)} | {(): 0}
        children = torch.zeros(1 + count * nodes + len(inner), base, dtype=torch.int64)
        for path, node in first.items():
            if path:
                children[first[path[:-1]], path[-1]] = node
        at, tokens = self.steps
        for i in range(count):
            start = 1 + i * nodes
            children[start + at[:, :-1], tokens[:, :-1]] = start + at[:, 1:]
            children[start + at[:, -1], tokens[:, -1]] = -1 - i * len(at) - torch.arange(len(at))
        return Tree(children, torch.from_numpy(correct).flatten(), ("",) * correct.size), paths


class Answering(TabularPolicy):
    """A tabular policy whose logits at a node are ``out @ tanh(inner @ input)`` of the node's question and prefix.

    Args:
        shape: of every question's answers.
        inputs: ``(questions, nodes, I)``.
        correct: ``(questions, L)``: which answers are right.
        inner: ``(hidden, I)`` at first.
        out: ``(branching, hidden)`` at first.
    """

    def __init__(self, shape: Shape, inputs: Tensor, correct: np.ndarray, inner: Tensor, out: Tensor) -> None:
        self.shape, self.inputs, self.correct = shape, inputs, correct
        self.tree, self.paths = shape.forest(correct)
        self.inner, self.out = torch.nn.Parameter(inner), torch.nn.Parameter(out)
        self.module = torch.nn.ParameterDict({"inner": self.inner, "out": self.out})
        self._kept: tuple[tuple[int, int], Tensor] | None = None

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        if torch.is_grad_enabled():
            return self._table()
        now = self.inner._version, self.out._version
        if self._kept is None or self._kept[0] != now:
            self._kept = now, self._table()
        return self._kept[1]

    def _table(self) -> Tensor:
        z = _logits(self.inputs, self.inner, self.out).flatten(0, 1)
        # The root and the digits of a question's number, which are no decisions of the policy's.
        return torch.nn.functional.pad(z, (0, 0, 1, len(self.tree.children) - 1 - len(z)))

    @property
    def width(self) -> int:
        """Size of the hidden layer."""
        return len(self.inner)

    def _quantity(
        self, name: str, nodes: Int[Tensor, "N T"], tokens: Int[Tensor, "N T"], temperature: float, batch: Batch
    ) -> Tensor:
        if name.partition("@")[0] == "hidden":
            states = torch.tanh(self.inputs @ self.inner.mT).flatten(0, 1)
            return torch.nn.functional.pad(states, (0, 0, 1, len(self.tree.children) - 1 - len(states)))[nodes]
        return super()._quantity(name, nodes, tokens, temperature, batch)

    def answers(self) -> np.ndarray:
        """Probability of each answer to each question, ``(questions, L)``."""
        with torch.no_grad():
            return self.shape.log_answers(_logits(self.inputs, self.inner, self.out)).exp().numpy()

    def chances(self) -> np.ndarray:
        """Probability of a right answer to each question."""
        return (self.answers() * self.correct).sum(-1)

    def twin(self) -> Answering:
        return Answering(self.shape, self.inputs, self.correct, self.inner.detach().clone(), self.out.detach().clone())


def _nats(p: np.ndarray) -> float:
    """Mean entropy of the rows of ``p``."""
    return float(-(p * np.log(p.clip(1e-300))).sum(-1).mean())
