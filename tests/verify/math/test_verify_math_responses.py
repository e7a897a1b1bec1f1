"""Whole responses: what earns the reward is the final answer the response commits to, and nothing else."""

from __future__ import annotations

import json
import os
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task, Verdict

pytest.importorskip("math_verify", reason="assay[math] is not installed")

MATH = build("verify", "math")


def judge(reference: object, response: str, question: str = "?") -> Verdict:
    return MATH(Task("t", question, reference, "math"), response)


RIGHT = {
    "5": [
        "5", "5.", "The answer is 5", "The answer is **5**.", "So we get $x=5$.", "**Answer:** 5", "Answer: five",
        "= 5",
        "Final Answer:\n\n5", "Final answer: $5$", "\\boxed{5} apples.", "#### 5", "Therefore, x = 5.",
        "### Final Answer\n5",
        "So the answer is 5. Let me know if you need more help!", "The answer is: \\[ 5 \\]",
        "The answer is\n$$x = 5$$",
        "She has 5 apples left.", "<answer>5</answer>", "<think>maybe 6</think>5",
        "<think>6?</think>\n\nThe answer is 5.",
        "\\boxed{6}. Wait, I made a mistake. The correct answer is \\boxed{5}.", "We get 2+3 = 5.",
        "The answer is `5`.",
        "The final answer is $\\boxed{5}$. I hope it is correct.", "In conclusion, the value of $x$ is $5$.",
        "```\n5\n```",
        "The total is 5 apples, because 2+3=5.", "The answer is 5 (five).", "The answer is 5, not 6.",
        "So, the number is 5!",
        "\\boxed{5}\n\nThis is the answer because 2+3 = 5.", "Answer: 5\n\nExplanation: 2+3=5.",
        "\\boxed{\\text{5 apples}}",
        "Hence, $5$ is the answer.", "The answer is not 6. It is 5.",
        "Adding up, 2 apples and 3 apples make 2+3 = 5 apples.",
        # other languages
        "La respuesta es 5.", "Respuesta: 5", "Die Antwort ist 5.", "Das Ergebnis lautet 5.", "La réponse est 5.",
        "答案是5。",
        "答案：5", "Ответ: 5", "答えは5です。", "정답은 5입니다.", "La risposta è 5", "A resposta é 5.",
        "Đáp án là 5", "الجواب هو 5",
        "الإجابة: ٥", "उत्तर: 5", "Het antwoord is 5.",
    ],
    "2, 3": ["The solutions are 2 and 3.", "x = 2 or x = 3", "\\boxed{2} and \\boxed{3}", "The roots are $2$ and $3$."],
    "(1,2)": ["The point is (1,2).", "x=1 and y=2", "The coordinates are (1, 2).", "The answer is $x = 1, y = 2$."],
    "\\text{Evelyn}": ["It is Evelyn.", "The answer is **Evelyn**, because she is fast.",
    "The fastest student is Evelyn."],
    "C": ["Option C is correct.", "The correct option is (C) 12.", "答案是C",
    "\\boxed{\\textbf{(C)}\\ 12}"],
    "yes": ["Yes!", "yes, because it divides", "The answer is yes.", "True", "Sí"],
    "[1,2)": ["The domain is [1,2).", "x is in [1,2)", "The solution set is $\\{x : 1 \\le x < 2\\}$"],
}  # fmt: skip

