"""Answers that look unlike the reference and are right."""

from __future__ import annotations

import numpy as np

from assay.tasks.judging.pattern import Drawn, among, pattern, words


@pattern("A", "numerical", "science")
def unit_converts(rng: np.random.Generator) -> Drawn:
    cm = 10 * among(rng, 11, 99)
    return f"A rope of {2 * cm} cm is cut in half. How long is a half?", f"{cm} cm", f"{cm / 100:.2f} m"


@pattern("A", "numerical", "science")
def sign_of_a_decrease(rng: np.random.Generator) -> Drawn:
    high, fall = among(rng, 20, 40), among(rng, 3, 15)
    question = f"It is {high} degrees, and then {high - fall}. By how much does the temperature decrease?"
    return question, f"{fall}", f"-{fall} (a decrease)"


@pattern("A", "formula", "math")
def form_not_asked_for(rng: np.random.Generator) -> Drawn:
    a = among(rng, 2, 12)
    return f"What is the area of a square with side x + {a}?", f"x^2 + {2 * a}x + {a * a}", f"(x + {a})^2"


@pattern("A", "short_text", "knowledge")
def one_of_alternatives(rng: np.random.Generator) -> Drawn:
    one, other = words(rng, 2)
    return f"Name a word from the list that is a noun: {one}, softly, {other}.", f"{one} or {other}", other


@pattern("A", "numerical", "math")
def number_for_a_power(rng: np.random.Generator) -> Drawn:
    n = among(rng, 4, 12)
    return f"How many strings of {n} bits are there?", f"2^{{{n}}}", str(2**n)


@pattern("A", "sequence", "reasoning")
def order_and_case_are_free(rng: np.random.Generator) -> Drawn:
    chosen = words(rng, 3)
    question = f"Which of the words {', '.join(sorted([*chosen, 'run']))} have more than three letters? Any order."
    return question, ", ".join(chosen), ", ".join(w.capitalize() for w in reversed(chosen))


@pattern("A", "multiple_choice", "knowledge", whole=True)
def letter_after_hesitation(rng: np.random.Generator) -> Drawn:
    options = words(rng, 4)
    right, other = (int(k) for k in rng.choice(4, size=2, replace=False))
    question = f"Which word begins with {options[right][0]}? " + _listed(options)
    said = f"It might be {'ABCD'[other]}. No: that begins with {options[other][0]}. I choose {'ABCD'[right]}."
    return question, "ABCD"[right], said


@pattern("A", "numerical", "math", whole=True)
def corrected_itself(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 12, 60), among(rng, 12, 60)
    said = f"The answer is {a + b + 10}. Wait, I carried twice. Again: {a} + {b} = {a + b}. The answer is {a + b}."
    return f"What is {a} + {b}?", str(a + b), said


@pattern("A", "multi_subproblem", "math", whole=True)
def parts_are_scattered(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 3, 20), among(rng, 3, 20)
    question = f"A box is {a} by {b}. (1) What is its area? (2) What is its perimeter?"
    said = f"For (1) we multiply and find {a * b}. That was the easy part. Now for (2): twice the sum is {2 * (a + b)}."
    return question, f"(1) {a * b}; (2) {2 * (a + b)}", said


@pattern("A", "short_text", "reasoning")
def another_valid_object(rng: np.random.Generator) -> Drawn:
    n = among(rng, 12, 40)
    return f"Give any two different positive integers whose sum is {n}.", f"1 and {n - 1}", f"{n - 3} and 3"


def _listed(options: list[str]) -> str:
    return " ".join(f"({letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
