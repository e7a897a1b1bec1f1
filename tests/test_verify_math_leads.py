"""What the sentence of an answer says around its value: whose answer it is, of what, and how it is given."""

from __future__ import annotations

import pytest

from assay.types import Task
from assay.verify.math import Math

JUDGE = Math(symbolic=False)
QUESTIONS = {
    "42": "What is 17 + 25?",
    "7": "How many apples are left?",
    "120 km": "How far does the train travel?",
    "{2, 3}": "Find all real roots of x^2 - 5x + 6 = 0.",
    "(2, 3)": "Solve x^2 - 5x + 6 < 0.",
    r"9\pi": "What is the area of a circle with radius 3, in exact form?",
    "2x+1": "Differentiate x^2 + x.",
    "$12.50": "How much does Anna pay in total?",
    "60 km/h": "What is the speed of the car?",
    "30 minutes": "How long does it take?",
    "3/8": "What fraction of the pizza is left?",
    "25%": "By what percentage did the price increase?",
    r"2\sqrt{3}": "Simplify sqrt(12).",
}


def passes(response: str, reference: str, question: str | None = None) -> bool | None:
    return JUDGE(Task("t", question or QUESTIONS[reference], reference, "math"), response).passed


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("42", "Tom's answer is 42."),
        ("25%", r"Tom's answer: \boxed{25%}"),
        (r"9\pi", r"My brother's result is $9\pi$."),
        ("3/8", "Old answer: 3/8"),
        ("42", "The earlier answer was forty-two."),
        (r"2\sqrt{3}", r"The textbook answer is \boxed{2\sqrt{3}}."),
        ("60 km/h", r"The answer at the end of the book is $60\text{ km/h}$."),
        ("{2, 3}", "The answer without checking is 2 and 3."),
        ("42", "The answer to part (c) is forty-two."),
        ("30 minutes", "The answer that many would give is 30 minutes."),
    ],
)
def test_the_answer_of_somebody_else_or_to_something_else(reference: str, response: str) -> None:
    assert passes(response, reference) is False


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("42", "At first sight the answer is forty-two."),
        ("{2, 3}", "Naively, the answer is {2, 3}."),
        (r"9\pi", r"Superficially, the answer is \boxed{9\pi}."),
        ("3/8", "On the face of it, the answer is 3/8."),
        ("25%", "In the simpler case, the answer is 25%."),
        ("(2, 3)", "For the other train, it is $(2,3)$."),
        ("7", "For n = 1 the answer is seven apples."),
        ("60 km/h", r"Using the wrong formula, the answer is $60\text{ km/h}$."),
        ("$12.50", "Before the discount, the answer is 12.50 dollars."),
        ("2x+1", "Initially I got 2x + 1."),
        ("42", "If the numbers were different, the answer would be forty-two."),
    ],
)
def test_the_answer_at_first_or_in_another_case(reference: str, response: str) -> None:
    assert passes(response, reference) is False


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("120 km", "The answer is a long way from 120 km."),
        ("$12.50", "The answer is a multiple of 12.50 dollars."),
        ("{2, 3}", "The answer is a factor of x = 2 and x = 3."),
        ("42", "The answer is **42** and change."),
        ("30 minutes", "The answer is 30 minutes too low."),
        ("60 km/h", r"It lies below $60\text{ km/h}$."),
        ("7", "Up to seven apples."),
        ("42", "In the neighborhood of forty-two."),
        ("3/8", r"Anything from 5/8 to $\frac{3}{8}$."),
        ("25%", "Over 25 percent."),
        ("{2, 3}", "-x = 2 and 3"),
        ("(2, 3)", "2x = $(2,3)$"),
        ("42", "1/x = 42"),
        (r"9\pi", r"10 - \boxed{9\pi}"),
        ("3/8", r"\boxed{$\frac{3}{8}$} \to 5/8"),
    ],
)
def test_the_answer_is_only_compared_or_computed_with(reference: str, response: str) -> None:
    assert passes(response, reference) is False


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("2x+1", "Old: 2x + 1"),
        (r"2\sqrt{3}", "Was: 2√3"),
        ("3/8", "Placeholder: three eighths"),
        ("30 minutes", "Intermediate result: 30 minutes"),
        ("42", "No clue: 42"),
        ("(2, 3)", "I'm not sure, but (2, 3)."),
        ("42", r"I don't know, so \boxed{42}."),
        ("{2, 3}", r"Put your final answer in \boxed{2, 3}."),
        ("120 km", r"\boxed{120 kilometers}?"),
        (r"2\sqrt{3}", "Maybe <answer>2√3</answer>"),
        ("$12.50", "I want it to be $12.50."),
        ("42", "As if it were $42$."),
        ("2x+1", "If memory serves, $2x + 1$."),
        (r"9\pi", r"Do not box \boxed{9\pi}."),
    ],
)
def test_labels_guesses_and_instructions(reference: str, response: str) -> None:
    assert passes(response, reference) is False


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("7", "Let x = seven apples."),
        ("42", "Using 42 we continue."),
        ("60 km/h", r"We are given $60\text{ km/h}$."),
        (r"9\pi", r"The initial value is $9\pi$."),
        ("25%", "We get 25%, not counting the last one."),
        ("2x+1", "I saw 2x + 1 in the solution."),
        ("120 km", 'The sign reads "**120 km**".'),
        ("{2, 3}", "Tom got {1, 6} and Bob got 2 and 3."),
        ("25%", "25% is his answer."),
        (r"2\sqrt{3}", r"$2\sqrt{3}$ is Tom's answer."),
        ("{2, 3}", "x = 2 and x = 3 is the value of y, not x."),
        ("$12.50", "12.50 dollars doesn't fit."),
        ("120 km", "**120 km** can't be."),
        ("30 minutes", "30 minutes is out of the question."),
        ("42", "forty-two is an answer, but not the answer."),
        ("3/8", r"$\frac{3}{8}$ is too small."),
        ("7", "seven apples would have been the answer."),
    ],
)
def test_steps_reports_and_what_is_said_of_a_value(reference: str, response: str) -> None:
    assert passes(response, reference) is False


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("42", "My answer is 42."),
        ("42", "The correct answer to the problem is 42."),
        ("42", "The answer to the question is 42 because 17 + 25 = 42."),
        ("42", "In the end we get 42."),
        ("42", "In the end, the answer is forty-two."),
        ("42", "Adding the two numbers, the answer is 42."),
        ("42", "Adding 17 and 25 gives 42."),
        ("42", "So, after carrying the one, the answer is 42."),
        ("42", "To sum up, the answer is 42."),
        ("42", "The answer we are looking for is 42."),
        ("42", "The answer comes out to 42."),
        ("42", r"The final answer should therefore be \boxed{42}."),
        ("42", "The sum is $17 + 25 = 42$."),
        ("42", "42 is the answer."),
        ("42", "42 is what we get."),
        ("42", "Final result: 42"),
        ("42", "Total: 42"),
        ("42", "It equals 42, since 7 + 5 = 12 and 1 + 2 + 1 = 4."),
        ("7", "There are seven apples left."),
        ("7", "7 apples are left."),
        ("7", "After eating 3 of them, she has 7 apples left."),
        ("7", "The answer is that 7 apples are left."),
        ("120 km", "Answer: the train travels 120 kilometers."),
        ("120 km", "Altogether, the train travels 120 km."),
        ("120 km", "The distance is 60 km/h times 2 h, so the answer is 120 km."),
        ("{2, 3}", "Factoring, the solutions are x = 2 and x = 3."),
        ("{2, 3}", "The answer is therefore x = 2 or x = 3."),
        ("(2, 3)", "The solution set is $(2, 3)$."),
        ("(2, 3)", "Testing each interval, the answer is 2 < x < 3."),
        (r"9\pi", r"The area is $\pi r^2 = \pi \cdot 3^2 = 9\pi$."),
        (r"9\pi", r"With r = 3, the answer is \boxed{9\pi}."),
        (r"9\pi", "In exact form, the area is 9π."),
        ("2x+1", r"By the power rule, the answer is $2x + 1$."),
        ("2x+1", "f'(x) = 2x + 1"),
        ("$12.50", r"After the discount the answer is \$12.50."),
        ("$12.50", "Anna's total is $12.50."),
        ("$12.50", "In total, Anna pays 12.50 dollars."),
        ("60 km/h", r"Dividing distance by time, the answer is $60\text{ km/h}$."),
        ("30 minutes", "It takes 30 minutes."),
        ("30 minutes", "Rounded to the nearest minute, the answer is 30 minutes."),
        ("3/8", "Three eighths of the pizza is left."),
        ("25%", "The price increased by 25 percent."),
        ("25%", "As a percentage, the answer is 25%."),
        (r"2\sqrt{3}", r"In simplest radical form, the answer is $2\sqrt{3}$."),
    ],
)
def test_plain_statements(reference: str, response: str) -> None:
    assert passes(response, reference) is True


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        ("Tom has 40 apples and buys 2. How many has he?", "42", "Tom has 42 apples, so the answer is 42."),
        ("Tom says 41 and Ann 42. What is Ann's answer?", "42", "Ann's answer is 42."),
        ("What was the price before the discount?", "42", "Before the discount, the answer is 42."),
        ("What is the initial value of f(t) = 42e^t?", "42", "The initial value is 42."),
        ("Which part of 84 is half of it?", "42", "Half of it is 42."),
        ("What does f(x) = 42 - 1/x approach?", "42", "It approaches 42."),
    ],
)
def test_the_words_of_the_question_are_known(question: str, reference: str, response: str) -> None:
    assert passes(response, reference, question) is True
