"""What stands beside the number: a unit behind the box, a direction, a rate, that contradicts the question."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family

_LENGTHS = (
    ("cm", "centimetres", ("m", "metres", "mm", "inches", "cm^2", "square centimetres")),
    ("m", "metres", ("cm", "centimetres", "km", "feet", "square metres")),
    ("mm", "millimetres", ("cm", "m", "inches", "square millimetres")),
)


@family("units_behind_boxes", "a bare number in a box with a unit behind it: another unit, or its square, is wrong")
def units_behind_boxes(rng: random.Random) -> Draw:
    symbol, name, others = rng.choice(_LENGTHS)
    a, b = rng.randint(3, 40), rng.randint(3, 40)
    n = 2 * (a + b)
    question, reference = rng.choice(
        (
            (f"A rectangle is {a} {symbol} wide and {b} {symbol} long. What is its perimeter?", f"{n} {symbol}"),
            (f"A field is {a} {symbol} by {b} {symbol}. How many {name} is it around?", str(n)),
        )
    )
    draw = Draw(question, reference, (n, symbol))
    working = "Add the two sides and double the sum."
    for kind, unit, value in (
        ("bare", "", (n, symbol)),
        ("unit", symbol, (n, symbol)),
        ("unit", name, (n, symbol)),
        *(("another unit", other, (n, other)) for other in others),
    ):
        space = " " if unit else ""
        texts = [f"{working}\n\n$\\boxed{{{n}}}${space}{unit}", f"{working} So it is $\\boxed{{{n}}}${space}{unit}."]
        if unit and "^" not in unit:
            texts.append(f"{working}\n\n$$\\boxed{{{n}}}\\text{{ {unit}}}$$")
        for text in texts:
            if value == (n, symbol):
                draw.right(kind, text, form="whole", value=value, said=str(n))
            else:
                draw.wrong(kind, value, text, form="whole", said=f"{n} {unit}")
    draw.wrong("another number", (n + 2, symbol), f"{working}\n\n$\\boxed{{{n + 2}}}$ {symbol}", form="whole")
    return draw


@family("opposite_directions", "an increase is asked for and a decrease is stated, or the reverse: wrong")
def opposite_directions(rng: random.Random) -> Draw:
    old = rng.choice((20, 40, 50, 80, 100, 200))
    share = rng.choice((5, 10, 15, 20, 25, 30, 40))
    up = rng.random() < 0.5
    new = Fraction(old * (100 + (share if up else -share)), 100)
    verb, noun = ("increase", "increase") if up else ("decrease", "decrease")
    good = ("increased", "rose", "went up") if up else ("decreased", "fell", "went down")
    bad = ("decreased", "fell", "went down") if up else ("increased", "rose", "went up")
    counter = "decrease" if up else "increase"
    draw = Draw(
        f"A price changed from {old} to {float(new):g} dollars. By what percentage did it {verb}?",
        f"{share}%",
        (share, up),
    )
    draw.right("number", f"{share}%", f"{share} %")
    draw.right("verb", *(f"So the price {word} by {share}%." for word in good), form="whole", said=f"{share}%")
    draw.wrong("noun", (share, not up), f"a {counter} of {share}%", f"a {share}% {counter}")
    draw.wrong("verb", (share, not up), *(f"It {word} by {share}%." for word in bad), form="text")
    draw.wrong("another number", (share + 1, up), f"{share + 1}%", f"a {noun} of {share + 1}%")
    return draw


@family("stated_rates", "a total is asked for and a rate is stated, or the other way round in words: wrong")
def stated_rates(rng: random.Random) -> Draw:
    a, b = rng.randint(3, 30), rng.randint(3, 20)
    n = a * b
    draw = Draw(f"A pump moves {a} litres in a minute. How many litres does it move in {b} minutes?", str(n), (n, 0))
    draw.right("total", str(n), f"{n} litres", f"{n} L")
    draw.wrong("guess", (n, 1), f"{n} litres is my guess", f"a lower bound is {n}", f"an estimate of {n}", form="text")
    draw.wrong("label", (n, 2), f"page {n}", f"equation ({n})", f"question {n}", form="whole")
    draw.wrong("neighbour", (n, 3), f"the number before {n}", f"twice {n}", f"half of {n}", form="text")
    draw.wrong("another unit", (n, 4), f"{n} gallons", f"{n} kilograms", f"{n} minutes", form="text")
    return draw
