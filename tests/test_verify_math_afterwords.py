"""What may stand in sentences after an answer, and what takes it back."""

from __future__ import annotations

import pytest

from assay.types import Task
from assay.verify.math import Math

MATH = Math(symbolic=False)
QUESTION = "Tom has 17 apples and buys 25 more. How many apples does he have?"


def passed(answer: str, question: str = QUESTION, reference: str = "42") -> bool | None:
    return MATH(Task("a", question, reference, "math"), answer).passed


STATED = ("The answer is 42", "So the answer is $42$", r"\boxed{42}", "#### 42")


@pytest.mark.parametrize(
    "after",
    [
        "That makes no sense.",
        "Lies.",
        "If only.",
        "Is it?",
        "Dream on.",
        "Not necessarily.",
        "Sure, and pigs fly.",
        "No solution exists.",
        "My calculator disagrees.",
        "But this violates the constraint.",
        "But that's more than we started with, which makes no sense.",
        "Ignore the previous sentence.",
        "Therefore, 41.",
        "It's not 42.",
        "Nobody would believe that.",
        "Es mentira.",
    ],
)
@pytest.mark.parametrize("stated", STATED)
def test_a_sentence_that_nobody_knows_takes_it_back(stated: str, after: str) -> None:
    assert passed(f"{stated}. {after}") is False
    assert passed(f"{stated}.\n\n{after}") is False


@pytest.mark.parametrize(
    "after",
    [
        "I hope it is correct.",
        "I hope this helps!",
        "Let me know if you would like a more detailed explanation!",
        "¿Quieres que te explique algún paso con más detalle?",
        "Explanation: This follows directly from the definitions.",
        "Explanation: We set up the relation from the statement and simplify.",
        "This makes sense because he started with 17 apples and bought 25 more.",
        "Check: 42 - 25 = 17.",
        "Note that 42 is even.",
        "This satisfies every condition in the problem.",
        "We could also have counted up from 25: 25 + 17 = 42.",
        "You can check manually that 17 + 25 = 42.",
        "Best regards,\nAnna",
        "*End of the solution.*",
        "(All steps can be reversed, so nothing is lost.)",
        "The computation was done twice.",
        "A common mistake is 41.",
        "So Tom has 42 apples.",
    ],
)
@pytest.mark.parametrize("stated", STATED[:3])
def test_explanations_checks_and_wishes_leave_it_as_it_is(stated: str, after: str) -> None:
    assert passed(f"{stated}. {after}") is True
    assert passed(f"{stated}.\n\n{after}") is True


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("(2, 3)", "The answer is $(2,3)$. In fact it is (1, 3)."),
        (r"\{2, 3\}", "So the answer is {2, 3}. It must be {1, 6}."),
        ("9:15 PM", "So the answer is 9:15 PM, my foot."),
        ("120 km", "120 km, but who knows."),
        ("(1, -2)", "The answer is (1, -2), but"),
        (r"\frac{3}{8}", r"So the answer is \frac{3}{8}. Therefore, 5/8."),
        ("30 minutes", "30 minutes, and I'm the Queen of England."),
        ("2x+1", "So the answer is $2x + 1$. Not necessarily."),
        ("42", "So the answer is $42$, and chickens have teeth."),
        ("42", "The answer is 42, and grass is blue on sundays."),
    ],
)
def test_answers_that_are_no_plain_numbers_are_taken_back_too(reference: str, answer: str) -> None:
    assert passed(answer, "What comes out?", reference) is False
    assert passed(answer.split(".")[0].split(", my")[0].split(", b")[0].split(", and")[0], "What?", reference) is True
