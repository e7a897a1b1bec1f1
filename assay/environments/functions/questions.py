"""Questions over a library of functions: their parts, what answers each, and in which order they can be asked."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.environments.functions.library import ARITHMETIC, UNITS, Function, Library, Style, make_library
from assay.tasks.seeded import check_index, generator
from assay.types import Task

Shape = Literal["single", "parallel", "multi", "both", "joined"]

HOW = (
    "Use the tools; calls that do not wait for each other can be made in one turn. "
    "End with <answer>the answer</answer>; several answers stand in the order asked, with commas between."
)


@dataclass(frozen=True, slots=True)
class Sub:
    """A question that one call answers.

    Attributes:
        function: the tool's name.
        arguments: of the call.
        value: what it returns, and what answers it.
        after: the questions whose values are among the arguments, by their place.
        asked: in words.
    """

    function: str
    arguments: Mapping[str, Any]
    value: Any
    after: tuple[int, ...]
    asked: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with all that it takes.

    Attributes:
        asked: in words.
        subs: each after those it needs.
        roots: whose values are the answer, in the order asked, as places in ``subs``.
        functions: that can be called, by name.
    """

    asked: str
    subs: tuple[Sub, ...]
    roots: tuple[int, ...]
    functions: Mapping[str, Function]

    @property
    def answers(self) -> list[str]:
        """What is asked for, in the order asked."""
        return [str(self.subs[i].value) for i in self.roots]


@dataclass(frozen=True, slots=True)
class Made:
    """Endless tasks; the reference is the answer, ``meta["answers"]`` what answers each part, by tool."""

    seed: int
    shapes: tuple[Shape, ...]
    hops: int
    width: int
    complexity: int
    distractors: int
    style: Style

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        problem = self.problem(check_index(index, None))
        answers: dict[str, list[Any]] = {}
        for sub in problem.subs:
            answers.setdefault(sub.function, []).append(sub.value)
        return Task(
            id=f"functions/{self.seed}/{index}",
            prompt=problem.asked if self.style == "compact" else f"{problem.asked} {HOW}",
            reference=("," if self.style == "compact" else ", ").join(problem.answers),
            kind="exact",
            meta={"index": index, "answers": answers},
        )

    def problem(self, index: int) -> Problem:
        """Return what task ``index`` asks."""
        return _problem(self, index)


@functools.lru_cache(maxsize=2048)
def _problem(made: Made, index: int) -> Problem:
    rng = generator(made.seed, index)
    library = make_library(rng, made.style, made.complexity)
    functions = library.functions()
    shape = made.shapes[int(rng.integers(len(made.shapes)))]
    # An answer counts once, so that no two parts may have the same one of the same tool.
    subs, roots = _drawn(made, shape, library, functions, rng)
    while len({(s.function, s.value) for s in subs}) < len(subs):
        subs, roots = _drawn(made, shape, library, functions, rng)
    needed = list(dict.fromkeys(s.function for s in subs))
    others = [name for name in functions if name not in needed]
    more = rng.choice(len(others), min(made.distractors, len(others)), replace=False).tolist() if others else []
    names = sorted([*needed, *(others[i] for i in more)])
    return Problem(
        _asked(made.style, [subs[i].asked for i in roots]), subs, roots, {name: functions[name] for name in names}
    )


def _drawn(
    made: Made, shape: Shape, library: Library, functions: Mapping[str, Function], rng: np.random.Generator
) -> tuple[tuple[Sub, ...], tuple[int, ...]]:
    """Return the parts of a question, and which of them it asks for."""
    least, most = {"single": (1, 1), "parallel": (1, 1), "joined": (1, made.hops)}.get(shape, (2, made.hops))
    width = {"joined": 2, "parallel": made.width, "both": made.width}.get(shape, 1)
    width = int(rng.integers(2, width + 1)) if width > 1 else 1
    subs: list[Sub] = []
    roots = []
    for _ in range(width):
        subs += _chain(library, functions, int(rng.integers(least, most + 1)), shape == "joined", len(subs), rng)
        roots.append(len(subs) - 1)
    if shape != "joined":
        return tuple(subs), tuple(roots)
    name = str(rng.choice(list(ARITHMETIC)))
    one, other = (subs[i] for i in roots)
    numbers = {"a": one.value, "b": other.value}
    asked = f"the {name} of {one.asked} and {other.asked}"
    subs.append(Sub(name, numbers, ARITHMETIC[name].value(numbers), tuple(roots), asked))
    return tuple(subs), (len(subs) - 1,)


def _chain(
    library: Library, functions: Mapping[str, Function], hops: int, number: bool, first: int, rng: np.random.Generator
) -> list[Sub]:
    """Return a chain of look-ups, each of what the one before gives; no entity is met twice.

    Args:
        number: the last one gives a number.
        first: place of the first.
    """
    while True:
        kind = str(rng.choice(list(library.entities)))
        entity = library.entities[kind][int(rng.integers(len(library.entities[kind])))]
        met, found, asked = [entity], list[Sub](), str(entity)
        for hop in range(hops):
            ends = hop == hops - 1
            fitting = [
                i
                for i, r in enumerate(library.relations)
                if r.subject == kind and (r.value in UNITS) in ((number,) if ends and number else (False, ends))
            ]
            if not fitting:
                break
            relation = fitting[int(rng.integers(len(fitting)))]
            kind = library.relations[relation].value
            unit = str(rng.choice(list(UNITS[kind]))) if library.complexity > 1 and kind in UNITS else None
            name, arguments = library.name(relation), library.arguments(relation, entity, unit)
            entity = functions[name].value(arguments)
            asked = library.asked(relation, unit, asked)
            found.append(Sub(name, arguments, entity, (first + hop - 1,) if hop else (), asked))
            met.append(entity)
        if len(found) == hops and len(set(met)) == len(met):
            return found


def _asked(style: Style, parts: Sequence[str]) -> str:
    if style == "compact":
        return f"{','.join(parts)}?"
    what = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"What {'are' if len(parts) > 1 else 'is'} {what}?"
