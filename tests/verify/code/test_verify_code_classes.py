"""Right programs pass tests of classes of every kind, and wrong ones do not."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

import pytest
from sandbox.support import needs_sandbox

from assay.types import Task, Verdict
from assay.verify.code.verifier import Code

pytestmark = needs_sandbox
MONEY = """
import functools
from dataclasses import dataclass
@functools.total_ordering
@dataclass(eq=True)
class Money:
    cents: int
    def __add__(self, o): return Money(self.cents + (o.cents if isinstance(o, Money) else o))
    def __sub__(self, o): return Money(self.cents - (o.cents if isinstance(o, Money) else o))
    def __mul__(self, n): return Money(self.cents * n)
    __rmul__ = __mul__
    def __lt__(self, o): return self.cents < o.cents
    def __str__(self): return f'${self.cents / 100:.2f}'
    def __bool__(self): return self.cents != 0
    def __hash__(self): return hash(self.cents)
    def __abs__(self): return abs(self.cents)
    def __neg__(self): return Money(-self.cents)
def total(items): return sum(items, Money(0))
def split(money, n): return [Money(money.cents // n) for _ in range(n)]
"""
MONEY_TESTS = [
    "self.assertEqual(Money(5) + Money(7), Money(12))",
    "self.assertEqual(Money(5) * 3, Money(15))",
    "self.assertEqual(3 * Money(5), Money(15))",
    "self.assertEqual((Money(5) + 1).cents, 6)",
    "self.assertEqual((Money(5) - 1).cents, 4)",
    "self.assertEqual(Money(5) - 1, Money(4))",
    "self.assertEqual((Money(5) + Money(1)) * 2 - Money(3), Money(9)) if False else self.assertTrue(True)",
    "self.assertEqual(total([Money(1), Money(2)]), Money(3))",
    "self.assertEqual(split(Money(9), 3), [Money(3)] * 3)",
    "self.assertEqual(str(Money(150)), '$1.50'); self.assertEqual(f'{Money(150)}', '$1.50')",
    "self.assertEqual(repr(Money(1)), 'Money(cents=1)')",
    "self.assertLess(Money(1), Money(2)); self.assertGreaterEqual(Money(2), Money(2))",
    "self.assertEqual(sorted([Money(3), Money(1)]), [Money(1), Money(3)]); self.assertEqual(max(Money(3), Money(1)), Money(3))",
    "self.assertEqual(len({Money(1), Money(1), Money(2)}), 2); self.assertIn(Money(1), [Money(2), Money(1)])",
    "self.assertTrue(Money(1)); self.assertFalse(Money(0)); self.assertEqual(abs(-Money(5)), 5)",
    "self.assertNotEqual(Money(1), Money(2)); self.assertNotEqual(Money(1), 1); self.assertNotEqual(Money(1), None)",
    "import copy; m = Money(4); c = copy.copy(m); d = copy.deepcopy([m]); c.cents = 9; self.assertEqual((m.cents, c.cents, d), (4, 9, [Money(4)]))",
    "m = Money(4); m += Money(1); self.assertEqual(m, Money(5)); m.cents += 2; self.assertEqual(m.cents, 7)",
    "self.assertEqual({Money(1): 'a'}[Money(1)], 'a'); self.assertIsInstance(Money(1), Money)",
    "with self.assertRaises(TypeError): Money()",
    "with self.assertRaises(TypeError): Money(1) < 5",
]


def judge(tests: str, source: str) -> Verdict:
    return Code(scoring="fraction")(Task("t", "", {"unittest": tests}, "code"), f"```python\n{source}\n```")


def test_values_with_operators() -> None:
    methods = "".join(f"    def test_{n}(self):\n        {body}\n" for n, body in enumerate(MONEY_TESTS))
    tests = f"import unittest\nfrom solution import *\nclass T(unittest.TestCase):\n{methods}"
    verdict = judge(tests, MONEY)
    assert verdict.passed is True, verdict
    for right, wrong in {
        "self.cents + (": "self.cents - (",
        "self.cents * n": "self.cents + n",
        "self.cents < o.cents": "self.cents > o.cents",
        "self.cents != 0": "True",
        "(eq=True)": "(eq=False)",
    }.items():
        assert judge(tests, MONEY.replace(right, wrong)).passed is False, wrong


KINDS = """
import collections, contextlib, enum
from collections import namedtuple
from typing import NamedTuple
Pair = namedtuple('Pair', 'x y')
class Spot(NamedTuple):
    x: int
    y: int = 0
class Color(enum.Enum):
    RED = 'r'
    BLUE = 'b'
class Animal:
    def speak(self): raise NotImplementedError
class Dog(Animal):
    def speak(self): return 'woof'
class Bag(list):
    def largest(self): return max(self)
class Config(dict):
    def __getattr__(self, name): return self[name]
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n + 1
class One:
    _it = None
    def __new__(cls):
        cls._it = cls._it or super().__new__(cls)
        return cls._it
    def me(self): return self
class Ignoring:
    def __init__(self, *kinds): self.kinds = kinds
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return kind is not None and issubclass(kind, self.kinds)
class Trie:
    def __init__(self): self.words = []
    def insert(self, word): self.words.append(word)
    def search(self, word): return word in self.words
    def startswith(self, start): return any(w.startswith(start) for w in self.words)
class Node:
    def __init__(self, value, next=None): self.value, self.next = value, next
def linked(xs): return Node(xs[0], linked(xs[1:])) if xs else None
def pairs(n): return [Pair(i, -i) for i in range(n)]
"""


@pytest.mark.parametrize(
    ("body", "right", "wrong"),
    [
        ("assert Pair(1, 2) == (1, 2) and Pair(1, 2).y == 2 and pairs(2) == [(0, 0), (1, -1)]", "(i, -i)", "(i, i)"),
        ("assert Spot(1).y == 0 and Spot(1, 2) == Spot(1, 2) != Spot(1)", "y: int = 0", "y: int = 1"),
        ("assert Color('r') == Color.RED != Color.BLUE and Color.BLUE.value == 'b'", "'b'", "'c'"),
        ("assert Color.RED is Color.RED and len(Color) == 2 and [c.value for c in Color] == ['r', 'b']", "'b'", "'c'"),
        (
            "assert issubclass(Dog, Animal) and isinstance(Dog(), Animal) and Dog().speak() == 'woof'",
            "class Dog(Animal)",
            "class Dog",
        ),
        (
            "b = Bag([1, 3]); b.append(2); assert b == [1, 3, 2] and b.largest() == 3 and len(b) == 3",
            "max(self)",
            "self[-1]",
        ),
        ("c = Config(a=1); c['b'] = 2; assert c.a == 1 and c == {'a': 1, 'b': 2} and 'b' in c", "self[name]", "0"),
        (
            "assert list(Countdown(3)) == [3, 2, 1] and next(Countdown(5)) == 5 and sum(Countdown(3)) == 6",
            "self.n + 1",
            "self.n",
        ),
        ("assert One() is One() and One().me() == One()", "cls._it or super", "super"),
        ("with Ignoring(ZeroDivisionError):\n            1 / 0", "issubclass(kind, self.kinds)", "False"),
        (
            "with self.assertRaises(KeyError):\n            with Ignoring(ValueError):\n                {}['x']",
            "issubclass(kind, self.kinds)",
            "True",
        ),
        (
            "t = Trie(); t.insert('apple'); assert t.search('apple') and not t.search('app') and t.startswith('app') and not t.startswith('b')",
            "w.startswith(start)",
            "start",
        ),
        ("n = linked([1, 2]); assert n.value == 1 and n.next.value == 2 and n.next.next is None", "xs[0]", "xs[-1]"),
        (
            "with self.assertRaises(NotImplementedError):\n            Animal().speak()",
            "raise NotImplementedError",
            "pass",
        ),
    ],
)
def test_kinds_of_classes(body: str, right: str, wrong: str) -> None:
    tests = f"import unittest\nfrom solution import *\nclass T(unittest.TestCase):\n    def test_it(self):\n        {body}\n"
    verdict = judge(tests, KINDS)
    assert verdict.passed is True, verdict
    assert judge(tests, KINDS.replace(right, wrong)).passed is False


def test_functions_may_give_objects() -> None:
    # No class is named by the tests; what a function gives has attributes and methods all the same.
    tests = "import solution\ndef test_it():\n    n = solution.linked([1, 2])\n    assert n.value == 1 and n.next.value == 2\n"
    assert judge(tests, KINDS).passed is True
    assert judge(tests, KINDS.replace("xs[0]", "xs[-1]")).passed is False
