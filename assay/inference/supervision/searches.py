"""How a tree of beginnings grows: where wrong responses first go wrong, best first, or along sampled responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.inference.supervision.completing import Search, Wanted, measure
from assay.inference.supervision.prefixes import Beginning, Completion, PrefixTree


@dataclass(frozen=True, slots=True)
class FirstErrors:
    """Finds the first error of wrong responses by binary search, with completions of beginnings as the test.

    The pool holds (s, r): beginnings s with 0 < MC(s) < 1 and their wrong completions r. Each search takes the pair of

        argmax Q + U,   Q(s, r) = a^(1 - MC(s)) b^(len(r) / L),   U(s) = c sqrt(sum_i N(s_i)) / (1 + N(s))

    and halves r's steps after s: a beginning with MC > 0 has its error later, one with MC = 0 at its end or before.
    What is tested is a node with its completions, whose wrong ones join the pool. Tasks whose first ``k`` responses are
    all right or all wrong have no pool.

    Args:
        k: completions of a beginning.
        searches: of a tree, at most.
        rollouts: completions of a tree, after which no search begins; ``None`` for any number.
        a, b, length, c: of Q and U; L is in tokens.
        scan: ``linear`` tests every beginning in turn until one has MC = 0, for comparison.

    Raises:
        UsageError: an option out of range.

    Source: OmegaPRM (arXiv 2406.06592), equations 1 and 2, and its constants.
    """

    k: int = 8
    searches: int = 100
    rollouts: int | None = None
    a: float = 0.5
    b: float = 0.9
    length: float = 500.0
    c: float = 0.125
    scan: Literal["binary", "linear"] = "binary"

    def __post_init__(self) -> None:
        if min(self.k, self.searches) < 1 or not (0 < self.a <= 1 and 0 < self.b <= 1) or self.length <= 0:
            raise UsageError(
                "a search for first errors needs k and searches of at least 1, a and b in (0, 1], length > 0"
            )
        if self.c < 0 or (self.rollouts is not None and self.rollouts < 1):
            raise UsageError("a search for first errors needs c of at least 0 and rollouts of at least 1, if any")

    def __call__(self, tree: PrefixTree) -> Search:
        yield from measure(tree, [tree.root], self.k)
        for found in tree.root.completions:
            tree.whole(found)
        searched: set[int] = set()
        for _ in range(self.searches):
            pool = [(s, r) for s in tree for r in s.completions if self.open(s, r) and id(r) not in searched]
            if not pool or (self.rollouts is not None and tree.rollouts >= self.rollouts):
                return
            visits = sum(node.visits for node in tree)
            node, rollout = max(pool, key=lambda pair: self.q(*pair) + self.u(pair[0], visits))
            node.visits += 1
            searched.add(id(rollout))
            yield from self.locate(tree, node, rollout)

    def open(self, node: Beginning, rollout: Completion) -> bool:
        """Say whether a pair belongs into the pool."""
        return node.value is not None and 0 < node.value < 1 and rollout.passed is False

    def q(self, node: Beginning, rollout: Completion) -> float:
        """Return Q: wrong responses, short ones first, after beginnings that mostly come out right."""
        assert node.value is not None
        return float(self.a ** (1 - node.value) * self.b ** (len(rollout.episode.tokens) / self.length))

    def u(self, node: Beginning, visits: int) -> float:
        """Return U, with ``visits`` of all nodes together."""
        return self.c * math.sqrt(visits) / (1 + node.visits)

    def locate(self, tree: PrefixTree, node: Beginning, rollout: Completion) -> Search:
        """Test beginnings of a wrong completion of ``node`` until two neighbours have MC > 0 and MC = 0."""
        tree.whole(rollout)
        ends = [span.end for span in tree.cut(rollout.episode)]
        low, high = sum(end <= node.length for end in ends), len(ends)
        while high - low > 1:
            middle = (low + high) // 2 if self.scan == "binary" else low + 1
            tested = tree.at(rollout.episode, ends[middle - 1])
            if not tested.tried:
                yield from measure(tree, [tested], self.k)
            if tested.value is None:  # nobody could judge
                return
            low, high = (middle, high) if tested.value > 0 else (low, middle)


@dataclass(frozen=True, slots=True)
class BestFirst:
    """Expands the open beginning with the highest value: samples next steps, and values each by completions.

    Args:
        completions: of a beginning, N.
        branch: next steps sampled from it; equal ones are one.
        expansions: of a tree.

    Raises:
        UsageError: an option below 1.

    Source: Tree-PLV (arXiv 2407.00390).
    """

    completions: int = 8
    branch: int = 4
    expansions: int = 16

    def __post_init__(self) -> None:
        if min(self.completions, self.branch, self.expansions) < 1:
            raise UsageError("a best-first tree needs completions, branch and expansions of at least 1")

    def __call__(self, tree: PrefixTree) -> Search:
        yield from measure(tree, [tree.root], self.completions)
        open_ = [tree.root]
        for _ in range(self.expansions):
            open_ = [node for node in open_ if node.value is not None]
            if not open_:
                return
            node = max(open_, key=lambda n: n.value or 0.0)
            open_.remove(node)
            [grown] = yield [Wanted(node.episode, self.branch, whole=False)]
            new = [tree.whole(found) if found.done else tree.at(found.episode) for found in grown]
            begun = list({id(child): child for child in new if not child.tried}.values())
            yield from measure(tree, begun, self.completions)
            open_ += begun


@dataclass(frozen=True, slots=True)
class Along:
    """Values the ends of the steps of sampled responses, each by ``n`` completions of the prover.

    Args:
        responses: sampled from the policy.
        n: completions of a beginning.
        near: value only steps at most this far from the first one after which no completion is right, found by binary
            search; ``None`` for every step.

    Raises:
        UsageError: an option out of range.

    Source: Math-Shepherd (arXiv 2312.08935); a prover of its own is that of process advantage verifiers (arXiv
    2410.08146).
    """

    responses: int = 4
    n: int = 8
    near: int | None = None

    def __post_init__(self) -> None:
        if min(self.responses, self.n) < 1 or (self.near is not None and self.near < 0):
            raise UsageError(
                "values along responses need responses and n of at least 1, and near of at least 0, if any"
            )

    def __call__(self, tree: PrefixTree) -> Search:
        yield from measure(tree, [tree.root], self.n, prover=True)
        [sampled] = yield [Wanted(None, self.responses)]
        tree.rollouts += len(sampled)
        for found in sampled:
            tree.whole(found)
        for found in sampled:
            ends = [span.end for span in tree.cut(found.episode)]
            inner = range(1, len(ends))
            if self.near is not None:
                first = yield from self._first(tree, found, ends)
                inner = range(max(1, first - self.near), min(len(ends), first + self.near + 1))
            nodes = [tree.at(found.episode, ends[k - 1]) for k in inner]
            yield from measure(tree, [node for node in nodes if not node.tried], self.n, prover=True)

    def _first(self, tree: PrefixTree, found: Completion, ends: list[int]):  # type: ignore[no-untyped-def]
        """Return after how many steps nothing comes right any more, all of them where something always does."""
        low, high = 0, len(ends)
        while high - low > 1:
            middle = (low + high) // 2
            node = tree.at(found.episode, ends[middle - 1])
            if not node.tried:
                yield from measure(tree, [node], self.n, prover=True)
            low, high = (middle, high) if node.value else (low, middle)
        return high
