"""A program, what goes in, what comes out; and what a language has to say for any of the three to be asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from assay.errors import UsageError, nearest
from assay.types import Prompt

Mode = Literal["deduction", "abduction", "induction"]
"""What is asked for: the output, an input, or the program."""
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Triplet:
    """A program with inputs and its outputs, all as texts; one of each unless the program is to be found from them.

    ``message`` tells who looks for the program what it does.
    """

    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""

    def plain(self) -> list[Any]:
        return [self.program, list(self.inputs), list(self.outputs), self.message]

    @classmethod
    def of(cls, plain: Sequence[Any]) -> Triplet:
        program, inputs, outputs, message = plain
        return cls(str(program), tuple(map(str, inputs)), tuple(map(str, outputs)), str(message))


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program gave for an input: its ``output``, or ``None`` and why; ``ours`` if it was not to blame."""

    output: str | None
    reason: str = ""
    ours: bool = False


class Language(Protocol):
    """How programs are asked for, read and run.

    Attributes:
        identity: a program that returns what it is given.
    """

    identity: Triplet

    def propose(self, mode: Mode, shown: Sequence[Triplet], program: str, inputs: int) -> Prompt:
        """Ask for a program and an input unlike those ``shown``; in induction for ``inputs`` of ``program``."""
        ...

    def proposed(self, mode: Mode, response: str) -> Triplet | None:
        """Read a proposal, without outputs and in induction without a program; ``None`` where it has not the form."""
        ...

    def refusal(self, program: str) -> str:
        """Say why a program may not be proposed; empty where it may."""
        ...

    def solve(self, mode: Mode, triplet: Triplet, seen: int) -> Prompt:
        """Ask for what is missing; in induction the first ``seen`` pairs are shown."""
        ...

    def answer(self, mode: Mode, response: str) -> str | None:
        """Read an output, an input or a program out of a response; ``None`` where it has not the form."""
        ...

    def run(self, program: str, inputs: Sequence[str]) -> list[Ran]:
        """Run a program on each input, in order."""
        ...

    def equal(self, output: str, other: str) -> bool:
        """Whether two outputs are the same value."""
        ...


LANGUAGES: dict[str, Callable[[], Language]] = {}
"""How each is made, by name."""


def language(name: str) -> Language:
    """Return a language by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in LANGUAGES:
        raise UsageError(f"there is no language {name!r} of programs{nearest(name, list(LANGUAGES))}")
    return LANGUAGES[name]()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a proposal is none; ``ours`` if it could not be looked at."""

    reason: str
    ours: bool = False


RUNS = 2
"""Times a proposed program is run: one whose outputs differ is no function of its input."""


def examined(known: Language, mode: Mode, response: str, program: str, inputs: int) -> Triplet | Refused:
    """Return what a response proposes, outputs filled in by running it, or why it is refused.

    A proposal is valid if it can be read, its program has nothing that is refused, ends without an error on every
    input, and gives the same outputs when it is run again.

    Args:
        known: the language.
        mode: of what is proposed.
        response: of the proposer.
        program: in induction, the one that inputs were asked for.
        inputs: in induction, how many were asked for: with fewer it is refused, and further ones are left out.
    """
    read = known.proposed(mode, response)
    if read is None:
        return Refused("it has not the form of a proposal")
    given = read.inputs
    if mode == "induction":
        if len(given) < inputs:
            return Refused(f"it has {len(given)} inputs, not {inputs}")
        given = given[:inputs]
    else:
        program = read.program
    if refusal := known.refusal(program):
        return Refused(refusal)
    outputs: tuple[str, ...] = ()
    for number in range(RUNS):
        found = known.run(program, given)
        for ran in found:
            if ran.output is None:
                return Refused(ran.reason, ours=ran.ours)
        again = tuple(str(ran.output) for ran in found)
        if number and again != outputs:
            return Refused("its outputs differ from one run to the next")
        outputs = again
    return Triplet(program, given, outputs, read.message)
