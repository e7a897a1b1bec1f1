"""Labelled cases: labels checked against SymPy and readers of other people, balance, determinism, no contradictions."""

from __future__ import annotations

import ast
import collections
import datetime
import functools
import itertools
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from assay.audit.generate import case, cases, families, load, stream
from assay.audit.generate.base import FAMILIES, Draw, family, find
from assay.errors import UsageError

sympy = pytest.importorskip("sympy")
from sympy.parsing.sympy_parser import (  # noqa: E402
    convert_xor,
    implicit_multiplication_application,
    parse_expr,
    standard_transformations,
)

EACH = 24
ALL = sorted(families())


@functools.cache
def sample(name):
    return cases(11, EACH, [name])


def exact(text: str) -> object:
    """Read a value in ``meta`` with SymPy; words and records stay text."""
    try:
        return sympy.sympify(text)
    except (sympy.SympifyError, SyntaxError, TypeError, AttributeError, ValueError):
        return text


def equal(left: object, right: object) -> bool:
    if isinstance(left, tuple | sympy.Tuple) and isinstance(right, tuple | sympy.Tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr):
        return sympy.simplify(left - right) == 0
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("name", ALL)
def test_labels_agree_with_the_exact_values(name):
    for c in sample(name):
        if c.meta["said"] is None:
            assert not c.label
        else:
            assert equal(exact(c.meta["gold"]), exact(c.meta["said"])) == c.label, c


READABLE = (
    "integers", "fractions", "percent", "radicals", "radical_sums", "pi_multiples", "complex_numbers", "polynomials",
    "rounded_decimals",
)  # fmt: skip
RULES = (*standard_transformations, convert_xor, implicit_multiplication_application)


def read(text: str) -> object | None:
    """Read a final answer that is plain enough, in a way that shares nothing with how it was written."""
    text = re.sub(r"^(?:[a-zA-Z]|f\(\w\) ?\+ ?g\(\w\)) ?= ?", "", text.replace("\N{MINUS SIGN}", "-")).strip("$≈ ")
    text = (
        re.sub(r"√(\d+)", r"*sqrt(\1)", text.replace("√(", "*sqrt("))
        .lstrip("*")
        .replace("(*", "(")
        .replace(" *sqrt", " sqrt")
    )
    text = re.sub(r"([+-]) ?\*", r"\1 ", text).replace("π", "*pi").replace("²", "**2").replace("³", "**3").lstrip("*")
    if re.search(r"[^0-9a-z+\-*/^(). ]", text) or re.search(r"[a-z]{2,}", text.replace("sqrt", "").replace("pi", "")):
        return None
    try:
        return parse_expr(text.replace("i", "I").replace("pI", "pi"), transformations=RULES)
    except (SyntaxError, TypeError, ValueError):
        return None


@pytest.mark.parametrize("name", READABLE)
def test_answers_read_by_sympy_have_the_value_they_are_said_to_have(name):
    seen = 0
    for c in cases(5, 40, [name]):
        value = read(c.answer)
        if value is None or c.meta["form"] not in ("plain", "latex"):
            continue
        seen += 1
        said = sympy.sympify(c.meta["said"])
        assert sympy.simplify(value - said) == 0 or abs(sympy.N(value - said, 30)) < 1e-25, (c, value, said)
    assert seen >= 5


SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
STEMS = ("thir", "four", "fif", "six", "seven", "eigh", "nine")
ONES = {word: n for n, word in enumerate(SMALL)} | {f"{stem}teen": n for n, stem in enumerate(STEMS, 13)}
ONES |= {f"{stem}ty": 10 * n for n, stem in enumerate(("twen", "thir", "for", *STEMS[2:]), 2)}


def from_words(text: str) -> int:
    total = part = 0
    for word in re.findall(r"[a-z]+", text.lower()):
        if word == "thousand":
            total, part = total + 1000 * part, 0
        elif word == "hundred":
            part *= 100
        elif word not in ("and", "apples", "text"):
            part += ONES[word]
    return total + part


def test_english_words_read_back():
    for c in cases(3, 120, ["english_words"]):
        value = int(c.answer.split()[0]) if c.answer[0].isdigit() else from_words(c.answer)
        assert str(value) == c.meta["said"]
        assert (str(value) == c.meta["gold"]) == c.label