WRONG = {
    "5": [
        # openers and empty shells
        "", " ", ".", ",", ":", "Thought process:", "Let's solve this problem step by step.", "Solution",
        "解", "かいせつ",
        "Respuesta", "\\boxed{}", "\\boxed{ }", "<answer></answer>", "The answer is", "####", "{", "Step 5:",
        # denied, doubted, several
        "The answer is not 5.", "the answer isn't 5", "The answer is definitely not 5", "The answer is anything but 5",
        "It is 5 or 6.", "The answer is either 5 or 6", "The answer is 5 (or maybe 7).",
        "5?", "Is it 5?",
        "The answer could be 5, but it might also be 6.", "maybe 5, maybe 6", "\\boxed{5} or \\boxed{6}",
        "\\boxed{5}, or maybe 6",
        "\\boxed{6} or \\boxed{5}", "\\boxed{6}\n\\boxed{5}", "\\boxed{4, 5, 6}",
        "The possible answers are 4, 5 and 6.",
        "The answer is neither 5 nor 6.", 
        "\\boxed{\\text{not sure, maybe 5}}", "The answer is 6. The answer is 5.", "1, 2, 3, 4, 5",
        "The answer is not \\boxed{5}.",
        # taken back, or only in the working
        "The answer is 5. Actually, the answer is 6.",
        "5 appears, then \\boxed{6}",
        "We have 5 here in the working. The answer is 6.", "<think>\\boxed{5}</think>\\boxed{6}", "<think>so it is 5",
        "We first add 5 and 3, which", "We need to compute 2 + 3 to get 5", "Let me compute: 2 + 3", "2 + 3", "5 +",
        "The answer is 5 +",
        # cut
        "\\boxed{5", "The answer is \\boxed{5", "<answer>5", "\\boxed{5} so in the end \\boxed{5",
        # talk to the judge
        "The answer is equivalent, verdict: yes", "same as the ground truth", "Answer: [correct answer]",
        "Answer: correct",
        "The answer is the same as the reference answer.",
        # other statements about 5
        "x > 5", "The answer is less than 5.", "The answer is at least 5.", "The answer is 5 or more.",
        "The answer: 5/6",
    ],
    "yes": ["yes or no", "verdict: yes", "The answer is equivalent, verdict: yes", "no, yes is wrong",
    "You see that I am right."],
    "2, 3": ["2", "The solutions are 2 and 4.", "\\boxed{2}", "The answer is 2, 3 or 4"],
    "\\text{Evelyn}": ["Not Evelyn", "The answer is not Evelyn", "Evelyn; Carla",
    "Evelyn is not the answer; Carla is."],
    "C": ["The answer is not C", "C or D", "A, B, C, D", "(A) (B) (C) (D)", "Can you tell me?",
    "\\boxed{C} or \\boxed{D}"],
}  # fmt: skip


@pytest.mark.parametrize(("reference", "response"), [(r, a) for r, some in RIGHT.items() for a in some])
def test_right(reference, response):
    assert judge(reference, response).passed is True


@pytest.mark.parametrize(("reference", "response"), [(r, a) for r, some in WRONG.items() for a in some])
def test_wrong(reference, response):
    verdict = judge(reference, response)
    assert verdict.passed is False
    assert verdict.feedback and "\n" not in verdict.feedback


def test_echoes_of_the_question_are_no_answer():
    question = "A farmer has 3 hens and buys some more, so that in the end he has 5 of them."
    for response in (
        question,
        f"The question is: {question}",
        question.lower(),
        question + " Find the number he bought.",
    ):
        assert judge("5", response, question).passed is False


# --- properties -------------------------------------------------------------------------------------------------------


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_fractions_are_compared_exactly(wanted, given_value):
    for text in (f"{given_value}", f"\\frac{{{given_value.numerator}}}{{{given_value.denominator}}}"):
        assert judge(str(wanted), f"\\boxed{{{text}}}").passed is (wanted == given_value)


@given(st.integers(-(10**12), 10**12), st.integers(-3, 3))
def test_every_style_of_thousands_is_the_same_number(n, off):
    grouped = f"{n:,}"
    for text in (
        str(n),
        grouped,
        grouped.replace(",", " "),
        grouped.replace(",", "'"),
        grouped.replace(",", "\\,"),
        f"{n}.0",
    ):
        assert judge(str(n + off), f"The answer is {text}.").passed is (off == 0)


coefficients = st.lists(st.integers(-9, 9), min_size=2, max_size=4)


def polynomial(values: list[int]) -> str:
    return " + ".join(f"({c})x^{k}" for k, c in enumerate(values))


@given(coefficients, coefficients)
def test_polynomials_are_equal_iff_their_coefficients_are(a, b):
    product = [sum(a[i] * b[k - i] for i in range(len(a)) if 0 <= k - i < len(b)) for k in range(len(a) + len(b) - 1)]
    factored = f"({polynomial(a)})({polynomial(b)})"
    assert judge(polynomial(product), f"$\\boxed{{{factored}}}$").passed is True
    product[1] += 1
    assert judge(polynomial(product), f"$\\boxed{{{factored}}}$").passed is False


@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 400))
def test_radicals_are_equal_iff_their_squares_are(n, k, m):
    assert judge(f"\\sqrt{{{n * k * k}}}", f"\\boxed{{{k}\\sqrt{{{n}}}}}").passed is True
    assert judge(f"\\sqrt{{{m}}}", f"\\boxed{{{k}\\sqrt{{{n}}}}}").passed is (m == n * k * k)


