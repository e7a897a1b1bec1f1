"""Checkers: programs of the task's own that say whether an output is right, where more than one is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from assay.sandbox import Limits, Program, Sandbox
from assay.sandbox.languages import LANGUAGES
from assay.verify.code.results import Abstain, brief_bytes, ending

MIB = 1 << 20
LIMITS = Limits(cpu_seconds=20, wall_seconds=60, memory=1024 * MIB, output=MIB)
FILES = ("input.txt", "output.txt", "answer.txt")


def check_output(checker: Mapping[str, Any], given: str, output: bytes, answer: str, box: Sandbox) -> tuple[bool, str]:
    """Say whether a checker takes ``output`` for the input ``given``, and what it says; raise Abstain if it fails.

    It runs in a sandboxed process of its own, long after the program is gone, whose output is data to it. It has

    - ``source``, ``language`` (python unless given), ``files`` beside it (``testlib.h``, for one);
    - ``function``: a Python function of input, output and answer as texts that returns whether the output is right; or
      else the program is run with ``args``, ``{input} {output} {answer}`` unless given, where these stand for files;
    - ``accept``: ``exit``, where code 0 takes the output and 1 or 2 refuse it, or ``stdout``, where a number above 0
      (or ``true``, ``ok``, ``accepted``, ``yes``) takes it.

    A checker that crashes on an output is run on the answer too: if it is well with that, the output was to blame.
    """
    passed, said = _run(checker, given, output, answer, box)
    if passed is None:
        again, _ = _run(checker, given, answer.encode(), answer, box) if answer else (None, "")
        if again is None:
            raise Abstain(f"the task's checker failed: {said}")
        return False, f"the checker could not read the output: {said}"
    return passed, said


def _run(checker: Mapping[str, Any], given: str, output: bytes, answer: str, box: Sandbox) -> tuple[bool | None, str]:
    files = {str(name): content for name, content in dict(checker.get("files") or {}).items()}
    language = str(checker.get("language", "python"))
    source = str(checker["source"])
    if checker.get("function"):
        text = output.decode("utf-8", "replace")
        called = box.call(
            Program(source, "python", files), str(checker["function"]), [((given, text, answer), {})], LIMITS
        )
        _ours(called.outcome)
        if not called.calls or not called.calls[0].returned:
            return None, called.calls[0].exception if called.calls else ending(called.outcome)
        value = called.calls[0].value
        said = ""
        if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], str):
            value, said = value
        return (bool(value), said) if isinstance(value, bool | int | float) else (None, f"it returned {value!r:.80}")
    names = dict(zip(("input", "output", "answer"), FILES, strict=True))
    files |= dict(zip(FILES, (given, output, answer), strict=True))
    args = tuple(str(word).format_map(names) for word in checker.get("args") or [f"{{{key}}}" for key in names])
    outcome = box.run(judge_program(source, language, files, args, box), limits=LIMITS)
    _ours(outcome)
    said = brief_bytes(outcome.stderr or outcome.stdout) if (outcome.stderr or outcome.stdout) else ""
    if checker.get("accept", "exit") == "stdout":
        words = outcome.stdout.decode("utf-8", "replace").split()
        if outcome.status != "ok" or not words:
            return None, ending(outcome) or "it wrote nothing"
        return _positive(words[0]), said
    if outcome.status == "ok":
        return True, said
    if outcome.status == "error" and outcome.exit_code in (1, 2) and b"Traceback (most recent" not in outcome.stderr:
        return False, said
    return None, ending(outcome)


_COMPILED: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()
_LOCK = threading.Lock()
KEPT = 64


def judge_program(
    source: str, language: str, files: Mapping[str, str | bytes], args: tuple[str, ...], box: Sandbox
) -> Program:
    """Return a task's own program, ready to run with ``files`` of one test; raise Abstain if it does not compile.

    Its data files change from test to test, and must not have it compiled each time: a compiled program is one of the
    files itself, and a shell starts it.
    """
    chosen = LANGUAGES.get(language)
    if chosen is None or not chosen.compile:
        return Program(source, language, files, args)
    beside = {name: content for name, content in files.items() if name not in FILES}
    key = (language, source, repr(sorted(beside.items())))
    with _LOCK:
        made = _COMPILED.get(key)
    if made is None:
        outcome = box.command(chosen.compile, {**beside, chosen.file: source}, outputs=("program",))
        _ours(outcome)
        made = outcome.files.get("program")
        if outcome.status != "ok" or made is None:
            raise Abstain(f"the task's {language} program does not compile: {brief_bytes(outcome.stderr[:2000])}")
        with _LOCK:
            _COMPILED[key] = made
            while len(_COMPILED) > KEPT:
                _COMPILED.popitem(last=False)
    return Program('chmod +x program && exec ./program "$@"\n', "bash", {**files, "program": made}, args)


def _positive(word: str) -> bool | None:
    if word.lower() in ("true", "ok", "accepted", "yes", "ac"):
        return True
    if word.lower() in ("false", "wrong", "no", "wa", "rejected"):
        return False
    try:
        return float(word[:50]) > 0
    except ValueError:
        return None


def _ours(outcome: Any) -> None:
    if outcome.failed_here:
        raise Abstain(f"the sandbox failed: {outcome.reason}")
