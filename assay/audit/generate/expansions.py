"""Powers of sums: all terms, or one coefficient."""

from __future__ import annotations

import math
import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import plus, tale
from assay.audit.generate.spell import times


@family(
    "two_letters",
    "the square of ax + by: order of the terms and letters; a lost mixed term, signs, coefficients are wrong",
)
def two_letters(rng: random.Random) -> Draw:
    a, b = rng.randint(1, 7), rng.choice([k for k in range(-7, 8) if k])
    u, v, m = a * a, b * b, 2 * a * b
    p, q = rng.choice((("x", "y"), ("a", "b"), ("s", "t"), ("m", "n")))
    t = tale(
        rng,
        f"Expand $({times(a, p)} {'+' if b > 0 else '-'} {times(abs(b), q)})^2$. Any equal expression other than the"
        " given power is accepted.",
        "",
        (u, m, v),
        "Square of a sum: first, twice the product, last.",
    )

    def spell(u: int, m: int, v: int) -> tuple[list[str], list[str]]:
        s = "+" if m > 0 else "-"
        U, V, M, W = (
            times(u, f"{p}^2"),
            times(v, f"{q}^2"),
            times(abs(m), f"{p}{q}"),
            times(abs(m), f"{q}{p}"),
        )
        lead = "-" if m < 0 else ""
        return (
            [
                f"{U} {s} {M} + {V}",
                f"{V} + {U} {s} {M}",
                f"{V} {s} {W} + {U}",
                f"{lead}{M} + {U} + {V}",
                f"{times(u, f'{p}^{{2}}')}{s}{times(abs(m), f'{p} {q}')}+{times(v, f'{q}^{{2}}')}",
            ],
            [
                f"{U} {s} {M} + {V}",
                f"{times(u, p + '²')} {s} {M} + {times(v, q + '²')}",
                f"{u}*{p}^2 {s} {abs(m)}*{p}*{q} + {v}*{q}^2",
            ],
        )

    latex, plain = spell(u, m, v)
    t.draw.reference = latex[0]
    for n, text in enumerate(latex):
        t.right(f"latex {n}", text)
    t.right("plain", *plain, form="plain")
    for kind, value in (
        ("not doubled", (u, a * b, v)),
        ("sign", (u, -m, v)),
        ("coefficient", (u + 1, m, v)),
        ("coefficient", (u, m, v + 1)),
        ("exchanged", (v, m, u)),
    ):
        latex, plain = spell(*value)
        t.wrong(kind, value, *latex)
        t.wrong(kind, value, *plain, form="plain")
    t.wrong(
        "mixed term lost",
        (u, 0, v),
        f"{times(u, f'{p}^2')} + {times(v, f'{q}^2')}",
        f"{times(v, f'{q}^2')} + {times(u, f'{p}^2')}",
    )
    t.wrong("difference of squares", (u, 0, -v), f"{times(u, f'{p}^2')} - {times(v, f'{q}^2')}")
    return t.draw


@family(
    "binomial_coefficient",
    "a coefficient of (x + a)^n: digits, separators, an equation; a binomial alone, powers, signs are wrong",
)
def binomial_coefficient(rng: random.Random) -> Draw:
    n, a = rng.randint(6, 10), rng.choice((-3, -2, 2, 3))
    k = rng.randint(2, n - 3)
    c = math.comb(n, k) * a ** (n - k)
    t = tale(
        rng,
        f"What is the coefficient of $x^{{{k}}}$ in the expansion of $(x {plus(a)})^{{{n}}}$? Give one integer.",
        str(c),
        c,
        f"The term is $\\binom{{{n}}}{{{k}}} x^{{{k}}} ({a})^{{{n - k}}}$.",
    )
    t.right("digits", str(c), f"{c:,}", form="plain")
    t.right(
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
        t.wrong(kind, v, str(v), f"{v:,}", form="plain")
        t.wrong(kind, v, f"{v:,}".replace(",", "{,}"))
    return t.draw