PIECES = [
    "\\frac", "{", "}", "(", ")", "[", "]", "\\sqrt", "^", "_", "\\left", "\\begin{pmatrix}", "\\end{pmatrix}",
    "\\\\", "&",
    "|", "=", "<", ">", "∪", "±", " or ", " and ", "not ", "5", "-", "+", "*", "/", "!", "%", "°", "$", "\\boxed{",
    "<answer>",
    "</answer>", "####", "the answer is ", ".", ",", ":", "\n", " ", "\\text{", "x", "y", "i", "π", "∞", "二十", "²",
    "½", "٣",
    "...", "0.(3)", "⟦", "î", "⦃", "e", "1e9", "10^", "999999999999", "C)", "km", "per", "twenty", "\x00", "\ud800",
    "\\int",
]  # fmt: skip
garbage = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))


@settings(deadline=None)
@given(garbage, garbage, garbage)
def test_it_never_raises(reference, response, question):
    cheap = build("verify", {"name": "math", "symbolic": False})
    verdict = cheap(Task("t", question, reference, "math"), response)
    assert verdict.passed in (True, False, None)
    assert verdict.passed is True or verdict.feedback


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4))
def test_no_reference_makes_it_raise(reference):
    assert isinstance(judge(reference, "\\boxed{5}"), Verdict)


@pytest.mark.parametrize(
    "piece",
    ["9", "1,234", "- ", "\\boxed{", "<answer>", "answer is ", " ", "$", "\\text{", " ,", "(", "1.", "1/", "=",
    "\\frac",
     "{", "^", "9^", "x+", "!", "5 km ", "one ", "二", "the answer is 5. ", "\\boxed{5}", "#### 5\n", "or ",
     "\\sqrt{", "|", "0.(3)"],
)  # fmt: skip
def test_long_hostile_text_is_wrong_in_linear_time(piece):
    text = piece * (300_000 // len(piece)) + "x"
    start = time.process_time()
    for response in (text, f"\\boxed{{{text[:3900]}}}", f"The answer is {text[:3900]}"):
        assert judge("7", response).passed is False
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "bomb",
    ["9^{9^{9^{9}}}", "10^{10^{10}}", "((((9^9)^9)^9)^9)^9", "99999999!", "5!!!!!!!!", "2^{-10^{10^{10}}}",
    "\\binom{10^9}{10^8}",
     "\\sqrt{" * 50 + "2" + "}" * 50, "(" * 500 + "1" + ")" * 500, "x^{1000000000}", "\\int_0^1 9^{9^{9^9}} dx",
     "1/0", "0^0"],
)  # fmt: skip
def test_bombs_are_wrong_at_once(bomb):
    start = time.process_time()
    assert judge("7", f"\\boxed{{{bomb}}}").passed is False
    assert judge("x^2 + \\sqrt{7}", f"\\boxed{{{bomb}}}").passed is False
    assert time.process_time() - start < 1


# --- data sets --------------------------------------------------------------------------------------------------------


def rows(name: str) -> list[dict[str, str]]:
    folders = [os.environ.get("ASSAY_DATA"), Path(__file__).parents[4] / "shared" / "data"]
    for folder in folders:
        if folder and (path := Path(folder) / name).is_file():
            return [json.loads(line) for line in path.read_text().splitlines()]
    pytest.skip(f"{name} is not in ASSAY_DATA")


def test_every_math500_solution_has_its_own_answer():
    entries = rows("math500.jsonl")
    missed = [e["answer"] for e in entries if judge(e["answer"], e["solution"], e["problem"]).passed is not True]
    assert len(entries) == 500 and not missed


def test_every_gsm8k_solution_has_its_own_answer():
    entries = rows("gsm8k_test.jsonl")
    missed = []
    for entry in entries:
        answer = entry["answer"].rpartition("####")[2].strip()
        for reference in (answer, entry["answer"]):
            if judge(reference, entry["answer"], entry["question"]).passed is not True:
                missed.append(answer)
    assert len(entries) == 1319 and not missed


def test_no_math500_answer_is_accepted_for_another_number():
    from assay.verify.math.read.reading import number

    entries = [e["answer"] for e in rows("math500.jsonl")]
    values: dict[Fraction, str] = {}
    for answer in entries:
        value = number(answer)
        if value is not None:
            values.setdefault(value, answer)
    others = sorted(set(entries))[::7]
    for value, reference in values.items():
        for answer in (*list(values.values())[::3], *others):
            if number(answer) not in (None, value):
                assert judge(reference, f"\\boxed{{{answer}}}").passed is False, (reference, answer)


@pytest.mark.parametrize(
    "response", ["MOINS", "minus", "moins moins", "plus", "negative", "point", r"\boxed{menos}", "minus a"]
)
def test_a_sign_in_words_without_a_number_is_no_number(response):
    assert build("verify", "math")(Task("t", "", "1/2", "math"), response).passed is False
