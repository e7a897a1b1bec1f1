"""An unmarked answer counts in a plain statement alone: of known words, and not on the way to another value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.types import Task
from assay.verify.math import Math
from assay.verify.math.english import plain_words
from assay.verify.math.plainly import plainly

JUDGE = Math()


def passes(question: str, reference: str, response: str) -> bool | None:
    return JUDGE(Task("row", question, reference=reference, kind="math"), response).passed


VALUES = [
    ("Solve 4x + 1 = 25.", "6", "x = 6"),
    ("How many chairs are there in 3 rows of 7?", "21", "21 chairs"),
    ("What is the area of a disc of radius 4?", r"16\pi", "$16\\pi$"),
]


@pytest.mark.parametrize(("question", "reference", "value"), VALUES)
@pytest.mark.parametrize(
    "frame",
    [
        "After a few steps I can rule out {}.",
        "You'd be mistaken to write {}.",
        "One would be misguided to settle on {}.",
        "The total is unequal to {}.",
        "It would be foolish to reply {}.",
        "Any sensible solver dismisses {}.",
        "I shudder at {}.",
        "Nobody sane would defend {}.",
    ],
)
def test_a_word_that_nobody_knows_from_plain_solutions_holds_an_answer_back(
    question: str, reference: str, value: str, frame: str
) -> None:
    assert passes(question, reference, frame.format(value)) is False


@pytest.mark.parametrize(("question", "reference", "value"), VALUES)
@pytest.mark.parametrize(
    "frame",
    [
        "So we get {}.",
        "Adding the parts gives {}.",
        "To summarise, after simplifying we are left with {}.",
        "Putting the numbers into the formula yields {}.",
    ],
)
def test_plain_statements_stand(question: str, reference: str, value: str, frame: str) -> None:
    assert passes(question, reference, frame.format(value)) is True


def test_names_words_of_the_question_and_units_are_known() -> None:
    question = "Oyelaran plants 3 zinnias in each of 5 troughs. How many zinnias are in the troughs?"
    assert passes(question, "15", "In the end Oyelaran has 15 zinnias in his troughs.") is True
    assert passes("How fast is it?", "5 m/s", "It moves at 5 metres per second.") is True
    assert passes("Is it true that 2 is odd?", "False", "That claim is false.") is True


def test_the_sentence_around_a_marked_answer_is_asked_for_its_words_too() -> None:
    assert passes("Solve 4x + 1 = 25.", "6", r"The hobgoblin of algebra bows to \boxed{6}.") is False
    assert passes("Solve 4x + 1 = 25.", "6", r"The solution of the equation is \boxed{6}.") is True


def test_the_words_are_those_of_statements() -> None:
    words = plain_words()
    assert {"total", "triangle", "subtracting", "dollars"} <= words
    assert not words & {"wrong", "mistaken", "maybe", "guess", "never", "false", "perhaps", "allegedly", "unlikely"}


@given(st.integers(2, 400), st.integers(2, 400))
def test_a_statement_that_goes_on_to_another_value_ends_there(right: int, other: int) -> None:
    question = "How many tiles are needed?"
    for response in (
        f"10 · 7 = {right}; adding the border gives {other}, which I take as final.",
        f"The floor takes {right}, but some break on the way, so {other} tiles.",
        f"It is {right} tiles; wait, I must count both rooms, thus {other} tiles.",
    ):
        assert passes(question, str(right), response) is (right == other), response


@pytest.mark.parametrize(
    "response",
    ["There are 8, so 8 tiles are needed.", "It takes 8 tiles, since 3 + 5 gives 8.", "8 tiles, as 64 / 8 = 8."],
)
def test_a_reason_behind_the_value_is_no_other_value(response: str) -> None:
    assert passes("How many tiles are needed?", "8", response) is True


def test_the_same_length_in_another_unit_is_no_other_value() -> None:
    assert passes("How long does it take?", "5 hours", "It takes 5 hours, so 300 minutes.") is True


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        ("Solve 3^(x - 2) = 81.", "6", "81 = 3^4, so x - 2 = 4 and x = 6."),
        ("How many coaches are needed?", "4", "170/48 = 3.54, so the school needs 4 coaches."),
        ("Factor x^2 + x - 12.", "(x + 4)(x - 3)", "Checking the steps once more confirms (x - 3)(x + 4)."),
        ("Solve the system.", "(2, 9)", "That gives (2, 9) in the end."),
        ("What is 4% as a fraction?", "1/25", "In short, 1/25."),
        ("What is 19 + 24?", "43", "To add 19 and 24, take 20 + 24 = 44 and subtract 1, which leaves 43."),
    ],
)
def test_a_plain_statement_states_the_value_at_its_end(question: str, reference: str, response: str) -> None:
    assert passes(question, reference, response) is True


@pytest.mark.parametrize(
    "response",
    [
        "The tank holds half of 24.",
        "We have 30 minus 24.",
        "It costs 3 dollars and 24 cents.",
        "If all were full, the total would be 24.",
        "The total is about 24 but we need 26.",
        "Is the total 24?",
        "We get 2 24.",
        "We have 12 + 24.",
        "The remainder is not 24.",
    ],
)
def test_a_value_at_the_end_that_is_not_stated_is_none(response: str) -> None:
    assert passes("How much is it?", "24", response) is False


@pytest.mark.parametrize(
    ("question", "reference", "right", "wrong"),
    [
        ("りんごはいくらですか。", "450円", "答え：450円", "答え：450ドル"),
        ("りんごはいくらですか。", "450円", "答え：450", "答え：450ユーロ"),
        (
            "Find the area.",
            "28 cm²",
            "The shape covers 28 square centimeters.",
            "The shape covers 28 cubic centimeters.",
        ),
        ("Give the sum first, then the product.", "9, 20", r"\boxed{9} and \boxed{20}", r"\boxed{20} and \boxed{9}"),
        (
            "How many are left?",
            "41",
            "60 - 19 = 41.",
            "60 - 19 = 41.\nThat is off by ten.\nSo I correct the result to 31.",
        ),
    ],
)
def test_units_order_and_corrections_count(question: str, reference: str, right: str, wrong: str) -> None:
    assert passes(question, reference, right) is True
    assert passes(question, reference, wrong) is False


@pytest.mark.parametrize(
    ("question", "reference", "response"),
    [
        (
            "Solve x^2 > 4.",
            "x < -2 or x > 2",
            "x < -2 or x > 2 — at least that's what I thought, but I now believe -2 < x < 2.",
        ),
        ("What comes after 3, 9, 27?", "81", '{"reasoning": "27*3 = 81", "answer": null}'),
        ("حاصل ۷ × ۶ چیست؟", "۴۲", "پاسخ ۴۲ نیست."),
    ],
)
def test_what_is_taken_back_left_out_or_denied_is_no_answer(question: str, reference: str, response: str) -> None:
    assert passes(question, reference, response) is False


def test_a_reference_in_other_digits() -> None:
    assert passes("حاصل ۷ × ۶ چیست؟", "۴۲", "پاسخ ۴۲ است.") is True
    assert passes("What is 7 times 6?", "٤٢", r"\boxed{42}") is True


def test_a_sentence_that_opposes_anything_is_not_plain() -> None:
    assert ("So the total is ", "24") in plainly("So the total is 24.", "How much?")
    for said in ("If we may, the total is 24.", "It is 20 or more, so the total is 24.", "The question says it is 24."):
        assert not list(plainly(said, "How much?")), said


def test_a_unit_that_goes_on_is_no_other_unit() -> None:
    question = "A block of 3 cm³ weighs 15.6 g. Find its density."
    assert passes(question, "5.2 g/cm³", "The density of the block is 5.2 grams per cubic centimetre.") is True
    assert passes("Find the area of the plot.", "40 m²", "40 metros quadrados") is True
