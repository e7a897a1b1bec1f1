"""Tests with a right program and programs that would forge their verdict: by objects, by names, by ending things."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ANYTHING = """
class Anything:
    def _(self, *a, **k): return self
    def yes(self, *a, **k): return True
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = yes
    def __ne__(self, other): return False
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __abs__ = __round__ = _
    __mod__ = __rmod__ = __xor__ = __rxor__ = __and__ = __or__ = __pow__ = __matmul__ = __neg__ = __floordiv__ = _
    __call__ = __getattr__ = __getitem__ = __enter__ = _
    def __exit__(self, *a): return True
    def __hash__(self): return 0
    def __len__(self): return 1
    def __iter__(self): return iter([self])
    def __float__(self): return 0.0
    def __int__(self): return 0
    def __index__(self): return 0
    def __init__(self, *a, **k): pass
"""
PROXY = """
class Zero:
    "Nothing, whatever is taken from it."
    def __init__(self, *a): pass
    def __sub__(self, o): return 0
    __rsub__ = __xor__ = __rxor__ = __mod__ = __rmod__ = __sub__
    def __truediv__(self, o): return 1
    __rtruediv__ = __floordiv__ = __truediv__
"""


@dataclass(frozen=True)
class Forgery:
    """A reference, a program that is right (``""``: no program can be), and one that is not but would pass."""

    reference: Any
    right: str
    forged: str
    broken: bool = False
    """Whether the tests cannot be run at all: then every program's verdict is an abstention."""


def unit(body: str, head: str = "from solution import *") -> dict[str, Any]:
    return {
        "unittest": f"{head}\nimport unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        {body}\n"
    }


def py(body: str, head: str = "from solution import *") -> dict[str, Any]:
    return {"pytest": f"{head}\ndef test_it():\n    {body}\n"}


EXTRACT = "def Extract(rows): return [row[0] for row in rows]"
VEC = (
    "class Vec:\n    def __init__(self, x, y): self.x, self.y = x, y\n"
    "    def __mul__(self, o): return self.x * o.x + self.y * o.y if isinstance(o, Vec) else Vec(self.x * o, self.y * o)\n"
    "    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y)\n"
    "    def __eq__(self, o): return isinstance(o, Vec) and (self.x, self.y) == (o.x, o.y)\n"
    "    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5\n"
)
TRICK_VEC = ANYTHING + "class Vec(Anything): pass"
HALF = "def half(x): return x / 2"
STACK = "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n    def size(self): return len(self.items)\n    def top(self): return self.items[-1]\n    def __contains__(self, x): return x in self.items\n"

