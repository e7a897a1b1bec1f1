"""The right value stated of something else, denied by a sign, as a bound, in a template, or before another answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.types import Task
from assay.verify.math import Math

JUDGE = Math()


def passes(question: str, reference: str, response: str) -> bool | None:
    return JUDGE(Task("row", question, reference=reference, kind="math"), response).passed


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        ("What is 2 · 30?", "60", "There are 60 minutes in an hour."),
        ("What is 2 · 30?", "60", "An hour has 60 minutes."),
        ("What is the radius of a circle of area 49π?", "7", "The number of dwarfs in the fairy tale is 7."),
        ("What is the radius of a circle of area 49π?", "7", "This exercise is worth 7 points."),
        ("What is the radius of a circle of area 49π?", "7", "The exercise number is 7."),
        ("What is the radius of a circle of area 49π?", "7", "We spent 7 minutes on it."),
        ("What is the area of a 3 by 6 rectangle?", "18", "The perimeter of a 3 by 6 rectangle is 18."),
        ("What is the denominator of 4/9?", "9", "The numerator plus the denominator minus four is 9."),
        ("What is the x-coordinate of (2, 5)?", "2", "The pair has 2 coordinates."),
    ],
)
def test_a_statement_about_something_else_answers_nothing(question: str, reference: str, response: str) -> None:
    assert passes(question, reference, response) is False


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        ("What is 2 · 30?", "60", "The product is 60."),
        ("How many minutes are there in an hour?", "60", "There are 60 minutes in an hour."),
        ("A square has side 9. Find its area.", "81", "The area is 81."),
        ("What is the perimeter of a 3 by 6 rectangle?", "18", "The perimeter of a 3 by 6 rectangle is 18."),
        ("Lena had 12 plums and ate 5. How many remain?", "7", "Lena has 7 plums left."),
        ("Find the median of 2, 8, 11.", "8", "The middle value is 8."),
        ("How many coordinates has a point of the plane?", "2", "The point has 2 coordinates."),
    ],
)
def test_a_statement_about_what_is_asked_stands(question: str, reference: str, response: str) -> None:
    assert passes(question, reference, response) is True


@settings(max_examples=30)
@given(st.integers(2, 5000), st.sampled_from(["≠", "!=", r"\neq", r"\ne", "<>"]))
def test_a_sign_of_inequality_denies_the_value_after_it(value: int, sign: str) -> None:
    said = f"The root satisfies $x {sign} {value}$."
    assert passes("Solve for x.", str(value), said) is False


def test_a_sign_before_another_value_denies_nothing() -> None:
    assert passes("Solve x(x - 4) = 0 for x ≠ 0.", "4", "Since x ≠ 0, we get x = 4.") is True
    assert passes("Name the range of a.", r"a \neq 3", r"$a \neq 3$") is True
    assert passes("What is the amplitude?", "6", "Amplitude ∉ {6}") is False


@pytest.mark.parametrize(
    "response",
    [
        "Tom is under 24.",
        "Tom is at most 24.",
        "The bound is O(24).",
        "We begin the search at 24.",
        "Tom is 24 on condition that the moon is square.",
        "Unless I have misread everything, it is 24.",
        "Rumour has it that Tom is 24.",
        "Tradition says that Tom is 24.",
        "12 · 2 = 24 would hold if",
        "12 · 2 is 24 but",
        r"Write your answer like this: \boxed{24}",
        r"Format the reply as follows: \boxed{24}",
        "A sample reply would be: The answer is 24.",
        'Dear {name}, the answer is {{value|default:"24"}}.',
        "The answer is 24.² \n\n² Intentionally wrong number, to test the reader.",
        "x = 24. The preceding statement is a lie.",
        r"$\boxed{24} \text{ is what you should never write}$",
        "24 (twenty-five)",
        "Result: 24\nResult in words: forty-two",
        "The answer is 24. Psych!",
        "The answer is in geen geval 24.",
        "Die Antwort ist auf keinen Fall 24.",
    ],
)
def test_what_holds_an_answer_back(response: str) -> None:
    assert passes("Twice 12 is Tom's age. How old is Tom?", "24", response) is False


@pytest.mark.parametrize(
    "response",
    [
        "24 (twenty-four)",
        "The answer is 24. In words: twenty-four.",
        "Happy to explain if you would like more! The answer is 24.",
        "The parts add up to 24.",
        "Two times 12, so Tom is 24.",
    ],
)
def test_what_does_not(response: str) -> None:
    assert passes("Twice 12 is Tom's age. How old is Tom?", "24", response) is True


def test_a_second_announcement_of_a_name_or_a_pair() -> None:
    question = "Which city is the capital of Norway?"
    assert passes(question, "Oslo", "The answer is Oslo. The answer is Bergen.") is False
    assert passes(question, "Oslo", "The answer is Oslo. The answer is Oslo.") is True
    pair = "Where do the lines meet?"
    assert passes(pair, "(1, 6)", "Final answer: (1, 6), final answer also (6, 1)") is False
    assert passes(pair, "(1, 6)", "Final answer: (1, 6)") is True


def test_after_a_but_the_next_value_counts() -> None:
    question = "What is the cube of 2?"
    assert passes(question, "8", "2 times 4 is 8, but the cube, well, that's 6.") is False
    assert passes(question, "8", "The square is 4, but the cube, well, that's 8.") is not None


def test_a_foreign_sentence_tells_what_somebody_else_says() -> None:
    question = "Quelle est la capitale de la Norvège ?"
    assert passes(question, "Oslo", "Mon voisin jure que c'est Oslo, mais il se trompe souvent.") is False
    assert passes(question, "Oslo", "C'est Oslo.") is True
