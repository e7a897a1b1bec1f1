"""A tree search in which a tool checks every step, and marks of steps and final answers are fused into values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import UsageError
from assay.inference.supervision.completing import Search, Wanted
from assay.inference.supervision.prefixes import Beginning, Completion, PrefixTree
from assay.inference.supervision.step_tools import Checked, Equations
from assay.rewards.step_models.examples import Label, StepExample
from assay.signals.steps import step_texts


def fused(marks: Sequence[int], final: int) -> float:
    """Return u of the steps' marks, that of the terminal step left out, and of the final answer.

        u = 1/N sum_{i=0}^{N-1} v_{i+1} (N - i) / N + F / N;   u = F without other steps

    Args:
        marks: v_1 to v_N in {1, -1, 0}, of the steps before the terminal one.
        final: F, 1 or -1.

    Source: GroundedPRM (arXiv 2510.14942) as in its implementation.
    """
    n = len(marks)
    if not n:
        return float(final)
    return sum(v * (n - i) / n for i, v in enumerate(marks)) / n + final / n


@dataclass(slots=True, eq=False)
class Node:
    """A step with its mark and value."""

    at: Beginning
    mark: Checked
    parent: Node | None = None
    value: float = 0.0
    visits: int = 0
    final: int | None = None
    children: list[Node] = field(default_factory=list)

    @property
    def path(self) -> list[Node]:
        """The nodes from the first step to this one."""
        above = [] if self.parent is None else self.parent.path
        return above if self.parent is None else [*above, self]


@dataclass(frozen=True, slots=True)
class Grounded:
    """Monte Carlo tree search over steps, each of which a tool checks when it is made.

    A round goes down by UCT, mean value + c sqrt(ln(N + 1) / (n + 1)), samples ``branch`` next steps, and follows one
    of them, a step at a time, to the end of the response or ``depth`` steps. With the marks v of the steps from it on
    and F = 1 for a right final answer, else -1, u of :func:`fused` counts there, and decay^d u at d steps above. Rounds
    end after ``wanted`` right and as many wrong whole responses, once there are enough right ones going down by minus
    the value. A round whose end nobody can judge counts for nothing.

    Args:
        tool: checks steps, see :class:`~assay.inference.supervision.step_tools.StepTool`.
        branch, depth, rounds, c, decay, wanted: see above.

    Raises:
        UsageError: an option out of range.

    Source: GroundedPRM (arXiv 2510.14942) and its implementation, which follows a random child; UCT is our reading.
    """

    tool: Any = field(default_factory=Equations)
    branch: int = 3
    depth: int = 7
    rounds: int = 10
    c: float = math.sqrt(2)
    decay: float = 0.9
    wanted: int = 3

    def __post_init__(self) -> None:
        if min(self.branch, self.depth, self.rounds, self.wanted) < 1 or self.c < 0 or not 0 <= self.decay <= 1:
            raise UsageError("a grounded search needs branch, depth, rounds and wanted of at least 1, decay in [0, 1]")

    def __call__(self, tree: PrefixTree) -> Search:
        root = Node(tree.root, Checked(0))
        tree.marked = root
        ends = {1: 0, -1: 0}
        for _ in range(self.rounds):
            if min(ends.values()) >= self.wanted:
                return
            sign = -1.0 if ends[1] >= self.wanted else 1.0
            node = root
            while (below := self.best(node, sign)) is not None:
                node = below
            [grown] = yield [Wanted(node.at.episode, self.branch, whole=False)]
            new = self.added(tree, node, grown)
            if not new:
                return
            chosen = new[0]
            steps, at = [chosen], chosen
            while at.final is None and len(at.path) < self.depth:
                [grown] = yield [Wanted(at.at.episode, 1, whole=False)]
                more = self.added(tree, at, grown)
                if not more:
                    break
                at = more[0]
                steps.append(at)
            if at.final is None and len(at.path) < self.depth:
                continue
            final = -1 if at.final is None else at.final
            ends[final] += 1
            self.back(steps, final)

    def best(self, node: Node, sign: float) -> Node | None:
        """Return the child to go down to, of those that may go on; ``None`` where there is none."""
        begun = [n for n in node.children if n.final is None and len(n.path) < self.depth]
        log = math.log(node.visits + 1)
        return max(
            begun,
            key=lambda n: sign * n.value / max(n.visits, 1) + self.c * math.sqrt(log / (n.visits + 1)),
            default=None,
        )

    def added(self, tree: PrefixTree, node: Node, grown: Sequence[Completion]) -> list[Node]:
        """Return the nodes of continuations by a step, checked where they are new."""
        known = {id(n.at): n for n in node.children}
        fresh: dict[int, tuple[Beginning, Completion]] = {}
        for found in grown:
            at = tree.whole(found) if found.done else tree.at(found.episode)
            if id(at) not in known:
                fresh.setdefault(id(at), (at, found))
        asked = []
        for at, _ in fresh.values():
            assert at.episode is not None
            texts = step_texts(at.episode, at.spans, tree.engine.decode)
            asked.append((tree.task, texts[:-1], texts[-1] if texts else ""))
        for (at, found), mark in zip(fresh.values(), self.tool.check(asked) if asked else [], strict=True):
            final = (1 if found.passed else -1) if found.done and found.passed is not None else None
            if found.done and final is None:  # nobody could judge it
                continue
            node.children.append(Node(at, mark, node, final=final))
        marked = [known[i] for i in known] + node.children[len(known) :]
        places = {id(tree.at(found.episode)) for found in grown}
        return [n for n in marked if id(n.at) in places]

    def back(self, steps: Sequence[Node], final: int) -> None:
        """Count what followed from each of the steps simulated, and that of the first above it."""
        for k, node in enumerate(steps):
            node.value += fused([n.mark.mark for n in steps[k:-1]], final)
            node.visits += 1
        u = fused([n.mark.mark for n in steps[:-1]], final)
        above, share = steps[0].parent, self.decay
        while above is not None:
            above.value += share * u
            above.visits += 1
            above, share = above.parent, share * self.decay


def consistent(tree: PrefixTree) -> list[StepExample]:
    """Return the whole paths of a grounded search whose values' signs agree with what the tool said of each step.

    Each step has what the tool said as its rationale. A step is right where its value is above 0. Where the tool could
    not tell there is nothing to agree with. What follows the first run of wrong steps of a wrong response is cut where
    a step that is not wrong appears again.
    """
    out, leaves = [], [tree.marked]
    while leaves:
        node: Node = leaves.pop()
        leaves += node.children
        if node.final is None or not node.visits:
            continue
        path = node.path
        if any(n.mark.mark * n.value < 0 for n in path):
            continue
        labels: list[Label] = [1.0 if n.value > 0 else 0.0 if n.value < 0 else None for n in path]
        keep = len(path) if node.final > 0 else first_run(labels)
        last = path[keep - 1].at.episode
        assert last is not None
        example = tree.example(last)
        if len(example.steps) == keep:
            why = tuple(n.mark.rationale for n in path[:keep])
            out.append(StepExample(tree.task, example.steps, tuple(labels[:keep]), example.episode, why))
    return out


def first_run(labels: Sequence[Label]) -> int:
    """Return how many steps there are up to the end of the first run of wrong ones; all where none is wrong."""
    for k in range(1, len(labels)):
        if labels[k - 1] == 0 and labels[k] != 0:
            return k
    return len(labels)
