"""Programs and lemmas checked by Dafny, with the task's specification as it was given."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.registry import part
from assay.sandbox.pool import sandbox
from assay.types import Task, Verdict
from assay.verify.formal.tool import (
    Result,
    Syntax,
    Tool,
    Unstable,
    balanced,
    blank,
    first_error,
    program_of,
    verdict,
)

DAFNY = Tool("dafny", "apt-get install dafny", ("/etc/mono",))
SYNTAX = Syntax("//", ("/*", "*/"), nested=True, escape=True)
_WORDS = r"lemma|method|function|predicate|constructor|colemma|comethod|copredicate|iterator"
_HEAD = re.compile(rf"( *)(?:[a-z]+ +)*?(?:{_WORDS})(?: +method)?(?: +\{{:[^}}]*\}})* +([A-Za-z_][\w'?]*)")
_ESCAPES = re.compile(
    r"\b(?:assume|include|refines|abstract|expect|extern|nonexecutable|import|module)\b|@\"|"
    r"\{:(?!trigger\b|induction\b|fuel\b|split_here\b|tailrecursion\b|opaque\b)[^}]*\}?"
)
_FINISHED = re.compile(r"Dafny program verifier finished with (\d+) verified, (\d+) errors?")


@part("verify", "dafny")
@dataclass(frozen=True, slots=True)
class Dafny:
    """Right iff Dafny verifies the response's program, in which the task's specification stands unchanged.

    ``task.reference`` is ``{"source": text, "free": ["Find"]}``: a Dafny program, and the names of the methods, lemmas
    and functions whose bodies the response is to write (those without a body, unless given). The response is a whole
    program, or the body alone where one name is free.

    Dafny prints both programs in its own layout. Every declaration of the task has to be in the response's, equal but
    for the bodies of free names. What the response adds has to have a body, and a name that the task does not use, so
    that it can mean nothing in the specification. Assumptions and what turns verification off (``assume``,
    ``{:axiom}``, ``{:verify false}``, ``{:extern}``, bodyless lemmas, ``include``, modules) are refused, but where the
    task has them.

    ``parts``: ``parses``, ``specification``, ``verifies``. A program that takes more than its time is wrong; a task's
    source that does not resolve makes the verifier abstain.

    Args:
        seconds: of processor time of the verification.

    Raises:
        UsageError: Dafny is not installed.
    """

    seconds: float = 60.0

    def __post_init__(self) -> None:
        DAFNY.require("dafny")

    def ready(self) -> None:
        """Raise UsageError where the sandbox does not start."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            source = str(task.reference["source"])
            given = task.reference.get("free")
        except (TypeError, KeyError, AttributeError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'source': ..., 'free': [...]}}")
        printed, result = _task_printed(source, self.seconds)
        if printed is None:
            why = result.reason if result.status == "fault" else first_error(result.stdout, "rror")
            return Verdict.abstain(f"task {task.id}: its source does not resolve: {why}")
        free = [str(n) for n in given] if given is not None else bodyless(printed)
        return self._judge(source, printed, free, program_of(response, ("dafny", "dfy", "csharp")) or "")

    def _judge(self, source: str, printed: Sequence[str], free: Sequence[str], program: str) -> Verdict:
        parts: dict[str, float | None] = {"parses": 0.0, "specification": None, "verifies": None}
        if not program.strip():
            return verdict(parts, "no program found")
        code, theirs = blank(program, SYNTAX), blank(source, SYNTAX)
        if not balanced(code):
            return verdict(parts, "its braces do not match")
        if found := _new_escape(program, code, theirs):
            return verdict({**parts, "parses": None, "specification": 0.0}, f"uses {found}, which is not allowed")
        if not re.search(rf"\b(?:{_WORDS})\b", code):
            if len(free) != 1:
                return verdict(parts, f"a body alone, where {', '.join(free) or 'nothing'} is to be written")
            program = splice(printed, free[0], program)
        # One run prints what it has parsed and verifies the same.
        mine, result = _printed(program, self.seconds)
        if result.status == "fault":
            return Verdict.abstain(result.reason)
        if mine is None:
            return verdict(parts, f"Dafny refuses it: {first_error(result.stdout, 'rror') or result.reason}")
        parts["parses"] = 1.0
        complaint = changed(printed, mine, free, theirs)
        parts["specification"] = float(not complaint)
        if complaint:
            return verdict(parts, complaint)
        finished = _FINISHED.findall(result.stdout)
        fine = result.ok and len(finished) == 1 and finished[0][1] == "0"
        parts["verifies"] = float(fine)
        if fine:
            return verdict(parts, "")
        why = result.reason if result.status == "limit" else first_error(result.stdout, r"\): *(?:Error|.*might|.*not)")
        return verdict(parts, f"not verified: {why}")


