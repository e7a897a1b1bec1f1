"""Monte Carlo tree search over the steps of a response, with a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.scoring.base import Score
from assay.inference.scoring.scorers import as_scorer
from assay.inference.search.stepping import Stepping
from assay.registry import part
from assay.types import Episode, Task


@dataclass(slots=True, eq=False)
class Node:
    """A beginning of a response; the root's is none."""

    episode: Episode | None
    parent: Node | None
    done: bool = False
    visits: int = 0
    total: float = 0.0
    children: list[Node] = field(default_factory=list)

    def best(self, c: float) -> Node | None:
        """Return the child that is no whole response with the largest mean value + c sqrt(ln visits / its visits)."""
        log = math.log(max(self.visits, 1))
        begun = [n for n in self.children if not n.done]
        return max(begun, key=lambda n: n.total / n.visits + c * math.sqrt(log / n.visits), default=None)

    def back(self, value: float) -> None:
        """Count a value here and at everything above."""
        node: Node | None = self
        while node is not None:
            node.visits, node.total, node = node.visits + 1, node.total + value, node.parent


@part("inference", "mcts")
@dataclass(frozen=True, slots=True)
class MCTS:
    """Grows a tree of beginnings: one simulation goes down by UCT, samples ``branch`` next steps and values them.

    Going down takes the child with the largest Q + c sqrt(ln N / n) of those that are no whole responses, as long as
    there is one. The steps sampled there, equal ones once, are new children. Each is valued, ``state``: by the scorer's
    opinion of the beginning, or ``rollout``: by that of a whole response sampled from there; and the value counts at
    everything above. The answer is the best-scored of the whole responses met; where there is none, the beginning
    visited most is finished.

    A simulation counts as one of the budget's samples with ``state``, as ``branch`` of them with ``rollout``.

    Args:
        scorer: see :func:`~assay.inference.scoring.scorers.as_scorer`; values in [0, 1], or ``c`` should be of their
        size.
        sampling: how tokens are drawn.
        value: see above.
        branch: steps sampled from a beginning.
        c: of exploration.
        stop, step: see :class:`~assay.inference.search.stepping.Stepping`.

    Raises:
        UsageError: ``branch`` or ``step`` below 1, or ``c`` negative.
    """

    scorer: Any = "confidence"
    sampling: Sampling = field(default_factory=Sampling)
    value: Literal["state", "rollout"] = "rollout"
    branch: int = 3
    c: float = 0.5
    stop: tuple[str, ...] = ("\n",)
    step: int = 256

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", as_scorer(self.scorer))
        if self.branch < 1 or self.c < 0:
            raise UsageError(f"inference 'mcts': needs branch of at least 1 and c of at least 0, not {self.branch}")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling, self.scorer)
        stepping = Stepping(self.stop, self.step)
        roots = [Node(None, None) for _ in tasks]
        whole: list[list[tuple[Episode, Score]]] = [[] for _ in tasks]
        missed = [0] * len(tasks)
        while True:
            leaves = {i: n for i, root in enumerate(roots) if (n := self._go(meter, i, root)) is not None}
            if not leaves:
                break
            open_ = list(leaves)
            heads = [leaves[i].episode for i in open_]
            grown = stepping.extend(meter, open_, heads, [self._width(meter, i) for i in open_], whole=False)
            rows: list[int] = []
            nodes: list[Node] = []
            for i, many in zip(open_, grown, strict=True):
                known = {n.episode.tokens.tobytes() for n in leaves[i].children if n.episode is not None}
                for key, episode in {e.tokens.tobytes(): e for e in many}.items():
                    if key in known:
                        continue
                    node = Node(episode, leaves[i], stepping.done(episode, self.sampling))
                    leaves[i].children.append(node)
                    rows.append(i)
                    nodes.append(node)
            self._value(meter, stepping, rows, nodes, whole, missed)
        self._finish(meter, stepping, roots, whole, missed)
        out = []
        for i, found in enumerate(whole):
            episode, score = max(found, key=lambda pair: -math.inf if pair[1].value is None else pair[1].value)
            meta = {"score": score.value, "visits": roots[i].visits, "unscored": missed[i]}
            out.append(meter.answer(i, episode.text, [e for e, _ in found], **meta))
        return out

    def _width(self, meter: Meter, i: int) -> int:
        """Steps to sample next: fewer at the end of a budget of samples that rollouts use up."""
        if self.value == "state" or meter.budget.samples is None:
            return self.branch
        return max(1, min(self.branch, meter.budget.samples - meter.begun[i] + self.branch))

    def _go(self, meter: Meter, i: int, root: Node) -> Node | None:
        """Return the beginning to continue next; ``None`` where the budget is at its end."""
        cost = 1 if self.value == "state" else self.branch
        if meter.budget.samples is not None and meter.begun[i] >= meter.budget.samples:
            return None
        left = meter.left(i)
        if left is not None:
            length = self.step if self.value == "state" else self.sampling.max_tokens
            length = min(length, self.sampling.max_tokens)
            opinion = self.scorer.most(meter.tasks[i], self.sampling.max_tokens, meter.engine)
            # Something is kept to finish and score a response with. Where nothing can be tried, one response is all
            # there is.
            last = self.sampling.max_tokens + opinion if self.value == "state" else 0
            if left < self.branch * (length + opinion) + last:
                return None
        meter.begun[i] += cost
        node = root
        while (below := node.best(self.c)) is not None:
            node = below
        return node

    def _value(
        self,
        meter: Meter,
        stepping: Stepping,
        rows: list[int],
        nodes: list[Node],
        whole: list[list[tuple[Episode, Score]]],
        missed: list[int],
    ) -> None:
        """Value new beginnings and count that above them."""
        seen = [n.episode for n in nodes if n.episode is not None]
        if self.value == "rollout":
            begun = [k for k, n in enumerate(nodes) if not n.done]
            ends = stepping.extend(
                meter, [rows[k] for k in begun], [seen[k] for k in begun], [1] * len(begun), whole=True
            )
            for k, [end] in zip(begun, ends, strict=True):
                seen[k] = end
        keep = self.sampling.max_tokens if self.value == "state" else 0
        for i, node, episode, score in zip(rows, nodes, seen, meter.score(rows, seen, keep), strict=True):
            missed[i] += score.value is None
            if node.done or self.value == "rollout":
                whole[i].append((episode, score))
            # What cannot be scored is taken to be worth what its parent is.
            parent = node.parent
            assert parent is not None
            node.back(score.value if score.value is not None else parent.total / max(parent.visits, 1))

    def _finish(
        self,
        meter: Meter,
        stepping: Stepping,
        roots: list[Node],
        whole: list[list[tuple[Episode, Score]]],
        missed: list[int],
    ) -> None:
        """Finish the most visited beginning of each task that has no whole response."""
        rows = [i for i, found in enumerate(whole) if not found]
        heads = []
        for i in rows:
            node = roots[i]
            while node.children:
                node = max(node.children, key=lambda n: (n.visits, n.total))
            heads.append(node.episode)
        ends = [many[0] for many in stepping.extend(meter, rows, heads, [1] * len(rows), whole=True)]
        for i, end, score in zip(rows, ends, meter.score(rows, ends), strict=True):
            missed[i] += score.value is None
            whole[i].append((end, score))
