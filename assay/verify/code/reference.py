"""What a task's reference says about how to test a program, in the shapes that data sets use."""

from __future__ import annotations

import ast
import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.verify.code.integers import loads, readable
from assay.verify.code.keys import TEST, check_keys, check_reference
from assay.verify.code.plan import from_asserts, from_check, from_doctest, from_file, has_check

MOST = 64 << 20
"""Bytes of compressed tests when unpacked."""


@dataclass(frozen=True, slots=True)
class TextTests:
    """A program reads its standard input and writes its standard output: pairs of both.

    ``own``: what each test says beside them (limits, weight, group), or nothing at all.
    """

    pairs: tuple[tuple[str, str], ...]
    own: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class CallTests:
    """A function, or ``Class.method``, is called with arguments; ``wrapped``: expected values may stand in a list.

    ``own``: what each test says beside them, or nothing at all.
    """

    function: str
    calls: tuple[tuple[tuple[Any, ...], Any], ...]
    wrapped: bool = False
    own: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class CodeTests:
    """Code that compares by itself: a plan for :func:`assay.verify.code.apart.run_apart`."""

    plan: Mapping[str, Any]
    count: int = 0


Tests = TextTests | CallTests | CodeTests


@dataclass(frozen=True, slots=True)
class Reference:
    """Tests, and everything else a reference may say.

    Attributes:
        prelude: code put before the program: the part of the prompt before the function to complete.
        prompt: text the program may continue, if it does not define ``defines``.
        defines: the name the program has to define, if that is known.
    """

    tests: Tests
    given: Mapping[str, Any]
    prelude: str = ""
    prompt: str = ""
    defines: str = ""


def read(reference: Any, question: str = "") -> Reference:
    """Return what ``reference`` says of the tests of the task that asks ``question``.

    Raise ValueError, KeyError or TypeError where it cannot be understood.
    """
    given = _json(reference)
    if isinstance(given, list):
        given = {"test_list": given} if given and all(isinstance(t, str) for t in given) else {"tests": given}
    if not isinstance(given, dict):
        raise ValueError("it is neither a mapping nor a list")
    for key in ("input_output", "ground_truth"):
        if isinstance(given.get(key), str | Mapping):
            given = {**given, **_mapping(_json(given[key]))}
    check_reference(given)
    if "test_list" in given or "assert_case" in given:
        sources = [*_texts(given.get("test_list", given.get("assert_case"))), *_texts(given.get("challenge_test_list"))]
        plan = from_asserts(sources, given, question)
        return Reference(CodeTests(plan, len(sources)), given, defines=plan["entry"])
    if "doctest" in given:
        return Reference(
            CodeTests(from_doctest(str(given["doctest"]), given, question)), given, defines=given.get("entry_point", "")
        )
    for key in ("pytest", "unittest", "test"):
        if isinstance(given.get(key), str):
            return _code(given, key, question)
    function = given.get("fn_name") or given.get("func_name") or _mapping(_json(given.get("metadata"))).get("func_name")
    pairs, own = _tests(given)
    if not pairs:
        raise ValueError("it has no tests")
    if function:
        return Reference(_calls(str(function), pairs, own), given, defines=str(function).rpartition(".")[2])
    return Reference(TextTests(tuple((_text(i), _text(o)) for i, o in pairs), own), given)


def _code(given: Mapping[str, Any], key: str, question: str) -> Reference:
    source = readable(str(given[key]))
    entry = str(given.get("entry_point", ""))
    prompt = str(given.get("prompt", "") or "")
    if key == "test" and has_check(source):
        if not entry:
            raise ValueError("it has a check(candidate) but no entry_point")
        prelude = before(prompt, entry)
        return Reference(CodeTests(from_check(source, entry, prelude, given)), given, prelude, prompt, entry)
    mode = "pytest" if key == "pytest" or (key == "test" and "pytest" in source) else "unittest"
    return Reference(CodeTests(from_file(mode, source, given, question)), given, "", prompt, entry)


