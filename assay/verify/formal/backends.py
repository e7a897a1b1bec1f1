"""Provers that are asked one thing: does this whole program verify as it stands, and what does it take for granted?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.errors import UsageError, nearest
from assay.verify.formal import coq, dafny, lean, verus
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.syntax import BadProgram, Claimed, nodes
from assay.verify.formal.tool import Result, Syntax, Tool, blank, first_error
from assay.verify.isolate.workers import Failure, Workers

WORKERS = Workers("assay.verify.formal.imperative.worker")
EFFORT = 3_000_000
"""What z3 may spend on one condition, in its own units (about a second), so that a busy machine changes no verdict."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a prover says of a program.

    Attributes:
        verified: it has no complaint; ``None`` where it could not be asked, see ``fault``.
        errors: its complaints.
        escapes: what the program takes for granted and does not prove (``assume``, ``sorry``, axioms ...): with one of
            these it may be ``verified`` and has proved nothing.
        counter: inputs on which the first complaint shows, by name, where the prover tells.
        fault: why it could not be asked.
    """

    verified: bool | None
    errors: tuple[str, ...] = ()
    escapes: tuple[str, ...] = ()
    counter: tuple[tuple[str, object], ...] = ()
    fault: str = ""

    @property
    def proved(self) -> bool | None:
        return None if self.verified is None else self.verified and not self.escapes


class ProverBackend(Protocol):
    """Checks whole programs in one language."""

    def require(self) -> None:
        """Raise UsageError if it cannot be used on this machine."""
        ...

    def check(self, source: str) -> Checked: ...


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Weakest preconditions of :mod:`assay.verify.formal.imperative`, discharged by z3.

    Args:
        effort: see :data:`EFFORT`.
        seconds: of processor time of the whole program; one that takes longer is not proved.
    """

    effort: int = EFFORT
    seconds: float = 30.0

    def require(self) -> None:
        import importlib.util

        if importlib.util.find_spec("z3") is None:
            raise UsageError("the built-in prover needs z3: pip install assay[logic]")

    def check(self, source: str) -> Checked:
        try:
            program = parse(source)
        except BadProgram as error:
            return Checked(False, (str(error),))
        taken = tuple(
            f"line {n.line}: assume" for n in nodes(program.method) if isinstance(n, Claimed) and n.word == "assume"
        )
        found = WORKERS.call("prove", source, self.effort, seconds=self.seconds)
        if isinstance(found, Failure):
            if found.overspent:
                return Checked(False, (f"the proof {found.reason}",), taken)
            return Checked(None, fault=f"z3: {found.reason}")
        if "error" in found:
            return Checked(False, (found["error"],), taken)
        return Checked(not found["errors"], tuple(found["errors"]), taken, tuple((found["counter"] or {}).items()))


@dataclass(frozen=True, slots=True)
class External:
    """A prover of this machine, run in the sandbox on one file.

    Attributes:
        tool: the program.
        file: what the source is called.
        arguments: of the tool.
        syntax: comments and texts, behind which no word counts.
        escape: words that take something for granted.
        verified: what its output has to hold, where an exit code of 0 is not enough.
        complaint: what a line that complains looks like.
        seconds: of processor time.
    """

    tool: Tool
    file: str
    arguments: tuple[str, ...]
    syntax: Syntax
    escape: re.Pattern[str]
    verified: re.Pattern[str] | None = None
    complaint: str = "error"
    seconds: float = 120.0

    def require(self) -> None:
        if self.tool.missing:
            raise UsageError(f"prover: {self.tool.missing}")

    def check(self, source: str) -> Checked:
        code = blank(source, self.syntax)
        taken = tuple(dict.fromkeys(" ".join(m.group().split()) for m in self.escape.finditer(code)))
        result: Result = self.tool.run(self.arguments, {self.file: source}, self.seconds)
        if result.status == "fault":
            return Checked(None, fault=result.reason)
        said = result.stdout + result.stderr
        if result.ok and (self.verified is None or self.verified.search(said)):
            return Checked(True, (), taken)
        why = result.reason if result.status == "limit" else first_error(said, self.complaint)
        return Checked(False, (why or "it is refused",), taken)


BACKENDS: dict[str, ProverBackend] = {
    "builtin": BuiltIn(),
    "dafny": External(
        dafny.DAFNY,
        "main.dfy",
        ("/compile:0", "/nologo", "main.dfy"),
        dafny.SYNTAX,
        dafny._ESCAPES,
        re.compile(r"finished with \d+ verified, 0 errors"),
        r"\): *(?:Error|.*might|.*not)",
    ),
    "verus": External(
        verus.VERUS,
        "main.rs",
        ("main.rs",),
        verus.SYNTAX,
        re.compile(
            r"\b(?:assume|admit|assume_specification|external_body|external|external_fn_specification|axiom|"
            r"unimplemented)\b"
        ),
        re.compile(r"verification results:: [1-9]\d* verified, 0 errors"),
        r"^error",
    ),
    "lean": External(
        lean.LEAN,
        "Main.lean",
        ("Main.lean",),
        lean.SYNTAX,
        re.compile(r"\b(?:sorry|admit|axiom|native_decide|bv_decide|unsafe|implemented_by|extern|skipKernelTC)\b"),
    ),
    "coq": External(
        coq.COQC,
        "Main.v",
        ("-q", "Main.v"),
        coq.SYNTAX,
        re.compile(f"{coq._UNPROVED.pattern}|{coq._ESCAPES.pattern}|\\bAbort\\b"),
        None,
        r"^Error:?\s*\S|error",
    ),
}
"""By name. Only the first two read the language of :mod:`assay.verify.formal.imperative`, a subset of Dafny."""


def backend(name: str, among: Sequence[str] = tuple(BACKENDS)) -> ProverBackend:
    """Return the backend of a name, or raise UsageError."""
    if name not in among:
        raise UsageError(f"there is no prover {name!r}{nearest(name, list(among))}")
    return BACKENDS[name]
