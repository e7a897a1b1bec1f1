"""What an attack is, and the register of attacks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Expects = Literal["rejected", "survived"]


@dataclass(frozen=True, slots=True)
class Attack:
    """A response without a right final answer; a verifier that accepts it is defective.

    Attributes:
        name: the family of attack.
        response: the text to judge.
        expects: ``rejected``: the verifier says wrong (or abstains); ``survived``: besides, the text is hostile, and
            nothing crashes, hangs or exhausts memory.
    """

    name: str
    response: str
    expects: Expects = "rejected"


@dataclass(frozen=True, slots=True)
class Target:
    """What is known to the attacker.

    Attributes:
        question: the task's text.
        reference: the gold answer as text; empty if there is none.
        wrong: an answer that is certainly wrong.
        rng: source of every random choice.
        size: characters of the longest responses.
        template: the judge's prompt with ``{response}`` where the response goes, if the attacker has it.
    """

    question: str
    reference: str
    wrong: str
    rng: random.Random
    size: int
    template: str | None = None


Maker = Callable[[Target], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Registered:
    """An attack by name: how it is made, and whether it quotes the reference on purpose."""

    make: Maker
    doc: str
    quotes: bool
    expects: Expects


ATTACKS: dict[str, Registered] = {}


def attack(name: str, quotes: bool = False, expects: Expects = "rejected") -> Callable[[Maker], Maker]:
    """Register a generator of responses as an attack; its docstring says what it tries.

    Args:
        name: unique name of the attack.
        quotes: it writes the reference where it is not the final answer; it is left out where there is no reference.
            Other attacks leave out a response that happens to mention the reference.
        expects: see :class:`Attack`.
    """

    def register(make: Maker) -> Maker:
        ATTACKS[name] = Registered(make, (make.__doc__ or "").strip(), quotes, expects)
        return make

    return register
