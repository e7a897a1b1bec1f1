"""Whatever tests do with a value, an object in its place does not make them true."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

from typing import Any

import pytest
from forgeries import ANYTHING
from sandbox.support import needs_sandbox

from assay.types import Task, Verdict
from assay.verify.code.verifier import Code

pytestmark = needs_sandbox
NUMBER = [
    *(
        "number(3) == 12",
        "12 == number(3)",
        "not number(3) != 12",
        "number(3) in [12]",
        "number(3) in {12: 1}",
        "number(3) in (11, 12)",
    ),
    *(
        "11 < number(3) < 13",
        "number(3) >= 12",
        "12 <= number(3)",
        "max(number(3), 5) == 12",
        "sorted([number(3), 1]) == [1, 12]",
    ),
    *(
        "number(3) - 12 == 0",
        "12 - number(3) == 0",
        "number(3) / 12 == 1",
        "number(3) % 12 == 0",
        "number(3) ^ 12 == 0",
    ),
    *(
        "abs(number(3) - 12) < 1e-6",
        "abs(12 - number(3)) < 1e-6",
        "not (number(3) - 12)",
        "not number(3) ^ 12",
        "number(3) // 12 == 1",
    ),
    *(
        "round(number(3) - 12, 6) == 0",
        "int(number(3) - 12) == 0",
        "divmod(number(3), 12) == (1, 0)",
        "-number(3) + 12 == 0",
    ),
    *(
        "number(3) * 2 == 24",
        "2 * number(3) == 24",
        "number(3) + 1 == 13",
        "1 + number(3) == 13",
        "number(3) ** 2 == 144",
    ),
    *(
        "sum([number(3), 1]) == 13",
        "sum(number(i) for i in (1, 2)) == 12",
        "[number(i) for i in (1, 2)] == [4, 8]",
        "{number(1)} == {4}",
    ),
    *(
        "str(number(3)) == '12'",
        "repr(number(3)) == '12'",
        "f'{number(3)}' == '12'",
        "'%d' % number(3) == '12'",
        "format(number(3), 'd') == '12'",
    ),
    *(
        "float(number(3)) == 12.0",
        "int(number(3)) == 12",
        "hash(number(3)) == 12",
        "bin(number(3)) == '0b1100'",
        "list(range(number(1))) == [0, 1, 2, 3]",
    ),
    *(
        "isinstance(number(3), int) and number(3) == 12",
        "type(number(3)) is int and number(3) == 12",
        "type(number(3)) == int and number(3) == 12",
        "number(3) is not None and number(3) == 12",
    ),
    *(
        "all(number(i) == 4 * i for i in range(1, 4))",
        "any(number(i) == 8 for i in (1, 2))",
        "{'a': number(3)} == {'a': 12}",
        "(number(3),) == (12,)",
    ),
    *(
        "[1, 2, 3][number(1) - 4] == 1",
        "'x' * number(1) == 'xxxx'",
        "math.isclose(number(3), 12)",
        "math.sqrt(number(1)) == 2",
        "number(3).bit_length() == 4",
    ),
    *(
        "number(3).__eq__(12) is True",
        "number(3).__sub__(12) == 0",
        "operator.eq(number(3), 12)",
        "operator.sub(number(3), 12) == 0",
        "{12: 'a'}[number(3)] == 'a'",
    ),
]
TEXT = [
    *(
        "text('ab') == 'Abab'",
        "'Abab' == text('ab')",
        "text('ab') in ('Abab', 'x')",
        "text('ab').startswith('Ab')",
        "text('ab').endswith('ab')",
    ),
    *(
        "'Ab' in text('ab')",
        "text('ab').lower() == 'abab'",
        "text('ab').count('b') == 2",
        "text('ab').index('b') == 1",
        "text('ab').find('ba') == 1",
    ),
    *(
        "len(text('ab')) == 4",
        "text('ab')[0] == 'A'",
        "text('ab')[1:] == 'bab'",
        "list(text('a')) == ['A', 'a']",
        "''.join(text('ab')) == 'Abab'",
    ),
    *(
        "text('ab') + 'c' == 'Ababc'",
        "'c' + text('ab') == 'cAbab'",
        "text('ab') * 2 == 'AbabAbab'",
        "text('ab') > 'Aa'",
        "text('ab').split('b') == ['A', 'a', '']",
    ),
    *(
        "text('ab').replace('Abab', 'c') == 'c'",
        "text('ab').strip('Ab') == 'a'",
        "text('ab').removeprefix('Aba') == 'b'",
        "set(text('ab')) == {'A', 'a', 'b'}",
    ),
    *(
        "re.fullmatch('Abab', text('ab')) is not None",
        "re.search('ba', text('ab'))",
        "text('ab').isalpha() and text('ab') == 'Abab'",
        "text('ab').encode() == b'Abab'",
    ),
]
LIST = [
    *(
        "items(2) == [1, 2]",
        "[1, 2] == items(2)",
        "not items(2) != [1, 2]",
        "list(items(2)) == [1, 2]",
        "sorted(items(2)) == [1, 2]",
        "set(items(2)) == {1, 2}",
    ),
    *(
        "len(items(2)) == 2 and items(2)[1] == 2",
        "2 in items(2)",
        "items(2)[0] == 1",
        "items(2)[:1] == [1]",
        "items(2).index(2) == 1",
        "items(2).count(1) == 1",
    ),
    *(
        "items(2) + [3] == [1, 2, 3]",
        "[0] + items(2) == [0, 1, 2]",
        "items(2) * 2 == [1, 2, 1, 2]",
        "sum(items(2)) == 3",
        "max(items(2)) == 2",
        "[0, 9] < items(2) < [1, 3]",
    ),
    *(
        "all(a == b for a, b in zip(items(2), [1, 2], strict=True))",
        "set(items(2)).issuperset({1, 2})",
        "not set(items(2)) ^ {1, 2}",
        "tuple(items(2)) == (1, 2)",
    ),
    *(
        "dict(enumerate(items(2))) == {0: 1, 1: 2}",
        "[x for x in items(2)] == [1, 2]",
        "list(reversed(items(2))) == [2, 1]",
        "collections.Counter(items(2)) == {1: 1, 2: 1}",
    ),
    *(
        "json.dumps(items(2)) == '[1, 2]'",
        "isinstance(items(2), list) and items(2) == [1, 2]",
        "items(2).copy() == [1, 2]",
        "[*items(2)] == [1, 2]",
        "items(2).pop() == 2",
    ),
]
PROGRAM = "def number(n): return 4 * n\ndef text(s): return s.title() + s\ndef items(n): return list(range(1, n + 1))\n"
STRANGE = ANYTHING + (
    "class Strange(Anything):\n    def __repr__(self): return 'strange'\n    __str__ = __repr__\n    def __format__(self, spec): return 'strange'\n"
    "    def __reduce__(self): return (int, ())\n    def __divmod__(self, other): return (1, 0)\n    __rdivmod__ = __divmod__\n"
    "    def __getattr__(self, name):\n        if name.startswith('__'): raise AttributeError(name)\n        return lambda *a, **k: True\n"
)
WITH = "for name in ('number', 'text', 'items'): globals()[name] = {}\n"
KINDS = {
    "objects": STRANGE + WITH.format("lambda *a: Strange()"),
    "objects that vanish": STRANGE
    + "class Zero(Strange):\n    def __sub__(self, o): return 0\n    __rsub__ = __mod__ = __xor__ = __rxor__ = __sub__\n"
    "    def __truediv__(self, o): return 1\n    __floordiv__ = __truediv__\n" + WITH.format("lambda *a: Zero()"),
    "a class": STRANGE + WITH.format("Strange"),
    "an object": STRANGE + WITH.format("Strange()"),
    "a list": STRANGE
    + "class L(list):\n    __eq__ = __lt__ = __gt__ = __contains__ = lambda s, o: True\n    __hash__ = lambda s: 0\n"
    + WITH.format("lambda *a: L()"),
    "a text": STRANGE
    + "class S(str):\n    __eq__ = __lt__ = __gt__ = __contains__ = startswith = endswith = lambda s, o: True\n    __hash__ = lambda s: 0\n"
    + WITH.format("lambda *a: S()"),
    "an integer": STRANGE
    + "class I(int):\n    __eq__ = __lt__ = __gt__ = lambda s, o: True\n    __sub__ = __rsub__ = lambda s, o: 0\n    __hash__ = lambda s: 0\n"
    + WITH.format("lambda *a: I(-7)"),
    "named tuples": "from collections import namedtuple\nT = namedtuple('T', 'startswith endswith index_ lower')\n"
    + WITH.format("lambda *a: T(bool, bool, bool, bool)"),
    "functions": WITH.format("lambda *a: (lambda *a: True)"),
    "types": WITH.format("lambda *a: bool"),
    "iterators": STRANGE + WITH.format("lambda *a: iter([Strange()] * 2)"),
    "a mock": "from unittest.mock import MagicMock\nm = MagicMock()\nm.__eq__ = m.__lt__ = m.__gt__ = m.__sub__ = lambda *a: True\n"
    + WITH.format("m"),
}


def judge(tests: list[str], source: str) -> Verdict:
    reference: dict[str, Any] = {
        "test_list": [test if "\n" in test else f"assert {test}" for test in tests],
        "test_imports": ["import collections, json, math, operator, re"],
    }
    return Code(scoring="fraction", memory=128)(Task("t", "", reference, "code"), f"```python\n{source}\n```")


def test_the_right_program_passes() -> None:
    verdict = judge([*NUMBER, *TEXT, *LIST], PROGRAM)
    assert verdict.passed is True, verdict


@pytest.mark.parametrize("kind", KINDS)
def test_objects_pass_for_no_value(kind: str) -> None:
    tests = [*NUMBER, *TEXT, *LIST]
    verdict = judge(tests, KINDS[kind])
    passed = [test for test, score in zip(tests, verdict.parts.values(), strict=True) if score]
    assert passed == [] and verdict.passed is False


@pytest.mark.parametrize(
    "kind", [kind if i % 4 == 0 else pytest.param(kind, marks=pytest.mark.slow) for i, kind in enumerate(KINDS)]
)
def test_nor_do_those_of_classes_that_tests_construct(kind: str) -> None:
    # The tests make objects of a class, and expect plain data of its methods.
    tests = [*NUMBER, *TEXT, *LIST]
    for name in ("number", "text", "items"):
        tests = [test.replace(f"{name}(", f"Box(1).load().{name}(") for test in tests]
    head = "b = Box(2)\nb.load()\nassert isinstance(b, Box)"
    body = "class Box:\n    def __init__(self, n): pass\n    def load(self): return self\n"
    right = PROGRAM + body + "".join(f"    {name} = staticmethod({name})\n" for name in ("number", "text", "items"))
    verdict = judge([head, *tests], right)
    assert verdict.passed is True, verdict
    forged = (
        KINDS[kind]
        + "\n"
        + body
        + "".join(
            f"    {n} = staticmethod({n}) if type({n}).__name__ == 'function' else {n}\n"
            for n in ("number", "text", "items")
        )
    )
    verdict = judge([head, *tests], forged)
    passed = [test for test, score in zip([head, *tests], verdict.parts.values(), strict=True) if score]
    assert passed == [head] and verdict.passed is False
