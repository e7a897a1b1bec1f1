"""A unit that contradicts the question is wrong; measured values, sets with holes, scaled matrices and pieces."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task
from assay.verify.math.equal.measured import measured, same_measured
from assay.verify.math.expressions.units import lookup
from assay.verify.math.question.units_asked import expected, mentioned

MATH = build("verify", {"name": "math", "symbolic": False})


def passed(question: str, reference: str, response: str) -> bool | None:
    return MATH(Task("t", question, reference, "math"), response).passed


JACKET = "A jacket costs £1100. It is reduced by 40%. What is the new price?"
SOIL = "40 kg of soil contain 800 mg of lead. What is the mass fraction of lead in ppm?"
ROOM = "A room is 3 m by 4 m. What is its area?"
WORK = "Tom works 3 hours on Monday and 2 hours on Tuesday. How long does he work?"
INVERSE = "\\begin{pmatrix} 1 & -1 \\\\ -2/5 & 1/5 \\end{pmatrix}"


@pytest.mark.parametrize(
    ("question", "reference", "right", "wrong"),
    [
        ("Convert 10.1 hours to minutes.", "606", ["606 min", "606"], ["606 hours", "10.1 hours"]),
        ("How many millilitres are 8.94 litres?", "8940", ["8940 ml"], ["8940 litres"]),
        ("Convert 0.96 square metres to square centimetres.", "9600", ["9600 cm^2"], ["9600 square metres"]),
        (JACKET, "660", ["£660", "660 pounds"], ["660 pence", "$660", "660 euros"]),
        ("An apple costs $11. It is reduced by 40%. New price?", "6.60", ["660 cents", "$6.60"], ["6.60 cents"]),
        ("How much is it, to the nearest cent?", "5.25", ["$5.25"], []),
        (SOIL, "20", ["20 ppm", "20 parts per million"], ["20 ppb", "20 parts per billion"]),
        (ROOM, "12", ["12 m^2", "12"], ["12 m", "12 cm^2"]),
        (WORK, "5", ["5 hours", "300 minutes"], ["5 minutes"]),
        ("Tom has $5. An apple costs $1. How many apples can he buy?", "5", ["5 apples"], ["$5"]),
        (
            "?",
            "(88.6 ± 0.7) cm",
            ["\\boxed{88.6 +/- 0.7 cm}", "\\boxed{88.6 cm ± 0.7 cm}", "88.6(7) cm"],
            ["88.6 cm", "88.6 ± 0.8 cm"],
        ),
        ("?", "x \\ge -6, x \\ne 3", ["[-6,3)\\cup(3,\\infty)"], ["x \\ge -6", "[-6, \\infty)"]),
        ("Write 41/37 as a repeating decimal.", "1.(108)", ["1.108108108...", "1.\\overline{108}"], ["1.108108108"]),
        ("?", INVERSE, ["\\frac{1}{5}\\begin{pmatrix} 5 & -5 \\\\ -2 & 1 \\end{pmatrix}"], ["1/5 [[5,-5],[-2,2]]"]),
        ("Next three terms?", "31, 42, 55", ["31 → 42 → 55"], ["31 → 55 → 42"]),
        ("?", "16.279", ["16.279 (to three decimal places)"], ["16.28 (2 d.p.)"]),
        ("?", "(x - 1)^2 + (y + 8)^2 = 81", ["81 = (x - 1)^2 + (y + 8)^2"], ["81 = (x - 1)^2 + (y - 8)^2"]),
    ],
)
def test_right_and_wrong(question, reference, right, wrong):
    assert [r for r in right if passed(question, reference, r) is not True] == []
    assert [w for w in wrong if passed(question, reference, w) is not False] == []


def test_units_of_a_question():
    km, hour = lookup("km"), lookup("hour")
    assert {km, hour} <= mentioned("A car drives at 60 km/h for 2 hours.")
    assert mentioned("Find x.") == frozenset()
    assert expected(lookup("m"), "A rope of 3 km is cut.") == Fraction(1, 1000)
    assert expected(lookup("euro"), "It costs $5.") is None
    assert expected(lookup("kg"), "Find x.") == 1


@given(st.integers(-999, 999), st.integers(1, 99), st.sampled_from(["cm", "kg", "s", ""]))
def test_measured_values_are_read_in_every_spelling(value, error, unit):
    v, e = f"{value / 10:.1f}", f"{error / 10:.1f}"
    wanted = (Fraction(value, 10), Fraction(error, 10))
    spellings = [f"{v} ± {e} {unit}", f"({v} +/- {e}) {unit}", f"{v} {unit} \\pm {e} {unit}", f"${v} \\pm {e}$ {unit}"]
    for text in spellings:
        found = measured(text)
        assert found is not None and found[:2] == wanted, text
        assert same_measured(spellings[0], text)
    assert not same_measured(spellings[0], f"{v} ± {(error + 1) / 10:.1f} {unit}")


@given(st.text(max_size=60))
def test_any_text(text):
    measured(text)
    mentioned(text)
    assert passed("?", "7 ± 2", f"{text} 7") in (True, False)
