"""The mark is the commitment of a choice; what is refused is refused by structure, and a verdict names the stage."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.types import Task, Verdict
from assay.verify.choice.verifier import Choice

PLANETS = {"A": "Venus", "B": "Mercury", "C": "Mars", "D": "Earth"}
QUESTION = "Which planet is closest to the Sun?"


def judge(response: str, reference: object = "B", **options: object) -> Verdict:
    task = Task("t", QUESTION, reference, "choice", meta={"options": PLANETS})
    return Choice(**options)(task, response)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response", "stage"),
    [
        ("\\boxed{A} \\boxed{B}", "commit"), ("\\boxed{A} or \\boxed{B}", "commit"), ("\\boxed{A or B}", "commit"),
        ("not \\boxed{B}", "commit"), ("The answer is not <answer>B</answer>.", "commit"), ("#### not B", "commit"),
        ("\\boxed{\\text{not B}}", "commit"), ("\\boxed{\\neg B}", "commit"), ("\\boxed{\\cancel{B}}", "commit"),
        ("Answer: A\nAnswer: B", "commit"), ("\\boxed{A}\n\\boxed{B}\n\\boxed{C}\n\\boxed{D}", "commit"),
        ("Answer: B. Venus", "commit"), ("\\boxed{B} Venus", "commit"), ("\\boxed{A, B, C, D}", "commit"),
        ("\\boxed{ABCD}", "commit"), ("<answer>A. Venus B. Mercury C. Mars D. Earth</answer>", "commit"),
        ("\\boxed{}", "locate"), ("<answer> </answer>", "locate"), ("\\boxed{B", "locate"), ("<answer>B", "locate"),
        ("\\boxed{?}", "read"), ("\\boxed{X}", "read"), ("<answer>your choice</answer>", "read"), ("#### 42", "read"),
        ("<think>It is B.", "undress"), ("\\boxed{C}", "equal"), ("The answer is Mars.", "equal"),
        ("A. Venus\nB. Mercury\nC. Mars\nD. Earth", "commit"), ("- D) Earth\n- B) Mercury", "commit"),
        ("Is it B?", "commit"), ("Not B.", "commit"), ("B isn't the answer.", "commit"), ("A is wrong, so B", "commit"),
        ("", "locate"), ("I do not know.", "locate"), ("C\nB", "commit"), ("Venus, Mercury, Mars, Earth", "commit"),
    ],
)  # fmt: skip
def test_what_is_no_choice_is_refused_by_its_stage(response: str, stage: str) -> None:
    verdict = judge(response)
    assert verdict.passed is False
    assert verdict.feedback.startswith(f"{stage}: "), verdict.feedback


@pytest.mark.parametrize(
    "response",
    [
        "At first I took \\boxed{A}. But Mercury is closer, and it has no moon. So I take \\boxed{B}.",
        "The value fits Venus, \\boxed{A}.\n\nWait, that is the hottest one. Mercury it is.\n\n\\boxed{B}",
        "The answer is A. Checking the distances again, this was too quick. Now the answer is B.",
        "A. Venus\nB. Mercury\nC. Mars\nD. Earth\n\nThe answer is B.", "\\boxed{A}? No way, it is hotter.\n\n#### B",
    ],
)  # fmt: skip
def test_a_later_mark_replaces_an_earlier_one(response: str) -> None:
    assert judge(response).passed is True
    assert judge(response, "A").passed is False


@given(
    st.sampled_from(["I lied.", "A friend said so.", "Es broma.", "冗談です。", "Venus is hotter.", "❌", "qwx zzt"])
)
def test_prose_beside_a_mark_is_not_judged(prose: str) -> None:
    for response in (f"{prose}\n\n\\boxed{{B}}", f"\\boxed{{B}}\n\n{prose}", f"{prose} <answer>B</answer> {prose}"):
        assert judge(response).passed is True
        assert judge(response, "A").passed is False


def test_a_mark_that_names_no_option_is_no_rival() -> None:
    assert judge("The distance is \\boxed{0.39}, so \\boxed{B}").passed is True
    assert judge("It is \\boxed{Mercury}, option \\boxed{B}").passed is True
    assert judge("It is \\boxed{Venus}, option \\boxed{B}").passed is False


def test_an_unmarked_response_counts_by_its_last_sentence_that_names_one_option() -> None:
    for response in ("Mercury.", "B", "It is B. Hope this helps!", "Venus is hot. So Mercury is closest."):
        assert judge(response).passed is True
        refused = judge(response, unmarked="refuse")
        assert refused.passed is False and refused.parts == {"marked": 0.0}
        assert refused.feedback == "locate: no answer is marked"
    for response in ("\\boxed{B}", "The answer is B.", "#### B", "<answer>C</answer>"):
        assert "marked" not in judge(response, unmarked="refuse").parts
    assert judge("\\boxed{B}", unmarked="refuse").passed is True


def test_rules_say_what_a_mark_is() -> None:
    assert judge("\\boxed{C} <answer>B</answer>", rules=("answer_tag",)).passed is True
    assert judge("pick=B. \\boxed{C}", rules=("regex:pick=(\\w)",)).passed is True
    assert judge('{"pick": {"label": "B"}} or C', rules=("json:pick.label",)).passed is True


@given(st.text() | st.text(alphabet="ABCDabcd ()not,.or\\{}box1#\n"))
def test_no_text_raises(text: str) -> None:
    assert judge(text).passed in (True, False)
    task = Task("t", text, "B", "choice", meta={"options": [text, "b", text]})
    assert Choice()(task, text).passed in (True, False)
    assert Choice()(Task("t", text, text, "choice"), "B").passed in (True, False, None)


@pytest.mark.parametrize(
    "piece",
    [
        "B",
        "B ",
        "(",
        "not B ",
        "\u2028",
        "\\text{",
        "Mars or ",
        "option ",
        "\\boxed{",
        "\\boxed{B} ",
        "- B\n",
        "B: ",
        "Answer: B ",
    ],
)
def test_a_megabyte_is_judged_in_bounded_time(piece: str) -> None:
    start = time.process_time()
    judge(f"\\boxed{{{piece * (60_000 // len(piece))}}}")
    judge(piece * (1_000_000 // len(piece)))
    Choice()(Task("t", piece * (100_000 // len(piece)), "B", "choice"), "B")
    assert time.process_time() - start < 3
