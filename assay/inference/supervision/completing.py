"""Searches over the beginnings of many tasks' responses, whose samples are asked for and judged together."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.prefixes import Beginning, Completion, PrefixTree
from assay.signals.steps import Steps
from assay.types import Episode, Task
from assay.verify.base import Verifier
from assay.verify.episodes import judge_episodes


@dataclass(frozen=True, slots=True)
class Wanted:
    """``n`` continuations of a beginning.

    Attributes:
        head: the beginning, ``None`` for the question alone.
        n: how many.
        whole: to the end of the response; else by one step.
        prover: by the prover, where there is one.
    """

    head: Episode | None
    n: int
    whole: bool = True
    prover: bool = False


Search = Generator[list[Wanted], list[list[Completion]], None]
"""Grows a tree: asks for continuations, and is sent them."""


@dataclass(slots=True)
class Completer:
    """Who goes on with beginnings, and who judges.

    Args:
        engine: generates.
        verifier: judges whole responses.
        sampling: of a whole response.
        by: where steps end.
        stepping: where one that is sampled alone ends.
        prover: another engine, which completes what is asked of the prover; ``engine`` does where there is none.
        together: tasks searched at a time.

    Attributes:
        calls, tokens: continuations that were sampled, and tokens of them.
    """

    engine: Engine
    verifier: Verifier
    sampling: Sampling
    by: Steps = field(default_factory=lambda: Steps("newline"))
    stepping: Stepping = field(default_factory=Stepping)
    prover: Engine | None = None
    together: int = 16
    calls: int = 0
    tokens: int = 0

    def grow(self, tasks: Sequence[Task], search: Callable[[PrefixTree], Search], seed: int) -> Iterator[PrefixTree]:
        """Yield the tree of each task when its search ends; what is sampled for a task depends on it and ``seed``.

        Args:
            tasks: questions.
            search: of one tree.
            seed: of all draws.
        """
        waiting = iter(tasks)
        open_: list[tuple[PrefixTree, Search, np.random.Generator, list[Wanted]]] = []
        while True:
            while len(open_) < self.together and (task := next(waiting, None)) is not None:
                tree = PrefixTree(task, self.engine, self.by)
                going = search(tree)
                rng = np.random.default_rng([seed, zlib.crc32(task.id.encode("utf-8", "replace"))])
                if (asked := next(going, None)) is None:
                    yield tree
                else:
                    open_.append((tree, going, rng, asked))
            if not open_:
                return
            found = iter(self._answer([(tree.task, rng, one) for tree, _, rng, asked in open_ for one in asked]))
            still = []
            for tree, going, rng, asked in open_:
                try:
                    more = going.send([next(found) for _ in asked])
                except StopIteration:
                    yield tree
                else:
                    still.append((tree, going, rng, more))
            open_ = still

    def _answer(self, asked: Sequence[tuple[Task, np.random.Generator, Wanted]]) -> list[list[Completion]]:
        """Sample what is asked for and judge what is whole."""
        requests = [self._request(task, rng, one) for task, rng, one in asked]
        episodes: list[list[Episode]] = [[] for _ in asked]
        for proving in (False, True):
            rows = [i for i, (*_, one) in enumerate(asked) if (one.prover and self.prover is not None) is proving]
            engine = self.prover if proving and self.prover is not None else self.engine
            for i, many in zip(rows, engine.generate([requests[i] for i in rows]) if rows else [], strict=True):
                head = asked[i][2].head
                episodes[i] = [self.stepping.joined(head, e, self.sampling, self.engine) for e in many]
                self.calls += len(many)
                self.tokens += sum(len(e.tokens) for e in many)
        done = [
            [one.whole or self.stepping.done(e, self.sampling) for e in many]
            for (*_, one), many in zip(asked, episodes, strict=True)
        ]
        pairs = [
            (task, e)
            for (task, *_), many, ends in zip(asked, episodes, done, strict=True)
            for e, end in zip(many, ends, strict=True)
            if end
        ]
        verdicts = iter(judge_episodes(self.verifier, pairs))
        return [
            [Completion(e, end, next(verdicts).passed if end else None) for e, end in zip(many, ends, strict=True)]
            for many, ends in zip(episodes, done, strict=True)
        ]

    def _request(self, task: Task, rng: np.random.Generator, one: Wanted) -> Request:
        used = 0 if one.head is None else len(one.head.tokens)
        if one.whole:
            drawn = replace(self.sampling, max_tokens=max(self.sampling.max_tokens - used, 1))
        else:
            stop = tuple(dict.fromkeys((*self.sampling.stop, *self.stepping.stop)))
            drawn = replace(self.sampling, max_tokens=self.stepping.length(one.head, self.sampling), stop=stop)
        prefix = () if one.head is None else tuple(one.head.tokens.tolist())
        return Request(task.prompt, one.n, drawn, int(rng.integers(2**63)), prefix)


def measure(tree: PrefixTree, nodes: Sequence[Beginning], n: int, prover: bool = False) -> Search:
    """Complete beginnings ``n`` times each, together, and count what is right."""
    if nodes:
        found = yield [Wanted(node.episode, n, prover=prover) for node in nodes]
        for node, many in zip(nodes, found, strict=True):
            node.count(many)
            tree.rollouts += len(many)
