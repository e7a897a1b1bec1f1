"""Knights and knaves: who tells the truth, when knights always do and knaves never."""

from __future__ import annotations

import json
import operator
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

from assay.registry import part
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle

MAX_PEOPLE = 16
MAX_DEPTH = 50
_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

World = Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Island:
    """The people, what they say as ``(speaker, statement)``, and the words for those who tell the truth and lie."""

    people: tuple[str, ...]
    said: tuple[tuple[str, Any], ...]
    roles: tuple[str, str]
    unique: bool


@part("verify", "knights_knaves")
@dataclass(frozen=True, slots=True)
class KnightsKnaves(Puzzle):
    """Right iff everybody is given a role, and with these roles knights say the truth and knaves do not.

    ``task.reference`` is ``{"people": [names], "statements": [[speaker, statement], ...]}`` (or a mapping from speaker
    to statement). A statement is ``["knight", name]``, ``["knave", name]``, ``["not", s]``, ``["and" | "or", s, ...]``,
    ``["xor" | "iff" | "implies", s, t]``, ``["count", "knights" | "knaves", "==" | "<=" ..., n]``, ``true`` or
    ``false``. ``"roles": [truthful, lying]`` are other words than knight and knave. With ``"unique": true`` the answer
    has to be the only consistent one; a puzzle that has several is abstained on.

    ``parts``: ``named``, the share of people given a role; ``consistent``, the share of statements that fit.
    """

    fallback: Any = "line"
    shape: ClassVar[str] = "{'people': [...], 'statements': [[speaker, statement], ...]}"

    def read(self, reference: Mapping[str, Any]) -> Island:
        people = tuple(str(name) for name in reference["people"])
        statements = reference["statements"]
        said = tuple(
            (str(who), what) for who, what in (statements.items() if isinstance(statements, Mapping) else statements)
        )
        truthful, lying = (str(word).casefold() for word in reference.get("roles", ("knight", "knave")))
        if not 1 <= len(set(people)) == len(people) <= MAX_PEOPLE:
            raise ValueError(f"needs 1 to {MAX_PEOPLE} different people")
        everyone = dict.fromkeys(people, True)
        for who, what in said:
            if who not in everyone:
                raise ValueError(f"{who!r} speaks and is not one of the people")
            holds(what, everyone)
        return Island(people, said, (truthful, lying), bool(reference.get("unique", False)))

    def check(self, puzzle: Island, answer: str) -> Verdict:
        claimed = roles_of(answer, puzzle.people, puzzle.roles)
        unnamed = [name for name in puzzle.people if name not in claimed]
        if unnamed:
            share = 1 - len(unnamed) / len(puzzle.people)
            complaint = f"does not say what {unnamed[0]} is"
            return self.verdict(complaint, 0.0, {"named": share, "consistent": None})
        if puzzle.unique and (count := len(solutions(json.dumps([puzzle.people, puzzle.said])))) != 1:
            return Verdict.abstain(f"the puzzle is said to have one solution and has {count}")
        broken = [who for who, what in puzzle.said if holds(what, claimed) != claimed[who]]
        consistent = 1 - len(broken) / len(puzzle.said) if puzzle.said else 1.0
        complaint = ""
        if broken:
            truthful = claimed[broken[0]]
            role = puzzle.roles[0 if truthful else 1]
            complaint = f"{broken[0]} would be a {role} and what {broken[0]} says would be {str(not truthful).lower()}"
        return self.verdict(complaint, consistent, {"named": 1.0, "consistent": consistent})


def holds(statement: Any, world: World, depth: int = 0) -> bool:
    """Say whether ``statement`` is true when ``world`` maps names to being a knight.

    Raises:
        ValueError: it is no statement, names somebody unknown, or is nested deeper than :data:`MAX_DEPTH`.
    """
    if isinstance(statement, bool):
        return statement
    if depth > MAX_DEPTH or isinstance(statement, str) or not isinstance(statement, Sequence) or not statement:
        raise ValueError(f"{reprlib.repr(statement)} is no statement")
    kind, *rest = statement
    if kind in ("knight", "knave") and len(rest) == 1:
        if rest[0] not in world:
            raise ValueError(f"nobody is called {reprlib.repr(rest[0])}")
        return world[rest[0]] == (kind == "knight")
    if kind == "count" and len(rest) == 3 and rest[0] in ("knights", "knaves") and rest[1] in _COMPARE:
        knights = sum(world.values())
        return bool(_COMPARE[rest[1]](knights if rest[0] == "knights" else len(world) - knights, int(rest[2])))
    values = [holds(part, world, depth + 1) for part in rest]
    if kind == "not" and len(values) == 1:
        return not values[0]
    if kind in ("and", "or") and values:
        return all(values) if kind == "and" else any(values)
    if kind in ("xor", "iff", "implies") and len(values) == 2:
        first, second = values
        return {"xor": first != second, "iff": first == second, "implies": not first or second}[kind]
    raise ValueError(f"{reprlib.repr(statement)} is no statement")


@lru_cache(maxsize=1024)
def solutions(island: str) -> tuple[tuple[bool, ...], ...]:
    """Return every consistent world of the JSON text ``[people, [[speaker, statement], ...]]`` by trying them all."""
    people, said = json.loads(island)
    worlds = (dict(zip(people, world, strict=True)) for world in product((True, False), repeat=len(people)))
    return tuple(
        tuple(world.values()) for world in worlds if all(holds(what, world) == world[who] for who, what in said)
    )


def roles_of(answer: str, people: Sequence[str], roles: tuple[str, str]) -> dict[str, bool]:
    """Return who is said to be truthful, from "Ann is a knight and Bob is not", "Ann: knight", "Ann, Bob are knights".

    Raises:
        BadAnswer: somebody is said to be both.
    """
    # One letter counts in its own case: "A is a knight" names one person.
    names = {name if len(name) == 1 else name.casefold(): name for name in people}
    longest_first = sorted([*names, *roles], key=len, reverse=True)
    alternatives = "|".join(re.escape(w) if len(w) == 1 else f"(?i:{re.escape(w)})" for w in longest_first)
    token = re.compile(
        rf"(?<!\w)(?:({alternatives})s?|(?i:not|isn['’]t|aren['’]t)|((?i:everyone|everybody|all)))(?!\w)"
    )
    claimed: dict[str, bool] = {}
    waiting: list[str] = []
    negated = False
    for match in token.finditer(answer):
        word = match[1] and (match[1] if len(match[1]) == 1 else match[1].casefold())
        if word is None:
            if match[2]:
                waiting = list(people)
            else:
                negated = not negated
        elif word in names:
            waiting.append(names[word])
        else:
            for name in waiting:
                truthful = (word == roles[0]) != negated
                if claimed.setdefault(name, truthful) != truthful:
                    raise BadAnswer(f"says that {name} is both a {roles[0]} and a {roles[1]}")
            waiting, negated = [], False
    return claimed
