"""Checkers: programs of the task's own that say whether an output is right, where more than one is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.sandbox import Limits, Outcome, Program, Sandbox
from assay.verify.code.results import Abstain, brief, brief_bytes, ending

MIB = 1 << 20
LIMITS = Limits(cpu_seconds=20, wall_seconds=60, memory=1024 * MIB, output=MIB)
POINTS = 7
"""The exit code with which a program of testlib gives part of the points."""
FILES = ("input.txt", "output.txt", "answer.txt")


def check_output(checker: Mapping[str, Any], given: str, output: bytes, answer: str, box: Sandbox) -> tuple[float, str]:
    """Return the score a checker gives ``output`` for the input ``given``, and what it says; raise Abstain if it fails.

    It runs in a sandboxed process of its own, long after the program is gone, whose output is data to it. It has

    - ``source``, ``language`` (python unless given), ``files`` beside it (``testlib.h``), ``compiler_options``;
    - ``function``: a Python function of input, output and answer as texts that returns whether the output is right, or
      a score in [0, 1], or a pair of that and a text; or else the program is run with ``args``,
      ``{input} {output} {answer}`` unless given, where these stand for files;
    - ``accept``: ``exit``, where code 0 takes the output, 1 or 2 refuse it, and 7 gives the score that standard error
      names after the word ``points`` (testlib); or ``stdout``, where a score in [0, 1] stands (or ``true``, ``ok``,
      ``accepted``, ``yes``, and their opposites).

    A checker that crashes on an output is run on the answer too: if it is well with that, the output was to blame.
    Where there is no answer it was, unless the checker cannot be run at all.
    """
    score, said = _run(checker, given, output, answer, box)
    if score is None:
        fails = _run(checker, given, answer.encode(), answer, box)[0] is None if answer else unusable(said)
        if fails:
            raise Abstain(f"the task's checker failed: {said}")
        return 0.0, f"the checker could not read the output: {said}"
    return score, said


def _run(checker: Mapping[str, Any], given: str, output: bytes, answer: str, box: Sandbox) -> tuple[float | None, str]:
    if checker.get("function"):
        text = output.decode("utf-8", "replace")
        called = box.call(
            task_program(checker, {}, ()), str(checker["function"]), [((given, text, answer), {})], LIMITS
        )
        _ours(called.outcome)
        if not called.calls or not called.calls[0].returned:
            return None, called.calls[0].exception if called.calls else ending(called.outcome)
        value = called.calls[0].value
        said = ""
        if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], str):
            value, said = value
        good = isinstance(value, bool | int | float) and 0 <= value <= 1
        return (float(value), said) if good else (None, f"it returned {brief(value)}, not a score in [0, 1]")
    names = dict(zip(("input", "output", "answer"), FILES, strict=True))
    inputs: dict[str, str | bytes] = dict(zip(FILES, (given, output, answer), strict=True))
    args = tuple(str(word).format_map(names) for word in checker.get("args") or [f"{{{key}}}" for key in names])
    outcome = box.run(task_program(checker, inputs, args), limits=LIMITS)
    _ours(outcome)
    said = brief_bytes(outcome.stderr or outcome.stdout) if (outcome.stderr or outcome.stdout) else ""
    if checker.get("accept", "exit") == "stdout":
        words = outcome.stdout.decode("utf-8", "replace").split()
        if outcome.status != "ok" or not words:
            return None, ending(outcome) or "it wrote nothing"
        score = _score(words[0])
        return score, said if score is not None else f"it wrote {words[0]:.80}, not a score in [0, 1]"
    score = exit_score(outcome)
    return score, said if score is not None else ending(outcome)


def exit_score(outcome: Outcome) -> float | None:
    """What a checker or interactor says by how it ends; ``None`` if it failed."""
    if outcome.status == "ok":
        return 1.0
    if outcome.status == "error" and outcome.exit_code in (1, 2) and b"Traceback (most recent" not in outcome.stderr:
        return 0.0
    words = outcome.stderr[:200].decode("utf-8", "replace").split()
    if outcome.status == "error" and outcome.exit_code == POINTS and words[:1] == ["points"] and len(words) > 1:
        return _score(words[1])
    return None


def unusable(said: str) -> bool:
    """Whether a Python program of the task's failed for what it is rather than for what it was given."""
    return re.search(r"\b(?:Syntax|Indentation|Tab|Name|UnboundLocal|Import|ModuleNotFound)Error\b", said) is not None


def task_program(given: Mapping[str, Any], inputs: Mapping[str, str | bytes], args: tuple[str, ...]) -> Program:
    """Return a task's own program, to be run with ``inputs`` of one test."""
    files = {str(name): content for name, content in dict(given.get("files") or {}).items()}
    options = given.get("compiler_options") or ()
    words = (options,) if isinstance(options, str) else tuple(map(str, options))
    return Program(str(given["source"]), str(given.get("language", "python")), files, args, (), words, inputs)


def _score(word: str) -> float | None:
    if word.lower() in ("true", "ok", "accepted", "yes", "ac"):
        return 1.0
    if word.lower() in ("false", "wrong", "no", "wa", "rejected"):
        return 0.0
    try:
        score = float(word[:50])
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None


def _ours(outcome: Outcome) -> None:
    if outcome.failed_here:
        raise Abstain(f"the sandbox failed: {outcome.reason}", "infrastructure")
