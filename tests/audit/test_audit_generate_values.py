"""Labels of further families, read back by readers that share nothing with how the answers were written."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

import pytest

from assay.audit.generate import cases

sympy = pytest.importorskip("sympy")
from sympy.parsing.sympy_parser import (  # noqa: E402
    convert_xor,
    factorial_notation,
    implicit_multiplication_application,
    parse_expr,
    standard_transformations,
)

RULES = (*standard_transformations, convert_xor, factorial_notation, implicit_multiplication_application)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("decimals", 20),
        ("scientific", 8),
        ("powers", 8),
        ("counting", 8),
        ("several_letters_expressions", 8),
        ("trigonometric", 4),
    ],
)
def test_plain_answers_read_by_sympy(name, least):
    seen = 0
    for c in cases(5, 60, [name]):
        text = re.sub(r"^(?:\w )?= ?", "", c.answer.replace("\N{MINUS SIGN}", "-"))
        text = re.sub(r" [x×] |·", "*", text)
        if c.meta["form"] != "plain" or re.search(r"[^0-9a-zE+\-*/^()!. ]", text) or " and " in text:
            continue
        value = parse_expr(text, transformations=RULES)
        said = sympy.sympify(c.meta["said"])
        seen += 1
        difference = sympy.simplify(value - said)
        assert difference == 0 or abs(difference) < 1e-12 * abs(said), (c.answer, c.meta)
        assert (sympy.simplify(said - sympy.sympify(c.meta["gold"])) == 0) == c.label
    assert seen >= least


@pytest.mark.parametrize("name", ["lines", "circles"])
def test_equations_are_multiples_of_the_reference_or_not(name):
    x, y = sympy.symbols("x y")

    def read(text: str) -> sympy.Poly:
        text = (
            re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"(\1/\2)", text).replace("{", "(").replace("}", ")").replace("²", "^2")
        )
        left, right = (parse_expr(side, transformations=RULES) for side in text.split("="))
        return sympy.Poly(sympy.expand(left - right), x, y).monic()

    for c in cases(5, 80, [name]):
        assert (read(c.answer) == read(c.reference)) == c.label, c


def test_clock_times_read_back():
    def read(text: str) -> datetime.time:
        plain = re.sub(r"\\text\{([^}]*)\}", r"\1", text).replace(".", "").upper().replace("  ", " ").strip()
        for form in ("%I:%M %p", "%I:%M%p", "%I %p", "%H:%M"):
            try:
                return datetime.datetime.strptime(plain, form).time()
            except ValueError:
                continue
        raise AssertionError(text)

    for c in cases(5, 120, ["clock_times"]):
        start, hours, minutes = re.search(
            r"starts at (.*) and takes (?:(\d+) hours and )?(\d+) minutes", c.question
        ).groups()
        begin = datetime.datetime.combine(datetime.date(2000, 1, 1), read(start))
        gold = (begin + datetime.timedelta(hours=int(hours or 0), minutes=int(minutes))).time()
        assert (read(c.answer) == gold) == c.label, c


def test_roman_and_chinese_numerals_read_back():
    sizes = dict(zip("IVXLCDM", (1, 5, 10, 50, 100, 500, 1000), strict=True))

    def roman(text: str) -> int:
        values = [sizes[letter] for letter in text]
        return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))

    for c in cases(5, 100, ["roman_numerals"]):
        text = re.sub(r"\\\w+\{(.*)\}", r"\1", c.answer)
        gold = int(re.search(r"\d+", c.question).group())
        if c.kind not in ("not converted", "reversed"):
            assert (roman(text) == gold) == c.label, c
    units = {"十": 10, "百": 100, "千": 1000}

    def chinese(text: str) -> int:
        total = digit = 0
        for character in text:
            if character in units:
                total, digit = total + (digit or 1) * units[character], 0
            elif character.isdecimal():
                total = total * 10 + int(character)
            else:
                digit = "零一二三四五六七八九".index(character)
        return total + digit

    for c in cases(5, 100, ["chinese_numerals"]):
        assert (chinese(re.sub(r"\\text\{(.*)\}", r"\1", c.answer)) == int(c.reference)) == c.label, c


def test_words_of_other_languages_against_a_list_made_by_hand():
    from assay.audit.generate.values.numerals import in_words

    assert [in_words(n, "french") for n in (17, 21, 60, 71, 80, 81, 91, 99)] == [
        "dix-sept", "vingt et un", "soixante", "soixante et onze", "quatre-vingts", "quatre-vingt-un",
        "quatre-vingt-onze", "quatre-vingt-dix-neuf",
    ]  # fmt: skip
    assert [in_words(n, "german") for n in (12, 16, 17, 21, 30, 66)] == [
        "zwölf",
        "sechzehn",
        "siebzehn",
        "einundzwanzig",
        "dreißig",
        "sechsundsechzig",
    ]
    assert [in_words(n, "spanish") for n in (16, 22, 31, 50, 99)] == [
        "dieciséis",
        "veintidós",
        "treinta y uno",
        "cincuenta",
        "noventa y nueve",
    ]


@pytest.mark.slow
def test_intervals_and_unions_against_sympy():
    def ray_or_interval(text: str) -> sympy.Set:
        left, low, high, right = re.fullmatch(r"([(\[])(.*?), ?(.*?)([)\]])", text).groups()
        ends = [sympy.sympify(e.replace("inf", "oo").replace("∞", "oo")) for e in (low, high)]
        return sympy.Interval(*ends, left == "(", right == ")")

    x = sympy.Symbol("x", real=True)
    seen = 0
    for c in cases(5, 160, ["intervals", "unions"]):
        text = c.answer.removeprefix("x ∈ ").replace("∪", "U")
        if c.meta["form"] != "plain" or "x" in text:
            continue
        said = sympy.Union(*[ray_or_interval(part.strip()) for part in text.split("U")])
        sides = re.sub(
            r"\\frac\{(\d+)\}\{(\d+)\}",
            r"(\1/\2)",
            re.search(r"\$([^$]*[<>g=l][^$]*)\$", c.question.replace("$x$", "")).group(1),
        )
        sides = sides.replace(r"\leq", "<=").replace(r"\geq", ">=")
        parts = re.split(r"(<=|>=|<|>)", sides)
        gold = sympy.S.Reals
        for i in range(1, len(parts), 2):
            left, right = (
                parse_expr(p, local_dict={"x": x}, transformations=RULES) for p in (parts[i - 1], parts[i + 1])
            )
            relation = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[parts[i]]
            gold = gold.intersect(relation.as_set() if relation not in (True, False) else sympy.S.Reals)
        assert (said == gold) == c.label, (c, said, gold)
        seen += 1
    assert seen > 20


def test_periods_against_long_division():
    for c in cases(5, 80, ["repeating_decimals"]):
        found = re.fullmatch(r"0\.(\d*)\((\d+)\)", c.answer)
        if found is None:
            continue
        before, digits = found.groups()
        value = Fraction(int(before + digits) - int(before or 0), (10 ** len(digits) - 1) * 10 ** len(before))
        assert (value == Fraction(c.meta["gold"])) == c.label, c


def test_money_and_durations_read_back():
    marks = {"$": 1, "dollar": 1, "USD": 1, "€": 2, "euro": 2, "EUR": 2, "£": 3, "pound": 3, "GBP": 3}
    for c in cases(5, 120, ["currency"]):
        n, price = re.search(r"do (\d+)", c.question).group(1), re.search(r"costs (.)([\d.]+)\.", c.question)
        number = Fraction(re.search(r"[\d,]+(?:\.\d+)?", c.answer).group().replace(",", ""))
        mark = next((m for word, m in marks.items() if word in c.answer), marks[price.group(1)])
        if "cents" in c.answer or "pence" in c.answer:
            number /= 100
        assert ((number, mark) == (int(n) * Fraction(price.group(2)), marks[price.group(1)])) == c.label, c
    sizes = {"h": 60, "m": 1, "s": Fraction(1, 60)}
    for c in cases(5, 120, ["durations"]):
        gold = sum(map(int, re.findall(r"(\d+) minutes", c.question)))
        plain = re.sub(r"\\(?:text|mathrm)\{([^}]*)\}", r"\1", c.answer).replace(r"\,", " ")
        found = re.findall(r"([\d.]+)\s*([hms])", plain)
        assert (sum(Fraction(n) * sizes[u] for n, u in found) == gold) == c.label, c


def test_sorted_lists_are_sorted():
    for c in cases(5, 80, ["ordered_lists"]):
        given = re.search(r": (.*)\.$", c.question).group(1).split(", ")
        said = [w.strip(' "') for w in c.answer.strip("[]()").split(",")]
        assert (said == sorted(given, key=int)) == c.label, c
