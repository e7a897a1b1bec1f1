"""The page on judging programs: its examples run, and it names every key, option, language and status there is."""

from __future__ import annotations

import dataclasses
import doctest
import re
from pathlib import Path
from typing import get_args

import pytest
from sandbox.support import needs_sandbox

from assay.errors import UsageError
from assay.registry import build
from assay.sandbox.languages import FACTORS, LANGUAGES
from assay.verify.code.keys import SETTINGS, TEST, TESTS
from assay.verify.code.results import _STATUSES
from assay.verify.code.text import TextRule
from assay.verify.code.values import NumberRule, ValueRule
from assay.verify.code.verifier import Code

PAGE = Path(__file__).parents[3] / "docs" / "code.md"


@needs_sandbox
def test_the_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0 and tried >= 6


def test_everything_is_named() -> None:
    text = PAGE.read_text()
    named = set(re.findall(r"[a-z_]+(?: [a-z]+)?", " ".join(re.findall(r"`[^`\n]+`", text))))
    words = {word for piece in named for word in (piece, *piece.split())}
    statuses = {*_STATUSES.values(), "right", "partial", "wrong", "runtime error", "skipped", "not run"}
    rules = {*get_args(TextRule), *get_args(ValueRule), *get_args(NumberRule)}
    unsaid = {"testtype", "expected_output", "input", "output", "test"}
    assert not (SETTINGS | TESTS | TEST | set(LANGUAGES) | statuses | rules) - words - unsaid
    assert "| `java` | java, javac | 2 |" in text and FACTORS["java"] == 2
    assert all(FACTORS[name] == 1 for name in FACTORS if name != "java")


def test_every_option_has_its_words() -> None:
    for option in dataclasses.fields(Code):
        assert re.search(rf"^        (?:\w+, )*{option.name}(?:, \w+)*: ", Code.__doc__ or "", re.MULTILINE), (
            option.name
        )


def test_options_from_a_recipe() -> None:
    given = {"time_factors": {"java": 3}, "compiler_options": {"c": ["-O3"]}, "stack": 8, "processes": 4, "output": 0.5}
    made = build("verify", {"name": "code", **given})
    assert made.time_factors["java"] == 3 and made.compiler_options["c"] == ["-O3"]  # type: ignore[attr-defined]
    for wrong in (
        {"time_factors": {"jva": 3}},
        {"time_factors": {"python": 0}},
        {"compiler_options": {"d": []}},
        {"stack": 0},
        {"processes": 0},
        {"output": 0},
        {"numbers": "some"},
    ):
        with pytest.raises(UsageError) as raised:
            build("verify", {"name": "code", **wrong})
        assert "\n" not in str(raised.value)
