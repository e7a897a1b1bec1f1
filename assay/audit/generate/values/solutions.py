"""All solutions of an equation or a system, and lists of numbers or words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    nonzero,
    plain,
    proper,
    tex,
)


def product(roots: Sequence[int], letter: str) -> str:
    return "".join(letter if r == 0 else f"({letter} {'-' if r > 0 else '+'} {abs(r)})" for r in roots)


@family(
    "solution_sets", "all solutions of an equation: as a set, a list, `x = 1 or x = 2`, with indices, with plus-minus"
)
def solution_sets(rng: random.Random) -> Draw:
    letter = rng.choice("xtz")
    if rng.random() < 0.3:
        k = rng.randint(1, 12)
        roots = [-k, k]
    else:
        roots = sorted(rng.sample(range(-12, 13), rng.choice((2, 2, 2, 3))))
    gold = frozenset(roots)
    reference = rng.choice(((", ".join(map(str, roots))), r"\{" + ", ".join(map(str, roots)) + r"\}"))
    draw = Draw(f"Find all real solutions of ${product(roots, letter)} = 0$.", reference, gold)
    mixed = roots[:]
    rng.shuffle(mixed)

    def texts(kind: str, values: list[int]) -> None:
        listed = ", ".join(map(str, values))
        each = [f"{letter} = {v}" for v in values]
        plain_texts = [listed, ",".join(map(str, values))]
        latex_texts = [rf"\{{{listed}\}}", rf"\left\{{{listed}\right\}}", rf"{letter} \in \{{{listed}\}}"]
        if len(values) > 1:
            plain_texts += [f"{', '.join(map(str, values[:-1]))} and {values[-1]}"]
            plain_texts += [" or ".join(each), ", ".join(each), f"{letter} = {listed}"]
            latex_texts += [
                r" \text{ or } ".join(each),
                r",\ ".join(f"{letter}_{i} = {v}" for i, v in enumerate(values, 1)),
            ]
        else:
            plain_texts += each
        draw.spell(kind, frozenset(values), plain_texts, latex_texts, [f"{{{listed}}}"])

    texts("in order", roots)
    if mixed != roots:
        texts("another order", mixed)
    if len(roots) == 2 and roots[0] == -roots[1]:
        draw.right("plus-minus", f"±{roots[1]}", f"{letter} = ±{roots[1]}", f"{letter}=±{roots[1]}")
        draw.right("plus-minus", rf"\pm {roots[1]}", rf"{letter} = \pm {roots[1]}", rf"\pm{roots[1]}", form="latex")
    else:
        root = max(abs(r) for r in roots)
        draw.wrong("plus-minus", frozenset((-root, root)), f"±{root}", f"{letter} = ±{root}")
        draw.wrong("plus-minus", frozenset((-root, root)), rf"\pm {root}", form="latex")
    at = rng.randrange(len(roots))
    texts("one missing", roots[:at] + roots[at + 1 :])
    extra = rng.choice([v for v in range(-13, 14) if v not in gold])
    texts("one extra", [*roots, extra])
    texts("one changed", [*roots[:at], extra, *roots[at + 1 :]])
    texts("signs flipped", [-r for r in roots])
    if len(roots) > 1:
        texts("one sign flipped", list(dict.fromkeys([*roots[:at], -roots[at], *roots[at + 1 :]])))
    draw.wrong("no solution", frozenset(), "no solution", "There are no real solutions")
    draw.wrong("no solution", frozenset(), r"\emptyset", form="latex")
    return draw


@family("named_values", "the values of several unknowns by name: the order of the equations is free, the names are not")
def named_values(rng: random.Random) -> Draw:
    first, second = rng.choice((("a", "b"), ("x", "y"), ("m", "n"), ("p", "q")))
    a, b = (Fraction(nonzero(rng, -12, 12)) if rng.random() < 0.8 else proper(rng, 7) for _ in range(2))
    if a == b:
        b += 1
    question = f"Solve the system ${first} + {second} = {tex(a + b)}$, ${first} - {second} = {tex(a - b)}$."
    draw = Draw(question, f"{first} = {tex(a)}, {second} = {tex(b)}", frozenset(((first, a), (second, b))))

    def texts(p: Fraction, q: Fraction) -> tuple[list[str], list[str]]:
        code = [
            f"{first} = {plain(p)}, {second} = {plain(q)}",
            f"{first}={plain(p)}, {second}={plain(q)}",
            f"{first} = {plain(p)} and {second} = {plain(q)}",
        ]
        code += [f"{second} = {plain(q)}, {first} = {plain(p)}", f"({first}, {second}) = ({plain(p)}, {plain(q)})"]
        latex = [rf"{first} = {tex(p)},\ {second} = {tex(q)}", rf"{first} = {tex(p)}, \quad {second} = {tex(q)}"]
        latex += [
            rf"({first}, {second}) = \left({tex(p)}, {tex(q)}\right)",
            rf"{first} = {tex(p)} \text{{ and }} {second} = {tex(q)}",
        ]
        latex += [rf"\begin{{cases}} {first} = {tex(p)} \\ {second} = {tex(q)} \end{{cases}}"]
        return code, latex

    code, latex = texts(a, b)
    draw.right("list", *code[:3])
    draw.right("other order", code[3])
    draw.right("pair", code[4])
    draw.right("latex", *latex, form="latex")
    for kind, p, q in (
        ("values swapped", b, a),
        ("sign flipped", -a, b),
        ("sign flipped", a, -b),
        ("off by one", a + 1, b),
        ("off by one", a, b - 1),
    ):
        code, latex = texts(p, q)
        value = frozenset(((first, p), (second, q)))
        draw.wrong(kind, value, *code)
        draw.wrong(kind, value, *latex, form="latex")
    draw.wrong("one missing", frozenset(((first, a),)), f"{first} = {plain(a)}")
    draw.wrong("sum", a + b, plain(a + b))
    return draw


@family(
    "number_lists",
    "all numbers with a property: sets, lists with `and`, bullets, any order; the count, one more are wrong",
)
def number_lists(rng: random.Random) -> Draw:
    if rng.random() < 0.5:
        n = rng.choice((18, 20, 28, 32, 44, 45, 50, 52, 63, 68, 75, 76, 92, 98))
        found = [d for d in range(1, n + 1) if n % d == 0]
        question, work = (
            f"List all positive divisors of {n}.",
            "We test every integer up to the square root; divisors come in pairs.",
        )
    else:
        lo = rng.randint(10, 60)
        found = [p for p in range(lo, lo + 22) if all(p % k for k in range(2, p))]
        question, work = (
            f"Which prime numbers lie between {lo} and {lo + 21}, both included?",
            "We sieve by 2, 3, 5 and 7.",
        )
    draw = Draw(question, "\\{" + ", ".join(map(str, found)) + "\\}", frozenset(found), work, form="latex")

    def add(kind: str, numbers: list[int]) -> None:
        shuffled = rng.sample(numbers, len(numbers))
        for order in (numbers, shuffled):
            plain = ", ".join(map(str, order))
            latex = [
                f"\\{{{plain}\\}}",
                f"\\left\\{{ {', '.join(map(str, order))} \\right\\}}",
                "\\{" + ",\\, ".join(map(str, order)) + "\\}",
            ]
            texts = [
                plain,
                " and ".join((", ".join(map(str, order[:-1])), str(order[-1]))),
                ", ".join(f"${k}$" for k in order),
            ]
            draw.add(kind, frozenset(numbers), *latex)
            draw.add(f"{kind}, listed", frozenset(numbers), *texts, form="text")

    add("right", found)
    i = rng.randrange(len(found))
    add("one missing", found[:i] + found[i + 1 :]) if len(found) > 2 else None
    extra = next(k for k in range(found[-1] // 2 + 1, found[-1] + 9) if k not in found)
    add("one more", sorted([*found, extra]))
    add("one other", sorted([*found[:i], extra, *found[i + 1 :]]))
    draw.wrong("count", ("count", len(found)), str(len(found)), form="plain")
    draw.wrong("sum", ("sum", sum(found)), str(sum(found)), form="plain")
    return draw


@family("ordered_lists", "numbers sorted, as was asked for: two swapped or one missing is wrong")
def ordered_lists(rng: random.Random) -> Draw:
    items = list(map(str, sorted(rng.sample(range(-30, 100), rng.randint(4, 7)))))
    shuffled = items[:]
    while shuffled == items:
        rng.shuffle(shuffled)
    gold = tuple(items)
    draw = Draw(f"Sort these numbers in increasing order: {', '.join(shuffled)}.", ", ".join(items), gold)

    def texts(values: Sequence[str]) -> list[str]:
        return [", ".join(values), ",".join(values), f"[{', '.join(values)}]", f"({', '.join(values)})"]

    draw.right("commas", *texts(items)[:2])
    draw.right("brackets", *texts(items)[2:])
    at = rng.randrange(len(items) - 1)
    swapped = [*items[:at], items[at + 1], items[at], *items[at + 2 :]]
    for kind, values in (
        ("two swapped", swapped),
        ("reversed", items[::-1]),
        ("one missing", items[:at] + items[at + 1 :]),
        ("one twice", [*items[: at + 1], *items[at:]]),
        ("as given", shuffled),
        ("last missing", items[:-1]),
        ("last one first", [items[-1], *items[:-1]]),
    ):
        draw.wrong(kind, tuple(values), *texts(values))
    return draw
