"""A tree of steps for each prompt, grown by UCB: siblings are compared, and worth what comes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.engines.joined import stopped
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Origin, Span, Task, Verdict

STOPS = {"newline": ("\n",), "blank_line": ("\n\n",), "fixed": ()}
"""What a step ends with, by how steps are told apart."""


@dataclass(eq=False, slots=True)
class Node:
    """A step, after those before it.

    Attributes:
        episode: the step's tokens, sampled after the prompt and the steps before; ``None`` of a root.
        tokens: of all steps up to this one.
        depth: steps up to this one.
        reward: of a response that ends here; ``None`` where it goes on, or could not be judged.
        opinion: a reward model's of the steps up to this one, in [0, 1]; ``None`` where it was not asked.
        ended: whether it does.
        total, visits: W and n, what came of it, and how often it was tried.
    """

    parent: Node | None
    episode: Episode | None
    tokens: tuple[int, ...]
    depth: int
    ended: bool = False
    reward: float | None = None
    opinion: float | None = None
    total: float = 0.0
    visits: int = 0
    children: list[Node] = field(default_factory=list)

    @property
    def value(self) -> float:
        """q = W / n, 0 of what was never tried."""
        return self.total / self.visits if self.visits else 0.0

    def all(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.all()


def ucb(node: Node, parent_visits: int, c: float, trust: float = 0.0) -> float:
    """Return (1 - trust) W / n + trust r + c sqrt(2 ln N / n), N the visits of the node's parent; infinity where n = 0.

    r is a reward model's opinion of the node; without one the first two terms are W / n.
    """
    if not node.visits:
        return math.inf
    value = node.value if node.opinion is None else (1 - trust) * node.value + trust * node.opinion
    return value + c * math.sqrt(2 * math.log(parent_visits) / node.visits)


Opinions = Callable[[Sequence[tuple[Task, Episode]], Engine], Sequence[Sequence[float] | None]]
"""A process reward model: given tasks with beginnings of responses, whose steps are spans of kind ``step``, and the
engine that made them, it returns a score in [-1, 1] for each step; ``None`` where none can be told."""


def boosted(q: float, a: float = 10.0) -> float:
    """Return ln(1 + a q) / ln(1 + a): 0 at 0, 1 at 1, and steeper at small values."""
    return math.log1p(a * q) / math.log1p(a)


@part("rollout", "step_tree")
@dataclass(slots=True)
class StepTree:
    """Grows a tree of steps for each prompt; each node that was gone on from is a group, of its ``children``.

    An iteration goes down from the root by :func:`ucb` to a node without children, samples steps after it, and goes on
    greedily from the first of them; where some of them end the response, every one is tried, one that has ended by its
    own verdict. A response of more than ``depth`` steps is wrong. The verdicts' scores are added to W, and 1 to n, of
    all nodes up to the root. A node that has ended is tried again by its score. What cannot be judged adds nothing.

    A child's score is b = ln(1 + 10 q) / ln 11, q = W / n, 0 of what was never tried. A group is left out whose b are
    all 0, all 1, or less than ``least`` apart. Children keep the log-probabilities they were sampled with, after a
    prompt in which the steps before them stand. Of a prompt for which no right response was found the worked solution
    is the group, as of origin ``HINT``, for objective ``shown``. Curricula learn of the whole responses that were
    judged (:class:`~assay.types.Group`, ``before``). How many responses are asked for does not matter.

    A process reward model may have its say in where the tree grows, not in what steps are worth: with a ``scorer``
    children are compared by (1 - a) W / n + a r in place of W / n, r its score s of a child's step, made (1 + s) / 2,
    and a = min(``trust`` floor(step / ``epoch``), 1). It is not asked while a is 0.

    Source: PROPA (arXiv 2511.10279) and its authors' code.

    Args:
        sampling, judge: supplied by the run.
        steps: where steps end: by ``newline``, ``blank_line``, or ``fixed`` in their size.
        children, iterations, depth: see above, at least 1; two children or more.
        c: of UCB, not below 0.
        least: see above.
        solutions: whether worked solutions are learned from.
        scorer: a process reward model, see :data:`Opinions`; method S175 makes one of what ``assay train-prm`` wrote.
        trust: how much more of it counts in each epoch, in [0, 1].
        epoch: steps of one, at least 1.
        progress: supplied by the run: the step, and how many there are.

    Raises:
        UsageError: an option out of range, steps that end otherwise, or a scorer that is none; of tasks, that none has
            a solution.
        RunError: a scorer that does not give each step one finite number.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    steps: Steps = field(default_factory=Steps)
    children: int = 4
    iterations: int = 10
    depth: int = 8
    c: float = 1.0
    least: float = 0.1
    solutions: bool = True
    scorer: Any = None
    trust: float = 0.2
    epoch: int = 25
    progress: Callable[[], tuple[int, int]] | None = None
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.children < 2 or min(self.iterations, self.depth) < 1 or self.c < 0 or not 0 <= self.least <= 1:
            raise UsageError(
                f"rollout 'step_tree': children {self.children} >= 2, iterations {self.iterations} and depth "
                f"{self.depth} >= 1, c {self.c:g} >= 0, least {self.least:g} in [0, 1]"
            )
        if self.steps.by not in STOPS:
            raise UsageError(
                f"rollout 'step_tree': steps by {self.steps.by} cannot be sampled one by one; take newline"
            )
        if not 0 <= self.trust <= 1 or self.epoch < 1:
            raise UsageError(
                f"rollout 'step_tree': trust {self.trust:g} must lie in [0, 1], and epoch {self.epoch} be at least 1"
            )
        if self.scorer is not None and not callable(self.scorer):
            raise UsageError(
                f"rollout 'step_tree': the scorer is a function of beginnings and an engine, not {self.scorer!r}; name "
                "a folder that assay train-prm wrote in method S175, option prm"
            )

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError if worked solutions are to be learned from, and no task has one."""
        if self.solutions and tasks and not any(task.solution for task in tasks):
            raise UsageError(
                f"rollout 'step_tree' learns from worked solutions where all fails, and task {tasks[0].id} has none; "
                "set solutions = false"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        trees = [Node(None, None, (), 0) for _ in asks]
        ended: list[list[tuple[Episode, Verdict]]] = [[] for _ in asks]
        for _ in range(self.iterations):
            leaves = [self.leaf(tree) for tree in trees]
            for leaf in leaves:
                if leaf.ended:
                    back(leaf, leaf.reward)
            open_ = [i for i, leaf in enumerate(leaves) if not leaf.ended]
            self._expand([(asks[i], leaves[i], ended[i]) for i in open_], engine, rng)
        groups = [self._groups(*row, engine) for row in zip(asks, trees, ended, strict=True)]
        solved = [any(v.passed for _, v in some) for some in ended]
        nodes = [node for tree in trees for node in tree.all() if node.children]
        self._seen = {
            "tree/solved": float(np.mean(solved or [False])),
            "tree/nodes": len(nodes) / max(len(trees), 1),
            "tree/kept": sum(self.tells(node) for node in nodes) / max(len(nodes), 1),
        }
        if self.scorer is not None:
            self._seen["tree/trust"] = self.trusted
        return groups

    @property
    def trusted(self) -> float:
        """How much the scorer's word counts in this step."""
        step = 0 if self.progress is None else self.progress()[0]
        return 0.0 if self.scorer is None else min(self.trust * (step // self.epoch), 1.0)

    def metrics(self) -> dict[str, float]:
        """``tree/solved``: share of prompts with a right response; ``tree/nodes``: that were gone on from, of a tree;
        ``tree/kept``: share of these whose children are learned from; with a scorer ``tree/trust``, see above."""
        return self._seen

    def leaf(self, node: Node) -> Node:
        """Return where the next steps are sampled: the first of the children with the largest UCB, again and again."""
        trust = self.trusted
        while node.children and not node.ended:
            visits = node.visits
            node = max(node.children, key=lambda child: ucb(child, visits, self.c, trust))
        return node

    def tells(self, node: Node) -> bool:
        """Whether a node's children differ enough to be learned from."""
        b = [boosted(child.value) for child in node.children]
        return max(b) - min(b) >= self.least and max(b) > min(b)

    def _expand(
        self, rows: Sequence[tuple[Ask, Node, list[tuple[Episode, Verdict]]]], engine: Engine, rng: np.random.Generator
    ) -> None:
        """Sample steps after leaves, try them, and tell all nodes up to the roots."""
        size = self.steps.size if self.steps.by == "fixed" else self.sampling.max_tokens
        requests = []
        for ask, leaf, _ in rows:
            left = self.sampling.max_tokens - len(leaf.tokens)
            stop = tuple(dict.fromkeys((*self.sampling.stop, *STOPS[self.steps.by])))
            one = replace(self.sampling, max_tokens=min(size, left), stop=stop)
            seed = int(rng.integers(2**63))
            requests.append(Request(full_prompt(ask), self.children, one, seed, prefix=leaf.tokens))
        found = engine.generate(requests) if requests else []
        tried: list[tuple[Ask, Node, list[tuple[Episode, Verdict]]]] = []
        for (ask, leaf, ended), replies in zip(rows, found, strict=True):
            leaf.children = [self._child(leaf, e, engine) for e in replies if e.stop != "error" and len(e.tokens)]
            leaf.ended = not leaf.children
            over = any(child.ended for child in leaf.children)
            tried += [(ask, child, ended) for child in leaf.children[: None if over else 1]]
        self._opine([(ask.task, child) for ask, leaf, _ in rows for child in leaf.children], engine)
        goes_on = [
            Request(
                full_prompt(ask),
                1,
                replace(self.sampling, max_tokens=self.sampling.max_tokens - len(node.tokens), temperature=0.0),
                0,
                prefix=node.tokens,
            )
            for ask, node, _ in tried
            if not node.ended
        ]
        rest = iter(engine.generate(goes_on) if goes_on else [])
        whole: list[Episode] = []
        for _, node, _ in tried:
            assert node.episode is not None
            end = node.episode if node.ended else stopped(next(rest)[0], self.sampling.stop, engine, node.tokens)
            tokens = node.tokens if end is node.episode else (*node.tokens, *end.tokens.tolist())
            whole.append(replace(end, text=engine.decode(np.asarray(tokens, dtype=np.int64))))
        judged = self.judge([Group(replace(ask, n=1), (e,)) for (ask, _, _), e in zip(tried, whole, strict=True)])
        for (_, node, ended), group in zip(tried, judged, strict=True):
            [episode], [verdict] = group.episodes, group.verdicts
            steps = self.count(episode.text, len(node.tokens) + len(episode.tokens) * (not node.ended))
            if verdict.passed is not None and steps > self.depth:
                verdict = Verdict.wrong(f"{steps} steps, of {self.depth} at most")
            ended.append((episode, verdict))
            reward = None if verdict.passed is None else verdict.score
            if node.ended:
                node.reward = reward
            back(node, reward)

    def _opine(self, rows: Sequence[tuple[Task, Node]], engine: Engine) -> None:
        """Ask the scorer what it thinks of new nodes."""
        if not rows or not self.trusted:
            return
        found = self.scorer([(task, self._beginning(node, engine)) for task, node in rows], engine)
        if len(found) != len(rows):
            raise RunError(
                f"the scorer of steps scored {len(found)} of {len(rows)} beginnings; return one row for each"
            )
        for (task, node), row in zip(rows, found, strict=True):
            if row is None:
                continue
            if len(row) != node.depth or not math.isfinite(row[-1]):
                raise RunError(
                    f"the scorer of steps returned {list(row)} for the {node.depth} steps of a response to task "
                    f"{task.id}; return one finite number each, or None"
                )
            node.opinion = (1 + float(row[-1])) / 2

    def _beginning(self, node: Node, engine: Engine) -> Episode:
        """Return the steps up to a node as the beginning of a response to the plain prompt."""
        steps: list[Episode] = []
        at: Node | None = node
        while at is not None and at.episode is not None:
            steps.insert(0, at.episode)
            at = at.parent
        tokens = np.asarray(node.tokens, dtype=np.int64)
        prompt = steps[0].prompt
        ends = np.cumsum([0, *(len(step.tokens) for step in steps)]).tolist()
        spans = tuple(Span("step", a, b) for a, b in pairwise(ends))
        own = np.ones(len(tokens), dtype=bool)
        return Episode(prompt, tokens, own, None, engine.decode(tokens), steps[-1].stop, spans=spans)

    def _child(self, leaf: Node, episode: Episode, engine: Engine) -> Node:
        stops = self.sampling.stop
        episode = stopped(episode, stops, engine, leaf.tokens)
        tokens = (*leaf.tokens, *episode.tokens.tolist())
        full = len(tokens) >= self.sampling.max_tokens or leaf.depth + 1 >= self.depth
        over = bool(stops) and any(s in engine.decode(tokens) for s in stops)
        return Node(leaf, episode, tokens, leaf.depth + 1, ended=episode.stop == "eos" or full or over)

    def count(self, text: str, tokens: int) -> int:
        """Return how many steps a whole response of so many tokens has."""
        return -(-tokens // self.steps.size) if self.steps.by == "fixed" else len(self.steps.cuts(text.strip())) + 1

    def _groups(self, ask: Ask, tree: Node, ended: Sequence[tuple[Episode, Verdict]], engine: Engine) -> Group:
        before = Group(replace(ask, n=len(ended)), tuple(e for e, _ in ended), tuple(v for _, v in ended))
        if not any(v.passed for _, v in ended):
            found = self._solution(ask, engine) if self.solutions and ask.task.solution else ()
            return Group(replace(ask, n=len(found)), found, tuple(Verdict.right() for _ in found), before=before)
        episodes, verdicts = [], []
        for k, node in enumerate(n for n in tree.all() if n.children and self.tells(n)):
            for child in node.children:
                assert child.episode is not None
                b = boosted(child.value)
                episodes.append(replace(child.episode, advantage_group=f"{ask.task.id}/node {k}"))
                verdicts.append(Verdict(b, b >= 1))
        return Group(replace(ask, n=len(episodes)), tuple(episodes), tuple(verdicts), before=before)

    def _solution(self, ask: Ask, engine: Engine) -> tuple[Episode, ...]:
        text = str(ask.task.solution)
        tokens = np.asarray(engine.encode_response(text), dtype=np.int64)[: self.sampling.max_tokens]
        own, origins = np.ones(len(tokens), dtype=bool), np.full(len(tokens), Origin.HINT, dtype=np.uint8)
        return (Episode(engine.encode(full_prompt(ask)), tokens, own, None, text, "eos", origins=origins),)


def back(node: Node, reward: float | None) -> None:
    """Add a reward to W, and 1 to n, of a node and those before it; nothing where there is none."""
    at: Node | None = node
    while at is not None and reward is not None:
        at.total += reward
        at.visits += 1
        at = at.parent
