"""Answers that look like the reference, or hold it, and are wrong."""

from __future__ import annotations

import numpy as np

from assay.tasks.judging.pattern import Drawn, among, pattern, words


@pattern("B", "multiple_choice", "knowledge")
def letter_with_other_content(rng: np.random.Generator) -> Drawn:
    options = words(rng, 4)
    right, other = (int(k) for k in rng.choice(4, size=2, replace=False))
    listed = " ".join(f"({letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
    question = f"Which word begins with {options[right][0]}? {listed}"
    return question, f"({'ABCD'[right]}) {options[right]}", f"({'ABCD'[right]}) {options[other]}"


@pattern("B", "numerical", "math")
def not_simplified(rng: np.random.Generator) -> Drawn:
    a, k = among(rng, 2, 9), among(rng, 2, 6)
    return f"Simplify {a * k}/{(a + 1) * k}.", f"{a}/{a + 1}", f"{a * k}/{(a + 1) * k}"


@pattern("B", "short_text", "knowledge")
def form_violated(rng: np.random.Generator) -> Drawn:
    day, month = among(rng, 1, 29), among(rng, 0, 3)
    name, number = (("March", "03"), ("May", "05"), ("July", "07"))[month]
    question = f"When does the fair begin that opens on day {day} of {name}? Write it as DD/MM."
    return question, f"{day:02d}/{number}", f"{name} {day}"


@pattern("B", "formula", "reasoning")
def number_used_twice(rng: np.random.Generator) -> Drawn:
    a, b, c = (int(x) for x in rng.choice(np.arange(2, 10), size=3, replace=False))
    question = f"Write {a * b + c} with the numbers {a}, {b} and {c}, each of them once."
    return question, f"{a} * {b} + {c}", f"{a} * {b} + {c} + {a} - {a}"


@pattern("B", "formula", "math")
def worked_out_too_far(rng: np.random.Generator) -> Drawn:
    a, b, x = among(rng, 2, 9), among(rng, 2, 9), among(rng, 2, 9)
    question = f"Put x = {x} into {a}x + {b}. Only write the expression down, do not work it out."
    return question, f"{a} * {x} + {b}", str(a * x + b)


@pattern("B", "numerical", "math", whole=True)
def code_without_result(rng: np.random.Generator) -> Drawn:
    n = among(rng, 20, 200)
    question = f"What is the sum of the integers from 1 to {n}?"
    return question, str(n * (n + 1) // 2), f"```python\nprint(sum(range(1, {n + 1})))\n```"


@pattern("B", "numerical", "math")
def nearly_equal(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 101, 999), among(rng, 11, 99)
    return f"What is {a} * {b}?", str(a * b), str(a * b + int(rng.choice([-10, -1, 1, 10])))


@pattern("B", "formula", "math")
def ends_of_an_interval(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, -9, 0), among(rng, 1, 9)
    return f"For which x is (x - {a})(x - {b}) <= 0?".replace("- -", "+ "), f"[{a}, {b}]", f"[{a}, {b})"


@pattern("B", "sequence", "reasoning")
def swapped_in_a_long_list(rng: np.random.Generator) -> Drawn:
    chosen = words(rng, 9)
    right = sorted(chosen)
    k = among(rng, 2, 7)
    said = [*right[:k], right[k + 1], right[k], *right[k + 2 :]]
    return f"Sort: {' '.join(chosen)}", " ".join(right), " ".join(said)


@pattern("B", "sequence", "math")
def one_of_all_required(rng: np.random.Generator) -> Drawn:
    a, b = (int(x) for x in rng.choice(np.arange(1, 10), size=2, replace=False))
    return f"Find all x with x^2 - {a + b}x + {a * b} = 0.", f"{a} and {b}", str(a)


@pattern("B", "boolean", "reasoning", whole=True)
def changed_to_wrong(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 10, 50), among(rng, 51, 99)
    said = f"Yes, {b} is larger. But then it is not said larger in which sense, so on reflection the answer is no."
    return f"Is {b} larger than {a}?", "Yes", said


@pattern("B", "sequence", "reasoning")
def broken_symbols(rng: np.random.Generator) -> Drawn:
    chosen = [str(x) for x in rng.choice(["(", "[", "{"], size=6)]
    close = "".join({"(": ")", "[": "]", "{": "}"}[x] for x in reversed(chosen))
    k = among(rng, 1, 5)
    return f"Close the brackets: {''.join(chosen)}", close, close[:k] + "\N{REPLACEMENT CHARACTER}" + close[k + 1 :]


@pattern("B", "numerical", "science")
def other_digits_behind(rng: np.random.Generator) -> Drawn:
    n = 2 * among(rng, 1000, 9999) + 1
    value = f"{n / 1000:.3f}"
    # Rounded to the three decimals that are asked for, it is one more in the last.
    return f"What does the scale show, in g, to three decimals, at {value}2 g?", value, f"{value}8"


@pattern("B", "formula", "math")
def another_huge_power(rng: np.random.Generator) -> Drawn:
    n = among(rng, 60, 200)
    return f"How many subsets has a set of {n} elements?", f"2^{{{n}}}", f"2^{{{n - 1}}}"


@pattern("B", "short_text", "knowledge", whole=True)
def no_clear_answer(rng: np.random.Generator) -> Drawn:
    one, other, third = words(rng, 3)
    said = f"Some would say {one}, which has its merits; there is a case for {other} as well, and for {third}."
    return f"Which comes first in the alphabet: {one}, {other} or {third}?", min(one, other, third), said


@pattern("B", "multi_subproblem", "math")
def parts_are_missing(rng: np.random.Generator) -> Drawn:
    a, b, c = among(rng, 3, 20), among(rng, 3, 20), among(rng, 3, 20)
    question = f"A box is {a} by {b} by {c}. (1) Its volume? (2) Its longest edge? (3) Its shortest edge?"
    return question, f"(1) {a * b * c}; (2) {max(a, b, c)}; (3) {min(a, b, c)}", f"(1) {a * b * c}; (2) {max(a, b, c)}"
