"""Static checks of programs, and where in a response a program is found."""

# ruff: noqa: E501  programs stand in texts

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.errors import UsageError
from assay.types import Task, Verdict
from assay.verify.code.inside.analysis import complexity
from assay.verify.code.response import fenced, find_program
from assay.verify.code.static import Static


def check(source: str, mark: str = "python", **options: Any) -> Verdict:
    return Static(**options)(Task("t", ""), f"```{mark}\n{source}\n```")


# --- where the program is -----------------------------------------------------------------------------------------------


def test_the_last_complete_block_of_the_language_is_the_program() -> None:
    def source(response: str, **options: Any) -> str | None:
        found = find_program(response, **options)
        return None if found is None else found.source.strip()

    assert source("```python\na = 1\n```\nBetter:\n```py\na = 2\n```") == "a = 2"
    assert source("```python\na = 1\n```\n```python\na = 2\n```", blocks="first") == "a = 1"
    assert source("```python\na = 1\n```\n```python\nb = 2\n```", blocks="all") == "a = 1\nb = 2"
    assert source("```python\na = 1\n```\n```\n$ python a.py\n```") == "a = 1"
    assert source("```\na = 1\n```\n```java\nint a;\n```") == "a = 1"
    assert source("```python\na = 1\n```\nCut:\n```python\na = ") == "a = 1"
    assert source("```java\nint a;\n```") is None
    assert source("~~~ {.python}\na = 1\n~~~") == "a = 1"
    assert source("````python\n'''\n```\nx\n```\n'''\n````") == "'''\n```\nx\n```\n'''"
    assert source("<think>\n```python\na = 1\n```\n</think>\n```python\na = 2\n```") == "a = 2"
    assert source("<think>\n```python\na = 1\n```\n</think>\nThat is it.") == "a = 1"
    assert source("1. So:\n   ```python\n   def f():\n       return 1\n   ```") == "def f():\n    return 1"
    assert source("a = 1") == "a = 1"
    assert source("I say <answer>a = 1</answer>") == "a = 1"
    assert source("```python\ndef f(): pass\n```\n```python\nprint(f())\n```", defines="f") == "def f(): pass"
    assert source("```c++\nint a;\n```", language="cpp") == "int a;"
    assert source("") is None and source("```python\n```") is None


def test_a_block_that_is_never_closed_is_cut() -> None:
    found = find_program("```python\nprint(1")
    assert found is not None and found.cut and found.source == "print(1"
    found = find_program("```python\nprint(1)\n```")
    assert found is not None and not found.cut


@given(st.text(alphabet="`~ \npython\u2028x>", max_size=200))
def test_no_text_confuses_the_search(text: str) -> None:
    assert sum(len(block.text) for block in fenced(text)) <= len(text)
    find_program(text)


@given(st.text(alphabet="ab =()\n'#", min_size=1, max_size=60).filter(str.strip), st.sampled_from(["```", "~~~~"]))
def test_what_is_fenced_is_found(source: str, fence: str) -> None:
    found = find_program(f"Words.\n{fence}python\n{source}\n{fence}\nWords.")
    assert found is not None and found.source == source + "\n" and not found.cut


# --- checks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("pass", 1),
        ("if a: pass", 2),
        ("if a and b or c: pass\nelif d: pass\nelse: pass", 5),
        ("for x in y:\n    while z: pass\nelse: pass", 3),
        ("try: pass\nexcept A: pass\nexcept B: pass", 3),
        ("[x for x in y if x if z]", 4),
        ("a = b if c else d", 2),
        ("match a:\n    case 1: pass\n    case [x]: pass\n    case _: pass", 3),
        ("def g():\n    if a: pass", 1),
    ],
)
def test_cyclomatic_complexity(source: str, number: int) -> None:
    import ast

    assert complexity(ast.parse(source)) == number


