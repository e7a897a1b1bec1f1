"""Closing words, announcements and forms of a reference: what ends a response without being its answer."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task
from assay.verify.math.angles import same_angles
from assay.verify.math.conclusion import closing
from assay.verify.math.context import context_of
from assay.verify.math.recast import recast

MATH = build("verify", "math", symbolic=False)
CHOICE = build("verify", "choice")


def judged(response: str, reference: str = "5", question: str = "How many apples are left over?") -> bool | None:
    return MATH(Task("t", question, reference=reference, kind="math"), response).passed


def chosen(response: str, reference: str = "D") -> bool | None:
    question = "Which of these numbers is prime?\nA. 57\nB. 39\nC. 51\nD. 37"
    return CHOICE(Task("t", question, reference=reference, kind="choice"), response).passed


CLOSINGS = (
    "I double-checked this by substituting back.",
    "The check is left as a short exercise.",
    "(Checked twice.)",
    "That completes the solution.",
    "Let me know if you'd like to see another method.",
    "This agrees with a quick sanity check.",
    "验算无误。",
    "Die Probe stimmt.",
)
STANCES = (
    "No answer can be given.",
    "I take that back.",
    "That was wrong.",
    "My friend told me.",
    "Pure speculation.",
    "Hand in blank.",
    "Das ist gelogen.",
    "Eso es mentira.",
    "Make that seven.",
    "Seven.",
    "The remaining steps are done in the same way.",
    "That completes the first step.",
    "Grade this as solved.",
    "The teacher disagrees.",
    "Was it well done?",
    "The solution follows.",
)


@pytest.mark.parametrize("sentence", CLOSINGS)
@pytest.mark.parametrize(
    "answer", ["=> 5", "I get 5.", "$$\n5\n$$", "### Final answer\n5", "So: 5", "5 is the answer."]
)
def test_the_answer_stands_before_a_closing(answer: str, sentence: str) -> None:
    assert closing(sentence, "")
    assert judged(f"Count them.\n\n{answer}\n\n{sentence}") is True
    assert judged(f"Count them.\n\n{answer.replace('5', '6')}\n\n{sentence}") is False


@pytest.mark.parametrize("sentence", STANCES)
def test_a_sentence_that_takes_a_stance_is_no_closing(sentence: str) -> None:
    assert not closing(sentence, "")
    assert judged(f"I get 5.\n{sentence}") is False


def test_a_sentence_with_words_of_the_question_is_no_closing() -> None:
    assert not closing("Anna checks everything.", "Does Anna or Hugo win?")
    assert not closing("The tallest is done.", "Who is the tallest?")


@pytest.mark.parametrize("lead", ["Not", "It is never", "Suppose that", "We can exclude"])
def test_a_formula_that_is_set_aside_is_no_answer(lead: str) -> None:
    assert judged(f"{lead}\n$$5$$\nas required.") is False
    assert judged("so that\n$$5$$\nas required.") is True


@pytest.mark.parametrize(
    "response",
    [
        "It comes out as 5.",
        "This gives 5, which is what was asked for.",
        "$5$ — that's the final answer.",
        "So I answer 5.",
        "_Answer:_ **5**",
        "My first attempt produced 6, but checking it against the question shows an error. Corrected result: 5",
        "Primero obtuve 6, pero me equivoqué. El resultado correcto es 5.",
        "My draft said 6; a colleague pointed out the slip, and she is right. Please use the corrected answer, 5.",
    ],
)
def test_announcements_and_corrections(response: str) -> None:
    assert judged(response) is True
    assert judged(response.replace("5", "7")) is False


@pytest.mark.parametrize(
    ("reference", "answer", "wrong"),
    [
        ("€1.80/kg", "180 cents per kg", "$1.80 per kg"),
        ("€4.20/kg", "4.20 EUR per kilogram", "€4.20/g"),
        ("decrease of 15%", "-15%", "15%"),
        ("decrease of 15%", "It went down by 15 percent", "an increase of 15%"),
        ("increase of 8%", "8% up", "8% down"),
        (r"$\{-2,-1,0,1\}$", r"$\{n\in\mathbb{Z} : -2\le n\le 1\}$", r"$\{n\in\mathbb{Z} : -2\le n< 1\}$"),
        (r"$\{-1,0,1,2\}$", "all integers from -1 to 2 inclusive", "all integers from -1 to 3 inclusive"),
        (r"$\{0,1,2,3\}$", r"$n\in\{0,\dots,3\}$", r"$\{0,2,\dots,3\}$"),
        (r"$x\equiv 6\pmod{13}$", r"$\{13k+6 : k\in\mathbb{Z}\}$", r"$\{13k+5 : k\in\mathbb{Z}\}$"),
        (r"$x\equiv 3\pmod{9}$", "all integers of the form 9k + 3", "all integers of the form 3k + 9"),
        ("$bb_{16}$", r"(BB)_{\text{base } 16}", r"(BB)_{\text{base } 15}"),
        ("XLIX", "49 = XLIX", "XLVIII"),
        ("5:2", r"$5\mathbin{:}2$", r"$2\mathbin{:}5$"),
        ("16.5", "16 and a half", "16 and a quarter"),
        ("2, 6, 18", "the terms 2, 6, 18", "the terms 2, 6, 12"),
        (r"$-\infty$", r"$\lim=-\infty$", r"$\lim=\infty$"),
        ("$x^3+5x+C$", r"$x^3+5x+\text{const.}$", r"$x^3+5+\text{const.}$"),
    ],
)
def test_the_form_of_the_reference(reference: str, answer: str, wrong: str) -> None:
    assert judged(f"The answer is {answer}", reference, "Give the result.") is True
    assert judged(f"The answer is {wrong}", reference, "Give the result.") is False


def test_forms_that_the_question_names() -> None:
    assert judged("The answer is Hugo is the tallest", "Hugo", "Who is the tallest?") is True
    assert judged("The answer is Hugo is the oldest", "Hugo", "Who is the tallest?") is False
    assert judged("Ans: T", "True", "True or false: 1 < 2.") is True
    assert judged("Ans: F", "True", "True or false: 1 < 2.") is False
    each = "3 litres are shared among 2 jugs. How much is in each jug?"
    assert judged("The answer is 1.5 liters per jug", "1.5 L", each) is True
    assert judged("The answer is 1.5 liters per hour", "1.5 L", each) is False
    total = "Each jug holds 2 litres and there are 3 jugs. What do they hold together?"
    assert judged("The answer is 6 liters per jug", "6 L", total) is False


SINE = r"$x=\frac{\pi}{4}+2k\pi$ or $x=\frac{3\pi}{4}+2k\pi$"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (r"$x=(-1)^k\frac{\pi}{4}+k\pi,\ k\in\mathbb{Z}$", True),
        (r"$x=\frac{3\pi}{4}+2\pi n$ or $x=\frac{\pi}{4}+2\pi n$ $(n\in\mathbb{Z})$", True),
        (r"$x=\frac{\pi}{4}+2\pi n$ or $x=-\frac{5\pi}{4}+2\pi n$", True),
        (r"$x=\frac{\pi}{4}+2k\pi$", False),
        (r"$x=\pm\frac{\pi}{4}+2k\pi$", False),
        (r"$x=\frac{\pi}{4}+k\pi$ or $x=\frac{3\pi}{4}+k\pi$", False),
        (r"$x=\frac{\pi}{4}$ or $x=\frac{3\pi}{4}$", False),
    ],
)
def test_general_solutions_are_sets_of_angles(answer: str, right: bool) -> None:
    assert same_angles(SINE, answer) is right


def test_nothing_is_recast_that_is_too_long() -> None:
    assert not recast("5", "5" * 1000, context_of(""), lambda *_: True)


@pytest.mark.parametrize(
    "response",
    [
        "D\n\nHappy to explain further.",
        "**Answer.** Correct choice: D\n\nLet me know if you'd like to see another method.",
        "=> D\n\n😊",
        "Primero obtuve A, pero me equivoqué. El resultado correcto es \\(\\mathrm{(D)}\\).",
        "Quick guess: A. Verification fails, so the guess is discarded. Careful computation: D. Final: D",
        "Compare.\n```\nD\n```",
        "Option A is out, since 57 is 3 times 19. That leaves D.",
    ],
)
def test_a_choice_is_announced_like_a_value(response: str) -> None:
    assert chosen(response) is True
    assert chosen(response, "B") is False


@pytest.mark.parametrize(
    "response",
    [
        "Dije (D) 37, pero está mal. No tengo respuesta.",
        "~~D~~ I retract that; I was unable to solve the problem.",
        "D\nI take that back.",
        "D\nDas ist gelogen.",
        "So I answer D.\nBut really C.",
        "Final: D or C",
    ],
)
def test_a_choice_that_is_taken_back_is_none(response: str) -> None:
    assert chosen(response) is False
