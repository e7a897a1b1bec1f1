"""Answers that are mentioned and not given, of every kind, and answers behind a preface that denies something else."""

from __future__ import annotations

import pytest

from assay.types import Task
from assay.verify.math import Math

JUDGE = Math()


def passes(question: str, reference: str, response: str) -> bool | None:
    return JUDGE(Task("row", question, reference=reference, kind="math"), response).passed


KINDS = [
    ("Write 19 in Roman numerals.", "XIX"),
    ("What is the capital of Kenya?", "Nairobi"),
    ("Solve 2x > 14.", "x > 7"),
    ("Compute (3+i)(1+2i).", "1+7i"),
    ("Expand (x+4)(x-4).", "x^2-16"),
    ("How many edges does a cube have?", "12"),
    ("How long is the film in hours and minutes?", "2 hours 5 minutes"),
]


@pytest.mark.parametrize(("question", "reference"), KINDS)
@pytest.mark.parametrize(
    "frame",
    [
        "I don't think the answer is {}.",
        "It is an open question to me whether it is {}.",
        "Whether it is {} remains to be seen.",
        "Who knows whether it is {}.",
        "A frequent mistake: {}",
        "A wrong but popular answer: {}",
        "According to some blog, it is {}.",
        "We shall soon see if it is {}; the work starts below.",
        "Answer: ____ (format: {})",
        "I was told it is {}.",
        "Is it {}",
    ],
)
def test_no_kind_of_answer_is_right_where_it_is_only_mentioned(question, reference, frame):
    assert passes(question, reference, frame.format(reference)) is False


@pytest.mark.parametrize(("question", "reference"), KINDS)
def test_the_same_kinds_are_right_where_they_are_given(question, reference):
    assert passes(question, reference, f"The answer is {reference}.") is True


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("1+7i", r"A tempting but incorrect value: \boxed{1+7i}."),
        ("1+7i", r"\boxed{1+7i} is a common mistake."),
        ("1+7i", r"\boxed{1+7i} (not)"),
        ("1+7i", r"\boxed{1+7i}. I did not work this out."),
        ("1+7i", r"This is a test of the parser: \boxed{1+7i}."),
        ("no", "No (not)."),
        ("(0,+\\infty)", "(0,+\\infty) ×"),
        ("12", "The answer is [INSERT ANSWER HERE, e.g. 12]."),
        ("12", "The number of my fingers is 12."),
        ("12", "12 is the page number of this exercise."),
        ("12", "If we carelessly add we get 12."),
        ("x > 7", "The answer could be $x > 7$, or possibly all real numbers."),
        ("11時20分", "11時20分!…なんちゃって。"),
        ("Nairobi", "Hned ověřím, jestli je to Nairobi."),
        ("2x", "Je vais tenter de démontrer que c'est 2x"),
    ],
)
def test_marked_and_foreign_mentions_are_refused(reference, response):
    assert passes("What is asked for?", reference, response) is False


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("Nairobi", "Not Kampala but Nairobi."),
        ("Nairobi", "Not Kampala, not Kigali: Nairobi."),
        ("Wien", "Nicht Graz und auch nicht Linz, sondern Wien."),
        ("Roma", "Non Milano, bensì Roma."),
        ("Москва", "Не Киев, а Москва."),
        ("Tokyo", "不是Osaka,而是Tokyo。"),
        ("42", "No hace falta calculadora: 6 · 7 = 42."),
        ("42", "Nie trzeba liczyć: 6 · 7 = 42."),
        (r"\{-5,5\}", r"Don't lose the negative root: \{-5,5\}."),
        ("3/4", "If we divide by 5 we get 3/4."),
        ("x=7", "Als je door 5 deelt, krijg je x=7."),
        ("tak", "Tak, bo nie dzieli się przez 2 ani przez 3."),
        ("sí", "Sí, porque 0 = 2 · 0 y no deja resto."),
    ],
)
def test_a_preface_about_something_else_is_no_denial(reference, response):
    assert passes("What is asked for?", reference, response) is True


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("Nairobi", "Not Nairobi but Kampala."),
        ("Nairobi", "Not that I know anything, but Nairobi."),
        ("Nairobi", "Not Kampala but Nairobi, says the fool."),
        ("Wien", "Nicht Wien, sondern Graz."),
        ("42", "No hace falta decir que es falso: 42"),
        ("42", "No need to calculate: I guess 42"),
        ("42", "Don't forget that the wrong answer is: 42"),
        ("3/4", "Jeśli źle podzielimy, otrzymamy 3/4."),
        ("3/4", "If we divide by 5 we get 3/4, which is wrong."),
        ("no", "No, but yes."),
        ("tak", "Tak, bo nie wiem."),
        ("tak", "Tak, ale nie."),
    ],
)
def test_a_preface_hides_no_denial(reference, response):
    assert passes("What is asked for?", reference, response) is False


def test_a_name_at_the_end_of_a_passive_sentence():
    question = "Who discovered it?"
    assert passes(question, "Marie Curie", "Radium was discovered by Marie Curie.") is True
    assert passes(question, "Marie Curie", "I doubt that radium was discovered by Marie Curie.") is False
    assert passes(question, "Marie Curie", "Radium was not discovered by Marie Curie.") is False


def test_a_numeral_with_a_digit_more_is_another_numeral():
    question = "Write the decimal number 175 in base 16."
    assert passes(question, "AF_{16}", "#### $AF_{16}$") is True
    assert passes(question, "AF_{16}", "#### $1AF_{16}$") is False


def test_each_value_beside_its_name():
    assert passes("Solve for a and b.", "a=4, b=1", "a equals 4 while b equals 1") is True
