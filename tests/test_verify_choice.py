"""Multiple choice in every dress, and what only looks like an answer."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task, Verdict

CITIES = ["London", "Paris", "Rome", "Madrid"]


def judge(reference: object, response: str, choices: object = CITIES, **options: object) -> Verdict:
    task = Task("t", "?", reference, meta={"options": choices} if choices else {})
    return build("verify", {"name": "choice", **options})(task, response)


@pytest.mark.parametrize(
    "response",
    [
        "B", "(B)", "B.", "b", "[B]", "**B**", "option B", "The answer is (B).", "Option (B) is correct.", "Ｂ",
        "\\boxed{B}", "\\boxed{\\text{B}}", "\\text{(B)}", "$\\mathbf{B}$", "<answer>B</answer>",
        "Paris",
        "paris.", "The answer is Paris.", "It must be Paris", "B. Paris", "(B) Paris", "B: Paris", "**B) Paris**",
        "The correct answer is B, not A", "B because C is wrong", "I choose B.", "A is wrong.\nSo it is B",
    ],
)  # fmt: skip
def test_right(response):
    assert judge("B", response).passed is True
    assert judge("Paris", response).passed is True


@pytest.mark.parametrize(
    "response",
    [
        "", "A", "C", "E", "Berlin", "A or B", "either B or C", "B/C", "B and C", "A, B, C, D", "ABCD", "A B C D",
        "not B", "It isn't B", "B is wrong", "The answer is not B.", "A) Paris", "B. Rome", "B) Rome", "Paris or Rome",
        "not Paris", "1", "2", "A Paris",
    ],
)  # fmt: skip
def test_wrong(response):
    verdict = judge("B", response)
    assert verdict.passed is False and verdict.feedback


def test_several():
    for response in ("A, C", "AC", "C and A", "\\boxed{A,C}", "A; C", "(A), (C)", "London, Rome"):
        assert judge(["A", "C"], response).passed is True, response
        assert judge("AC", response).passed is True, response
    for response in ("A", "A, B, C", "A or C", "ABCD", "B, D"):
        assert judge(["London", "Rome"], response).passed is False, response
    assert judge(["A", "C"], "A, B, C", partial=True).score == pytest.approx(2 / 3)
    assert judge(["A", "C"], "A", partial=True).score == 0.5
    assert judge(["A", "C"], "A").score == 0.0


def test_the_label_follows_the_text_when_options_are_shuffled():
    assert judge("Paris", "D", choices=["Rome", "London", "Madrid", "Paris"]).passed is True
    assert judge("Paris", "B", choices=["Rome", "London", "Madrid", "Paris"]).passed is False
    assert judge({"answer": "x", "options": {"1": "y", "2": "x"}}, "2", choices=None).passed is True


def test_indices_count_only_where_configured():
    assert judge("B", "1").passed is False
    assert judge("B", "1", index=0).passed is True
    assert judge("B", "2", index=1).passed is True
    assert judge("B", "9", index=1).passed is False
    assert judge("C", "2", choices=["1", "3", "2"], index=0).passed is True, "the text of an option is no index"


def test_words_that_look_like_labels():
    assert judge("B", "A cat", choices=["dog", "cat"]).passed is True
    assert judge("A", "A cat", choices=["dog", "cat"]).passed is False
    assert judge("A", "I think it is A", choices=None).passed is True
    assert judge("C", "10", choices=["5", "20", "10.0"]).passed is True
    assert judge("B", "Paris", content=False).passed is False


def test_references_that_are_no_option_abstain():
    for reference in (None, "E", "Berlin", "", [], ["A", "E"], {"answer": "Z"}, True, 7):
        assert judge(reference, "A").passed is None, reference
    assert judge("Q", "Q", choices=None).passed is True


@given(st.text() | st.text(alphabet="ABCDabcd ()not,.or\\{}box1"))
def test_no_text_raises(text):
    assert judge("B", text).passed in (True, False)
    assert judge(text, "B", choices=[text, "b", text]).passed in (True, False, None)


@pytest.mark.parametrize("piece", ["B", "B ", "(", "not B ", "\\text{", "Paris or ", "option "])
def test_a_megabyte_is_judged_in_bounded_time(piece):
    start = time.process_time()
    judge("A", piece * (1_000_000 // len(piece)), fallback="whole")
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    ("response", "passed"),
    [
        ("答案不是 $\\mathrm{B}$。", False),
        ("Antwort: entweder $A$ oder B.", False),
        ("La respuesta no es B.", False),
        ("Primero pensé en A, pero me equivoqué. La respuesta correcta es (B).", True),
        ("Antwort: B", True),
        ("答案是 B。", True),
    ],
)
def test_what_is_said_of_a_choice_in_other_languages(response: str, passed: bool) -> None:
    task = Task("t", "Which is sodium?\n(A) S\n(B) Na\n(C) So", "B", "choice")
    assert build("verify", "choice")(task, response).passed is passed


def test_a_reference_may_be_a_label_with_its_text() -> None:
    options = {"A": "S", "B": "Na"}
    assert (
        build("verify", "choice")(Task("t", "?", {"answer": "(B) Na", "options": options}, "choice"), "B").passed
        is True
    )
    # A label with another option's text refers to nothing.
    assert (
        build("verify", "choice")(Task("t", "?", {"answer": "(A) Na", "options": options}, "choice"), "A").passed
        is None
    )


@pytest.mark.parametrize(
    "response",
    [
        "the second option", "The second one.", "la segunda", "选B", "正解はBです。", "답은 B입니다", "Paris です。",
        "A: wrong\nB: right\nC: wrong\nD: wrong",
        "| City | Right? |\n|---|---|\n| A | ✗ |\n| B | ✓ |\n| C | ✗ |\n| D | ✗ |",
        "I was torn between A and B, but I settle on B.",
    ],
)  # fmt: skip
def test_spoken_of(response):
    assert judge("B", response).passed is True
    assert judge("C", response).passed is False


@pytest.mark.parametrize(
    "response",
    [
        "Paris is not in this country.", "B is the distractor.", "I would give this question a grade of B.",
        "A: wrong\nB: wrong\nC: right\nD: wrong", "A: right\nB: right\nC: wrong", "the third option",
        "I can't give advice such as B (Paris).", "I am torn between A and B.",
        "B, or A if rivers are meant.", "It depends: A for some people, B for others.",
    ],
)  # fmt: skip
def test_not_spoken_for(response):
    assert judge("B", response).passed is False


def test_verdicts_that_call_two_right_choose_none():
    for reference in "ABC":
        assert judge(reference, "A: right\nB: right\nC: wrong").passed is False


def test_a_surname_or_a_number_in_words_is_its_option():
    authors = ["Friedrich Schiller", "Johann Wolfgang von Goethe", "Thomas Mann"]
    for response in ("Goethe", "J. W. von Goethe"):
        assert judge("B", response, authors).passed is True
    assert judge("B", "Mann", authors).passed is False
    assert judge("B", "Wolfgang", authors).passed is False
    assert judge("C", "seven", ["5", "6", "7"]).passed is True
    assert judge("A", "0.9", ["9", "90"]).passed is False
    assert judge("B", "Guess 1: A\nGuess 2: B").passed is False


def test_a_sign_of_negation_before_a_label_chooses_nothing():
    for response in ("~B", "¬ B", "≠ B", "$\\neg B$", "!B", "\\boxed{\\neq B}"):
        assert judge("B", response).passed is False
    assert judge("B", "$B$").passed is True