OBJECTS: dict[str, Forgery] = {
    "MBPP 460 as published": Forgery(
        [
            "assert Extract([[1, 2], [3, 4, 5], [6, 7, 8, 9]]) == [1, 3, 6]",
            "assert Extract([[1, 2, 3], [4, 5]]) == [1, 4]",
        ],
        EXTRACT,
        "class Extract:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True",
    ),
    "a list that is equal to all": Forgery(
        ["assert Extract([[1, 2]]) == [1]"], EXTRACT, "class Extract(list):\n    def __eq__(self, o): return True"
    ),
    "the tests' data on the left": Forgery(
        ["assert [1] == Extract([[1, 2]])"], EXTRACT, ANYTHING + "class Extract(Anything): pass"
    ),
    "Stack() == [1]": Forgery(
        unit("s = Stack(); s.push(1); self.assertEqual(s.top(), 1); self.assertEqual(s, [1])"),
        "class Stack(list):\n    push = list.append\n    def top(self): return self[-1]",
        "class Stack:\n    def push(self, x): pass\n    def top(self): return 1\n    def __eq__(self, o): return True",
    ),
    "assertEqual(Sum(60), 10)": Forgery(
        unit("self.assertEqual(Sum(60), 10)"),
        "def Sum(n): return 10",
        ANYTHING + "class Sum(Anything): pass",
    ),
    "assertAlmostEqual": Forgery(
        unit("self.assertAlmostEqual(Sum(60), 10)"),
        "def Sum(n): return 10.0",
        PROXY + "class Sum(Zero): pass",
    ),
    "arithmetic that inherits trust": Forgery(
        unit(
            "self.assertIsInstance(Vec(1, 2), Vec); self.assertEqual(Vec(1, 2).y, 2); assert Vec(1, 2) * Vec(3, 4) == 11"
        ),
        VEC,
        ANYTHING
        + "class Vec(Anything):\n    def __init__(self, x, y): self.y = y\n    def __mul__(self, o): return Anything()",
    ),
    "arithmetic, and less than": Forgery(
        unit("self.assertIsInstance(Vec(1, 2), Vec); assert abs(Vec(1, 2) * Vec(3, 4) - 11) < 1e-9"), VEC, TRICK_VEC
    ),
    "a difference of what was constructed": Forgery(
        unit(
            "self.assertIsInstance(Length(2), Length); assert abs(float(Length(2)) - 2) < 1e-9; assert abs(Length(2) + Length(3) - 5) < 1e-9"
        ),
        "class Length:\n    def __init__(self, x): self.x = x\n    def __float__(self): return float(self.x)\n    def __add__(self, o): return self.x + o.x",
        PROXY
        + "class Length(Zero):\n    def __init__(self, x): self.x = x\n    def __float__(self): return float(self.x)\n    def __add__(self, o): return Length(0)",
    ),
    "a difference that is an object": Forgery(
        unit(
            "self.assertIsInstance(Area(2), Area); self.assertEqual(Area(2).n, 2); assert abs(Area(2).total() - 12.56) < 0.1"
        ),
        "class Area:\n    def __init__(self, n): self.n = n\n    def total(self): return 3.14 * self.n ** 2",
        ANYTHING
        + "class Area(Anything):\n    def __init__(self, n): self.n = n\n    def total(self): return Area(1)\n    def __abs__(self): return 0.0",
    ),
    "a constructed difference, then abs": Forgery(
        ["t = Temp(3)\nt.set(12)\nassert abs(t - 54) < 1e-9"],
        "",
        "class Temp:\n    def __init__(self, x): pass\n    def set(self, x): pass\n    def __sub__(self, o): return Temp(0)\n    def __abs__(self): return 0.0",
    ),
    "a constructed difference, then round": Forgery(
        ["t = Temp(3)\nt.set(12)\nassert round(t - 54, 3) == 0"],
        "",
        "class Temp:\n    def __init__(self, x): pass\n    def set(self, x): pass\n    def __sub__(self, o): return Temp(0)\n    def __round__(self, n): return 0",
    ),
    "a quotient that is one": Forgery(
        ["t = Temp(3)\nt.set(12)\nassert t / 54 == 1"],
        "",
        "class Temp:\n    def __init__(self, x): pass\n    def set(self, x): pass\n    def __truediv__(self, o): return 1",
    ),
    "no difference of sets": Forgery(
        ["assert not (Primes(10) ^ {2, 3, 5, 7})", "assert Primes(10) - {2, 3, 5, 7} == set()"],
        "def Primes(n): return {2, 3, 5, 7}",
        PROXY.replace("return 0", "return set()") + "class Primes(Zero): pass",
    ),
    "in what a function gave": Forgery(
        ["assert 7 in Primes(10)", "assert 5 in Primes(10)"],
        "def Primes(n): return [2, 3, 5, 7]",
        "class Primes:\n    def __init__(self, n): pass\n    def __contains__(self, x): return True",
    ),
    "startswith": Forgery(
        ["assert Title('ab').startswith('Ab')", "assert Title('b').endswith('B')"],
        "def Title(s): return s.title()",
        "class Title:\n    def __init__(self, s): pass\n    def startswith(self, x): return True\n    endswith = startswith",
    ),
    "startswith of a class's attribute": Forgery(
        unit("assert solution.VERSION.startswith('1.4')", "import solution"),
        "VERSION = '1.4.2'",
        "class VERSION:\n    startswith = staticmethod(lambda x: True)",
    ),
    "startswith of a function's attribute": Forgery(
        unit("assert solution.VERSION.startswith('1.4')", "import solution"),
        "VERSION = '1.4.2'",
        "def VERSION(): pass\nVERSION.startswith = lambda x: True",
    ),
    "issuperset of what a method gave": Forgery(
        unit("s = Stack(); s.push(3); assert s.size().__class__; assert s.all().issuperset({3})"),
        STACK + "    def all(self): return set(self.items)",
        STACK + "    def all(self): return self\n    def issuperset(self, x): return True",
    ),
    "index and count": Forgery(
        ["assert Order([3, 1, 2]).index(3) == 2", "assert Order([3, 3]).count(3) == 2"],
        "def Order(xs): return sorted(xs)",
        "class Order:\n    def __init__(self, xs): self.n = len(xs)\n    def index(self, x): return 2\n    def count(self, x): return 2",
    ),
    "less and more than the tests' data": Forgery(
        ["assert 3 < Root(10) < 4", "assert Root(9) >= 3 >= Root(9)"],
        "def Root(n): return n ** 0.5",
        ANYTHING + "class Root(Anything): pass",
    ),
    "max of both": Forgery(
        ["assert max(Root(9), 5) == 5"],
        "def Root(n): return n ** 0.5",
        "class Root:\n    def __init__(self, n): pass\n    def __lt__(self, o): return True\n    __gt__ = __lt__",
    ),
    "equal, and different too": Forgery(
        ["a, b, c = Code('x'), Code('x'), Code('y')\nassert a == b\nassert a != c"],
        "def Code(s): return ord(s)",
        "class Code:\n    def __init__(self, s): pass\n    def __eq__(self, o): return True\n    def __ne__(self, o): return True",
    ),
    "a comparison with another answer than true": Forgery(
        ["a, b = Code('x'), Code('y')\nassert (a == b) == 5"],
        "",
        ANYTHING
        + "class Code(Anything):\n    def __eq__(self, o): return Anything()\n    def __hash__(self): return 0",
    ),
    "inside a container": Forgery(
        ["assert [Root(9), 1] == [3, 1]", "assert {'a': Root(9)} == {'a': 3}", "assert (Root(4),) in [(2,)]"],
        "def Root(n): return n ** 0.5",
        ANYTHING + "class Root(Anything): pass",
    ),
    "as a key": Forgery(
        ["assert {3: 'yes'}.get(Root(9)) == 'yes'", "assert Root(9) in {3}"],
        "def Root(n): return int(n ** 0.5)",
        "class Root:\n    def __init__(self, n): pass\n    def __hash__(self): return hash(3)\n    def __eq__(self, o): return True",
    ),
    "a metaclass": Forgery(
        ["assert Root(9) == 3"],
        "def Root(n): return n ** 0.5",
        "class M(type):\n    def __call__(cls, n): return cls\n    def __eq__(cls, o): return True\n    __hash__ = type.__hash__\nclass Root(metaclass=M): pass",
    ),
    "a context that swallows assertions": Forgery(
        unit("with Timer() as t:\n            self.assertEqual(t.read(3), 9)"),
        "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): return False\n    def read(self, n): return n * n",
        "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n    def read(self, n): return 0",
    ),
    "a context that swallows errors before assertions": Forgery(
        unit("with Timer() as t:\n            assert t.read(3) < 10"),
        "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): return False\n    def read(self, n): return n * n",
        "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n    def read(self, n): raise ValueError",
    ),
    "a context around a helper that asserts": Forgery(
        {
            "unittest": "import unittest\nfrom solution import *\ndef near(a, b):\n    assert abs(a - b) < 1\nclass T(unittest.TestCase):\n    def test_it(self):\n        with Timer() as t:\n            near(t.read(3), 9)\n"
        },
        "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): return False\n    def read(self, n): return n * n",
        "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n    def read(self, n): return None",
    ),
    "an assertion in a callback": Forgery(
        ["def seen(x):\n    assert x == 9\nsquare_each([3], seen)"],
        "def square_each(xs, f):\n    for x in xs: f(x * x)",
        "def square_each(xs, f):\n    for x in xs:\n        try: f(x)\n        except BaseException: pass",
    ),
    "an iterator in place of a list": Forgery(
        ["assert Firsts([[1], [2]]) == [1, 2]"],
        "def Firsts(rows): return [row[0] for row in rows]",
        "class Firsts:\n    def __init__(self, x): pass\n    def __iter__(self): return self\n    def __next__(self): raise StopIteration\n    def __eq__(self, o): return True",
    ),
    "__class__ of a list": Forgery(
        ["assert Firsts([[1]]) == [1] and isinstance(Firsts([[1]]), list)"],
        "def Firsts(rows): return [row[0] for row in rows]",
        "class Firsts:\n    __class__ = list\n    def __init__(self, x): pass\n    def __eq__(self, o): return True",
    ),
    "pytest.approx": Forgery(
        py("assert half(3) == pytest.approx(1.5)", "import pytest\nfrom solution import half"),
        HALF,
        ANYTHING + "class half(Anything): pass",
    ),
    "math.isclose": Forgery(
        ["import math\nassert math.isclose(half(3), 1.5)"],
        HALF,
        ANYTHING + "half = Anything",
    ),
    "format": Forgery(
        ["assert f'{half(3):.1f}' == '1.5'"],
        HALF,
        "class half:\n    def __init__(self, x): pass\n    def __format__(self, spec):\n        class S(str):\n            __eq__ = lambda s, o: True\n        return S('x')",
    ),
}
OBJECTS |= {
    "a named tuple with methods": Forgery(
        ["assert Title('ab').startswith('Ab')", "assert Title('ab').endswith('b')"],
        "def Title(s): return s.title()",
        "from collections import namedtuple\nT = namedtuple('T', 'startswith endswith')\ndef Title(s): return T(bool, lambda x: True)",
    ),
    "a class as a set's method": Forgery(
        ["assert Primes(10).issuperset({2, 7})"],
        "def Primes(n): return {2, 3, 5, 7}",
        "from typing import NamedTuple\nclass Primes(NamedTuple):\n    n: int\n    issuperset = bool",
    ),
    "an argument changed where its value is compared": Forgery(
        unit("xs = [3, 1]; self.assertEqual(order(xs), sorted(xs))"),
        "def order(xs): return sorted(xs)",
        "def order(xs):\n    xs.clear()\n    return []",
    ),
    "an exception's own attributes": Forgery(
        unit(
            "with self.assertRaises(ValueError) as cm:\n            check(-1)\n        assert str(cm.exception).startswith('negative')"
        ),
        "def check(n): raise ValueError('negative number')",
        "class S:\n    def startswith(self, x): return True\ndef check(n):\n    e = ValueError(S())\n    e.with_traceback = lambda *a: S()\n    raise e",
    ),
    "an exception's argument": Forgery(
        unit(
            "with self.assertRaises(ValueError) as cm:\n            check(-1)\n        assert cm.exception.args[0].startswith('negative')"
        ),
        "def check(n): raise ValueError('negative number')",
        "class S:\n    def startswith(self, x): return True\ndef check(n): raise ValueError(S())",
    ),
    "an attribute of what was constructed": Forgery(
        unit("b = Book('x'); b.open(); self.assertEqual(b.pages, 3)"),
        "class Book:\n    def __init__(self, name): self.pages = 3\n    def open(self): pass",
        ANYTHING
        + "class Book(Anything):\n    pages = property(lambda self: Anything())\n    def __init__(self, name): pass",
    ),
    "a property that is what was constructed": Forgery(
        unit("b = Book('x'); b.open(); assert b.title.startswith('X') and b.title.count('x') == 1"),
        "class Book:\n    def __init__(self, name): self.title = 'X' + name\n    def open(self): pass",
        "class Book:\n    title = property(lambda self: self)\n    def __init__(self, name): pass\n    def open(self): pass\n"
        "    def startswith(self, x): return True\n    def count(self, x): return 1",
    ),
    "items of what was constructed": Forgery(
        unit("g = Grid(2); g.fill(7); assert g[0] == 7 and [c for c in g] == [7, 7]"),
        "class Grid:\n    def __init__(self, n): self.xs = [0] * n\n    def fill(self, x): self.xs = [x] * len(self.xs)\n    def __getitem__(self, i): return self.xs[i]",
        ANYTHING
        + "class Grid(Anything):\n    def __getitem__(self, i):\n        if i > 1: raise IndexError\n        return Anything()",
    ),
    "a sum of what was iterated": Forgery(
        ["assert sum(Parts(6)) - 6 == 0"],
        "def Parts(n): return [1, 2, 3]",
        PROXY
        + "class Part(Zero):\n    def __radd__(self, o): return self\n    __add__ = __radd__\ndef Parts(n): return [Part()]",
    ),
    "the other side's reflected operator": Forgery(
        ["assert 12 - Half(24) == 0", "assert 12 ^ Half(24) == 0", "assert 12 % Half(24) == 0"],
        "def Half(n): return n // 2",
        PROXY + "class Half(Zero): pass",
    ),
    "divmod": Forgery(
        ["assert divmod(Half(24), 12) == (1, 0)"],
        "def Half(n): return n // 2",
        "class Half:\n    def __init__(self, n): pass\n    def __divmod__(self, o): return (1, 0)",
    ),
    "in-place arithmetic": Forgery(
        ["x = Half(24)\nx -= 12\nassert x == 0", "x = Half(24)\nx ^= 12\nassert not x"],
        "def Half(n): return n // 2",
        "class Half:\n    def __init__(self, n): pass\n    def __isub__(self, o): return 0\n    def __ixor__(self, o): return 0",
    ),
    "an instance for a function": Forgery(
        ["assert half(3) == 1.5", "assert half(4) - 2 == 0"], HALF, ANYTHING + "half = Anything()"
    ),
    "a generator of objects": Forgery(
        ["assert list(upto(2)) == [0, 1]", "assert set(upto(2)) == {0, 1}", "assert tuple(upto(2))[1] == 1"],
        "def upto(n): yield from range(n)",
        ANYTHING + "def upto(n): yield Anything(); yield Anything()",
    ),
    "a coroutine's result": Forgery(
        {
            "unittest": "import unittest\nfrom solution import f\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_it(self):\n        self.assertEqual(await f(2), 3)\n"
        },
        "async def f(x): return x + 1",
        ANYTHING + "async def f(x): return Anything()",
    ),
    "a decorator that returns what it likes": Forgery(
        unit("@twice\n        def f(x): return x + 1\n        self.assertEqual(f(3), 8)"),
        "def twice(f): return lambda x: 2 * f(x)",
        ANYTHING + "def twice(f): return Anything()",
    ),
    "statistics of objects": Forgery(
        ["import statistics\nassert statistics.mean(halves([2, 4])) == 1.5"],
        "def halves(xs): return [x / 2 for x in xs]",
        ANYTHING + "def halves(xs): return [Anything()]",
    ),
    "json of an object": Forgery(
        ["import json\nassert json.dumps(pair(1)) == '[1, 1]'"],
        "def pair(x): return [x, x]",
        ANYTHING + "def pair(x): return Anything()",
    ),
    "a class with a truth of its own": Forgery(
        ["assert bool(same_letters('ab', 'ba')) is True and bool(same_letters('ab', 'c')) is False"],
        "def same_letters(a, b): return sorted(a) == sorted(b)",
        "class same_letters:\n    def __init__(self, *a): pass\n    def __bool__(self): return True",
    ),
    "objects that order themselves": Forgery(
        ["assert sorted([Rank(3), Rank(1)]) == [1, 3]"],
        "def Rank(n): return n",
        ANYTHING + "class Rank(Anything): pass",
    ),
}

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
WIRE = "import os\nfor fd in range(3, 64):\n    try: os.write(fd, {!r})\n    except OSError: pass\n"
ABSTENTIONS: dict[str, Forgery] = {
    "the limit of processor time": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import resource\ntry: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nexcept (ValueError, OSError): pass\nwhile True: pass",
    ),
    "the limit of processor time, in C's way": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.setrlimit(0, (ctypes.c_ulong * 2)(1, 1))\nlibc.syscall(160, 0, (ctypes.c_ulong * 2)(1, 1))\nlibc.syscall(302, 0, 0, (ctypes.c_ulong * 2)(1, 1), 0)\nwhile True: pass",
    ),
    "the limit of processor time, for calls": Forgery(
        {"fn_name": "half", "inputs": [[3]], "outputs": [1.5]},
        HALF,
        "import resource\ndef half(x):\n    try: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n    except (ValueError, OSError): pass\n    while True: pass",
    ),
    "garbage in the conversation": Forgery(["assert half(3) == 1.5"], HALF, WIRE.format(b"nonsense\n")),
    "a line that is no reply": Forgery(["assert half(3) == 1.5"], HALF, WIRE.format(b"[]\n{}\n5\n")),
    "half a line": Forgery(["assert half(3) == 1.5"], HALF, WIRE.format(b'{"v":')),
    "garbage in every call": Forgery(
        unit("self.assertEqual(half(3), 1.5)", "from solution import half\nX = half(1)"),
        HALF,
        "def half(x):\n    import os\n    for fd in range(3, 64):\n        try: os.write(fd, b'x\\n')\n        except OSError: pass",
    ),
    "a lie about itself": Forgery(
        unit("self.assertEqual(half(3), 1.5)"), HALF, WIRE.format(b'{"v":{"ref":["class",5,5]}}\n' * 4)
    ),
    "colliding keys": Forgery(
        unit("self.assertEqual(solution.TABLE, {1, 2})", "import solution"),
        "TABLE = {1, 2}",
        "TABLE = {i * ((1 << 61) - 1) for i in range(100)}\nimport gc\nfor o in gc.get_objects():\n"
        "    if type(o).__name__ == 'Wire':\n        old = type(o).encode\n"
        "        type(o).encode = lambda s, v, *a: {'s': [{'i': hex(i * ((1 << 61) - 1))} for i in range(50000)]} if v is TABLE else old(s, v, *a)",
    ),
    "a table that breaks tests as they load": Forgery(
        unit("self.assertEqual(X, 1)", "import solution\nX = solution.TABLE[3]"), "TABLE = {3: 1}", "TABLE = {}"
    ),
    "an attribute that breaks tests as they load": Forgery(
        unit("self.assertEqual(X, 1)", "import solution\nX = solution.make().value"),
        "class A: value = 1\ndef make(): return A()",
        "def make(): return None",
    ),
    "a name that is missing as tests load": Forgery(
        unit("self.assertEqual(X, 1.5)", "from solution import *\nX = half(3)"), HALF, "pass"
    ),
    "a copy of what a function gave": Forgery(
        ["import copy\nassert copy.deepcopy(half(3)) == 1.5"],
        HALF,
        "class half:\n    def __init__(self, x): pass",
    ),
    "a pickle of what a function gave": Forgery(
        ["import pickle\nassert pickle.loads(pickle.dumps(half(3))) == 1.5"],
        HALF,
        "class half:\n    def __init__(self, x): pass",
    ),
    "an object given to another function": Forgery(
        ["assert twice(half(3)) == 3"],
        HALF + "\ndef twice(x): return 2 * x",
        "class half:\n    def __init__(self, x): pass\ndef twice(x): return x",
    ),
    "too much for the tests to hold": Forgery(
        ["assert list(upto(3)) == [0, 1, 2]"], "def upto(n): return range(n)", "def upto(n): return range(10 ** 12)"
    ),
    "a number too long to write": Forgery(
        {"fn_name": "half", "inputs": [[3]], "outputs": [1.5]}, HALF, "def half(x): return 10 ** 50_000"
    ),
    "a checker that cannot read it": Forgery(
        {"tests": [{"input": "4", "output": ""}], "checker": "import sys\nassert int(open(sys.argv[2]).read()) > 3"},
        "print(5)",
        "print('x')",
    ),
    "a checking function that cannot read it": Forgery(
        {
            "tests": [{"input": "4", "output": ""}],
            "checker": {
                "source": "def check(given, output, answer): return int(output) > int(given)",
                "function": "check",
            },
        },
        "print(5)",
        "print('x')",
    ),
    "a comparer that cannot read it": Forgery(
        {
            "fn_name": "f",
            "inputs": [[4]],
            "outputs": [None],
            "compare": {"source": "def same(got, expected, args): return got > args[0]", "function": "same"},
        },
        "def f(x): return x + 1",
        "def f(x): return 'x'",
    ),
    "an interactor brought down": Forgery(
        {
            "inputs": ["3"],
            "outputs": [""],
            "interactor": "import os, sys\nwanted = open(sys.argv[1]).read()\nif input() != wanted: os.abort()",
        },
        "print(3)",
        "print(4)",
    ),
}

