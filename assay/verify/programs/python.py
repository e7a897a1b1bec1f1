"""Python functions f, run in the sandbox for programs that nobody trusts."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from assay.sandbox import Limits, Program, SandboxUnavailable, sandbox
from assay.sandbox.inside.codec import CodecError, dumps
from assay.verify.programs.language import LANGUAGES, Mode, Ran, Triplet
from assay.verify.text.exact import shorten

SECONDS = 10.0
"""Processor time of a program on all its inputs together."""
BANNED = (
    "logging", "random", "multiprocessing", "pebble", "subprocess", "threading", "datetime", "time", "hashlib", "hmac",
    "bcrypt", "os.sys", "os.path", "sys.exit", "os.environ", "calendar",
)  # fmt: skip
"""Words that a proposed program may not have: what they stand for is no function of an input, or reaches outside."""
_BANNED = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, BANNED)) + r")(?!\w)")
_LONGEST = 20_000
"""Characters of a literal that is read, and of an output."""
_WORDS = {
    "deduction": "whose output for that input is hard to work out",
    "abduction": "for which it is hard to find an input that gives the same output",
}
_RULES = (
    "The function is called f, has all it needs inside, depends on its arguments alone and returns a value made of "
    "numbers, texts, lists, tuples, sets and dictionaries. It must not use: " + ", ".join(BANNED) + "."
)


class Python:
    """Programs are Python source with a function ``f``; an input is its arguments as literals, ``'ab', 3``; an output
    the ``repr`` of what it returns. Blocks between lines of three backticks say what they are: ``python``, ``input``,
    ``output``, ``message``. Outputs are compared as values, and as texts where they are no literals.
    """

    identity = Triplet("def f(x):\n    return x", ("'hello'",), ("'hello'",))

    def propose(self, mode: Mode, shown: Sequence[Triplet], program: str, inputs: int) -> str:
        if mode == "induction":
            return (
                f"Here is a function:\n\n{_block('python', program)}\n\nWrite {inputs} inputs for it, as different as "
                "can be, from which together, and a short message, somebody could find out what it does, though not "
                "easily. Each input is a block of its own with the arguments, as in\n\n"
                f"{_block('input', chr(39) + 'ab' + chr(39) + ', 3')}\n\nand the message one that opens with "
                "```message."
            )
        examples = "\n\n".join(f"{_block('python', t.program)}\n\n{_block('input', t.inputs[0])}" for t in shown)
        return (
            f"Write a new Python function and an input for it, {_WORDS[mode]} without running it. {_RULES}\n\nMake it "
            f"unlike these:\n\n{examples}\n\nReply with a block that opens with ```python, and one with the arguments "
            "that opens with ```input."
        )

    def proposed(self, mode: Mode, response: str) -> Triplet | None:
        found = blocks(response)
        inputs = [text for name, text in found if name == "input"]
        if mode == "induction":
            messages = [text for name, text in found if name == "message"]
            return Triplet("", tuple(inputs), (), messages[-1]) if inputs and messages else None
        programs = [text for name, text in found if name == "python"]
        return Triplet(programs[-1], (inputs[-1],), ()) if programs and inputs else None

    def refusal(self, program: str) -> str:
        found = _BANNED.search(program)
        return f"it uses {found[1]}" if found else ""

    def solve(self, mode: Mode, triplet: Triplet, seen: int) -> str:
        if mode == "induction":
            pairs = zip(triplet.inputs[:seen], triplet.outputs[:seen], strict=True)
            said = "\n\n".join(f"{_block('input', i)}\n{_block('output', o)}" for i, o in pairs)
            return (
                f"A Python function f gives these outputs:\n\n{said}\n\nOf it is said: {triplet.message}\n\nWrite it; "
                "it is tried on other inputs. End with it, in a block that opens with ```python."
            )
        shown = _block("python", triplet.program)
        if mode == "deduction":
            return (
                f"What does f return?\n\n{shown}\n\n{_block('input', triplet.inputs[0])}\n\nThink step by step, then "
                "end with the value in a block that opens with ```output."
            )
        return (
            f"For which arguments does f return this?\n\n{shown}\n\n{_block('output', triplet.outputs[0])}\n\nAny that "
            "do so will do. Think step by step, then end with the arguments in a block that opens with ```input."
        )

    def answer(self, mode: Mode, response: str) -> str | None:
        wanted = {"deduction": "output", "abduction": "input", "induction": "python"}[mode]
        found = [text for name, text in blocks(response) if name == wanted]
        return found[-1] if found and found[-1].strip() else None

    def run(self, program: str, inputs: Sequence[str]) -> list[Ran]:
        calls = [arguments(given) for given in inputs]
        whole = [list(call) for call in calls if call is not None]
        try:
            done = sandbox().call(Program(program), "f", [(call, {}) for call in whole], Limits(SECONDS, 3 * SECONDS))
        except SandboxUnavailable as error:
            return [Ran(None, str(error), ours=True) for _ in inputs]
        results = iter(done.calls)
        out = []
        for call in calls:
            result = None if call is None else next(results, None)
            if call is None:
                out.append(Ran(None, "its input is no list of literals"))
            elif result is None:
                out.append(Ran(None, shorten(done.outcome.reason, 200), done.outcome.failed_here))
            elif not result.returned:
                out.append(Ran(None, f"it raises {shorten(result.exception, 200)}"))
            else:
                out.append(_written(result.value))
        return out

    def equal(self, output: str, other: str) -> bool:
        values = literal(output), literal(other)
        if None in values:
            return output.strip() == other.strip()
        return bool(values[0] == values[1])


def blocks(text: str) -> list[tuple[str, str]]:
    """Return what stands between lines of three backticks, with the word after the first of them; unclosed ones not."""
    found: list[tuple[str, str]] = []
    name: str | None = None
    kept: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("```") and name is None:
            name, kept = bare[3:].strip().lower(), []
        elif bare == "```" and name is not None:
            found.append((name, "\n".join(kept)))
            name = None
        else:
            kept.append(line)
    return found


def arguments(given: str) -> tuple[object, ...] | None:
    """Return the arguments that an input stands for; ``None`` where it is no list of literals that can be handed on."""
    value = literal(f"({given.strip()},)") if given.strip() else ((),)
    try:
        dumps(value)
    except CodecError:  # an ellipsis, or nested too deep
        return None
    return None if value is None else value[0]  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def literal(text: str) -> tuple[object] | None:
    """Return the value that a literal stands for, as a tuple of one; ``None`` where it is none."""
    if len(text) > _LONGEST:
        return None
    try:
        return (ast.literal_eval(text.strip()),)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _written(value: object) -> Ran:
    """What a program returned, as text."""
    if value is None:
        return Ran(None, "it returns nothing")
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = ""
    return Ran(text) if 0 < len(text) <= _LONGEST else Ran(None, f"it returns more than {_LONGEST} characters")


def _block(name: str, text: str) -> str:
    return f"```{name}\n{text}\n```"


LANGUAGES["python"] = Python
