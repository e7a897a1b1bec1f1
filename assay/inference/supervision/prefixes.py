"""A tree of beginnings of responses to a task, each with the share of its completions that are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from assay.engines.base import Engine
from assay.engines.joined import beginning
from assay.rewards.step_models.examples import Label, StepExample, StepPair
from assay.signals.steps import Steps, step_texts
from assay.types import Episode, Span, Task


@dataclass(frozen=True, slots=True)
class Completion:
    """A beginning that was gone on with.

    Attributes:
        episode: with the beginning, as one response to the plain prompt.
        done: whether it is a whole response.
        passed: whether it is right; ``None`` where it is not whole or could not be judged.
    """

    episode: Episode
    done: bool
    passed: bool | None


@dataclass(slots=True, eq=False)
class Beginning:
    """A node: the question and some steps.

    Attributes:
        episode: the steps' tokens; ``None`` at the root.
        spans: of the steps.
        done: it is a whole response.
        right, tried: of completions that were judged.
        visits: times that a search has chosen it.
        completions: that were sampled from it.
    """

    episode: Episode | None
    spans: tuple[Span, ...] = ()
    done: bool = False
    right: int = 0
    tried: int = 0
    visits: int = 0
    completions: list[Completion] = field(default_factory=list)

    @property
    def value(self) -> Label:
        """The share of right completions; ``None`` before any was judged."""
        return self.right / self.tried if self.tried else None

    @property
    def length(self) -> int:
        """Its tokens."""
        return 0 if self.episode is None else len(self.episode.tokens)

    def count(self, found: Iterable[Completion]) -> None:
        """Add completions; those that could not be judged are no evidence."""
        for one in found:
            self.completions.append(one)
            if one.passed is not None:
                self.tried += 1
                self.right += one.passed


class PrefixTree:
    """The beginnings of responses to one task.

    Args:
        task: the question.
        engine: decodes tokens.
        by: where steps end.
    """

    def __init__(self, task: Task, engine: Engine, by: Steps):
        self.task, self.engine, self.by = task, engine, by
        self.root = Beginning(None)
        self._known: dict[bytes, Beginning] = {}
        self.rollouts = 0
        self.marked: Any = None  # what a search noted of nodes beside their completions

    def __iter__(self) -> Iterator[Beginning]:
        yield self.root
        yield from self._known.values()

    def cut(self, episode: Episode) -> tuple[Span, ...]:
        """Return the steps of a response or a beginning."""
        return self.by.of(episode, self.engine.decode)

    def at(self, episode: Episode, length: int | None = None) -> Beginning:
        """Return the node of a response's first ``length`` tokens, or of all of them; a new one where it is new."""
        tokens = episode.tokens if length is None else episode.tokens[:length]
        if (known := self._known.get(tokens.tobytes())) is not None:
            return known
        head = episode if length is None else beginning(episode, length, self.engine)
        node = self._known[tokens.tobytes()] = Beginning(head, self.cut(head))
        return node

    def path(self, node: Beginning) -> list[Beginning]:
        """Return the beginnings of a node that are known, shortest first, the root and itself included."""
        if node.episode is None:
            return [node]
        tokens = node.episode.tokens
        known = (self._known.get(tokens[: span.end].tobytes()) for span in node.spans)
        return [self.root, *(n for n in known if n is not None)]

    def whole(self, found: Completion) -> Beginning:
        """Return the node of a whole response, whose value is its outcome."""
        node = self.at(found.episode)
        if not node.done and found.passed is not None:
            node.done, node.right, node.tried = True, int(found.passed), 1
        return node

    def example(self, episode: Episode, labels: Sequence[Label] = ()) -> StepExample:
        """Return a response's steps as an example."""
        spans = self.cut(episode)
        texts = step_texts(episode, spans, self.engine.decode)
        return StepExample(self.task, tuple(texts), tuple(labels), replace(episode, spans=spans))

    def examples(self) -> list[StepExample]:
        """Return the longest paths with the values of the nodes on them; a node's value stands in one path."""
        out: list[StepExample] = []
        told: set[int] = set()
        for leaf in sorted(self._known.values(), key=lambda n: -n.length):
            if id(leaf) in told or leaf.episode is None:
                continue
            new = {n.length: n.value for n in self.path(leaf)[1:] if id(n) not in told}
            told |= {id(n) for n in self.path(leaf)}
            if any(value is not None for value in new.values()):
                out.append(self.example(leaf.episode, [new.get(span.end) for span in leaf.spans]))
        return out

    def siblings(self) -> list[tuple[Beginning, list[Beginning]]]:
        """Return the nodes that others go on from directly, with those."""
        below: dict[int, tuple[Beginning, list[Beginning]]] = {}
        for node in self._known.values():
            *_, parent, _ = self.path(node)
            below.setdefault(id(parent), (parent, []))[1].append(node)
        return list(below.values())

    def pairs(self, margin: float = 0.375) -> list[StepPair]:
        """Return siblings whose values differ by ``margin`` or more, each completed to a whole response.

        The better one's completion is a right one and the worse one's a wrong one, where there are such.
        """
        out = []
        for _, children in self.siblings():
            known = [child for child in children if child.value is not None]
            for a, b in combinations(known, 2):
                better, worse = (a, b) if _value(a) >= _value(b) else (b, a)
                # Shares such as 0.9 - 0.525 may be a little below what they stand for.
                if _value(better) - _value(worse) < margin - 1e-9:
                    continue
                ends = [self.example(_completed(n, right)) for n, right in ((better, True), (worse, False))]
                steps = list(zip(ends[0].steps, ends[1].steps, strict=False))
                fork = next((k for k, (one, other) in enumerate(steps) if one != other), None)
                if fork is not None:
                    out.append(StepPair(ends[0], ends[1], fork))
        return out


def _value(node: Beginning) -> float:
    assert node.value is not None
    return node.value


def _completed(node: Beginning, right: bool) -> Episode:
    """A whole response through a node, of the wanted outcome where there is one."""
    whole = [c for c in node.completions if c.done]
    wanted = [c for c in whole if c.passed is right] or whole
    assert node.episode is not None
    return wanted[0].episode if wanted else node.episode
