"""Puzzles of knights, who tell the truth, and knaves, who lie, each with one answer; and reasoning about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task
from assay.verify.puzzles.knights_knaves import holds, solutions

NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus")
LETTERS = "ABCDEFG"
JOINED = ("and", "or", "implies", "iff")
SIGNS = {"and": "&", "or": "|", "implies": ">", "iff": "="}
WORDS = {"and": "{} and {}", "or": "{} or {}", "implies": "if {} then {}", "iff": "{} if and only if {}"}
ALPHABET = "".join(sorted(set(LETTERS + "kn-&|>=:;?! \n")))
"""Every character of compact puzzles and solutions."""
TRIES = 10_000
"""Draws of statements for a puzzle; more than one in fifty has one answer."""


@part("tasks", "knights_knaves")
@dataclass(frozen=True, slots=True)
class KnightsAndKnaves:
    r"""Endless puzzles in which each of some people makes a statement, and exactly one assignment of roles fits.

    Statements are drawn from who is a knight or a knave, ``not``, ``and``, ``or``, ``implies`` and ``iff``, and kept if
    one of the 2^n assignments is consistent and no other. Judged by verifier ``knights_knaves``.

    A solution supposes one assignment after another, says whose statement does not fit it, and comes to the one that
    fits: compact, ``AkBk!A\nAkBn\nA k B n`` (of A, who says so, the statement is false if both are knights). A share
    ``slips`` of them takes an assignment for consistent that is not, and ends in a wrong answer: what a teacher writes
    and nobody has filtered.

    Args:
        seed: >= 0.
        people, min_people: how many there are, uniform between the two; 2 to 7.
        depth: operators inside each other in a statement, at most.
        solutions: ``reasoned``, or ``answers`` alone.
        slips: share of wrong solutions, in [0, 1].
        style: ``words``, or ``compact`` for models that spell.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    people: int = 3
    min_people: int = 2
    depth: int = 1
    solutions: Literal["reasoned", "answers"] = "reasoned"
    slips: float = 0.0
    style: Literal["words", "compact"] = "words"

    def __post_init__(self) -> None:
        check_seed("tasks 'knights_knaves'", self.seed)
        if not 2 <= self.min_people <= self.people <= len(NAMES):
            raise UsageError(
                f"tasks 'knights_knaves': min_people {self.min_people} and people {self.people} must satisfy 2 <= "
                f"min_people <= people <= {len(NAMES)}"
            )
        if self.depth < 1 or not 0 <= self.slips <= 1:
            raise UsageError(
                f"tasks 'knights_knaves': depth {self.depth} must be 1 or more and slips {self.slips} in [0, 1]"
            )

    @property
    def size(self) -> None:
        return None

    @property
    def alphabet(self) -> str:
        """Every character of compact puzzles and solutions."""
        return ALPHABET

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng = generator(self.seed, index, 3)
        compact = self.style == "compact"
        names = (LETTERS if compact else NAMES)[: int(rng.integers(self.min_people, self.people + 1))]
        people = list(names)
        said, answer = self._drawn(people, rng)
        slipped = rng.random() < self.slips
        lines = list(steps(people, said, answer, int(rng.integers(2 ** len(people) - 1)) if slipped else None))
        return Task(
            id=f"knights_knaves/{self.seed}/{index}",
            prompt=_asked(people, said, compact),
            reference={
                "people": people,
                "statements": said,
                "unique": True,
                **({"roles": ["k", "n"]} if compact else {}),
            },
            kind="knights_knaves",
            solution=_told(lines, compact, self.solutions == "reasoned"),
            meta={"source": "knights_knaves", "difficulty": len(people), "slipped": slipped},
        )

    def _drawn(self, people: Sequence[str], rng: np.random.Generator) -> tuple[list[list[Any]], dict[str, bool]]:
        for _ in range(TRIES):
            said = [[who, statement(people, who, self.depth, rng)] for who in people]
            found = solutions(json.dumps([people, said]))
            if len(found) == 1:
                return said, dict(zip(people, found[0], strict=True))
        raise AssertionError(f"no puzzle of {len(people)} people with one answer in {TRIES:,} draws")


