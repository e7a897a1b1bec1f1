"""Answers in markup, tables, comments and JSON: what a reader sees counts, and nothing else."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.types import Task
from assay.verify.math import Math
from assay.verify.math.dressing import undress

MATH = Math(symbolic=False)
RIGHT = [
    '```json\n{"answer": "\\\\frac{1}{2}"}\n```',
    '{"reasoning": "see above", "answer": 0.5}',
    'Half.\n{"first_guess": "1/3", "final_answer": "1/2"}',
    "Answer — 1/2",
    "**Answer** — 1/2",
    "✅ Ans. 1/2",
    "Ans: 1/2",
    r"Answer: $\underline{\underline{\frac{1}{2}}}$",
    r"So it is \fbox{$\frac{1}{2}$}.",
    r"\[ \boxed{\displaystyle \frac12} \]",
    "<p>So the answer is <strong>1/2</strong>.</p>",
    "| Step | Outcome |\n|---|---|\n| Set-up | done |\n| **Final answer** | 1/2 |",
    "**Answer:** ~~1/3~~ 1/2",
    "The answer is <del>1/3</del> <ins>1/2</ins>.",
    "The final answer is 1/2.\n\n[//]: # (answer: 1/3)",
    "The answer is 1/2. <!-- or is it 1/3 -->",
    "\\[\n% \\boxed{1/3}\n\\boxed{1/2}\n\\]",
    "**Svar:** 1/2",
    "**Răspuns:** 1/2",
    "Άρα η απάντηση είναι 1/2.",
]
WRONG = [
    '{"answer": "1/3", "note": "not 1/2"}',
    '{"answer": "1/2"}\nNo. {"answer": "1/3"}',
    '{"answer": "1/2", "final_answer": "1/3"}',
    '{"answer": null, "value": "1/2"}',
    "Answer — 1/3",
    "The answer is ~~1/2~~ 1/3.",
    "The answer is <del>1/2</del>.",
    "<!-- the answer is 1/2 -->",
    "The final answer is 1/3.\n[//]: # (answer: 1/2)",
    "\\[\n% \\boxed{1/2}\n\\]",
    "| **Final answer** | 1/3 |\n| check | 1/2 |",
    "My answer is 1/3. Should that be wrong, my answer is 1/2.",
    "The answer is 1/2. Should this turn out wrong, it is 1/3.",
]


@pytest.mark.parametrize("response", RIGHT)
def test_the_answer_is_found_in_its_dress(response: str) -> None:
    assert MATH(Task("t", "Compute it.", r"\frac{1}{2}"), response).passed is True


@pytest.mark.parametrize("response", WRONG)
def test_what_is_hidden_struck_out_or_doubted_does_not_count(response: str) -> None:
    assert MATH(Task("t", "Compute it.", r"\frac{1}{2}"), response).passed is False


def test_a_share_is_not_a_comment() -> None:
    assert MATH(Task("t", "What share?", "50%"), r"The answer is $50\%$ of it").passed is True
    assert undress("5% of it") == "5% of it"


@given(st.text(alphabet='<>!-~|*{}"ans.:answer—%\\[]/#`\n 1', max_size=200))
def test_any_text(text: str) -> None:
    assert isinstance(undress(text), str)


@pytest.mark.parametrize(
    "unit", ["<!--", "~~", "<del>", '{"', "| answer |", "%\n", "\\underline{", "ans. ", '{"answer": ']
)
def test_time_is_bounded(unit: str) -> None:
    start = time.process_time()
    undress(unit * (300_000 // len(unit)))
    assert time.process_time() - start < 2
