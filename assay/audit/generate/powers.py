"""Powers, some far too large to write out; logarithms; factorials and binomials."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import plain, tex

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@family("powers", "powers written out, with another base, negative exponents")
def powers(rng: random.Random) -> Draw:
    base, exponent = rng.choice(
        ((2, 5), (2, 7), (2, 10), (2, 12), (3, 4), (3, 6), (5, 3), (5, 4), (7, 3), (10, 5), (4, 4), (6, 3), (9, 3))
    )
    if rng.random() < 0.35:
        exponent = -exponent
    gold = Fraction(base) ** exponent
    a = rng.randint(-9, 9)
    question = f"Compute ${base}^{{{a}}} \\cdot {base}^{{{exponent - a}}}$. A power is accepted as an answer."
    draw = Draw(question, rng.choice((rf"{base}^{{{exponent}}}", tex(gold))), gold)

    def add(kind: str, b: int, e: int, good: bool) -> None:
        value = Fraction(b) ** e
        code, latex = (
            [f"{b}^{e}" if e >= 0 else f"{b}^({e})", f"{b}**{e}" if e >= 0 else f"{b}**({e})"],
            [rf"{b}^{{{e}}}"],
        )
        code.append(f"{b}{str(e).translate(RAISED)}")
        if e < 0:
            latex += [rf"\frac{{1}}{{{b}^{{{-e}}}}}", rf"\left(\frac{{1}}{{{b}}}\right)^{{{-e}}}"]
            code.append(f"1/{b}^{-e}")
        if good:
            draw.right(kind, *code, value=value)
            draw.right(f"{kind}, latex", *latex, form="latex")
        else:
            draw.wrong(kind, value, *code)
            draw.wrong(kind, value, *latex, form="latex")

    add("power", base, exponent, True)
    for root in (2, 3):
        other = round(base ** (1 / root))
        if other**root == base:
            add("another base", other, exponent * root, True)
    if exponent % 2 == 0:
        add("another base", base**2, exponent // 2, True)
    draw.right("written out", plain(gold))
    draw.right("written out", tex(gold), form="latex")
    add("exponent off by one", base, exponent + 1, False)
    add("exponent off by one", base, exponent - 1, False)
    add("exponent's sign", base, -exponent, False)
    add("base off by one", base + 1, exponent, False)
    if exponent > 0:
        add("swapped", exponent, base, False)
    draw.wrong("product", Fraction(base * exponent), str(base * exponent))
    draw.wrong("negative", -gold, plain(-gold))
    draw.wrong("written out, off by one", gold + 1, plain(gold + 1))
    return draw


@family(
    "huge_powers",
    "powers of hundreds of digits: equal ones with another base or a factor, and ones that are off by one",
)
def huge_powers(rng: random.Random) -> Draw:
    base, exponent = rng.choice((2, 3, 5, 7, 10)), 2 * rng.randint(100, 1000)
    gold = base**exponent
    question = (
        f"Simplify ${base}^{{{exponent - 1}}} \\cdot {base}$. Leave the answer as a power or a product of powers."
    )
    draw = Draw(question, rf"{base}^{{{exponent}}}", gold)
    draw.right("power", rf"{base}^{{{exponent}}}", form="latex")
    draw.right("power", f"{base}^{exponent}", f"{base}**{exponent}")
    draw.right("another base", rf"{base**2}^{{{exponent // 2}}}", form="latex", value=(base**2) ** (exponent // 2))
    draw.right("factor", rf"{base} \cdot {base}^{{{exponent - 1}}}", form="latex", value=base * base ** (exponent - 1))
    draw.right(
        "power of a power",
        rf"\left({base}^{{2}}\right)^{{{exponent // 2}}}",
        rf"({base}^{{{exponent // 2}}})^2",
        form="latex",
    )
    for kind, b, e in (
        ("exponent off by one", base, exponent + 1),
        ("exponent off by one", base, exponent - 1),
        ("base off by one", base + 1, exponent),
        ("exponent not halved", base**2, exponent),
    ):
        draw.wrong(kind, b**e, f"{b}^{e}")
        draw.wrong(kind, b**e, rf"{b}^{{{e}}}", form="latex")
    draw.wrong("plus one", gold + 1, rf"{base}^{{{exponent}}} + 1", form="latex")
    draw.wrong("minus one", gold - 1, f"{base}^{exponent} - 1")
    draw.wrong("one too many", base ** (exponent + 1), rf"{base} \cdot {base}^{{{exponent}}}", form="latex")
    draw.wrong("negative", -gold, rf"-{base}^{{{exponent}}}", form="latex")
    return draw


@dataclass(frozen=True, slots=True)
class Log:
    """The natural logarithm of a positive rational."""

    argument: Fraction

    def __str__(self) -> str:
        return f"log({self.argument})"


@family("logarithms", "exact logarithms: sums, factors in front, reciprocals, `log` with a base")
def logarithms(rng: random.Random) -> Draw:
    b, k = rng.choice((2, 3, 5, 6, 7, 10)), rng.randint(2, 4)
    other = rng.choice([n for n in (2, 3, 5, 7) if n != b])
    gold = Log(Fraction(b**k))
    question = f"Find the exact solution of $e^x = {b**k}$."
    draw = Draw(question, rf"\ln {b**k}", gold)
    draw.right(
        "one logarithm", rf"\ln {b**k}", rf"\ln({b**k})", rf"\ln\left({b**k}\right)", rf"x = \ln {b**k}", form="latex"
    )
    draw.right("one logarithm", f"ln({b**k})", f"ln {b**k}", f"x = ln({b**k})")
    draw.right(
        "factor in front",
        rf"{k}\ln {b}",
        rf"{k} \ln({b})",
        rf"{k} \cdot \ln {b}",
        form="latex",
        value=Log(Fraction(b) ** k),
    )
    draw.right("factor in front", f"{k} ln({b})", f"{k}*ln({b})", f"{k}ln({b})")
    draw.right("sum", rf"\ln {b ** (k - 1)} + \ln {b}", form="latex", value=Log(Fraction(b ** (k - 1)) * b))
    draw.right(
        "difference", rf"\ln {b**k * other} - \ln {other}", form="latex", value=Log(Fraction(b**k * other, other))
    )
    draw.right("reciprocal", rf"-\ln \frac{{1}}{{{b**k}}}", rf"-\ln\left(\frac{{1}}{{{b**k}}}\right)", form="latex")
    draw.right("base e", rf"\log_e {b**k}", rf"\log_{{e}}({b**k})", form="latex")
    for kind, argument, text in (
        ("factor off by one", Fraction(b) ** (k + 1), rf"{k + 1}\ln {b}"),
        ("argument off by one", Fraction(b**k + 1), rf"\ln {b**k + 1}"),
        ("negative", Fraction(1, b**k), rf"-\ln {b**k}"),
        ("factor moved inside", Fraction(k * b), rf"\ln {k * b}"),
        ("logarithm of a sum", Fraction(b ** (k - 1) + b), rf"\ln({b ** (k - 1)} + {b})"),
    ):
        draw.wrong(kind, Log(argument), text, form="latex")
    draw.wrong("no logarithm", ("number", b**k), str(b**k))
    draw.wrong("exponential", ("exp", b**k), rf"e^{{{b**k}}}", form="latex")
    draw.wrong("power of the logarithm", ("power", b, k), rf"(\ln {b})^{k}", form="latex")
    value = f"{math.log(b**k):.2f}"
    draw.wrong("rounded", ("number", value), value)
    draw.wrong("base ten", ("log10", b**k), rf"\log_{{10}} {b**k}", form="latex")
    return draw


@family("counting", "factorials, binomials and products instead of the number")
def counting(rng: random.Random) -> Draw:
    if rng.random() < 0.5:
        n, k = rng.randint(5, 12), rng.randint(2, 4)
        gold = math.comb(n, k)
        draw = Draw(
            f"In how many ways can {k} of {n} people be chosen? Any exact form is accepted.",
            rng.choice((str(gold), rf"\binom{{{n}}}{{{k}}}")),
            gold,
        )
        draw.right(
            "binomial", rf"\binom{{{n}}}{{{k}}}", rf"\dbinom{{{n}}}{{{k}}}", rf"{{{n} \choose {k}}}", form="latex"
        )
        draw.right("symmetric", rf"\binom{{{n}}}{{{n - k}}}", form="latex", value=math.comb(n, n - k))
        draw.right("code", f"C({n}, {k})", f"C({n},{k})")
        draw.right(
            "factorials", rf"\frac{{{n}!}}{{{k}! \cdot {n - k}!}}", rf"\frac{{{n}!}}{{{k}!\,{n - k}!}}", form="latex"
        )
        draw.right(
            "factorials", f"{n}!/({k}!*{n - k}!)", value=math.factorial(n) // math.factorial(k) // math.factorial(n - k)
        )
        draw.wrong("ordered", math.perm(n, k), str(math.perm(n, k)))
        draw.wrong("ordered", math.perm(n, k), rf"\frac{{{n}!}}{{{n - k}!}}", form="latex")
        draw.wrong("off by one", math.comb(n + 1, k), rf"\binom{{{n + 1}}}{{{k}}}", form="latex")
        draw.wrong("off by one", math.comb(n, k + 1), rf"\binom{{{n}}}{{{k + 1}}}", form="latex")
    else:
        n = rng.randint(4, 9)
        gold = math.factorial(n)
        draw = Draw(
            f"In how many orders can {n} people stand in a row? Any exact form is accepted.",
            rng.choice((str(gold), f"{n}!")),
            gold,
        )
        draw.right("factorial", f"{n}!")
        draw.right(
            "product",
            r" \cdot ".join(map(str, range(n, 0, -1))),
            r" \times ".join(map(str, range(n, 0, -1))),
            form="latex",
        )
        draw.right("product", " * ".join(map(str, range(1, n + 1))))
        draw.right("one step", f"{n} * {n - 1}!", value=n * math.factorial(n - 1))
        draw.wrong("off by one", math.factorial(n + 1), f"{n + 1}!", str(math.factorial(n + 1)))
        draw.wrong("off by one", math.factorial(n - 1), f"{n - 1}!", str(math.factorial(n - 1)))
        draw.wrong("power", n**n, f"{n}^{n}", str(n**n))
    draw.right("number", str(gold), f"{gold}.0")
    draw.wrong("number off by one", gold + 1, str(gold + 1))
    draw.wrong("half", Fraction(gold, 2), plain(Fraction(gold, 2)))
    return draw
