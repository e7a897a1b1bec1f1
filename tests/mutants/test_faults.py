"""Which places of a module get a fault, and which say nothing that a test could see."""

from __future__ import annotations

import pytest

from mutants.faults import faults, fingerprint

SOURCE = '''
"""A module of 12 words."""
LIMIT: int = 3
ONE = {"size": 1}
ARM = {"options": {**ONE, "depth": 2}}
BOTH = 4
LOST = 5


@implements("S001", essentials={"it is": "test_it"}, choices=("a word",))
def f(x: int) -> bool:
    """At most 7."""
    if x > BOTH:
        raise ValueError(f"{x + 8} is too much")
    return x < LIMIT


claims(Claim(text="", arms={"a": ARM, "b": {"n": 6}}, options={"n": BOTH}))
'''


def test_what_claims_alone_read_is_spared() -> None:
    """ONE is of ARM, and ARM of the claim; BOTH is the function's too, and LOST is nobody's."""
    found = [str(fault) for fault in faults(SOURCE)]
    assert found == [
        "line 3: 3 -> 4",
        "line 6: 4 -> 5",
        "line 7: 5 -> 6",
        "line 13: x > BOTH -> x >= BOTH",
        "line 13: x > BOTH -> x <= BOTH",
        "line 15: x < LIMIT -> x <= LIMIT",
        "line 15: x < LIMIT -> x >= LIMIT",
    ]
    assert [list(fault.lines) for fault in faults(SOURCE)[:4]] == [[], [], [], [13]]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("A module of 12 words", "A module of more words", True),
        ('    """At most 7."""\n', "    # at most 7\n", True),
        ('"depth": 2', '"depth": 3', True),
        ('text=""', 'text="other"', True),
        ("a word", "a word more", True),
        ('"S001"', '"S002"', False),
        ("BOTH = 4", "BOTH = 5", False),
        ("x + 8", "x + 9", False),
        ("return x < LIMIT", "return x > LIMIT", False),
    ],
)
def test_a_count_holds_for_code_that_computes_the_same(before: str, after: str, same: bool) -> None:
    assert before in SOURCE
    assert (fingerprint([SOURCE.replace(before, after)]) == fingerprint([SOURCE])) is same
