"""Gold answers of further families, worked out from the text of their questions alone, by substitution."""

from __future__ import annotations

import ast
import datetime
import math
import re
from fractions import Fraction
from typing import Any

import pytest

from assay.audit.case import Case
from assay.audit.generate import cases, families

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
    for c in right("between_squares"):
        a, sign, b = found(r"\$(\d+) (\S+) x\^2 \S+ (\d+)", c)
        low, high, closed = gold(c)
        assert (low * low, high * high, closed) == (int(a), int(b), "le" in sign), c


def test_equations_are_solved_by_the_gold_and_by_nothing_else_near() -> None:
    for c in right("absolute_equation"):
        shift, bound = found(r"\|x ([+-] \d+)\| = (\d+)", c)
        assert {x for x in range(-99, 99) if abs(x + number(shift)) == int(bound)} == set(gold(c)), c
    for c in right("congruences"):
        a, b, modulus = map(int, found(r"\$(\d+)x \\equiv (\d+) \\pmod\{(\d+)", c))
        assert [x for x in range(modulus) if (a * x - b) % modulus == 0] == [gold(c)[0]], c
    for c in right("plus_minus_roots"):
        factor, radicand = map(int, re.findall(r"\d+", c.reference))
        assert factor**2 * radicand == int(found(r"= (\d+)", c)[0]), c
    for c in right("polar"):
        re_, im = found(r"= (-?\d+)([+-]\d+)i", c)
        assert (1 - 1j) * complex(*gold(c)) == complex(int(re_), int(im)), c
    for c in right("linear_system"):
        x, y = gold(c)
        for equation in re.findall(r"\$([^$]*=[^$]*)\$", c.question)[:2]:
            left, value = equation.split("=")
            terms = re.findall(r"([+-]?) ?(\d*)([xy])", left)
            total = sum(int(f"{s}{n or 1}") * (x if letter == "x" else y) for s, n, letter in terms)
            assert total == int(value), c


def test_numbers_are_computed_as_asked() -> None:
    for c in right("base_sums"):
        a, base, b = found(r"\$(\d+)_\{(\d+)\} \+ (\d+)_", c)
        assert int(a, int(base)) + int(b, int(base)) == int(gold(c)[1], int(base)), c
    for c in right("languages"):
        text = found(r"\$(.*)\$", c)[0]
        if "frac" in text:
            (a, b), (p, q) = ((int(n), int(d)) for n, d in re.findall(r"\\frac\{(\d+)\}\{(\d+)\}", text))
            value = Fraction(a, b) - Fraction(p, q)
        else:
            a, b, p = map(int, re.findall(r"\d+", text))
            value = Fraction(a * b - p)
        assert value == Fraction(c.reference), c
    for c in right("binomial_coefficient"):
        k, a, n = map(number, found(r"x\^\{(\d+)\}\$ in the expansion of \$\(x ([+-] \d+)\)\^\{(\d+)\}", c))
        assert math.comb(n, k) * a ** (n - k) == gold(c), c
    for c in right("nth_term"):
        terms = [int(t) for t in found(r"sequence \$(.*), \\dots", c)[0].split(",")]
        step, constant = gold(c)
        assert terms == [step * n + constant for n in range(1, len(terms) + 1)], c
    for c in right("word_equation"):
        a, b = map(int, re.findall(r"in (\d+) hours", c.question))
        assert 1 / Fraction(c.meta["gold"]) == Fraction(1, a) + Fraction(1, b), c
    for c in right("restated"):
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


def test_every_date_is_so_many_days_later() -> None:
    for c in right("date_after"):
        days = int(found(r"(\d+) days", c)[0])
        start = re.search(r"(\d{1,2}) (\w+) (\d{4})|(\w+) (\d{1,2}), (\d{4})|(\d{4}-\d\d-\d\d)", c.question)
        assert start is not None, c.question
        text = start.group().replace(",", "")
        for form in ("%d %B %Y", "%B %d %Y", "%Y-%m-%d"):
            try:
                day = datetime.datetime.strptime(text, form).date()
            except ValueError:
                continue
            break
        else:
            raise AssertionError(text)
        assert str(day + datetime.timedelta(days=days)) in c.meta["gold"].replace("datetime.date", ""), c


@pytest.mark.parametrize(
    "name", ["retracted", "two_methods", "floods", "encoded", "grader_bait", "cut_off", "last_step"]
)
def test_no_response_stands_with_both_labels(name: str) -> None:
    labels: dict[tuple[str, str], set[bool]] = {}
    for c in cases(5, 200, [name]):
        labels.setdefault((c.question, c.response), set()).add(c.label)
        assert c.meta["form"] == "whole"
    assert all(len(both) == 1 for both in labels.values())


def test_the_families_are_there() -> None:
    known = families()
    assert len(known) == 151
    assert {"retracted", "simplest_radical", "areas", "option_text", "languages", "matrix_layouts"} <= set(known)