def before(prompt: str, entry: str) -> str:
    """The part of ``prompt`` before the definition of ``entry``: imports and helpers the tests may use too."""
    place = -1
    for mark in (f"def {entry}(", f"class {entry}", f"async def {entry}("):
        found = prompt.find(mark)
        place = found if found >= 0 and (place < 0 or found < place) else place
    if place <= 0:
        return ""
    text = prompt[: prompt.rfind("\n", 0, place) + 1]
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return text


def _tests(given: Mapping[str, Any]) -> tuple[list[tuple[Any, Any]], tuple[Mapping[str, Any], ...]]:
    """Return pairs of input and output, and what each test says beside them, if any does."""
    found = [_pair(test) for test in _pairs(given)]
    own = tuple(extra for _, extra in found)
    return [pair for pair, _ in found], own if any(own) else ()


def _pairs(given: Mapping[str, Any]) -> Sequence[Any]:
    """Return the tests, each a pair or a mapping."""
    for key in ("inputs", "input"):
        if isinstance(given.get(key), list):
            outputs = given.get(key.replace("in", "out", 1), [])
            outputs = [None] * len(given[key]) if outputs is None or outputs == [] else outputs
            if len(given[key]) != len(outputs):
                raise ValueError(f"it has {len(given[key])} inputs and {len(outputs)} outputs")
            return list(zip(given[key], outputs, strict=True))
    found: list[Any] = []
    names = ("tests", "test_cases", "public_test_cases", "private_test_cases")
    for key in (*names, "public_tests", "private_tests", "generated_tests"):
        some = _unpack(given.get(key))
        if isinstance(some, Mapping):
            found += _pairs(some)
        elif some:
            found += some
    return found


def _pair(test: Any) -> tuple[tuple[Any, Any], Mapping[str, Any]]:
    if isinstance(test, Mapping):
        check_keys(test, TEST, "a test")
        own = {key: test[key] for key in ("weight", "group", "time_limit", "memory_limit") if key in test}
        for left, right in (
            ("input", "output"),
            ("stdin", "stdout"),
            ("input", "expected_output"),
            ("args", "expected"),
        ):
            if left in test and right in test:
                return (test[left], test[right]), own
        if "input" in test:
            return (test["input"], None), own
        raise ValueError(f"a test has {', '.join(map(str, test))}, not input and output")
    left, right = test
    return (left, right), {}


def _calls(function: str, pairs: Sequence[tuple[Any, Any]], own: tuple[Mapping[str, Any], ...]) -> CallTests:
    calls = []
    text = all(isinstance(given, str) for given, _ in pairs)
    for given, expected in pairs:
        if text:
            # One JSON value a line, as LiveCodeBench has it.
            arguments = [loads(line) for line in given.split("\n") if line.strip()]
        elif isinstance(given, list | tuple):
            arguments = list(given)
        else:
            arguments = [given]
        value = _value(expected) if text and isinstance(expected, str) else expected
        calls.append((tuple(arguments), value))
    # APPS writes expected values in lists of one; where all are, such a value or the list will do.
    wrapped = not text and all(isinstance(expected, list) and len(expected) == 1 for _, expected in calls)
    return CallTests(function, tuple(calls), wrapped, own)


def _json(value: Any) -> Any:
    return loads(value) if isinstance(value, str) and value.strip()[:1] in ("{", "[") else value


def _value(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return text


def _unpack(value: Any) -> Any:
    if not isinstance(value, str) or value.strip()[:1] in ("{", "["):
        return _json(value)
    # Base64 of zlib, as LiveCodeBench packs tests; what it has inside may be a pickle, which is never loaded.
    data = zlib.decompressobj().decompress(base64.b64decode(value), MOST)
    if data[:1] in (b"\x80", b"("):
        raise ValueError("its tests are a pickle, which could run code: convert them to JSON once")
    return loads(data.decode())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [readable(str(item)) for item in _json(value) or []]


def _text(value: Any) -> str:
    """Input or output as text: lists of lines are joined, as APPS has some of both."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(item) for item in value)
    return "" if value is None else str(value)
