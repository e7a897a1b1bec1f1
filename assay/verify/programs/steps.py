"""A language small enough for a nano model: steps of arithmetic on one digit, modulo ten."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.verify.programs.language import LANGUAGES, Mode, Ran, Triplet

LONGEST = 6
"""Steps of a program, at most."""
ALPHABET = "0123456789+-*=|>;\nDAIdai"
"""Every character of prompts and responses."""
_PROGRAM = re.compile(rf"(?:[-+*][0-9]){{1,{LONGEST}}}")
_PROPOSAL = re.compile(rf"({_PROGRAM.pattern})\|([0-9])")


class Steps:
    """Programs such as ``+3*2-1``: what goes in is a digit, each step changes it modulo 10, the last one comes out.

    Prompts are a letter, what is given, and ``=``; capitals ask for proposals:

        d+3*2-1|4=    the output        3                D+3*2|4;-1|0=   a program and an input    +3*2-1|4
        a+3*2-1|3=    an input          4                A+3*2|4;-1|0=   likewise
        i0>5;1>7=     the program       +3*2-1           I+3*2-1=        inputs                    4071

    An answer is the last line of a response; there are no messages.
    """

    identity = Triplet("+0", ("0",), ("0",))

    def propose(self, mode: Mode, shown: Sequence[Triplet], program: str, inputs: int) -> str:
        given = program if mode == "induction" else ";".join(f"{t.program}|{t.inputs[0]}" for t in shown)
        return f"{mode[0].upper()}{given}="

    def proposed(self, mode: Mode, response: str) -> Triplet | None:
        line = _last(response)
        if mode == "induction":
            return Triplet("", tuple(line), ()) if line and set(line) <= set("0123456789") else None
        found = _PROPOSAL.fullmatch(line)
        return Triplet(found[1], (found[2],), ()) if found else None

    def refusal(self, program: str) -> str:
        return ""

    def solve(self, mode: Mode, triplet: Triplet, seen: int) -> str:
        if mode == "induction":
            pairs = zip(triplet.inputs[:seen], triplet.outputs[:seen], strict=True)
            return "i" + ";".join(f"{i}>{o}" for i, o in pairs) + "="
        given = triplet.inputs[0] if mode == "deduction" else triplet.outputs[0]
        return f"{mode[0]}{triplet.program}|{given}="

    def answer(self, mode: Mode, response: str) -> str | None:
        line = _last(response)
        form = _PROGRAM.fullmatch(line) if mode == "induction" else line in tuple("0123456789")
        return line if form else None

    def run(self, program: str, inputs: Sequence[str]) -> list[Ran]:
        if not _PROGRAM.fullmatch(program):
            return [Ran(None, f"a program is 1 to {LONGEST} steps such as +3") for _ in inputs]
        return [Ran(str(work(program, i)[-1])) if i in tuple("0123456789") else Ran(None, "no digit") for i in inputs]

    def equal(self, output: str, other: str) -> bool:
        return output == other


def work(program: str, given: str) -> list[int]:
    """Return what goes into a program, and what comes out of each of its steps."""
    values = [int(given)]
    for step in re.findall(r"[-+*][0-9]", program):
        value, by = values[-1], int(step[1])
        values.append((value + by if step[0] == "+" else value - by if step[0] == "-" else value * by) % 10)
    return values


def _last(response: str) -> str:
    return response.strip().rpartition("\n")[2].strip()


LANGUAGES["steps"] = Steps