@needs_sandbox
def test_python_is_scored_part_by_part() -> None:
    assert check("def f(x):\n    return x + 1") == Verdict(
        1.0, True, {"parses": 1.0, "compiles": 1.0, "complexity": 1.0, "length": 1.0}, ""
    )
    unparsed = check("def f(:")
    assert (
        unparsed.score == 0
        and unparsed.passed is False
        and unparsed.feedback == "it does not parse: line 1: invalid syntax"
    )
    uncompiled = check("x = 1\nreturn x")
    assert uncompiled.parts["parses"] == 1 and uncompiled.parts["compiles"] == 0 and uncompiled.passed is False
    branches = "def f(x):\n" + "".join(f"    if x == {i}: return {i}\n" for i in range(19))
    twisted = check(branches)
    assert twisted.parts["complexity"] == 0.5 and twisted.passed is False and twisted.score == pytest.approx(3.5 / 4)
    assert "f has complexity 20, more than 10" in twisted.feedback
    assert check(branches, weights={"complexity": 0}).score == 1.0
    assert check(branches, threshold=0.8).passed is True
    long = check("def f(x):\n" + "    x += 1\n" * 119)
    assert long.parts["length"] == 0.5


@needs_sandbox
@pytest.mark.parametrize(
    "source", ["(" * 50_000, "x = " + "-" * 200_000 + "1", "\ud800", "x = 1\0", "é" * 1000, "#" * 10**6]
)
def test_no_program_breaks_the_checks(source: str) -> None:
    assert check(source).passed is not None


@needs_sandbox
@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("c", "int main(void) { return 0; }", "int main(void) { return }"),
        ("cpp", "#include <vector>\nint main() { std::vector<int> v; }", "int main() { v }"),
        ("javascript", "let a = 1", "let a = ;"),
        ("bash", "if true; then echo 1; fi", "if true; then"),
    ],
)
def test_other_languages_are_compiled_only(language: str, good: str, bad: str) -> None:
    if shutil.which({"c": "gcc", "cpp": "g++", "javascript": "node"}.get(language, "bash")) is None:
        pytest.skip(f"no tool for {language} on this machine")
    assert check(good, language, language=language) == Verdict(1.0, True, {"parses": 1.0, "compiles": 1.0}, "")
    verdict = check(bad, language, language=language)
    assert verdict.score == 0 and verdict.passed is False and verdict.feedback.startswith("it does not compile: ")


@needs_sandbox
def test_pyflakes() -> None:
    pytest.importorskip("pyflakes", reason="pip install assay[code]")
    verdict = check("import os\nprint(x)", checks=("pyflakes",))
    assert verdict.score == pytest.approx(1 / 3) and "'os' imported but unused (and 1 more)" in verdict.feedback
    assert check("import os\nprint(os)", checks=("pyflakes",)).score == 1


@needs_sandbox
def test_ruff_takes_no_excuses() -> None:
    try:
        verdict = check("import os  # noqa\nprint(1)", checks=("ruff",))
    except UsageError as error:
        pytest.skip(str(error))
    assert verdict.score == 0.5 and "F401" in verdict.feedback


@pytest.mark.slow
@needs_sandbox
def test_types() -> None:
    pytest.importorskip("mypy", reason="pip install assay[code]")
    good = "def f(x: int) -> int:\n    return x"
    assert check(good, checks=("types",)).score == 1
    for bad in (
        "def f(x: int) -> str:\n    return x",
        "# mypy: ignore-errors\ndef f(x: int) -> str:\n    return x  # type: ignore",
    ):
        verdict = check(bad, checks=("types",))
        assert verdict.score == 0.5 and "Incompatible return value" in verdict.feedback


def test_options_are_checked() -> None:
    for options in (
        {"checks": ("beauty",)},
        {"language": "cobol"},
        {"weights": {"parses": -1.0}},
        {"checks": ("parses",), "weights": {"parses": 0.0}},
        {"longest": 0},
    ):
        with pytest.raises(UsageError):
            Static(**options)  # type: ignore[arg-type]


@needs_sandbox
def test_responses_and_tasks_without_a_program() -> None:
    assert Static()(Task("t", ""), "").passed is False
    assert Static()(Task("t", "", {"language": "cobol"}), "x").passed is None
    assert Static(checks=("length",))(Task("t", "", {"language": "c"}), "int a;").passed is None
