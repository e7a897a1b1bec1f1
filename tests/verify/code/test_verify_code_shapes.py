"""Right programs are right however the response, the numbers or the program are shaped."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sandbox.support import needs_sandbox

from assay.types import Task, Verdict
from assay.verify.code.response import Found, fenced, find_program
from assay.verify.code.verifier import Code

ADD = "a, b = map(int, input().split())\nif a:\n    print(a + b)\nelse:\n    print(b)"
PAIRS = [{"input": "1 2", "output": "3"}]


def judge(reference: Any, response: str, **options: Any) -> Verdict:
    return Code(**options)(Task("t", "", reference, "code"), response)


def block(source: str) -> str:
    return f"```python\n{source}\n```"


def inset(text: str, before: str) -> str:
    return "\n".join(before + line for line in text.split("\n"))


@pytest.mark.parametrize(
    "response",
    [
        f"1. Add them:\n\n{inset(block(ADD), '   ')}\n2. Done.",
        f"10. Add them:\n\n{inset(block(ADD), '    ')}",
        f"- Add them:\n  - so:\n\n{inset(block(ADD), '      ')}",
        f"* deep:\n{inset(block(ADD), ' ' * 12)}",
        f"- {inset(block(ADD), '  ')[2:]}",
        f"1. {inset(block(ADD), '   ')[3:]}",
        f"- a tab:\n\n{inset(block(ADD), chr(9))}",
        f"> quoted:\n>\n{inset(block(ADD), '> ')}\n> so.",
        f"> - quoted:\n{inset(block(ADD), '>   ')}",
        f"   ```python\n{ADD}\n   ```",
        "\ufeff" + block(ADD),
        "Here:\n\ufeff" + block(ADD),
        block("\ufeff" + ADD),
        "\ufeff" + ADD,
        block(ADD).replace("\n", "\r\n"),
    ],
)
def test_a_block_is_what_it_would_be_outside_its_list(response: str) -> None:
    found = find_program(response)
    assert found is not None and found.source.replace("\r", "").strip("\n") == ADD


def test_a_fence_in_a_text_of_the_program_does_not_end_it() -> None:
    source = 'def f():\n    """So:\n\n    ```\n    f()\n    ```\n    """\n    return 1'
    [found] = fenced(block(source))
    assert found.closed and found.text == source + "\n"
    # The body of a function continues a prompt as it stands.
    assert find_program(block("    x = 1\n    return x")) == Found("    x = 1\n    return x\n")


@needs_sandbox
def test_a_table_that_the_tests_do_not_use_costs_nothing() -> None:
    source = "TABLE = list(range(2_000_000))\nclass Big: pass\ndef f(x): return TABLE[x]"
    for reference in (
        ["assert f(1) == 1"],
        {"entry_point": "f", "test": "def check(candidate):\n    assert candidate(1) == 1\n"},
        {"unittest": "from solution import *\ndef test_f(): assert f(1) == 1"},
        {"unittest": "import solution\ndef test_f(): assert solution.f(1) == 1"},
        {"pytest": "from solution import f\ndef test_f(): assert f(1) == 1"},
    ):
        verdict = judge(reference, block(source))
        assert verdict.passed is True, verdict


LONG = "7" * 9000


@needs_sandbox
@pytest.mark.parametrize(
    ("reference", "source"),
    [
        ({"fn_name": "f", "inputs": [[9000]], "outputs": [int("7" * 4000) * 10**5000]}, ""),
        (f'{{"fn_name": "f", "inputs": [[9000]], "outputs": [{LONG}]}}', "def f(n): return int('7' * n)"),
        (f'{{"fn_name": "f", "inputs": [[{LONG}]], "outputs": [[-{LONG}, "{LONG}"]]}}', "def f(n): return -n, str(n)"),
        ([f"assert f(9000) == {LONG}"], "def f(n): return int('7' * n)"),
        ([f"assert f({LONG}) == '{LONG}'"], "def f(n): return str(n)"),
        (
            {"unittest": f"from solution import f\ndef test_f():\n    assert f(9000) == {LONG}"},
            "def f(n): return int('7' * n)",
        ),
        ({"tests": [{"input": LONG, "output": LONG[:-1] + "8"}]}, "print(int(input()) + 1)"),
    ],
)
def test_long_integers(reference: Any, source: str) -> None:
    if source:
        verdict = judge(reference, block(source))
        assert verdict.passed is True, verdict
    for wrong in ("def f(n): return 10 ** 20_000", "def f(n): return 5", "print(10 ** 20_000)"):
        verdict = judge(reference, block(wrong))
        assert verdict.passed is False and len(verdict.feedback) < 20_000


@pytest.mark.slow
@needs_sandbox
def test_a_long_program_is_parsed_inside_its_limits() -> None:
    source = "def f(x): return x\nXS = [" + "[1, 2, 3]," * 480_000 + "]"
    assert len(source) > 4_500_000
    start = time.process_time()
    verdict = judge({"fn_name": "f", "inputs": [[1]], "outputs": [1]}, block(source), seconds=2)
    assert verdict.passed is False and "loads" not in verdict.parts
    # The parser would take some twenty seconds, here too.
    assert time.process_time() - start < 5


@needs_sandbox
def test_a_method_of_solution_is_called_unless_the_program_has_the_function() -> None:
    reference = {"fn_name": "gcd", "inputs": [[4, 6]], "outputs": [2]}
    method = "class Solution:\n    def gcd(self, a, b): return {}"
    # The prelude has a gcd too, which is none of the program's.
    assert judge(reference, block(method.format(2))).passed is True
    assert judge(reference, block(method.format(3))).passed is False
    assert judge(reference, block(method.format(3) + "\ndef gcd(a, b): return 2")).passed is True
    assert judge(reference, block("from math import gcd")).passed is True


@needs_sandbox
@pytest.mark.slow
def test_time_is_limited_for_each_test_that_compares_by_itself() -> None:
    slow = (
        "import time\ndef f(x):\n    end = time.process_time() + (3 if x == {} else 0.25)\n"
        "    while time.process_time() < end: pass\n    return x"
    )
    numbers = range(4)
    references: list[Any] = [
        [f"assert f({n}) == {n}" for n in numbers],
        {"unittest": "from solution import f\n" + "".join(f"def test_{n}(): assert f({n}) == {n}\n" for n in numbers)},
        {"doctest": "".join(f">>> f({n})\n{n}\n" for n in numbers)},
    ]
    for reference in references:
        verdict = judge(reference, block(slow.format(9)), seconds=0.6)
        assert verdict.passed is True, verdict
        verdict = judge(reference, block(slow.format(2)), seconds=0.6, scoring="fraction")
        assert list(verdict.parts.values()) == [1, 1, 0, 1], verdict
        assert "more than 0.6 s of processor time" in verdict.feedback
