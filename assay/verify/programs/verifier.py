"""An output, an input or a program, judged by running; or a proposal of one, by whether it can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.programs import python, steps  # noqa: F401  they are known by their names then
from assay.verify.programs.language import MODES, Language, Mode, Refused, Triplet, examined, language
from assay.verify.text.exact import shorten

KIND = "program_io"


@part("verify", "program_io")
@dataclass(frozen=True, slots=True)
class ProgramIO:
    """Right iff what was missing of (program, input, output) is supplied; every way of doing so will do.

    ``task.reference`` is ``{"language": name, "mode": mode, "triplet": [program, inputs, outputs, message],
    "seen": k}``:

    - ``deduction``: the answer is the output;
    - ``abduction``: the answer is an input, right iff the program gives the output for it;
    - ``induction``: the answer is a program, right iff it gives the output of every pair after the first ``seen``.

    With ``{"language": name, "mode": mode, "propose": n, "program": text}`` the response is a proposal, right iff it is
    valid, see :func:`~assay.verify.programs.language.examined`; n inputs are asked for in induction.

    ``parts``: ``format``, 0 for a response that could not be read and for a proposal that is not valid, else 1. Where
    a program could not be run for reasons of ours the verifier abstains.
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            reference = dict(task.reference)
            known, mode = language(reference["language"]), reference["mode"]
            if mode not in MODES:
                raise ValueError(mode)
            asked: Any
            if "propose" in reference:
                asked = str(reference.get("program", "")), int(reference["propose"])
            else:
                asked = Triplet.of(reference["triplet"]), int(reference.get("seen", 0))
        except (TypeError, KeyError, ValueError, UsageError) as error:
            return Verdict.abstain(f"task {task.id}: reference is no language, mode and triplet ({error})", "tests")
        if "propose" in reference:
            found = examined(known, mode, response, *asked)
            return refused(found) if isinstance(found, Refused) else Verdict(1.0, True, {"format": 1.0})
        triplet, seen = asked
        return solved(known, mode, triplet, seen, response)


def solving_reference(name: str, mode: Mode, triplet: Triplet, seen: int) -> dict[str, Any]:
    """The reference of a task to find what is missing of a triplet; ``name`` is the language's."""
    return {"language": name, "mode": mode, "triplet": triplet.plain(), "seen": seen}


def refused(why: Refused) -> Verdict:
    """The verdict on a proposal that is none."""
    if why.ours:
        return Verdict.abstain(why.reason, "infrastructure")
    return Verdict(0.0, False, {"format": 0.0}, why.reason)


def solved(known: Language, mode: Mode, triplet: Triplet, seen: int, response: str) -> Verdict:
    """Judge a solver's response, see :class:`ProgramIO`."""
    answer = known.answer(mode, response)
    if answer is None:
        return Verdict(0.0, False, {"format": 0.0}, "no answer of the form that was asked for")
    if mode == "deduction":
        right = known.equal(answer, triplet.outputs[0])
        complaint = "" if right else f"answered {shorten(answer)!r}, expected {shorten(triplet.outputs[0])!r}"
        return Verdict(float(right), right, {"format": 1.0}, complaint)
    program, outputs = triplet.program, triplet.outputs[:1]
    inputs: tuple[str, ...] = (answer,)
    if mode == "induction":
        program, inputs, outputs = answer, triplet.inputs[seen:], triplet.outputs[seen:]
    for given, ran, output in zip(inputs, known.run(program, inputs), outputs, strict=True):
        if ran.ours:
            return Verdict.abstain(ran.reason, "infrastructure")
        if ran.output is None or not known.equal(ran.output, output):
            said = ran.reason if ran.output is None else f"gives {shorten(ran.output)}, not {shorten(output)}"
            return Verdict(0.0, False, {"format": 1.0}, f"with {shorten(given)}: {said}")
    return Verdict(1.0, True, {"format": 1.0})