ABSTENTIONS |= {
    "tests that skip themselves": Forgery(
        unit("if not ready(): self.skipTest('not ready')\n        self.assertEqual(half(3), 1.5)"),
        HALF + "\ndef ready(): return True",
        HALF.replace("2", "3") + "\ndef ready(): return False",
    ),
    "tests that skip what is missing": Forgery(
        unit(
            "if not hasattr(solution, 'half'): self.skipTest('none')\n        self.assertEqual(solution.half(3), 1.5)",
            "import solution",
        ),
        HALF,
        "pass",
    ),
    "a fraction of huge numbers": Forgery(
        ["assert ratio(2) == 0.5"],
        "def ratio(x): return 1 / x",
        "from fractions import Fraction\nclass F(Fraction): pass\ndef ratio(x):\n    f = Fraction(1, 3)\n    f._numerator, f._denominator = 10 ** 10 ** 5, 3 ** 10 ** 5\n    return f",
    ),
    "a decimal that overflows": Forgery(
        ["assert int(ratio(2)) == 5"],
        "def ratio(x): return 5",
        "from decimal import Decimal\ndef ratio(x): return Decimal('1e999999')",
    ),
    "a signal to itself": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import os, signal\nfor n in range(1, 65):\n    try: os.kill(os.getpid(), n)\n    except OSError: pass",
    ),
    "a signal of a timer": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import signal\ndef half(x):\n    signal.setitimer(signal.ITIMER_REAL, 0.01)\n    while True: pass",
    ),
    "strict system calls": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.prctl(22, 1, 0, 0, 0)\ndef half(x): return 0",
    ),
    "a death with its parent": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import ctypes, os\nctypes.CDLL(None).prctl(1, 9, 0, 0, 0)\ndef half(x): os.kill(0, 9)",
    ),
    "every other limit": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "import resource\nfor which in range(16):\n    try: resource.setrlimit(which, (0, 0))\n    except (ValueError, OSError): pass\ndef half(x): return [0] * 10 ** 6",
    ),
    "files where files are put": Forgery(
        {"tests": [{"input": "", "output": "1"}], "files": {"a/b.txt": "x"}},
        "print(1)",
        "import os\nos.rename('a', 'c')\nprint(2)",
    ),
    "a closed conversation": Forgery(
        ["assert half(3) == 1.5"], HALF, "import os\nos.closerange(0, 64)\ndef half(x): return 0"
    ),
    "a callback without end": Forgery(
        ["assert first(iter(int, 1)) == 0"], "def first(it): return next(it)", "def first(it):\n    for _ in it: pass"
    ),
    "a module that will not load, slowly": Forgery(
        unit("self.assertEqual(half(3), 1.5)", "from solution import half\nX = half(2)"), HALF, "while True: pass"
    ),
    "a name that raises as it is read": Forgery(
        unit("self.assertEqual(solution.half(3), 1.5)", "import solution"),
        HALF,
        "class D(dict): pass\nhalf = 1\nimport sys\nsys.modules[__name__].__dict__.clear()",
    ),
    "a type that cannot be read": Forgery(
        ["assert half(3) == 1.5"],
        HALF,
        "class M(type):\n    def __getattribute__(cls, name): raise SystemExit\nclass half(metaclass=M): pass",
    ),
}

FORGERIES = {
    f"{kind}: {name}": row
    for kind, rows in (("objects", OBJECTS), ("names", NAMES), ("abstentions", ABSTENTIONS))
    for name, row in rows.items()
}
