"""Programs that converse with an interactor of the task's own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from assay.sandbox import Dialogue, Limits, Outcome, Program, Sandbox
from assay.verify.code.apart import judges
from assay.verify.code.checker import FILES, MIB, exit_score, task_program
from assay.verify.code.results import Abstain, brief_bytes, ending

LIMITS = Limits(cpu_seconds=20, wall_seconds=120, memory=1024 * MIB, output=64 * MIB)


def converse(
    interactor: Mapping[str, Any], program: Program, given: str, answer: str, limits: Limits, box: Sandbox
) -> tuple[float, str, Outcome]:
    """Let ``program`` talk to an interactor; return its score, what went wrong, and how the program ended.

    The interactor is a program in a sandboxed process of its own: its standard output is the program's standard input
    and the other way round, lines in both directions as they come. Its arguments are files of the test's input, of
    nothing (for what it wants to write), and of the answer. It exits as a checker does.

    An interactor that a program's lines bring down, other than by an exit code of its own, has refused them.

    Raises:
        Abstain: the interactor failed by itself, or the sandbox did.
    """
    judge = task_program(interactor, dict(zip(FILES, (given, "", answer), strict=True)), FILES)
    ended: list[Outcome] = []
    told = 0

    def outer(theirs: Dialogue) -> None:
        def inner(own: Dialogue) -> None:
            nonlocal told
            told = _join(own, theirs)

        ended.append(box.interact(program, inner, limits))

    said = judges().interact(judge, outer, LIMITS)
    if said.failed_here or said.status == "compile_error" or not ended:
        raise Abstain(f"the task's interactor failed: {said.reason or ending(said)}")
    [outcome] = ended
    if outcome.failed_here:
        raise Abstain(f"the sandbox failed: {outcome.reason}", "infrastructure")
    # That the program fails first is why an interactor fails: it reads the end of what it waits for.
    if outcome.status != "ok":
        return 0.0, ending(outcome), outcome
    # What a program says can bring an interactor down, with a traceback too.
    score = 0.0 if said.status == "error" and said.exit_code in (1, 2) else exit_score(said)
    if score is None and told and (said.status != "error" or (said.exit_code or 0) < 0):
        return 0.0, f"what it wrote was too much for the interactor: {said.reason}", outcome
    if score is None:
        raise Abstain(f"the task's interactor failed: {ending(said)}")
    judged = "gave it a part" if score else "refused it"
    why = f"the interactor {judged}: {brief_bytes(said.stderr) if said.stderr else 'no reason given'}"
    return score, "" if score >= 1 else why, outcome


def _join(own: Dialogue, theirs: Dialogue) -> int:
    """Pass lines on in both directions until both sides are done; return how many ``own`` wrote."""
    back = threading.Thread(target=_pass, args=(theirs, own), daemon=True)
    back.start()
    told = _pass(own, theirs)
    back.join()
    return told


def _pass(source: Dialogue, target: Dialogue) -> int:
    # Read to the end even if nobody listens: a program that still writes must not block on a full pipe.
    lines = 0
    while True:
        line = source.readline()
        if not line and source.ended:
            break
        lines += 1
        target.writeline(line)
    target.finish()
    return lines