def test_thousands_and_bases_read_back():
    for c in cases(3, 120, ["thousands"]):
        digits = re.sub(r"\\[,! ]|[^0-9.]", "", c.answer)
        whole = digits.replace(".", "") if digits.count(".") > 1 else digits
        assert (Fraction(whole) == Fraction(c.reference)) == c.label, c
    for c in cases(3, 120, ["bases"]):
        base, gold = ast.literal_eval(c.meta["gold"])
        digits = re.match(r"\(?(?:0[box])?([0-9A-Fa-f]+)", c.answer).group(1)
        foreign = re.search(r"_\{?(\d+)", c.answer)
        try:
            right = int(digits, base) == gold and (foreign is None or int(foreign.group(1)) == base)
        except ValueError:
            right = False
        assert right == c.label, c


def test_dates_read_back():
    forms = ("%B %d, %Y", "%d %B %Y", "%Y-%m-%d", "%Y/%m/%d", "%b %d, %Y", "%A, %B %d, %Y", "%d/%m/%Y", "%d.%m.%Y")
    for c in cases(3, 120, ["dates"]):
        text = re.sub(r"\\text\{(.*)\}", r"\1", re.sub(r"(?<=\d)(st|nd|rd|th)\b( of)?", "", c.answer))
        found = set()
        for form in forms:
            try:
                found.add(datetime.datetime.strptime(text, form).date())
            except ValueError:
                continue
        step, start = re.search(r"is (\d+) days after (.*)\?", c.question).groups()
        gold = datetime.datetime.strptime(start, "%B %d, %Y").date() + datetime.timedelta(days=int(step))
        assert found and (found == {gold}) == c.label, c


SIZES = {
    "km": 1000, "kilometers": 1000, "kilometres": 1000, "m": 1, "meters": 1, "metres": 1, "cm": "0.01", "mm": "0.001",
    "centimeters": "0.01", "centimetres": "0.01", "millimeters": "0.001", "millimetres": "0.001",
    "kg": 1, "kilograms": 1, "g": "0.001", "grams": "0.001", "mg": "0.000001", "milligrams": "0.000001",
    "h": 3600, "hours": 3600, "min": 60, "minutes": 60, "s": 1, "seconds": 1,
    "L": 1, "liters": 1, "litres": 1, "mL": "0.001", "milliliters": "0.001", "millilitres": "0.001",
    "km/h": 1000, "kilometers per hour": 1000, "kilometres per hour": 1000,
    "m/s": 3600, "meters per second": 3600, "metres per second": 3600,
}  # fmt: skip
KINDS = (
    (("km", "m", "cm", "mm"), "length"), (("kg", "g", "mg"), "mass"), (("h", "min", "s"), "time"),
    (("L", "mL"), "volume"), (("km/h", "m/s"), "speed"),
)  # fmt: skip


def quantity(text: str) -> tuple[Fraction, str]:
    plain = (
        re.sub(r"\\(?:text|mathrm)\{([^}]*)\}", r"\1", text).replace(r"\,", " ").replace("~", " ").replace("\\ ", " ")
    )
    number, unit = re.fullmatch(r"\s*([0-9.]+)\s*(.*?)\s*", plain).groups()
    symbols = {"kilo": "k", "centi": "c", "milli": "m", "": ""}
    word = re.match(r"(kilo|centi|milli|)(met|gram|lit|sec|hour|min)", unit)
    short = unit
    if word and unit not in SIZES.keys() - {unit} and len(unit) > 3:
        short = symbols[word[1]] + {"met": "m", "gram": "g", "lit": "L", "sec": "s", "hour": "h", "min": "min"}[word[2]]
        if "per" in unit:
            short += "/h" if unit.endswith("hour") else "/s"
    return Fraction(number) * Fraction(SIZES[unit]), next(kind for units, kind in KINDS if short in units)


def test_units_agree_with_a_table_made_by_hand():
    for c in cases(3, 200, ["units_converted"]):
        assert (quantity(c.answer) == quantity(c.reference)) == c.label, c


def test_references_solve_their_questions():
    x = sympy.Symbol("x")
    for c in cases(2, 30, ["radical_sums"]):
        left = re.search(r"\$(.*) = 0\$", c.question).group(1)
        roots = sympy.Poly(parse_expr(left, transformations=RULES), x).all_roots()
        assert sympy.simplify(max(roots, key=sympy.N) - sympy.sympify(c.meta["gold"])) == 0
    for c in cases(2, 30, ["solution_sets"]):
        left, letter = (
            re.search(r"\$(.*) = 0\$", c.question).group(1),
            re.search(r"[xtz](?= |\()", c.question[31:]).group(),
        )
        roots = sympy.solveset(parse_expr(left, transformations=RULES), sympy.Symbol(letter))
        assert roots == sympy.FiniteSet(*ast.literal_eval(c.meta["gold"]))
    for c in cases(2, 30, ["polynomials"]):
        f, g = re.findall(r"= ([^$]*)\$", c.question)
        total = parse_expr(f, transformations=RULES) + parse_expr(g, transformations=RULES)
        assert sympy.expand(total - sympy.sympify(c.meta["gold"])) == 0


