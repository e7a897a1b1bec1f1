"""Objects in place of values."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

from .row import ANYTHING, HALF, PROXY, Forgery, py, unit

EXTRACT = "def Extract(rows): return [row[0] for row in rows]"
VEC = (
    "class Vec:\n    def __init__(self, x, y): self.x, self.y = x, y\n"
    "    def __mul__(self, o): return self.x * o.x + self.y * o.y if isinstance(o, Vec) else Vec(self.x * o, self.y * o)\n"
    "    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y)\n"
    "    def __eq__(self, o): return isinstance(o, Vec) and (self.x, self.y) == (o.x, o.y)\n"
    "    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5\n"
)
TRICK_VEC = ANYTHING + "class Vec(Anything): pass"
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
