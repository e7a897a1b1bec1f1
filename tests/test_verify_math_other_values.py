"""Values that answer another question, or that stand beside another value as its equal."""

from __future__ import annotations

import pytest

from assay.types import Task
from assay.verify.math import Math

APPLES = "How many apples are left?"
TRAIN = "How far does the train travel?"
SUM = "What is 17 + 25?"
PAY = "How much does Anna pay in total?"
ROOTS = "Find all real roots of x^2 - 5x + 6 = 0."


def passes(question: str, reference: str, response: str) -> bool | None:
    return Math(symbolic=False)(Task("t", question, reference, "math"), response).passed


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        (SUM, "42", "My house was built with 42 windows."),
        (SUM, "42", "I am 42 years old."),
        (SUM, "42", "42 is a number."),
        (SUM, "42", "The problem mentions 42."),
        (TRAIN, "120 km", "Room 120 km"),
        (PAY, "$12.50", "12.50 dollars rings a bell."),
        (ROOTS, "{2, 3}", "I made up x = 2 and x = 3."),
        (PAY, "$12.50", "He got $14.50, she got 12.50 dollars."),
    ],
)
def test_a_statement_that_nothing_ties_to_the_question_is_no_answer(question, reference, response):
    assert passes(question, reference, response) is False


@pytest.mark.parametrize("label", ["Confidence", "Loss", "Number of steps", "Nope", "No", "TBD", "Temperature", "From"])
def test_a_label_has_to_announce_an_answer(label):
    assert passes(SUM, "42", f"{label}: 42") is False


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        (SUM, "42", "Sum: 42"),
        (SUM, "42", "Answer: 42"),
        (SUM, "42", "Total: 42"),
        (SUM, "42", "TL;DR: 42"),
        (APPLES, "7", "Apples left: 7"),
        (TRAIN, "120 km", "Distance: 120 km"),
        (TRAIN, "120 km", "It covers a distance of 120 km."),
        (APPLES, "7", "She has seven."),
        (SUM, "42", "17 + 25 is the same as 20 + 22, which makes 42."),
        ("Evaluate log_2 32.", "5", "The logarithm is five."),
    ],
)
def test_words_of_the_question_and_of_its_quantity_tie_an_answer(question, reference, response):
    assert passes(question, reference, response) is True


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        (SUM, "42", "41\n42"),
        (SUM, "42", "41\nforty-two"),
        (SUM, "42", "41 or\n42"),
        (SUM, "42", "41 = 42"),
        (SUM, "42", "41[^1]\n\n[^1]: 42"),
        (SUM, "42", "| Answer |\n|---|\n| 41 |\n| 42 |"),
        (TRAIN, "120 km", "- [x] 150 km\n- [ ] 120 kilometers"),
        (ROOTS, "{2, 3}", "{1, 6}\n{2, 3}"),
        (ROOTS, "{2, 3}", "The answer is {2, 3}. {1, 6} also works."),
    ],
)
def test_two_values_side_by_side_are_no_answer(question, reference, response):
    assert passes(question, reference, response) is False


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        (SUM, "42", "42\nforty-two"),
        (SUM, "42", "17 + 25 = 20 + 22 = 42"),
        ("What is 12²?", "144", "12² = 144"),
        ("How many grams are in 2.4 kg?", "2400 g", "2.4 kg = 2400 g"),
        ("How many fruits are there in total?", "65", "Apples: 13\nPears: 52\nTotal: 65"),
        ("Solve x + y = 5, x - y = -1.", "x = 2, y = 3", "x = 2\ny = 3"),
        ("What is 1/3 rounded to two decimals?", "0.33", "1/3 ≈ 0.33"),
    ],
)
def test_the_same_value_twice_and_work_are_answers(question, reference, response):
    assert passes(question, reference, response) is True


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ('{"answer": 42}', True),
        ('{"reasoning": "17 + 25", "answer": 42, "confidence": 0.9}', True),
        ('{"answer": 42, "final": true}', True),
        ('{"answer": 42, "final": false}', False),
        ('{"answer": 42, "status": "wrong"}', False),
        ('{"answer": 42, "verdict": "refuted"}', False),
        ('{"answer": 41, "answer": 42}', False),
        ('{"guess": 42}', False),
        ('{"wrong_answer": 42}', False),
    ],
)
def test_members_beside_an_answer(response, right):
    assert passes(SUM, "42", response) is right
