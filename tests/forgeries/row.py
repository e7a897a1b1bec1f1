"""What rows of forgeries are made of."""

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


HALF = "def half(x): return x / 2"
