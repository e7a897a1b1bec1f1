"""Answer-set programs, solved by clingo."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Verdict
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle, overspent
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.logic.asp_worker")
MAX_SETS = 1000
MAX_DEPTH = 50
_SIGNATURE = re.compile(r"([a-z_][A-Za-z0-9_']*)/([0-9]{1,3})")
_REFUSED = re.compile(r"#(?:include|script|theory)\b|@")

Signature = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Program:
    text: str
    project: tuple[Signature, ...] | None
    ask: Literal["answer_set", "program"]
    facts: tuple[str, ...]


@part("verify", "asp")
@dataclass(frozen=True, slots=True)
class Asp(Puzzle):
    """Right iff the answer is an answer set of the reference program, or a program with the same answer sets.

    ``task.reference`` is ``{"program": text, "project": ["name/arity", ...], "ask": ...}``.

    - ``"answer_set"`` (default): the answer lists ground atoms; right iff some answer set (an optimal one, if the
      program optimises) has exactly these atoms of the projected signatures.
    - ``"program"``: the answer is a program; right iff on each of ``"facts"`` (texts; default one, empty) its
      projected, optimal answer sets are those of the reference. Without ``"project"``, what the programs show is
      compared. An answer may not include files or call scripts. A program that takes longer than ``seconds`` where the
      reference does not is wrong; where the reference has more than 1000 answer sets the verifier abstains.

    ``parts`` of a program: ``instances``, the share of instances where the answer sets are equal.

    Args:
        seconds: longest processor time for all instances together.

    Raises:
        UsageError: when made, if clingo is not installed.
    """

    seconds: float = 10.0
    max_chars: int = 20_000
    shape: ClassVar[str] = "{'program': text, 'project': ['name/arity', ...]}"

    def __post_init__(self) -> None:
        if importlib.util.find_spec("clingo") is None:
            raise UsageError("verifier 'asp' needs clingo: pip install assay[logic]")

    def read(self, reference: Mapping[str, Any]) -> Program:
        ask = reference.get("ask", "answer_set")
        project = reference.get("project")
        if ask not in ("answer_set", "program") or (ask == "answer_set" and not project):
            raise ValueError("'ask' is neither answer_set nor program, or 'project' is missing")
        signatures = None
        if project is not None:
            matches = [_SIGNATURE.fullmatch(signature) for signature in project]
            if not all(matches):
                raise ValueError("'project' is not a list of 'name/arity'")
            signatures = tuple((match[1], int(match[2])) for match in matches if match)
        facts = tuple(str(instance) for instance in reference.get("facts") or ("",))
        return Program(str(reference["program"]), signatures, ask, facts)

    def deny(self, puzzle: Program, solvable: bool) -> Verdict:
        if puzzle.ask == "program":
            return self.unreadable("the answer is no program")
        found = WORKERS.call("is_answer_set", puzzle.text, puzzle.project, [], seconds=self.seconds)
        if isinstance(found, Failure):
            return Verdict.abstain(f"clingo: {found.reason}")
        # "none" may also mean the answer set without any atom.
        if found["exists"] and not (found["answer_set"] and found["optimal"] is not False):
            return Verdict.wrong("there is an answer set")
        return Verdict.right()

    def check(self, puzzle: Program, answer: str) -> Verdict:
        return self._program(puzzle, answer) if puzzle.ask == "program" else self._atoms(puzzle, answer)

    def _atoms(self, puzzle: Program, answer: str) -> Verdict:
        listed = listed_atoms(answer)
        read = WORKERS.call("terms", listed, seconds=self.seconds) if listed else []
        if isinstance(read, Failure):
            return Verdict.abstain(f"clingo: {read.reason}")
        if read is None:
            raise BadAnswer(f"{shorten(listed, 40)!r} is no list of ground atoms")
        assert puzzle.project is not None
        atoms = [atom for atom, name, arity in read if (name, arity) in puzzle.project]
        found = WORKERS.call("is_answer_set", puzzle.text, puzzle.project, atoms, seconds=self.seconds)
        if isinstance(found, Failure):
            return Verdict.abstain(f"clingo: {found.reason}")
        if not found["exists"]:
            return Verdict.wrong("the program has no answer set")
        complaint = ""
        if found["unknown"]:
            complaint = f"{shorten(found['unknown'][0], 60)} cannot be derived"
        elif not found["answer_set"]:
            complaint = "no answer set has exactly these atoms"
        elif found["optimal"] is False:
            complaint = "an answer set, and not an optimal one"
        return self.verdict(complaint, 0.5 if found["answer_set"] else 0.0)

    def _program(self, puzzle: Program, answer: str) -> Verdict:
        refused = _REFUSED.search(answer)
        if refused:
            raise BadAnswer(f"{refused[0]} is not allowed")
        if _depth(answer) > MAX_DEPTH:
            raise BadAnswer(f"parentheses nested deeper than {MAX_DEPTH}")
        arguments = (puzzle.facts, puzzle.project, MAX_SETS)
        found = WORKERS.call("same_sets", puzzle.text, answer, *arguments, seconds=self.seconds)
        if isinstance(found, Failure):
            # Whose fault was it? The reference alone tells.
            alone = WORKERS.call("same_sets", puzzle.text, puzzle.text, *arguments, seconds=self.seconds)
            if isinstance(alone, Failure) or not overspent(found):
                return Verdict.abstain(f"clingo: {found.reason}")
            return self.verdict(f"the program {found.reason}", 0.0)
        if found.get("too_many"):
            return Verdict.abstain(f"the reference has more than {MAX_SETS} answer sets")
        if "error" in found:
            raise BadAnswer(f"clingo cannot run the program: {found['error']}")
        share = sum(found["equal"]) / len(found["equal"])
        return self.verdict(shorten(found["difference"], 120), share, {"instances": share})


def listed_atoms(answer: str) -> str:
    """Return the atoms of ``{a, b}``, ``a b``, ``a. b.`` or one to a line, separated by commas.

    Raises:
        BadAnswer: parentheses are not balanced or too deep.
    """
    text = answer.strip().removeprefix("Answer:").strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    atoms: list[str] = []
    depth, quoted, current = 0, False, ""
    for character in text + " ":
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
        if not 0 <= depth <= MAX_DEPTH:
            raise BadAnswer("parentheses that are not balanced, or too deep")
        if depth == 0 and not quoted and (character.isspace() or character in ",.;"):
            if current:
                atoms.append(current)
            current = ""
        else:
            current += character
    if current:
        raise BadAnswer("a parenthesis or quote is not closed")
    return ",".join(atoms)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest
