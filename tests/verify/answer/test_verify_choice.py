"""Multiple choice: labels and options' texts in every dress, and the options of a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict

CITIES = ["London", "Paris", "Rome", "Madrid"]


def judge(reference: object, response: str, choices: object = CITIES, **options: object) -> Verdict:
    task = Task("t", "?", reference, meta={"options": choices} if choices else {})
    return build("verify", {"name": "choice", **options})(task, response)


def asked(question: str, reference: str, response: str) -> bool | None:
    return build("verify", "choice")(Task("t", question, reference, "choice"), response).passed


DRESSES = (
    "{}", "({})", "{}.", "[{}]", "**{}**", "`{}`", "option {}", "Option ({}) is correct.", "{} is right", "${}$",
    "\\text{{({})}}", "$\\mathbf{{{}}}$", "\\boxed{{{}}}", "\\boxed{{\\text{{{}}}}}", "$\\boxed{{\\textbf{{({})}}}}$",
    "<answer>{}</answer>", "<answer>\n**{}**\n</answer>", "#### {}", "The answer is ({}).", "Answer: {}",
    "**Answer:** {}", "It must be {}.", "I choose {}.", '{{"answer": "{}"}}', '```json\n{{"answer": "{}"}}\n```',
    "选{}", "正解は{}です。", "답은 {}입니다", "Die Antwort ist {}.", "<think>A or B?</think>{}",
    "Final answer: option {}", "The answer is most likely {}.", "So our selection is option {0}. #### {0} ",
    "Among A through D, the answer is {}.",
)  # fmt: skip
MARKS = [dress for dress in DRESSES if any(mark in dress for mark in ("boxed", "answer", "Answer", "####"))]
BOTH = (
    "{0}. {1}",
    "{0}) {1}",
    "({0}) {1}",
    "option {0}: {1}",
    "**{0}) {1}**",
    "{0}, {1}",
    '{0}, "{1}"',
    "{1} ({0})",
    "{0} = {1}",
)
JOINED = (
    "{} or {}", "either {} or {}", "{}, {}", "{} and {}", "{}/{}", "{} {}", "({}) ({})", "{} & {}", "{}; {}",
    "{} oder {}", "{} ou {}", "{} или {}", "{}或{}", "{} as well as {}", "{} or possibly {}",
    "neither {} nor {}", "{}, or maybe {}",
    "between {} and {}", "{} through {}", "\\text{{{} or {}}}",
)  # fmt: skip
letters = st.sampled_from("ABCD")


@given(letters, letters, st.sampled_from(DRESSES))
def test_a_label_in_any_dress_is_that_label_and_no_other(wanted: str, said: str, dress: str) -> None:
    assert judge(wanted, dress.format(said)).passed is (wanted == said)


@given(letters, st.sampled_from([dress for dress in DRESSES if dress not in ("{} is right", "I choose {}.")]))
def test_a_text_in_any_dress_is_its_option(wanted: str, dress: str) -> None:
    text = CITIES["ABCD".index(wanted)]
    assert judge(wanted, dress.format(text)).passed is True
    assert judge(wanted, dress.format(text.lower())).passed is True
    assert judge(text, dress.format(wanted)).passed is True
    assert judge(wanted, dress.format("Berlin")).passed is False


@given(
    letters,
    st.sampled_from(["{}", "({})", "{}.", "\\boxed{{{}}}", "The answer is {}.", "option {}", "{}) because", "#### {}"]),
)
def test_a_small_letter_is_its_label(wanted: str, dress: str) -> None:
    assert judge(wanted, dress.format(wanted.lower())).passed is True


@given(
    letters,
    letters,
    letters,
    st.sampled_from(BOTH),
    st.sampled_from(["{}", "\\boxed{{{}}}", "The answer is {}.", "#### {}"]),
)
def test_a_label_and_a_text_must_agree(wanted: str, label: str, owner: str, both: str, mark: str) -> None:
    response = mark.format(both.format(label, CITIES["ABCD".index(owner)]))
    assert judge(wanted, response).passed is (wanted == label == owner)


@given(letters, letters, st.sampled_from(JOINED), st.sampled_from([*MARKS, "{}"]), st.booleans())
def test_two_labels_never_choose_one(first: str, other: str, joined: str, mark: str, texts: bool) -> None:
    if first == other:
        return
    said = [CITIES["ABCD".index(label)] if texts else label for label in (first, other)]
    response = mark.format(joined.format(*said))
    assert judge(first, response).passed is False, response
    assert judge(other, response).passed is False, response


@given(letters, letters)
def test_other_labels_after_the_chosen_one_are_reasons(wanted: str, other: str) -> None:
    for response in (
        f"The answer is {wanted} because {other} is wrong.", f"The correct answer is {wanted}, not {other}.",
        f"The answer is {wanted}. The text of {other} is wrong.", f"I weighed {other} first. The answer is {wanted}.",
        f"{other} is tempting.\n#### {wanted}", f"\\boxed{{{wanted}}}\n\nNote that {other} does not fit.",
    ):  # fmt: skip
        if other != wanted:
            assert judge(wanted, response).passed is True, response
            assert judge(other, response).passed is False, response


def test_several() -> None:
    for response in (
        "A, C",
        "AC",
        "CA",
        "C and A",
        "\\boxed{A,C}",
        "A; C",
        "(A), (C)",
        "London, Rome",
        "\\boxed{A}, \\boxed{C}",
    ):
        for reference in (["A", "C"], "AC", "A, C", "A and C", ["London", "Rome"]):
            assert judge(reference, response).passed is True, response
    for response in ("A", "A, B, C", "A or C", "ABCD", "B, D", "\\boxed{A}"):
        assert judge(["A", "C"], response).passed is False, response
    assert judge(["A", "C"], "A, B, C", partial=True).score == pytest.approx(2 / 3)
    assert judge(["A", "C"], "A", partial=True).score == 0.5
    assert judge(["A", "C"], "A").score == 0.0


def test_the_label_follows_the_text_when_options_are_shuffled() -> None:
    assert judge("Paris", "D", choices=["Rome", "London", "Madrid", "Paris"]).passed is True
    assert judge("Paris", "B", choices=["Rome", "London", "Madrid", "Paris"]).passed is False
    assert judge({"answer": "x", "options": {"1": "y", "2": "x"}}, "2", choices=None).passed is True


def test_indices_count_only_where_configured() -> None:
    assert judge("B", "1").passed is False
    for response in ("1", "The answer is 1.", "\\boxed{1}"):
        assert judge("B", response, index=0).passed is True
        assert judge("A", response, index=1).passed is True
    assert judge("B", "9", index=1).passed is False
    assert judge("D", "0", index=1).passed is False
    assert judge("C", "2", choices=["1", "3", "2"], index=0).passed is True, "the text of an option is no index"


def test_words_that_look_like_labels() -> None:
    assert judge("B", "A cat", choices=["dog", "cat"]).passed is True
    assert judge("A", "A cat", choices=["dog", "cat"]).passed is False
    assert judge("A", "A dog", choices=["dog", "cat"]).passed is True
    assert judge("A", "I think it is A", choices=None).passed is True
    assert judge("I", "I think it is A", choices=None).passed is False
    assert judge("A", "vitamin B", choices=["vitamin B", "vitamin A"]).passed is True
    assert judge("A", "The answer is surely vitamin B, as I said.", choices=["vitamin B", "vitamin A"]).passed is True
    assert judge("B", "The answer is vitamin-B.", choices=["x", "y"]).passed is False
    assert judge("B", "Paris", content=False).passed is False
    assert judge("A", "N/A").passed is False


def test_a_value_may_be_written_in_another_notation() -> None:
    values = ["$\\frac{1}{2}$", "\\frac{3}{4}", "10", "$5\\%$", "x^2 - 1"]
    for response in ("\\boxed{0.75}", "The answer is 3/4.", "#### $\\frac34$", "\\boxed{\\textbf{(B)}\\ \\frac34}"):
        assert judge("B", response, values).passed is True, response
        assert judge("A", response, values).passed is False, response
    assert judge("C", "\\boxed{10.0}", values).passed is True
    assert judge("E", "\\boxed{(x-1)(x+1)}", values).passed is True
    for part_of_a_formula in ("\\boxed{10.5}", "\\boxed{10^2}", "\\boxed{-10}", "The answer is 10/3.", "\\boxed{5,10}"):
        assert judge("C", part_of_a_formula, values).passed is False, part_of_a_formula
    assert judge("B", "5", ["5%", "5"]).passed is True
    assert judge("B", "5%", ["5%", "5"]).passed is False


def test_references_that_are_no_option_abstain() -> None:
    for reference in (None, "E", "Berlin", "", [], ["A", "E"], {"answer": "Z"}, True, 7):
        assert judge(reference, "A").passed is None, reference
    assert judge("Q", "Q", choices=None).passed is True
    assert judge({"answer": "(B) Na", "options": {"A": "S", "B": "Na"}}, "B", None).passed is True
    # A label with another option's text refers to nothing.
    assert judge({"answer": "(A) Na", "options": {"A": "S", "B": "Na"}}, "A", None).passed is None


def test_a_reference_in_words_without_options_is_judged_as_mathematics_judges_words() -> None:
    for response in ("Therefore, the answer (Yes or No) is No.", "No, it is not.", "\\boxed{\\text{no}}", "Answer: No"):
        assert judge("no", response, None).passed is True, response
        assert judge("yes", response, None).passed is False, response
    assert judge("increasing", "The answer is increasing.", None).passed is True
    refused = judge("yes", "Yes, it is.", None, unmarked="refuse")
    assert refused.passed is False and refused.parts == {"marked": 0.0}


QUESTIONS = {
    "inline": "Which? Answer Choices: (A) garage (B) boat, or so (C) 07/09/1972",
    "lines": "Which? \nYou are provided with options:\nA. $$garage$$ \nB. boat, or so \nC. 07/09/1972 ",
    "brackets": "Which? A) garage  B) boat, or so  C) 07/09/1972",
    "small": "Which?\na) garage\nb) boat, or so\nc) 07/09/1972\n\nThink first.",
    "bold list": "In plan A. Smith came.\n- **A.** garage\n- **B.** boat, or so\n- **C.** 07/09/1972",
    "colons": "Which?\nA: garage\nB: boat, or so\nC: 07/09/1972\nGive one letter.",
    "asked again": "Which?\nA) garage\nB) boat, or so\nC) 07/09/1972\nIs it A) or B) that fits?",
    "times": "At 10 A.M. or 3 P.M.?\n[A] garage\n[B] boat, or so\n[C] 07/09/1972",
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_options_are_read_from_the_question(question: str) -> None:
    for letter, text in zip("ABC", ("garage", "boat, or so", "07/09/1972"), strict=True):
        for response in (
            letter,
            text,
            f"Therefore, among A through C, the answer is {letter}: {text}.",
            f"({letter}) {text}",
        ):
            for reference in "ABC":
                assert asked(question, reference, response) is (reference == letter), (response, reference)
    assert asked(question, "D", "D") is None
    assert asked(question, "A", "The answer is most likely A, garage.") is True
    assert asked(question, "B", "The answer is A, boat, or so.") is False


def test_a_time_of_the_day_is_no_label() -> None:
    question = "When? \nA. 3:00 A.M. \nB. 15:00 A.M. \nC. 5:00 P.M. \nD. 3:00 P.M. "
    assert asked(question, "D", "The answer is 3:00 P.M.") is True
    assert asked(question, "D", "D. 3:00 P.M.") is True
    assert asked(question, "D", "The answer is D, 3:00 A.M.") is False


def test_wrong_options_of_the_verifier_are_errors() -> None:
    with pytest.raises(UsageError, match="unmarked"):
        judge("A", "A", unmarked="line")
    with pytest.raises(UsageError, match="rule"):
        judge("A", "A", rules=("box",))