def _printed(source: str, seconds: float, *options: str) -> tuple[tuple[str, ...] | None, Result]:
    """Return the lines of a program as Dafny prints it, without comments; ``None`` if it does not parse."""
    arguments = ["/compile:0", "/dprint:printed.dfy", "/nologo", *options, "main.dfy"]
    result = DAFNY.run(arguments, {"main.dfy": source}, seconds, ("printed.dfy",))
    if "printed.dfy" not in result.files:
        return None, result
    text = result.files["printed.dfy"].decode("utf-8", "replace")
    return tuple(line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("//")), result


@functools.lru_cache(maxsize=256)
def _task_known(source: str, seconds: float) -> tuple[tuple[str, ...] | None, Result]:
    found = _printed(source, seconds, "/noVerify")
    if found[1].status in ("fault", "limit"):
        raise Unstable(found[1])
    return found if found[1].ok else (None, found[1])


def _task_printed(source: str, seconds: float) -> tuple[tuple[str, ...] | None, Result]:
    try:
        return _task_known(source, seconds)
    except Unstable as error:
        return None, error.result


def _new_escape(program: str, code: str, theirs: str) -> str:
    """The first forbidden word that occurs more often in the program than in the task's source."""
    for match in _ESCAPES.finditer(code):
        word = match.group()
        if code.count(word) > theirs.count(word):
            return " ".join(word.split())
    # Blanking knows neither texts over several lines, which could pass for layout, nor the character '"', which could
    # hide code as a text does; so both are looked for as written.
    return next((literal for literal in ('@"', "'\"'", "'\\\"'") if literal in program), "")


def blocks(printed: Sequence[str]) -> list[list[str]]:
    """Split a printed program into its declarations."""
    found: list[list[str]] = []
    for line in printed:
        if line[0] not in " {}" or not found:
            found.append([])
        found[-1].append(line)
    return found


def bodyless(printed: Sequence[str]) -> list[str]:
    """Return the names declared without a body, at any depth."""
    names = []
    for i, line in enumerate(printed):
        match = _HEAD.match(line)
        if match and not _body(printed, i, match[1]):
            names.append(match[2])
    return names


def _body(printed: Sequence[str], start: int, indent: str) -> tuple[int, int] | None:
    """The lines of the braces round the body of the declaration at ``start``; ``None`` if it has none."""
    for i in range(start + 1, len(printed)):
        if printed[i] == f"{indent}{{":
            end = next((j for j in range(i + 1, len(printed)) if printed[j] == f"{indent}}}"), None)
            return None if end is None else (i, end)
        if not printed[i].startswith(f"{indent} "):
            return None
    return None


def erased(block: Sequence[str], free: Sequence[str]) -> tuple[str, ...]:
    """Return a declaration without the bodies of free names."""
    out: list[str] = []
    skip = -1
    for i, line in enumerate(block):
        if i <= skip:
            continue
        out.append(line)
        match = _HEAD.match(line)
        found = _body(block, i, match[1]) if match and match[2] in free else None
        if found:
            out += block[i + 1 : found[0]]
            skip = found[1]
    return tuple(out)


def splice(printed: Sequence[str], name: str, body: str) -> str:
    """Return the printed program with ``body`` for the free ``name``."""
    inner = body.strip()
    if not inner.startswith("{") or not inner.endswith("}") or not balanced(blank(inner[1:-1], SYNTAX)):
        inner = f"{{\n{inner}\n}}"
    out: list[str] = []
    skip = -1
    for i, line in enumerate(printed):
        if i <= skip:
            continue
        match = _HEAD.match(line)
        out.append(line)
        if match and match[2] == name:
            found = _body(printed, i, match[1])
            stop = found[0] if found else i + 1
            while not found and stop < len(printed) and printed[stop].startswith(f"{match[1]} "):
                stop += 1
            out += [*printed[i + 1 : stop], inner]
            skip = found[1] if found else stop - 1
    return "\n".join(out)


def changed(task: Sequence[str], response: Sequence[str], free: Sequence[str], source: str) -> str:
    """Return how a response's printed program departs from the task's specification, or nothing.

    ``source`` is the task's own text without comments, for the names it uses.
    """
    wanted = [erased(block, free) for block in blocks(task)]
    whole = blocks(response)
    mine = [erased(block, free) for block in whole]
    for block in wanted:
        if block not in mine:
            return f"the task's {block[0].strip()!r} is changed or missing"
        index = mine.index(block)
        if missing := [n for n in bodyless(whole[index]) if n in free]:
            return f"{missing[0]} has no body"
        del mine[index], whole[index]
    used = set(re.findall(r"[A-Za-z_][\w'?]*", source))
    for added in whole:
        match = _HEAD.match(added[0])
        if match is None:
            return f"adds {added[0].strip()!r}: only methods, functions and lemmas may be added"
        if match[2] in used:
            return f"adds a declaration of {match[2]}, a name of the task's"
        if bodyless(added):
            return f"{match[2]} has no body, so it would be assumed"
    return ""
