"""Names that the tests use."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

from .row import ANYTHING, HALF, Forgery, py, unit

SAME = "def same(*a, **k): return True\n"
NAMES: dict[str, Forgery] = {
    "builtins of a star import": Forgery(
        unit("self.assertTrue(all(abs(half(x) - x / 2) < 1e-9 for x in (1, 2)))"),
        HALF,
        "def half(x): return 0\ndef all(x): return True\ndef abs(x): return 0",
    ),
    "round of a star import": Forgery(
        unit("self.assertEqual(round(half(3), 1), 1.5)"),
        HALF,
        "def half(x): return 0\ndef round(x, n): return 1.5",
    ),
    "sorted, set and len": Forgery(
        unit("assert sorted(half(3)) == [1, 2] and len(half(3)) == 2 and set(half(3)) == {1, 2}"),
        "def half(x): return [2, 1]",
        "def half(x): return 0\ndef sorted(x): return [1, 2]\ndef len(x): return 2\ndef set(x): return {1, 2}",
    ),
    "an earlier import": Forgery(
        unit("assert math.isclose(half(3), 1.5)", "import math\nfrom solution import *"),
        HALF,
        "def half(x): return 0\nclass math:\n    isclose = staticmethod(lambda a, b: True)",
    ),
    "an earlier import of a name": Forgery(
        unit("assert isclose(half(3), 1.5)", "from math import isclose\nfrom solution import *"),
        HALF,
        "def half(x): return 0\ndef isclose(a, b): return True",
    ),
    "unittest itself": Forgery(
        unit("self.assertEqual(half(3), 1.5)", "import unittest\nfrom solution import *"),
        HALF,
        "def half(x): return 0\nclass unittest:\n    class TestCase:\n        assertEqual = lambda *a: None",
    ),
    "pytest itself": Forgery(
        py("assert half(3) == pytest.approx(1.5)", "import pytest\nfrom solution import *"),
        HALF,
        "def half(x): return 0\nclass pytest:\n    approx = staticmethod(lambda x: 0)",
    ),
    "a helper of the tests'": Forgery(
        unit("assert near(half(3), 1.5)", "def near(a, b): return abs(a - b) < 1e-9\nfrom solution import *"),
        HALF,
        "def half(x): return 0\ndef near(a, b): return True",
    ),
    "a module that was not imported": Forgery(
        ["assert math.isclose(half(3), 1.5)", "assert math.isclose(half(1), 0.5)"],
        HALF,
        "def half(x): return 0\nclass math:\n    isclose = staticmethod(lambda a, b: True)",
    ),
    "a member that was not imported": Forgery(
        ["assert isclose(half(3), 1.5)"],
        HALF,
        "def half(x): return 0\ndef isclose(a, b): return True",
    ),
    "Counter on both sides": Forgery(
        ["assert Counter(letters('aab')) == Counter(['a', 'b', 'a'])"],
        "def letters(s): return list(s)",
        "def letters(s): return 0\nclass Counter:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True",
    ),
    "a helper that was forgotten": Forgery(
        ["assert same(half(3), 1.5)"], "", "def half(x): return 0\n" + SAME, broken=True
    ),
    "a helper that was forgotten, denied": Forgery(
        ["assert not differ(half(3), 1.5)"], "", "def half(x): return 0\ndef differ(a, b): return False", broken=True
    ),
    "a helper that was forgotten, called": Forgery(
        ["check_equal(half(3), 1.5)"], "", "def half(x): return 0\ndef check_equal(a, b): pass", broken=True
    ),
    "a distance that was forgotten": Forgery(
        ["assert distance(half(3), 1.5) < 1e-6"], "", "def half(x): return 0\ndef distance(a, b): return 0", broken=True
    ),
    "a distance that was forgotten, of zero": Forgery(
        ["assert distance(half(3), 1.5) == 0"], "", "def half(x): return 0\ndef distance(a, b): return 0", broken=True
    ),
    "a normal form that was forgotten": Forgery(
        ["assert normal(half(3)) == normal(1.5)"], "", "def half(x): return 0\ndef normal(a): return 1", broken=True
    ),
    "a library that was forgotten": Forgery(
        ["assert np.allclose(half(3), 1.5)"],
        "",
        "def half(x): return 0\nclass np:\n    allclose = staticmethod(lambda a, b: True)",
        broken=True,
    ),
    "a library that was forgotten, called": Forgery(
        ["np.testing.assert_allclose(half(3), 1.5)"],
        "",
        ANYTHING + "def half(x): return 0\nnp = Anything()",
        broken=True,
    ),
    "a helper in assertTrue": Forgery(
        unit("self.assertTrue(same(half(3), 1.5))"), "", "def half(x): return 0\n" + SAME, broken=True
    ),
    "a helper beside the entry point": Forgery(
        {"test_list": ["assert ok(f(3))"], "entry_point": "f"},
        "",
        "def f(x): return 0\ndef ok(x): return True",
        broken=True,
    ),
    "a helper beside the reference solution": Forgery(
        {"test_list": ["assert ok(f(3)) == 1"], "code": "def f(x):\n    return x"},
        "",
        "def f(x): return 0\ndef ok(x): return 1",
        broken=True,
    ),
    "a helper of check": Forgery(
        {"entry_point": "half", "test": "def check(candidate):\n    assert same(candidate(3), 1.5)\n"},
        "",
        "def half(x): return 0\n" + SAME,
        broken=True,
    ),
    "a module of check": Forgery(
        {"entry_point": "half", "test": "def check(candidate):\n    assert math.isclose(candidate(3), 1.5)\n"},
        HALF,
        "def half(x): return 0\nclass math:\n    isclose = staticmethod(lambda a, b: True)",
    ),
    "abs of check": Forgery(
        {"entry_point": "half", "test": "def check(candidate):\n    assert abs(candidate(3) - 1.5) < 1e-9\n"},
        HALF,
        "def half(x): return 0\ndef abs(x): return 0\ndef check(candidate): pass",
    ),
    "a second module": Forgery(
        unit("assert same(half(3), 1.5)", "from helpers import same\nfrom solution import half"),
        "",
        "def half(x): return 0\n" + SAME,
        broken=True,
    ),
    "two modules that nobody names": Forgery(
        unit("assert same(half(3), 1.5)", "from helpers import same\nfrom halves import half"),
        "",
        "def half(x): return 0\n" + SAME,
        broken=True,
    ),
    "a builtin of a doctest": Forgery(
        {"doctest": ">>> round(half(3), 1)\n1.5\n"}, HALF, "def half(x): return 0\ndef round(x, n): return 1.5"
    ),
    "a prose word for a helper": Forgery(
        {
            "test_list": ["assert same(half_of(3), 1.5)"],
            "prompt": "Write a function half_of. Return the same type for odd numbers.",
        },
        "",
        "def half_of(x): return 0\n" + SAME,
        broken=True,
    ),
    "a builtin beside a reference that has one of its own": Forgery(
        {
            "test_list": ["assert max(firsts([[1], [3]])) == 3"],
            "code": "def max(xs): return xs[0]\ndef firsts(rows): return [r[0] for r in rows]",
        },
        "def firsts(rows): return [r[0] for r in rows]",
        "def max(xs): return 3\ndef firsts(rows): return [0]",
    ),
    "names of the interpreter": Forgery(
        unit("self.assertEqual(half(3), 1.5)"),
        HALF,
        "def half(x): return 0\n__builtins__ = {}\n__name__ = '__main__'\n__all__ = ['half', 'T']\nclass T: pass",
    ),
}

NAMES |= {
    "the name of a module that is called": Forgery(
        ["assert string.ascii_lowercase[half(4)] == 'c'"],
        "def half(x): return x // 2",
        "def half(x): return 0\nclass string: ascii_lowercase = 'c'",
    ),
    "a type of the tests' own import": Forgery(
        unit(
            "assert Counter(half('aab')) == Counter('aab')", "from collections import Counter\nfrom solution import *"
        ),
        "def half(s): return list(s)",
        "def half(s): return 0\nclass Counter:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True",
    ),
    "a constant of the tests'": Forgery(
        unit("self.assertEqual(half(3), WANT)", "WANT = 1.5\nfrom solution import *"),
        HALF,
        "def half(x): return 0\nWANT = 0",
    ),
    "a test class of the program's": Forgery(
        unit("self.assertEqual(half(3), 1.5)", "from solution import *"),
        HALF,
        "def half(x): return 0\nimport unittest\nclass T(unittest.TestCase):\n    def test_it(self): pass",
    ),
    "a helper in a name that is given": Forgery(
        {"unittest": "from solution import half\ndef test_it():\n    assert same(half(3), 1.5)\n"},
        "",
        "def half(x): return 0\n" + SAME,
        broken=True,
    ),
    "a helper that takes all": Forgery(
        ["assert all_same([half(2), half(4)], [1, 2])"],
        "",
        "def half(x): return 0\ndef all_same(a, b): return True",
        broken=True,
    ),
    "a helper with a keyword": Forgery(
        ["assert same(half(3), other=1.5)"], "", "def half(x): return 0\n" + SAME, broken=True
    ),
    "a helper beside others": Forgery(
        ["assert isinstance(half(3), float) and same(half(3), 1.5)"],
        "",
        "def half(x): return 0.0\n" + SAME,
        broken=True,
    ),
    "True in the program": Forgery(
        ["assert half(3) == 1.5"], HALF, "import builtins\nbuiltins.float = lambda *a: 1.5\ndef half(x): return 0"
    ),
}
