"""Programs that attack their tests earn nothing, in every shape of tests."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from code_cheats import ANYTHING, FUNCTIONS, PROGRAMS
from sandbox.support import needs_sandbox

from assay.types import Task
from assay.verify.code.verifier import Code

pytestmark = needs_sandbox
RIGHT = "def triple(xs):\n    return 3 * sum(xs)"
CASES = [([1, 2, 3], 18), ([], 0), ([-1], -3), ([5, 5, 5, 5], 60)]
ASSERTS = [f"assert triple({xs}) == {value}" for xs, value in CASES]
SHAPES: dict[str, dict[str, Any]] = {
    "calls": {"fn_name": "triple", "inputs": [[xs] for xs, _ in CASES], "outputs": [value for _, value in CASES]},
    "check": {
        "entry_point": "triple",
        "test": "def check(candidate):\n"
        + "".join(f"    assert candidate({xs}) == {value}\n" for xs, value in CASES)
        + "    for got, y in zip(map(candidate, [[1], [2]]), [3, 6]):\n        assert got == y\n"
        + "    assert abs(candidate([4]) - 12) < 1e-6\n"
        + "    assert [candidate([i]) for i in range(3)] == [0, 3, 6]\n",
    },
    "asserts": {"test_list": [*ASSERTS, "assert abs(triple([4]) - 12) < 1e-6"]},
    "pytest": {
        "pytest": "import pytest\nfrom solution import triple\n@pytest.mark.parametrize('xs,want', "
        + repr(CASES)
        + ")\ndef test_triple(xs, want):\n    assert triple(xs) == want\ndef test_near():\n    assert triple([4]) == pytest.approx(12)\n",
    },
    "unittest": {
        "unittest": "import unittest\nimport solution\nclass T(unittest.TestCase):\n    def test_all(self):\n"
        + "".join(f"        self.assertEqual(solution.triple({xs}), {value})\n" for xs, value in CASES)
        + "    def test_near(self):\n        self.assertAlmostEqual(solution.triple([4]), 12)\n",
    },
    "doctest": {"doctest": "".join(f">>> triple({xs})\n{value}\n" for xs, value in CASES)},
}
VERIFIER = Code(seconds=0.3, memory=64, scoring="fraction", stop=True)


def judge_all(reference: Any, sources: dict[str, str]) -> dict[str, str]:
    """Return the verdicts that are not plainly wrong."""
    with ThreadPoolExecutor(2) as threads:
        verdicts = threads.map(lambda source: judge(reference, source), sources.values())
    return {name: str(v) for name, v in zip(sources, verdicts, strict=True) if v.passed is not False or v.score == 1}


def judge(reference: Any, source: str, verifier: Code = VERIFIER) -> Any:
    return verifier(Task("t", "", reference, "code"), f"```python\n{source}\n```")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_honest_program_passes(shape: str) -> None:
    verdict = judge(SHAPES[shape], RIGHT, replace(VERIFIER, seconds=5))
    assert verdict.passed is True, verdict


@pytest.mark.parametrize(
    "shape",
    [shape if shape in ("asserts", "calls") else pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES],
)
def test_cheating_functions_earn_nothing(shape: str) -> None:
    # pytest takes long to start: every other program will do for it, as what it runs on is the same.
    sources = dict(list(FUNCTIONS.items())[:: 2 if shape == "pytest" else 1])
    assert len(sources) >= 25
    assert judge_all(SHAPES[shape], sources) == {}


def test_cheating_programs_earn_nothing() -> None:
    assert len(PROGRAMS) >= 25
    reference = {"inputs": ["1 2 3\n", "5 5 5 5\n"], "outputs": ["18\n", "60\n"]}
    assert judge(reference, "print(3 * sum(map(int, input().split())))").passed is True
    assert judge_all(reference, PROGRAMS) == {}


ACCOUNT = """
class Account:
    def __init__(self, owner): self.owner, self.sum, self.log = owner, 0.0, []
    def add(self, n):
        self.sum += n
        self.log.append(n)
        return self
    def balance(self): return self.sum
    def name(self): return self.owner
    def entries(self): return self.log
    def best(self): return max(self.log)
"""
CLAIMS = [
    "self.assertEqual(self.a.balance(), 12.5)",
    "self.assertAlmostEqual(self.a.balance(), 12.5)",
    "self.assertTrue(abs(self.a.balance() - 12.5) < 1e-9)",
    "self.assertTrue(12.5 == self.a.balance())",
    "self.assertTrue(self.a.name().startswith('A'))",
    "self.assertIn(2.5, self.a.entries())",
    "self.assertEqual(self.a.entries(), [10, 2.5])",
    "self.assertListEqual(list(self.a.entries()), [10, 2.5])",
    "self.assertGreater(self.a.best(), 9)",
    "self.assertTrue(self.a.best() in {10})",
    "self.assertTrue(set(self.a.entries()).issuperset({10}))",
    "self.assertIsInstance(self.a.best(), int)",
    "self.assertEqual(self.a.entries().index(2.5), 1)",
    "self.assertEqual(f'{self.a.best()}', '10')",
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_objects_of_tested_classes_do_not_stand_in_for_values(claim: str) -> None:
    tests = (
        "import unittest\nfrom solution import Account\nclass T(unittest.TestCase):\n"
        "    def setUp(self): self.a = Account('Ann').add(10).add(2.5)\n    def test_it(self): " + claim
    )
    assert judge({"unittest": tests}, ACCOUNT).passed is True
    returned = ANYTHING + ACCOUNT
    for value in ("self.sum", "self.owner", "self.log", "max(self.log)"):
        returned = returned.replace(f"return {value}\n", "return Anything()\n")
    assert judge({"unittest": tests}, returned).passed is False
    listed = returned.replace("class Anything:", "class Anything(list):")
    assert judge({"unittest": tests}, listed).passed is False
