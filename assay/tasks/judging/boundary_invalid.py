"""Responses, questions and references of which nothing can be judged."""

from __future__ import annotations

import numpy as np

from assay.tasks.judging.pattern import Drawn, among, pattern, words


@pattern("C", "multi_subproblem", "math")
def reference_of_other_parts(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 3, 20), among(rng, 3, 20)
    question = f"A box is {a} by {b}. (1) What is its area? (2) What is its perimeter?"
    return question, f"(1) {a * b}; (2) {2 * (a + b)}; (3) {a + b}", f"(1) {a * b}; (2) {2 * (a + b)}"


@pattern("C", "formula", "math")
def reference_is_cut(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 2, 9), among(rng, 10, 30)
    return f"What is the slope of the line through (0, 0) and ({b}, {a})?", rf"\frac{{{a}}}{{", rf"\frac{{{a}}}{{{b}}}"


@pattern("C", "short_text", "knowledge")
def question_is_cut(rng: np.random.Generator) -> Drawn:
    one, other = words(rng, 2)
    return f"Of the words {one} and {other}, which one has the", one, f"{other}"


@pattern("C", "short_text", "knowledge", whole=True)
def asks_for_more(rng: np.random.Generator) -> Drawn:
    one, other = words(rng, 2)
    said = f"Could you give me more information about {one} and {other}? Without it I cannot answer."
    return f"Which is longer, {one} or {other}?", "equally long", said


@pattern("C", "numerical", "science", whole=True)
def has_no_access(rng: np.random.Generator) -> Drawn:
    n = among(rng, 2, 30)
    said = "I am sorry, I have no access to the internet, and cannot look this up."
    return f"How many protons has the atom with atomic number {n}?", str(n), said


@pattern("C", "numerical", "math", whole=True)
def breaks_off(rng: np.random.Generator) -> Drawn:
    a, b = among(rng, 101, 999), among(rng, 11, 99)
    tens = b // 10 * 10
    said = f"<think>I split {b} into {tens} and {b - tens}. First {a} * {tens} = {a * tens}, and th"
    return f"What is {a} * {b}?", str(a * b), said


@pattern("C", "sequence", "reasoning", whole=True)
def is_no_text(rng: np.random.Generator) -> Drawn:
    chosen = words(rng, 5)
    noise = "".join(chr(int(c)) for c in rng.integers(0x2500, 0x2600, size=60))
    return f"Sort: {' '.join(chosen)}", " ".join(sorted(chosen)), f"{chosen[0]} {noise}"


@pattern("C", "numerical", "reasoning", whole=True)
def goes_round_in_circles(rng: np.random.Generator) -> Drawn:
    a = among(rng, 20, 90)
    said = " ".join([f"Now we count on from {a}."] * among(rng, 12, 24))
    return f"What is the next prime after {a}?", str(next(p for p in range(a + 1, 200) if _prime(p))), said


def _prime(n: int) -> bool:
    return all(n % k for k in range(2, int(n**0.5) + 1))
