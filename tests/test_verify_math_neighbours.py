"""Right values that are no answers: hedged equations, echoes, count words; and answers with an explanation."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.types import Task
from assay.verify.math import Math
from assay.verify.math.explained import explained

JUDGE = Math()
UNION = r"(-\infty, 2) \cup (7, \infty)"


def passes(question: str, reference: str, response: str) -> bool | None:
    return JUDGE(Task("row", question, reference=reference, kind="math"), response).passed


@pytest.mark.parametrize(
    ("question", "reference", "equation"),
    [
        ("Evaluate log_2(64).", "6", r"$\log_{2} 64 = 6$"),
        ("Find the mode of 4, 9, 9, 2.", "9", "$m = 9$"),
        ("Solve x^2 - 9x + 14 > 0 in interval notation.", UNION, rf"$x \in {UNION}$"),
        ("Solve x^2 = 49.", r"\{-7, 7\}", r"$x \in \{-7, 7\}$"),
        ("Where does the line meet the axis?", "x = 8", "$x = 8$"),
    ],
)
def test_a_hedge_or_denial_counts_in_front_of_an_equation_too(question: str, reference: str, equation: str) -> None:
    assert passes(question, reference, f"{equation}") is True
    assert passes(question, reference, f"Therefore {equation}.") is True
    for frame in (
        "Definitely not {}.",
        "It is not {}.",
        "Certainly not {}.",
        "It might be {}, but it might just as well be 1.",
        "It could be {}, though it could also be 1.",
        "It may well be {}.",
        "It can't be that {}.",
    ):
        assert passes(question, reference, frame.format(equation)) is False, frame


@pytest.mark.parametrize(
    "response",
    ["It is one of these: 3; mode = 4; mode = 9.", "One of the following: 2, 4, m = 9", "Any of these: m = 4; m = 9."],
)
def test_one_of_several_values_is_no_answer(response: str) -> None:
    assert passes("Find the mode of 4, 9, 9, 2.", "9", response) is False


CONVERSIONS = [
    ("How many minutes are there in 3.5 hours?", "210", "3.5 hours", "210 minutes"),
    ("How many grams are in 4 kg?", "4000 g", "4 kg", "4000 grams"),
    ("What is 6 km in metres?", "6000 m", "6 km", "6000 m"),
]


@pytest.mark.parametrize(("question", "reference", "given_quantity", "answer"), CONVERSIONS)
def test_a_quantity_of_the_question_is_an_echo(question: str, reference: str, given_quantity: str, answer: str) -> None:
    for frame in ("{}", "The answer is {}.", r"\boxed{{\text{{{}}}}}"):
        assert passes(question, reference, frame.format(given_quantity)) is False, frame
        assert passes(question, reference, frame.format(answer)) is True, frame


def test_the_quantity_of_the_question_does_not_stand_in_for_a_wrong_number() -> None:
    question = "How many minutes are there in 3.5 hours?"
    assert passes(question, "210", "There are two hundred ten minutes in 3.5 hours.") is True
    assert passes(question, "210", "There are two hundred one minutes in 3.5 hours.") is False
    assert passes("A film lasts 120 minutes. How long is that?", "2 hours", "120 minutes") is True


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_padded_item_makes_no_list(whole: int, digit: int) -> None:
    assert passes("Solve.", f"{whole},{digit}", f"{whole},0{digit}") is False
    assert passes("Solve.", f"{whole}, 0{digit}", f"{whole}, 0{digit}") is True
    assert passes("Solve.", f"{whole}, {digit}", f"{whole},{digit}") is True


def test_a_decimal_comma_has_an_order() -> None:
    assert passes("Schreibe 13/5 als Dezimalzahl.", "2,6", "6,2") is False
    assert passes("Schreibe 13/5 als Dezimalzahl.", "2,6", "2,6") is True
    assert passes("Solve x^2 - 8x + 12 = 0.", "2,6", "6,2") is True


@pytest.mark.parametrize(
    "response",
    ["4 dozen rolls each", r"\boxed{4} million", "Es sind 4 Dutzend Brötchen.", "$4$ thousand", "There are 4 tenths."],
)
def test_a_count_word_behind_the_value_makes_another_number(response: str) -> None:
    assert passes("Two dozen rolls are shared by 6 people. How many does each get?", "4", response) is False


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        ("How many dozen rolls are 48 rolls?", "4", "4 dozen"),
        ("How many dozen is that?", "4 dozen", "4 dozen"),
        ("How many people live there?", "4 million", "4 million people"),
        ("How many eggs are there?", "48", "4 dozen eggs"),
        ("How far is it?", "4 miles", "4 miles"),
        ("How much energy is it?", "4 kWh", "4千瓦时"),
    ],
)
def test_a_count_word_that_is_asked_for_stands(question: str, reference: str, response: str) -> None:
    assert passes(question, reference, response) is True


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Two angles of a triangle are 50° and 60°. Find the third.", "70^\\circ", "70 degrees"),
        ("What is the determinant?", "-5", "det = -5"),
        ("책 한 권이 12원입니다. 5권은 모두 몇 원입니까?", "60", "60원"),
    ],
)
def test_an_explanation_behind_the_answer_takes_nothing_from_it(question: str, reference: str, answer: str) -> None:
    assert passes(question, reference, f"{answer}\n\nExplanation: Apply the usual rule to the numbers given.") is True
    for told in (
        "Explanation: This is not it.",
        "Explanation: The sum gives = 11.",
        "Explanation: Someone said so.",
        "Explanation: The result is 12.",
        "Explanation: Wait, the sign is wrong.",
        "Reason: I picked it at random.",
    ):
        assert passes(question, reference, f"{answer}\n\n{told}") is False, told


def test_an_answer_with_its_reason_is_the_answer_and_a_guess_is_none() -> None:
    question = "What is the largest two-digit multiple of 7?"
    assert passes(question, "98", "98, because 7 · 14 = 98") is True
    assert passes(question, "98", "It is 98, since neither 99 nor 100 works.") is True
    assert passes(question, "98", "98, because I guess.") is False
    assert passes(question, "98", "91, because 98 is too large") is False


def test_a_remainder_may_name_its_modulus_and_a_product_its_vectors() -> None:
    question = "Find the remainder when 5^40 is divided by 11."
    assert passes(question, "1", "1 (mod 11)") is True
    assert passes(question, "1", "1 (mod 7)") is False
    assert passes(question, "12", "12 (mod 11)") is False
    product = "Compute the dot product of (1, 4) and (3, 2)."
    assert passes(product, "11", r"$a \cdot b = 11$") is True
    assert passes(product, "11", r"$a \cdot b = 10$") is False
    assert passes("Find b where a = 2.", "11", r"$a \cdot b = 11$") is False


def test_named_parts_may_stand_in_a_list_with_bullets() -> None:
    question = "Find the mean and the range of 1, 3, 8."
    assert passes(question, "mean 4, range 7", "- Mean: **4**\n- Range: **7**") is True
    assert passes(question, "mean 4, range 7", "- Mean: **7**\n- Range: **4**") is False


@pytest.mark.parametrize("piece", ["Explanation: ", "\n\n", "\n \n(", "Why: a\n\n"])
def test_explanations_are_looked_for_in_bounded_time(piece: str) -> None:
    start = time.process_time()
    explained(piece * (200_000 // len(piece)))
    assert time.process_time() - start < 1
