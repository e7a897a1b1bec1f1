"""Things with properties, what becomes of them, and how many are as asked at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Thing = tuple[str, str, str]
"""Its size, colour and material."""
PROPERTIES = (("small", "large", "huge"), ("red", "blue", "green", "white"), ("wooden", "glass", "steel", "paper"))
OWNED = ("ring", "lamp", "bell", "drum", "kite", "vase", "clock", "mask", "cup", "box")
MOST = 60


def after(things: Sequence[Thing], change: str, old: str, new: str) -> list[Thing]:
    """Return what is there after a change of all things that are ``old``.

    ``lost``: they are gone; ``turned``: they become ``new``; ``twin``: of each comes another, which is ``new``.
    """
    if change == "lost":
        return [thing for thing in things if old not in thing]
    if change == "twin":
        return [*things, *(_with(thing, new) for thing in things if old in thing)]
    return [_with(thing, new) if old in thing else thing for thing in things]


def _with(thing: Thing, new: str) -> Thing:
    size, colour, material = (new if new in values else x for x, values in zip(thing, PROPERTIES, strict=True))
    return size, colour, material


def object_properties(rng: np.random.Generator, level: int) -> tuple[str, str]:
    """4 + level things at first, then level changes; how many are left that are one thing, or not another."""

    def drawn(values: Sequence[str]) -> str:
        return values[int(rng.integers(len(values)))]

    def any_value() -> str:
        return drawn(PROPERTIES[int(rng.integers(len(PROPERTIES)))])

    things: list[Thing] = [(drawn(PROPERTIES[0]), drawn(PROPERTIES[1]), drawn(PROPERTIES[2])) for _ in range(4 + level)]
    told = ["I have " + ", ".join(f"a {' '.join(thing)} {drawn(OWNED)}" for thing in things) + "."]
    for _ in range(level):
        old, new = any_value(), any_value()
        change = drawn(("turned", "twin", "lost", "turned", "twin"))
        if len(after(things, change, old, new)) in range(2, MOST):
            things = after(things, change, old, new)
            told.append(
                {
                    "lost": f"I lose all that is {old}.",
                    "turned": f"Then all that is {old} is made {new}, and stays as it is otherwise.",
                    "twin": f"Then I get, for each that is {old}, another like it, but {new}.",
                }[change]
            )
    yes, no = any_value(), any_value()
    count = sum(yes in thing or no not in thing for thing in things)
    return f"{' '.join(told)} How many of my things are {yes}, or not {no}?", str(count)
