"""Questions in words that have one answer, ever longer ones: how each family is drawn and told."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from assay.tasks.procedural.belongings import object_properties

NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Gus",
    "Hal",
    "Ida",
    "Joe",
    "Kim",
    "Lea",
    "Max",
    "Nia",
    "Ole",
    "Pia",
)
THINGS = ("ring", "lamp", "coat", "book", "bell", "drum", "kite", "vase", "clock", "mask", "rope", "cup")
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}

Riddle = tuple[str, str]
"""A question and its answer."""


def _some(rng: np.random.Generator, pool: tuple[str, ...], count: int) -> list[str]:
    return [pool[i] for i in rng.permutation(len(pool))[:count].tolist()]


def boolean_expressions(rng: np.random.Generator, level: int) -> Riddle:
    def made(depth: int) -> tuple[str, bool]:
        if not depth:
            value = bool(rng.integers(2))
            return str(value), value
        left, a = made(depth - 1)
        if rng.random() < 0.3:
            return f"not ({left})", not a
        right, b = made(int(rng.integers(depth)))
        return (f"({left} and {right})", a and b) if rng.random() < 0.5 else (f"({left} or {right})", a or b)

    text, value = made(level + 1)
    return f"Is this True or False? {text}", str(value)


def opened(rng: np.random.Generator, length: int) -> tuple[str, str]:
    """Return a beginning of a sequence of brackets, and what closes it; the latter is not empty."""
    text, open_ = "", list[str]()
    while len(text) < length or not open_:
        if open_ and rng.random() < 0.45:
            text += PAIRS[open_.pop()]
        else:
            open_.append("([{<"[int(rng.integers(4))])
            text += open_[-1]
    return text, "".join(PAIRS[x] for x in reversed(open_))


def dyck_language(rng: np.random.Generator, level: int) -> Riddle:
    text, rest = opened(rng, 3 + 3 * level)
    return (
        f"Complete this sequence so that all brackets are closed properly, and say only what is to be added: {text}",
        rest,
    )


def dyck_errors(rng: np.random.Generator, level: int) -> Riddle:
    text, rest = opened(rng, 3 + 3 * level)
    whole = text + rest
    closing = [i for i, x in enumerate(whole) if x in PAIRS.values()]
    at = closing[int(rng.integers(len(closing)))]
    others = [x for x in PAIRS.values() if x != whole[at]]
    wrong = whole[:at] + others[int(rng.integers(3))] + whole[at + 1 :]
    return f"At which place, counted from 1, does this sequence of brackets first go wrong? {wrong}", str(at + 1)


def web_of_lies(rng: np.random.Generator, level: int) -> Riddle:
    people = _some(rng, NAMES, min(level + 2, len(NAMES)))
    truth = bool(rng.integers(2))
    told = [f"{people[0]} {'tells the truth' if truth else 'lies'}."]
    for before, who in pairwise(people):
        says = bool(rng.integers(2))
        told.append(f"{who} says that {before} {'tells the truth' if says else 'lies'}.")
        truth = says == truth
    return (
        f"Everybody always lies or always tells the truth. {' '.join(told)} Does {people[-1]} tell the truth?",
        "yes" if truth else "no",
    )


def operation(rng: np.random.Generator, level: int) -> Riddle:
    p, q, r = (int(x) for x in rng.integers(-3, 5, size=3))
    value = int(rng.integers(1, 10))
    text = str(value)
    for _ in range(level):
        by = int(rng.integers(1, 10))
        text, value = f"({text} @ {by})", p * value + q * by + r
    return f"Let a @ b = {p}a + {q}b + {r}. What is {text.removeprefix('(').removesuffix(')')}?", str(value)


def sorting_mistake(rng: np.random.Generator, level: int) -> Riddle:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = sorted({"".join(letters[i] for i in rng.integers(26, size=4)) for _ in range(4 + 2 * level)})
    at = int(rng.integers(len(words) - 1))
    words[at], words[at + 1] = words[at + 1], words[at]
    told = ", ".join(f"{i + 1}. {word}" for i, word in enumerate(words))
    return (
        f"Two neighbours of this list have changed places, else it is in order. Which number has the first one? {told}",
        str(at + 1),
    )


def object_counting(rng: np.random.Generator, level: int) -> Riddle:
    things = _some(rng, THINGS, min(level + 1, len(THINGS)))
    have = {thing: int(rng.integers(1, 9)) for thing in things}
    told = ["I have " + ", ".join(f"{n} of {thing}" for thing, n in have.items()) + "."]
    for _ in range(level):
        thing, n = things[int(rng.integers(len(things)))], int(rng.integers(1, 9))
        if n <= have[thing] and rng.random() < 0.5:
            told.append(f"I give {n} of {thing} away.")
            have[thing] -= n
        else:
            told.append(f"I find {n} of {thing}.")
            have[thing] += n
    asked = _some(rng, tuple(things), int(rng.integers(1, len(things) + 1)))
    return f"{' '.join(told)} How many of {' and '.join(asked)} do I have now, together?", str(
        sum(have[t] for t in asked)
    )


def grid_walk(rng: np.random.Generator, level: int) -> Riddle:
    x = y = heading = 0
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
    told = []
    for _ in range(level + 1):
        turn, by = int(rng.integers(3)) - 1, int(rng.integers(1, 9))
        heading = (heading + turn) % 4
        x, y = x + by * steps[heading][0], y + by * steps[heading][1]
        told.append(("turn left, " if turn < 0 else "turn right, " if turn else "") + f"go {by} ahead")
    return (
        f"I look north at (0, 0); north adds to the second number, east to the first. I {'; '.join(told)}. Where am I?",
        f"({x}, {y})",
    )


def goods_exchange(rng: np.random.Generator, level: int) -> Riddle:
    people = _some(rng, NAMES, min(level + 2, len(THINGS)))
    held = dict(zip(people, _some(rng, THINGS, len(people)), strict=True))
    told = [f"{who} has the {thing}." for who, thing in held.items()]
    for _ in range(level + 1):
        a, b = _some(rng, tuple(people), 2)
        told.append(f"{a} and {b} swap what they have.")
        held[a], held[b] = held[b], held[a]
    who = people[int(rng.integers(len(people)))]
    return f"{' '.join(told)} Who has the {held[who]} now?", who


def time_sequence(rng: np.random.Generator, level: int) -> Riddle:
    minutes = int(rng.integers(24 * 60))
    told = [f"It is {minutes // 60:02d}:{minutes % 60:02d}."]
    for _ in range(level + 1):
        by = int(rng.integers(5, 300))
        back = rng.random() < 0.3
        told.append(f"Then go {'back' if back else 'on'} by {by // 60} h {by % 60} min.")
        minutes = (minutes + (-by if back else by)) % (24 * 60)
    return f"{' '.join(told)} What time is it, as HH:MM?", f"{minutes // 60:02d}:{minutes % 60:02d}"


RIDDLES: dict[str, Callable[[np.random.Generator, int], Riddle]] = {
    "boolean_expressions": boolean_expressions, "dyck_language": dyck_language, "dyck_errors": dyck_errors,
    "web_of_lies": web_of_lies, "operation": operation, "sorting_mistake": sorting_mistake,
    "object_counting": object_counting, "grid_walk": grid_walk, "goods_exchange": goods_exchange,
    "time_sequence": time_sequence, "object_properties": object_properties,
}  # fmt: skip
"""By family, from a generator and a level, 1 or more."""
