"""What the query ``answer(X)`` of a Prolog program gives, as JSON: run by SWI-Prolog in the sandbox."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.sandbox import Limits, Program, SandboxUnavailable, sandbox
from assay.verify.text.exact import shorten

_MEMORY = 1 << 30
# Two solutions that are equal are one; a third is not looked for.
_DRIVER = r"""
:- use_module(library(http/json)).
:- use_module(library(lists)).
:- use_module(library(solution_sequences)).
:- set_prolog_flag(verbose, silent).
main :-
    load_files(user:'program.pl', [silent(true)]),
    findall(X, limit(2, distinct(X, user:answer(X))), All),
    length(All, N),
    ( N =:= 1 -> All = [One], format("@@ "), json_write_dict(current_output, One, [width(0)]), nl
    ; format("@@@ ~d~n", [N]) ).
"""


@dataclass(frozen=True, slots=True)
class Executed:
    """The value, or the reason that there is none; ``ours`` if the program is not to blame."""

    value: Any = None
    reason: str = ""
    ours: bool = False


def ready() -> None:
    """Raise UsageError where there is no SWI-Prolog, SandboxUnavailable where programs cannot run in isolation."""
    if shutil.which("swipl", path="/usr/bin:/bin") is None:
        raise UsageError("Prolog programs need SWI-Prolog (swipl) in /usr/bin: apt-get install swi-prolog-nox")
    sandbox().check()


def executed(program: str, seconds: float = 5.0) -> Executed:
    """Return the one solution of ``answer(X)``, as JSON has it; a program with none or several has none.

    Args:
        program: its text.
        seconds: of processor time.

    Raises:
        UsageError: SWI-Prolog is not in ``/usr/bin``.
    """
    ready()
    files: dict[str, str | bytes] = {"driver.pl": _DRIVER, "program.pl": program.encode("utf-8", "replace")}
    command = "exec swipl -q -f none --stack-limit=256m -g main -t halt driver.pl < /dev/null"
    limits = Limits(cpu_seconds=seconds, wall_seconds=10 * seconds, memory=_MEMORY)
    try:
        outcome = sandbox().run(Program(command, "bash", files), limits=limits)
    except SandboxUnavailable as error:
        return Executed(reason=str(error), ours=True)
    if outcome.failed_here:
        return Executed(reason=outcome.reason, ours=True)
    said = outcome.stdout.decode("utf-8", "replace")
    last = said.strip().rpartition("\n")[2]
    if last.startswith("@@@ "):
        return Executed(reason="answer(X) has no solution" if last == "@@@ 0" else "answer(X) has several solutions")
    if outcome.status != "ok" or not last.startswith("@@ "):
        told = outcome.stderr.decode("utf-8", "replace").strip().splitlines()
        return Executed(reason=shorten("; ".join([outcome.reason or "it gives no JSON", *told[:2]]), 300))
    try:
        return Executed(json.loads(last[3:]))
    except (ValueError, RecursionError) as error:
        return Executed(reason=f"what it gives is no JSON: {error}")
