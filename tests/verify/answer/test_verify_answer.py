"""Where a final answer stands: the dress that is put off, the marks, and which of them a response commits to."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.verify.answer.commit import Marked, Refused, commit
from assay.verify.answer.extract import RULES
from assay.verify.answer.undress import Unfinished, undress


def found(response: str) -> str:
    """What is committed to: a text, the stage that refused, or "unmarked"."""
    try:
        result = commit(undress(response), RULES, lambda text: any(map(str.isdigit, text)), str.__eq__)
    except Unfinished:
        return "undress"
    if result is None:
        return "unmarked"
    if isinstance(result, Refused):
        return result.stage
    return " | ".join(result.beside) or result.text


@pytest.mark.parametrize(
    "response",
    [
        '```json\n{"answer": "1/2"}\n```',
        '{"reasoning": "see above", "answer": "1/2"}',
        'Half.\n{"first_guess": "1/3", "final_answer": "1/2"}',
        "Answer — 1/2",
        "✅ Answer: 1/2",
        "Ans: 1/2",
        "A: 1/2",
        r"So it is \fbox{1/2}.",
        r"\[ \boxed{\displaystyle 1/2} \]",
        "<p>So the answer is <span>1/2</span>.</p>",
        "| Step | Outcome |\n|---|---|\n| Set-up | done |\n| **Final answer** | 1/2 |",
        "**Answer:** ~~1/3~~ 1/2",
        "### Final Answer\n1/2",
        "The final answer is 1/2.\n\n[//]: # (answer: 1/3)",
        "The answer is 1/2. <!-- the answer is 1/3 -->",
        "\\[\n% \\boxed{1/3}\n\\boxed{1/2}\n\\]",
        "<think>1/3, the answer is 1/3</think>The answer is 1/2.",
        "Therefore, the answer (arabic numerals) is 1/2.",
        "The answer to the question is: 1/2",
        "La respuesta es 1/2.",
        "Die Antwort lautet 1/2.",
        "答案是1/2。",
        "Άρα η απάντηση είναι 1/2.",
        "####1/2 ",
        "$\\boxed{1/3}$ is what I had.\n\nThe mistake was the sign, so it is $\\boxed{1/2}$.",
        "\\boxed{1/3}\n#### 1/2 of it\n\n<answer>1/2</answer>",
        "\\boxed{1/2} and some noise \\boxed{}",
        "```python\nprint('the answer is 3')\n```\nIt is \\boxed{1/2}.",
    ],
)
def test_one_answer_in_every_dress(response: str) -> None:
    assert found(response) == "1/2"


@pytest.mark.parametrize(
    ("response", "result"),
    [
        ("The answer is not \\boxed{5}.", "commit"),
        ("It isn't $\\boxed{5}$", "commit"),
        ("nicht \\boxed{5}", "commit"),
        ("\\boxed{5} or \\boxed{6}", "5 | 6"),
        ("\\boxed{5}\n\\boxed{6}", "5 | 6"),
        ("Option 1: \\boxed{5}\nOption 2: \\boxed{6}\nOption 3: \\boxed{7}", "5 | 6 | 7"),
        ("It is \\boxed{5}. Alternatively, it is \\boxed{6}.", "5 | 6"),
        ("\\boxed{5} + 1", "commit"),
        ("2\\boxed{5}", "commit"),
        ("$x > \\boxed{5}$", "commit"),
        ("$-\\boxed{5}$", "commit"),
        ("\\frac{\\boxed{5}}{2}", "commit"),
        ("<answer>5</answer> + 1", "commit"),
        ("\\boxed{5", "locate"),
        ("\\boxed{4}, so \\boxed{5", "locate"),
        ("<answer>5", "locate"),
        ("\\boxed{}", "locate"),
        ("<answer> </answer>", "locate"),
        ("<think>\\boxed{5}", "undress"),
        ("It is 5.", "unmarked"),
        ("The answer is about to come.", "unmarked"),
        ("<!-- the answer is 5 -->", "unmarked"),
        ("~~The answer is 5.~~", "unmarked"),
        ('{"answer": "5", "final_answer": "6"}', "unmarked"),
    ],
)
def test_no_commitment_or_several(response: str, result: str) -> None:
    assert found(response) == result


@pytest.mark.parametrize(
    "response",
    [
        "$2 + 3 = \\boxed{5}$",
        "$7!\\times 2!=\\boxed{5}$",
        "(a) $\\boxed{5}$",
        "**$\\boxed{5}$**",
        "- \\boxed{5}",
        "$x=\\boxed{5}.$",
    ],
)
def test_a_box_may_end_a_formula(response: str) -> None:
    assert found(response) == "5"


def test_prose_around_a_mark_is_not_judged() -> None:
    for response in (
        "I doubt that it is \\boxed{5}.",
        "\\boxed{5}. My friend says so.",
        "\\boxed{5}\n\nI may be wrong.",
    ):
        assert found(response) == "5"


def test_a_mark_says_what_stands_beside_it() -> None:
    mark = commit("so it is $\\boxed{5}$ cm\nlong", RULES, bool, str.__eq__)
    assert isinstance(mark, Marked)
    assert (mark.before, mark.after, mark.rule) == ("so it is $", "$ cm", "boxed")


def test_a_share_is_not_a_comment() -> None:
    assert undress("5% of it") == "5% of it"


@given(st.text(alphabet='<>!-~|*{}"ans.:answer—%\\[]/#`\n 1boxed', max_size=200))
def test_any_text_is_undressed_and_committed(text: str) -> None:
    assert found(text) is not None


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from(["\n", " ", ", ", " or ", " und ", "; "]))
def test_two_values_without_words_between_are_never_one(a: int, b: int, between: str) -> None:
    result = found(f"\\boxed{{{a}}}{between}\\boxed{{{b}}}")
    assert result == str(a) if a == b else result in (f"{a} | {b}", "commit")


@pytest.mark.parametrize(
    "unit",
    [
        "<!--",
        "~~",
        "<del>",
        '{"',
        "| answer |",
        "%\n",
        "\\underline{",
        "ans. ",
        '{"answer": ',
        "\\boxed{",
        "<answer>",
        "answer is ",
    ],
)
def test_time_is_bounded(unit: str) -> None:
    start = time.process_time()
    found(unit * (300_000 // len(unit)))
    assert time.process_time() - start < 2
