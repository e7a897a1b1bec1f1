"""Gold answers of further families, worked out from the text of their questions alone, by substitution."""

from __future__ import annotations

import ast
import math
import re
from fractions import Fraction
from typing import Any

from assay.audit.case import Case
from assay.audit.generate import cases

EACH = 60


def right(name: str) -> list[Case]:
    return [c for c in cases(4, EACH, [name]) if c.label]


def gold(c: Case) -> Any:
    return ast.literal_eval(c.meta["gold"])


def found(pattern: str, c: Case) -> tuple[str, ...]:
    match = re.search(pattern, c.question)
    assert match is not None, c.question
    return match.groups()


def number(text: str) -> int:
    return int(text.replace(" ", ""))


def test_inequalities_hold_on_the_gold_set_alone() -> None:
    for c in right("absolute_inequality"):
        shift, sign, bound = found(r"\|x ([+-] \d+)\| (\S+) (\d+)", c)
        low, high, closed, outside = gold(c)
        for x in (Fraction(n, 2) for n in range(-80, 81)):
            size = abs(x + number(shift))
            holds = {"<": size < int(bound), ">": size > int(bound)}.get(
                sign, size <= int(bound) if "le" in sign else size >= int(bound)
            )
            within = low <= x <= high if closed != outside else low < x < high
            assert holds == (not within if outside else within), (c, x)


def test_equations_are_solved_by_the_gold_and_by_nothing_else_near() -> None:
    for c in right("congruences"):
        a, b, modulus = map(int, found(r"\$(\d+)x \\equiv (\d+) \\pmod\{(\d+)", c))
        assert [x for x in range(modulus) if (a * x - b) % modulus == 0] == [gold(c)[0]], c
    for c in right("plus_minus_roots"):
        factor, radicand = map(int, re.findall(r"\d+", c.reference))
        assert factor**2 * radicand == int(found(r"= (\d+)", c)[0]), c
    for c in right("polar"):
        re_, im = found(r"= (-?\d+)([+-]\d+)i", c)
        assert (1 - 1j) * complex(*gold(c)) == complex(int(re_), int(im)), c


def test_numbers_are_computed_as_asked() -> None:
    for c in right("binomial_coefficient"):
        k, a, n = map(number, found(r"x\^\{(\d+)\}\$ in the expansion of \$\(x ([+-] \d+)\)\^\{(\d+)\}", c))
        assert math.comb(n, k) * a ** (n - k) == gold(c), c
    for c in right("nth_term"):
        terms = [int(t) for t in found(r"sequence \$(.*), \\dots", c)[0].split(",")]
        step, constant = gold(c)
        assert terms == [step * n + constant for n in range(1, len(terms) + 1)], c
    for c in right("arithmetic"):
        a, b, p = map(int, found(r"(\d+) \\times (\d+) - (\d+)", c))
        assert a * b - p == gold(c), c


def test_measures_are_converted_as_asked() -> None:
    for c in right("temperature"):
        assert gold(c)[1] == Fraction(9 * int(found(r"\$(-?\d+)\\,", c)[0]), 5) + 32, c
    for c in right("dms"):
        parts = [int(n) for n in re.findall(r"\d+", c.reference)]
        over, under = map(int, re.findall(r"\d+", c.question)[:2])
        assert Fraction(over, under) == parts[0] + Fraction(parts[1], 60) + Fraction(parts[2], 3600), c
    for c in right("areas"):
        a, b = map(int, re.findall(r"(\d+) cm", c.question))
        assert gold(c) == ("cm2", a * b), c
    for c in right("speeds"):
        way, hours = map(int, re.findall(r"(\d+) (?:km|hours)", c.question))
        assert gold(c)[1] * hours == way, c
