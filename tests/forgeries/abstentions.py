"""Ways to end, or to break, what judges."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

from .row import HALF, Forgery, unit

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
    "a base that a function gave": Forgery(
        ["class X(kind(3)): pass\nassert X() == 0"], "def kind(x): return int", "class A: pass\ndef kind(x): return A"
    ),
    "an index that no list has": Forgery(
        ["assert items(3)[:1] == [0]"], "def items(n): return [0] * n", "class items:\n    def __init__(self, n): pass"
    ),
    "an object of the tests' given to one of its own": Forgery(
        ["class C: pass\nr = items(1)\nr.append(C())\nassert len(r) == 2"],
        "def items(n): return [0] * n",
        "class A:\n    def append(self, x): pass\ndef items(n): return A()",
    ),
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
