"""Questions that demand a form, answered by what they give or by the right value in another form."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family


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


@family("rewritten_numbers", "a decimal, fraction or mixed number in another form; in the old form it is wrong")
def rewritten_numbers(rng: random.Random) -> Draw:
    bottom = rng.choice((4, 5, 8, 16, 20, 25, 40))
    top = rng.choice([k for k in range(bottom + 1, 4 * bottom) if math.gcd(k, bottom) == 1])
    value = Fraction(top, bottom)
    whole, rest = divmod(top, bottom)
    fraction, decimal, mixed = f"{top}/{bottom}", f"{float(value):g}", f"{whole} {rest}/{bottom}"
    percent = f"{float(value * 100):g}%"
    tex = rf"\frac{{{top}}}{{{bottom}}}"
    wanted = rng.choice(("decimal", "fraction", "mixed", "percent"))
    if wanted == "decimal":
        draw = Draw(f"Write {fraction} as a decimal.", decimal, ("decimal", value))
        draw.right("decimal", decimal, f"{fraction} = {decimal}", decimal + "0")
        draw.wrong("fraction", ("fraction", value), fraction, f"{2 * top}/{2 * bottom}", mixed)
        draw.wrong("fraction", ("fraction", value), tex, form="latex")
    elif wanted == "fraction":
        draw = Draw(f"Convert {decimal} to a fraction in lowest terms.", fraction, ("fraction", value))
        draw.right("fraction", fraction, f"{decimal} = {fraction}")
        draw.right("fraction", tex, form="latex")
        draw.wrong("decimal", ("decimal", value), decimal, decimal + "0", percent)
        draw.wrong("not reduced", ("reducible", value), f"{3 * top}/{3 * bottom}")
    elif wanted == "mixed":
        draw = Draw(f"Rewrite {fraction} as a mixed number.", mixed, ("mixed", value))
        draw.right("mixed", mixed, f"{fraction} = {mixed}")
        draw.right("mixed", rf"{whole}\frac{{{rest}}}{{{bottom}}}", form="latex")
        draw.wrong("fraction", ("fraction", value), fraction)
        draw.wrong("fraction", ("fraction", value), tex, form="latex")
        draw.wrong("decimal", ("decimal", value), decimal)
    else:
        draw = Draw(f"Express {fraction} as a percentage.", percent, ("percent", value))
        draw.right("percent", percent, percent.replace("%", " %"), percent.replace("%", " percent"))
        draw.wrong("fraction", ("fraction", value), fraction)
        draw.wrong("fraction", ("fraction", value), tex, form="latex")
        draw.wrong("decimal", ("decimal", value), decimal)
    draw.wrong("another value", ("other", value + 1), f"{float(value + 1):g}", f"{top + bottom}/{bottom}")
    return draw


@family(
    "converted_angles", "degrees to radians or back; the given angle, or the other unit behind the number, is wrong"
)
def converted_angles(rng: random.Random) -> Draw:
    degrees = rng.choice([k for k in range(15, 360, 15) if k not in (180,)])
    turn = Fraction(degrees, 180)
    p, q = turn.numerator, turn.denominator
    lead = "" if p == 1 else str(p)
    tex = rf"\frac{{{lead}\pi}}{{{q}}}" if q > 1 else rf"{lead}\pi"
    text = f"{lead}π/{q}" if q > 1 else f"{lead}π"
    if rng.random() < 0.5:
        draw = Draw(f"Convert {degrees}° to radians. Give the exact value.", tex, ("rad", turn))
        draw.right("radians", text, f"{text} rad", f"{text} radians", f"{degrees}° = {text}")
        draw.right("radians", tex, rf"{tex}\text{{ rad}}", form="latex")
        draw.wrong("given", ("deg", degrees), f"{degrees}°", f"{degrees} degrees")
        draw.wrong("given", ("deg", degrees), rf"{degrees}^\circ", form="latex")
        draw.wrong("unit", ("deg", turn), f"{text} degrees", f"{text}°")
        draw.wrong("unit", ("deg", turn), rf"{tex}^\circ", form="latex")
    else:
        draw = Draw(f"Convert ${tex}$ radians to degrees.", str(degrees), ("deg", degrees))
        draw.right("degrees", str(degrees), f"{degrees}°", f"{degrees} degrees")
        draw.right("degrees", rf"{degrees}^\circ", form="latex")
        draw.wrong("given", ("rad", turn), text, f"{text} rad", f"{text} radians")
        draw.wrong("given", ("rad", turn), tex, form="latex")
        draw.wrong("unit", ("rad", degrees), f"{degrees} rad", f"{degrees} radians")
    draw.wrong("another angle", ("other", degrees), f"{degrees + 15}", f"{p + 1}π/{q + 1}")
    return draw


@family("rounded_chains", "a root and its rounding as a chain; the root alone, or a chain with a wrong end, is wrong")
def rounded_chains(rng: random.Random) -> Draw:
    n = rng.choice([k for k in range(5, 400) if math.isqrt(k) ** 2 != k])
    places = rng.randint(2, 3)
    unit = Fraction(1, 10**places)
    gold = Fraction(math.isqrt(4 * n * 100**places) + 1, 2) // 1 * unit

    def show(value: Fraction) -> str:
        return f"{float(value):.{places}f}"

    ask = f"Round $\\sqrt{{{n}}}$ to {'two' if places == 2 else 'three'} decimal places."
    draw = Draw(ask, show(gold), gold)
    root, longer = rf"\sqrt{{{n}}}", f"{math.sqrt(n):.{places + 3}f}"
    draw.right("number", show(gold))
    draw.right("chain", rf"{root} \approx {show(gold)}", rf"{root} \approx {longer} \approx {show(gold)}", form="latex")
    draw.wrong("root", None, root, rf"x = {root}", form="latex")
    for other in (gold + unit, gold - unit):
        draw.wrong("end of the chain", other, rf"{root} \approx {show(other)}", form="latex")
        draw.wrong("end of the chain", other, rf"{root} \approx {longer} \approx {show(other)}", form="latex")
        draw.wrong("number", other, show(other))
    return draw
