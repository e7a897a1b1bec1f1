"""Words around an answer: in other languages all must be known; what they leave is read; parts, shapes, no value."""

from __future__ import annotations

import pytest

from assay.types import Task
from assay.verify.math import Math

MATH = Math()


def accepted(question: str, reference: str, response: str) -> bool | None:
    return MATH(Task("t", question, reference, "math"), response).passed


BOXES = "A crate holds 12 rows of 19 tins. How many tins are there?"
RIGHT = [
    (BOXES, "228", "Es sind 228 Dosen."),
    (BOXES, "228", "Hay 228 latas."),
    (BOXES, "228", "Odpowiedź: 228"),
    (BOXES, "228", "228 книг"),
    (BOXES, "228", "Toplam 228 kutu var."),
    ("Where does the line go?", "y=4x-1", "La retta è y = 4x − 1."),
    ("Give the ratio.", "5:3", "Das Verhältnis ist 5 zu 3."),
    ("When is it over?", "22:40", "Der Film endet um 22:40 Uhr."),
    ("How long is each plank?", "70 cm", "Each plank is seventy centimetres long."),
    ("Solve $3-x<1$.", "x>2", "-x < -2; this flips on division, so x > 2."),
    ("When does it arrive?", "00:20", "00:20 the next day"),
    ("Give (a) its area and (b) its perimeter.", "(a) 30 cm², (b) 22 cm", "a) 30 cm²\nb) 22 cm"),
    (
        "Give (a) its area and (b) its perimeter.",
        "(a) 30 cm², (b) 22 cm",
        "The perimeter is 22 cm and the area is 30 cm².",
    ),
    ("How old are Lea and Max?", "Lea 9, Max 6", '{"Max": 6, "Lea": 9}'),
    ("How old are Lea and Max?", "Lea 9, Max 6", "Max is six and Lea is nine."),
    ("Divide 50 by 7.", "quotient 7, remainder 1", "7 R 1"),
    ("Solve $x=x+2$.", "no solution", "La ecuación no tiene solución."),
    ("Solve $x=x+2$.", "no solution", "The equation has no solution, since 0 is never 2."),
    ("How many solutions?", "infinitely many", "Es gibt unendlich viele Lösungen."),
    ("Find the limit.", "does not exist", "该极限不存在。"),
    ("Is 87 a prime number?", "No", "87 is not prime, since 3 divides it."),
    ("Is 87 a prime number?", "No", "It is composite."),
    ("True or false: 2 is odd.", "False", "The statement is false: 2 is even."),
    ("Find the domain.", "(-\\infty,1]\\cup[4,\\infty)", "$]-\\infty;1]\\cup[4;+\\infty[$"),
    ("Solve $x^2>4$.", "(-\\infty,-2)\\cup(2,\\infty)", "$|x|>2$"),
    ("Solve.", "\\{-5,0,5\\}", "$x\\in\\{0,\\pm5\\}$"),
    ("Find the vector.", "(4,-1,2)", "$4\\mathbf i-\\mathbf j+2\\mathbf k$"),
    ("Find the unit vector.", "(\\frac{5}{13},\\frac{12}{13})", "$\\frac{1}{13}(5,12)$"),
    ("What is 1,5 + 0,25?", "1,75", "1,5 + 0,25 = 1,75"),
    ("Find the sum of divisors.", "12", "σ(6) = 12"),
    ("Name the figure.", "hexagon", "ein Sechseck"),
    ("Name the figure.", "trapezoid", "trapezium"),
    ("Integrate.", "x^2+C", "$x^2 + K$ for an arbitrary constant $K$"),
]
WRONG = [
    (BOXES, "228", "228 odpadło."),
    (BOXES, "228", "228 er tull."),
    (BOXES, "228", "228 is a red herring."),
    (BOXES, "228", "Vermutlich sind es 228."),
    (BOXES, "228", "228 とは限らない。"),
    (BOXES, "228", "228 は引っかけです。"),
    (BOXES, "228", "228은 미끼입니다."),
    (BOXES, "228", "228 เป็นกลลวง"),
    (BOXES, "228", "228 on hämäystä."),
    (BOXES, "228", "Someone might put 228 here."),
    ("How much?", "2.5 kg", "2,5 kg nie pasuje."),
    ("Give (a) its area and (b) its perimeter.", "(a) 30 cm², (b) 22 cm", "(a) 22 cm\n(b) 30 cm²"),
    ("Give (a) its area and (b) its perimeter.", "(a) 30 cm², (b) 22 cm", "(a) 30 cm² or 31 cm² (b) 22 cm"),
    ("How old are Lea and Max?", "Lea 9, Max 6", "Lea is 6 and Max is 9."),
    ("How old are Lea and Max?", "Lea 9, Max 6", "Lea is not 9, Max is 6."),
    ("Divide 50 by 7.", "quotient 7, remainder 1", "1 R 7"),
    ("Solve $x=x+2$.", "no solution", "I have no solution to offer."),
    ("Solve $x=x+2$.", "no solution", "It is untrue that there is no solution."),
    ("How many solutions?", "infinitely many", "Non sono infinite, ma una."),
    ("Find the limit, or say that it does not exist.", "does not exist", "It is not so that the limit does not exist."),
    ("Is 87 a prime number?", "No", "87 is not composite."),
    ("Is 87 a prime number?", "No", "It is not true that 87 is not prime."),
    ("Solve $|x|>2$.", "(-\\infty,-2)\\cup(2,\\infty)", "$|x|>2$"),
    ("Name the figure.", "hexagon", "ein Fünfeck"),
    ("How many?", "48", "48 dozen boxes"),
]


@pytest.mark.parametrize(("question", "reference", "response"), RIGHT)
def test_plain_statements_are_accepted(question: str, reference: str, response: str) -> None:
    assert accepted(question, reference, response) is True


@pytest.mark.parametrize(("question", "reference", "response"), WRONG)
def test_words_that_nobody_knows_are_no_statement(question: str, reference: str, response: str) -> None:
    assert accepted(question, reference, response) is False