@pytest.mark.parametrize("name", ALL)
def test_every_family_makes_both_labels_in_turn(name):
    labels = [c.label for c in sample(name)]
    assert labels == [True, False] * (EACH // 2)
    assert len({c.id for c in sample(name)}) == EACH
    assert len({c.kind for c in sample(name)}) >= 2
    for c in sample(name):
        assert c.question and c.reference and c.family == name
        assert c.meta["form"] == "whole" or c.answer in c.response
        assert c.task().question == c.question and c.task("exact").kind == "exact"


def test_the_stream_is_balanced_over_families_and_labels():
    drawn = cases(0, 4 * len(ALL))
    assert collections.Counter(c.family for c in drawn) == dict.fromkeys(ALL, 4)
    assert collections.Counter((c.family, c.label) for c in drawn) == dict.fromkeys(
        itertools.product(ALL, (True, False)), 2
    )


def test_a_case_depends_on_its_id_only():
    drawn = cases(4, 60)
    assert drawn == list(itertools.islice(stream(4), 60))
    for c in drawn:
        name, seed, number, label = c.id.split("/")
        assert case(name, int(seed), int(number), label == "right") == c
    assert cases(4, 2, ["integers"])[0] == case("integers", 4, 0, True)
    assert cases(4, 30) != cases(5, 30)


def test_the_same_in_another_process():
    program = "from assay.audit.generate import cases; import hashlib as h; "
    program += "print(h.sha256(repr(cases(9, 150)).encode()).hexdigest())"
    root = str(Path(__file__).resolve().parents[2])
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": root, "PYTHONHASHSEED": h},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for h in ("1", "2")
    }
    assert len(runs) == 1


@pytest.mark.slow
def test_no_answer_is_both_right_and_wrong():
    labels = collections.defaultdict(set)
    for c in cases(21, 40 * len(ALL)):
        labels[c.question, c.reference, c.response].add(c.label)
        if c.meta["form"] != "whole":
            labels[c.question, c.reference, c.answer.strip()].add(c.label)
    assert not [key for key, both in labels.items() if len(both) > 1]


def test_labels_need_no_verifier():
    program = "import sys; from assay.audit.generate import cases; cases(0, 200); "
    program += "print([m for m in sys.modules if 'assay.verify' in m or m in ('torch', 'sympy')])"
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": root}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_draw_refuses_contradictions():
    draw = Draw("q", "5", 5)
    with pytest.raises(ValueError, match="stands for 6"):
        draw.right("digits", "6", value=6)
    draw.wrong("the same value", Fraction(5), "10/2")
    assert draw.answers[False] == []
    draw.right("digits", "5")
    draw.wrong("off by one", 6, "5")
    with pytest.raises(ValueError, match="both right and wrong"):
        draw.pick(True, __import__("random").Random(0))


def test_errors_name_what_is_wrong(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'integers'"):
        cases(0, 1, ["integer"])
    with pytest.raises(UsageError, match="no families"):
        cases(0, 1, [])
    with pytest.raises(UsageError, match="no folder"):
        load(tmp_path / "missing")
    with pytest.raises(ValueError, match="integers"):
        family("integers", "again")(lambda rng: Draw("q", "1", 1))


def test_a_folder_of_families_can_be_loaded(tmp_path):
    (tmp_path / "mine_for_a_test.py").write_text(
        "from assay.audit.generate.base import Draw, family\n"
        "@family('mine', 'a family from elsewhere')\n"
        "def mine(rng):\n"
        "    draw = Draw('How much is 1 + 1?', '2', 2)\n"
        "    draw.right('digits', '2')\n"
        "    draw.wrong('off by one', 3, '3')\n"
        "    return draw\n"
    )
    import assay.audit.generate.values as package

    try:
        load(tmp_path)
        assert families()["mine"] == "a family from elsewhere" and find("mine")
        assert [c.label for c in cases(0, 4, ["mine"])] == [True, False, True, False]
    finally:
        FAMILIES.pop("mine", None)
        package.__path__.remove(str(tmp_path))
        sys.modules.pop("assay.audit.generate.values.mine_for_a_test", None)