def statement(people: Sequence[str], speaker: str, depth: int, rng: np.random.Generator) -> Any:
    """Draw a statement of at most ``depth`` operators inside each other; a bare one is not about its speaker."""
    kind = "atom" if depth == 0 else ("atom", "not", *JOINED)[int(rng.integers(6))]
    if kind == "atom":
        others = [name for name in people if name != speaker]
        return [("knight", "knave")[int(rng.integers(2))], others[int(rng.integers(len(others)))]]
    if kind == "not":
        return ["not", statement(people, speaker, depth - 1, rng)]
    about = ("", speaker)[int(rng.integers(2))]  # joined ones may be about the speaker too
    return [kind, statement(people, about, depth - 1, rng), statement(people, speaker, depth - 1, rng)]


def steps(
    people: Sequence[str], said: Sequence[Sequence[Any]], answer: dict[str, bool], slip: int | None = None
) -> Iterator[tuple[dict[str, bool], str | None]]:
    """Yield the assignments that are supposed, in order, each with a speaker who contradicts it; the last has none.

    It is the answer, or with ``slip`` the wrong assignment of that number; the answer, if it came before, is then said
    to be contradicted by the first who speaks.
    """
    worlds = [dict(zip(people, values, strict=True)) for values in product((True, False), repeat=len(people))]
    end = answer if slip is None else [world for world in worlds if world != answer][slip]
    for world in worlds[: worlds.index(end)]:
        yield world, next((who for who, what in said if holds(what, world) != world[who]), said[0][0])
    yield end, None


def _asked(people: Sequence[str], said: Sequence[Sequence[Any]], compact: bool) -> str:
    if compact:
        return ";".join(f"{who}:{_compact(what)}" for who, what in said) + "?"
    spoken = " ".join(f'{who} says: "{_words(what)}."' for who, what in said)
    return (
        "On an island everybody is either a knight, who always tells the truth, or a knave, who always lies. "
        f"{', '.join(people)} live there. {spoken} Who is what? Suppose roles, look for a contradiction, and say on "
        f'the last line, like "{people[0]} is a knight, {people[1]} is a knave", what each of them is.'
    )


def _compact(what: Any) -> str:
    kind, *rest = what
    if kind in ("knight", "knave"):
        return f"{rest[0]}{'k' if kind == 'knight' else 'n'}"
    return ("-" if kind == "not" else SIGNS[kind]) + "".join(map(_compact, rest))


def _words(what: Any) -> str:
    kind, *rest = what
    if kind in ("knight", "knave"):
        return f"{rest[0]} is a {kind}"
    if kind == "not":
        return f"it is not so that {_words(rest[0])}"
    return WORDS[kind].format(*map(_words, rest))


def _told(lines: Sequence[tuple[dict[str, bool], str | None]], compact: bool, reasoned: bool) -> str:
    out = []
    for world, against in lines if reasoned else ():
        if compact:
            roles = "".join(f"{who}{'k' if knight else 'n'}" for who, knight in world.items())
            out.append(roles if against is None else f"{roles}!{against}")
        else:
            roles = ", ".join(f"{who} is a {'knight' if knight else 'knave'}" for who, knight in world.items())
            end = "everybody's statement fits." if against is None else f"what {against} says does not fit."
            out.append(f"Suppose {roles}: then {end}")
    world = lines[-1][0]
    if compact:
        return "\n".join([*out, " ".join(f"{who} {'k' if k else 'n'}" for who, k in world.items())])
    last = ", ".join(f"{who} is a {'knight' if k else 'knave'}" for who, k in world.items())
    return "\n".join([*out, last])
