"""Whole numbers: signs, separators, rounding, residues, sums and products worked out."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    MINUS,
    decimal,
    grouped,
    nonzero,
    plain,
    plus,
    swapped_digits,
)


@family("integers", "whole numbers, with signs, as `x = 5`, `5.0` or a sum still to be written out")
def integers(rng: random.Random) -> Draw:
    gold = nonzero(rng, -60, 60) if rng.random() < 0.6 else nonzero(rng, -900, 900)
    part, letter = rng.randint(-40, 90), rng.choice("xynk")
    add = f"- {part}" if part >= 0 else f"+ {-part}"
    draw = Draw(f"Solve for ${letter}$: ${letter} {add} = {gold - part}$.", str(gold), gold)
    draw.right("digits", str(gold))
    draw.right("named", f"{letter} = {gold}", f"{letter}={gold}")
    draw.right("decimal zeros", f"{gold}.0", f"{gold}.00", f"{letter} = {gold}.0")
    draw.right("latex space", rf"{letter} =\ {gold}", rf"{letter} \,=\, {gold}", form="latex")
    draw.right("over one", rf"\frac{{{gold}}}{{1}}" if gold > 0 else rf"-\frac{{{-gold}}}{{1}}", form="latex")
    if gold < 0:
        draw.right("unicode minus", f"{MINUS}{-gold}", f"{letter} = {MINUS}{-gold}")
    else:
        draw.right("plus sign", f"+{gold}")
    draw.wrong("sign flipped", -gold, str(-gold), f"{letter} = {-gold}")
    for step in (-1, 1):
        draw.wrong("off by one", gold + step, str(gold + step), f"{letter} = {gold + step}", f"{gold + step}.0")
    draw.wrong("digits swapped", swapped_digits(gold), str(swapped_digits(gold)))
    draw.wrong("decimal shift", gold * 10, str(gold * 10), f"{gold * 10}.0")
    draw.wrong("decimal shift", Fraction(gold, 10), decimal(Fraction(gold, 10)) or "")
    draw.wrong("digit lost", gold // 10 if gold > 9 else 0, str(gold // 10 if gold > 9 else 0))
    draw.wrong("nearly", gold + Fraction(1, 100), decimal(gold + Fraction(1, 100)) or "")
    draw.wrong("reciprocal", Fraction(1, gold), plain(Fraction(1, gold)))
    return draw


@family("arithmetic", "a product and a difference that have to be worked out; the task itself is no answer")
def arithmetic(rng: random.Random) -> Draw:
    a, b, c = rng.randint(13, 89), rng.randint(13, 89), rng.randint(102, 160)
    gold, task = a * b - c, f"{a} \\times {b} - {c}"
    draw = Draw(
        f"Compute ${task}$. The answer has to be one integer in decimal digits; an expression that is still to be"
        " computed is not accepted.",
        str(gold),
        gold,
        f"We multiply ${a}$ by ${b}$ first and subtract ${c}$ afterwards.",
        slots={"expression": task, "code": f"{a}*{b} - {c}", "half_done": f"{a * b} - {c}", "step": str(a * b)},
    )
    draw.right("digits", str(gold), f"{gold:,}")
    draw.right("equation", f"{task} = {gold}", f"{task} = {a * b} - {c} = {gold}", form="latex")
    for kind, value in (
        ("off by one", gold + 1),
        ("ten off", gold - 10),
        ("not subtracted", a * b),
        ("other order", a * (b - c)),
        ("added", gold + 2 * c),
    ):
        draw.wrong(kind, value, str(value), f"{value:,}")
        draw.wrong(kind, value, f"{task} = {value}", form="latex")
    draw.wrong("not worked out", ("task", task), task, f"{a * b} - {c}", form="latex")
    draw.wrong("not worked out", ("task", task), f"{a}*{b} - {c}")
    return draw


@family("thousands", "large whole numbers with the separators of many countries")
def thousands(rng: random.Random) -> Draw:
    a, b = rng.randint(1_000_000, 400_000_000), rng.randint(1000, 999_999)
    gold = a + b
    draw = Draw(f"What is {a} + {b}?", str(gold), gold)
    digits = str(gold)
    draw.right("none", digits)
    draw.right("comma", grouped(digits, ","))
    draw.right("latex comma", grouped(digits, "{,}"), grouped(digits, r",\!"), form="latex")
    draw.right("latex space", grouped(digits, r"\,"), grouped(digits, r"\ "), form="latex")
    draw.right("space", grouped(digits, " "))
    for code in ("\N{NO-BREAK SPACE}", "\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}"):
        draw.right("narrow space", grouped(digits, code))
    draw.right("point", grouped(digits, "."))
    draw.right("apostrophe", grouped(digits, "'"), grouped(digits, "\N{RIGHT SINGLE QUOTATION MARK}"))
    draw.right("underscore", grouped(digits, "_"))
    draw.right("indian", f"{grouped(digits[:-3], ',', 2)},{digits[-3:]}")
    draw.right("decimal zeros", f"{grouped(digits, ',')}.00")
    for kind, value in (
        ("digits swapped", swapped_digits(gold)),
        ("group lost", int(digits[:-3])),
        ("group changed", gold + rng.choice((1000, -1000))),
        ("off by one", gold + 1),
        ("zeros added", gold * 1000),
    ):
        text = str(value)
        draw.wrong(kind, value, text, grouped(text, ","), grouped(text, " "))
        draw.wrong(kind, value, grouped(text, "{,}"), form="latex")
    pointed = f"{digits[:-3]}.{digits[-3:]}"
    draw.wrong("decimal point", Fraction(pointed), f"{grouped(digits[:-3], ',')}.{digits[-3:]}")
    return draw


@family("round_to", "rounded to tens, hundreds or thousands, with and without separators; not rounded or down is wrong")
def round_to(rng: random.Random) -> Draw:
    unit = rng.choice((10, 100, 1000))
    whole = rng.randint(21, 980)
    off = rng.choice([k for k in range(1, 10) if k != 5]) * unit // 10 + (
        rng.randint(1, 9) * unit // 100 if unit > 10 else 0
    )
    n = whole * unit + off
    up = 2 * off > unit
    gold = (whole + up) * unit
    name = {10: "ten", 100: "hundred", 1000: "thousand"}[unit]
    draw = Draw(
        f"Round {n} to the nearest {name}.",
        str(gold),
        gold,
        f"Look at the digit to the right of the {name}s.",
        form="latex",
    )
    draw.right("digits", str(gold), f"{gold}.0", form="plain")
    draw.right("separators", f"{gold:,}", form="plain")
    draw.right("latex", f"{gold:,}".replace(",", "{,}"), f"{gold:,}".replace(",", "\\,"))
    for kind, v in (
        ("other way", (whole + 1 - up) * unit),
        ("not rounded", n),
        ("next", gold + unit),
        ("too coarse", (n + unit * 5) // (unit * 10) * unit * 10),
    ):
        draw.wrong(kind, v, str(v), f"{v:,}", form="plain")
        draw.wrong(kind, v, f"{v:,}".replace(",", "{,}"))
    draw.wrong("cut", whole + up, str(whole + up), form="plain")
    return draw


@family("congruences", "linear congruences: any representative, pmod, mod; other class or modulus is wrong")
def congruences(rng: random.Random) -> Draw:
    m = rng.choice((5, 7, 9, 11, 13, 16, 17, 19))
    while True:
        a, r = rng.randint(2, m - 1), rng.randint(1, m - 1)
        if math.gcd(a, m) == 1:
            break
    b = a * r % m
    draw = Draw(
        f"Solve the congruence ${a}x \\equiv {b} \\pmod{{{m}}}$. Give the residue class of $x$ modulo {m}.",
        f"x \\equiv {r} \\pmod{{{m}}}",
        (r, m),
        f"Multiply both sides by the inverse of ${a}$ modulo ${m}$.",
        form="latex",
    )

    def spell(r: int, m: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (
            (
                f"x \\equiv {r} \\pmod{{{m}}}",
                f"{r} \\pmod{{{m}}}",
                f"x \\equiv {r} \\ (\\mathrm{{mod}}\\ {m})",
                f"x\\equiv {r} \\mod {m}",
            ),
            (f"x ≡ {r} (mod {m})", f"{r} mod {m}", f"x ≡ {r} mod {m}"),
        )

    for kind, (s, n) in (
        ("right", (r, m)),
        ("right, other representative", (r + m, m)),
        ("right, negative", (r - m, m)),
        ("class", ((r + 1) % m, m)),
        ("negated", (m - r, m)),
        ("modulus", (r, m + 1)),
        ("other side", (b, m)),
    ):
        latex, plain = spell(s, n)
        draw.spell(kind, (s % n, n), plain, latex)
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


def _factors(n: int) -> list[int]:
    found, k = [], 2
    while n > 1:
        while n % k == 0:
            found.append(k)
            n //= k
        k += 1
    return found


@family("prime_products", "a number as a product of primes; the number itself, or a factor that is no prime, is wrong")
def prime_products(rng: random.Random) -> Draw:
    primes = sorted(rng.choices((2, 2, 3, 3, 5, 7, 11), k=rng.randint(3, 5)))
    n = math.prod(primes)
    powers = [(p, primes.count(p)) for p in sorted(set(primes))]
    model = r" \cdot ".join(f"{p}^{{{k}}}" if k > 1 else str(p) for p, k in powers)
    ask = rng.choice(
        (
            f"Write {n} as a product of primes.",
            f"Give the prime factorisation of {n}.",
            f"Decompose {n} into prime factors.",
        )
    )
    draw = Draw(ask, model, tuple(primes))
    flat = " * ".join(map(str, primes))
    draw.right("primes", flat, flat.replace("*", "×"), f"{n} = {flat}", value=tuple(_factors(n)))
    draw.right("powers", model, model.replace(r"\cdot", r"\times"), f"{n} = {model}", form="latex")
    draw.wrong("the number", (n,), str(n), f"{n} = {n}", f"1 * {n}")
    k = primes[0] * primes[1]
    rest = primes[2:]
    draw.wrong("not finished", (k, *rest), " * ".join(map(str, (k, *rest))))
    draw.wrong("two factors", (primes[0], n // primes[0]), f"{primes[0]} * {n // primes[0]}")
    draw.wrong("another number", (*primes, 2), f"{flat} * 2")
    return draw


@family(
    "binomial_coefficient",
    "a coefficient of (x + a)^n: digits, separators, an equation; a binomial alone, powers, signs are wrong",
)
def binomial_coefficient(rng: random.Random) -> Draw:
    n, a = rng.randint(6, 10), rng.choice((-3, -2, 2, 3))
    k = rng.randint(2, n - 3)
    c = math.comb(n, k) * a ** (n - k)
    draw = Draw(
        f"What is the coefficient of $x^{{{k}}}$ in the expansion of $(x {plus(a)})^{{{n}}}$? Give one integer.",
        str(c),
        c,
        f"The term is $\\binom{{{n}}}{{{k}}} x^{{{k}}} ({a})^{{{n - k}}}$.",
        form="latex",
    )
    draw.right("digits", str(c), f"{c:,}", form="plain")
    draw.right(
        "latex",
        f"{c:,}".replace(",", "{,}"),
        f"{c:,}".replace(",", "\\,"),
        f"a_{{{k}}} = {c}",
        f"[x^{{{k}}}](x {plus(a)})^{{{n}}} = {c}",
    )
    for kind, v in (
        ("binomial alone", math.comb(n, k)),
        ("sign", -c),
        ("other term", math.comb(n, k + 1) * a ** (n - k - 1)),
        ("power", math.comb(n, k) * a**k),
        ("off by one", c + 1),
        ("digits exchanged", int(str(abs(c))[::-1]) * (1 if c > 0 else -1)),
        ("power lost", a ** (n - k)),
    ):
        draw.wrong(kind, v, str(v), f"{v:,}", form="plain")
        draw.wrong(kind, v, f"{v:,}".replace(",", "{,}"))
    return draw
