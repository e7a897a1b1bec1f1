"""Which stage of the math verifier decides: the mark commits, prose is not judged, ambiguity is structural."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.types import Task
from assay.verify.math import Math

LAST, REFUSE = Math(symbolic=False), Math(symbolic=False, unmarked="refuse")


def stage(reference: str, response: str, question: str = "", verifier: Math = LAST) -> str:
    verdict = verifier(Task("t", question, reference, "math"), response)
    return "right" if verdict.passed else verdict.feedback.partition(":")[0]


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("26", "Therefore, the answer (arabic numerals) is 26."),
        ("No", "So the coin is tails up. Therefore, the answer is No."),
        ("no", "Therefore, the answer (Yes or No) is most likely No."),
        ("yes", "The answer (Yes or No) is followed by an explanation.\n\nYes, it is pink."),
        ("120", "There will be $\\boxed{120}$ pounds of carrots not used."),
        ("18", "The number that is not on the bottom is \\(\\boxed{18}\\)"),
        ("69", "Karen spent $69.00."),
        ("75", "Work: 3 * 25 = <<3*25=75>>75\nA: 75"),
        ("16", "… is $\\boxed{16}$.  #### 16 "),
        ("2", "Therefore, there are **2** objects left.\n\nIs there anything else I can help you with?"),
        ("858", "The answer (arabic numerals) is 858."),
        ("9", "**Final Answer:** **9**"),
        ("5", "I doubt it, but \\boxed{5}. My teacher says it is wrong."),
        ("5", "\\boxed{6}\n\nNo, the sign was wrong. Hence it is \\boxed{5}."),
        ("2, 3", "$x = \\boxed{2}$ or $x = \\boxed{3}$"),
        ("70 cm", "So it is $\\boxed{70}$ cm."),
        ("[1,2)", "The domain is [1,2)."),
        ("2, 3", "The roots are $2$ and $3$."),
        ("10,\\!080", "there are $7!\\times 2!=\\boxed{10,\\!080}$."),
    ],
)
def test_real_ways_of_answering_are_right(reference: str, response: str) -> None:
    assert stage(reference, response) == "right"


@pytest.mark.parametrize(
    ("reference", "response", "decided"),
    [
        ("5", "<think>it is \\boxed{5}", "undress"),
        ("5", "\\boxed{5", "locate"),
        ("5", "\\boxed{}", "locate"),
        ("5", "The answer is not 5.", "locate"),
        ("5", "The answer is at least 5.", "locate"),
        ("5", "It is 5 or 6.", "equal"),
        ("5", "Is it 5?", "locate"),
        ("5", "We first add 2 and 3, then 2 + 3 =", "locate"),
        ("5", "4\n5", "equal"),
        ("5", "The answer is not \\boxed{5}.", "commit"),
        ("5", "\\boxed{5} or \\boxed{6}", "commit"),
        ("5", "Guess 1: \\boxed{5}\nGuess 2: \\boxed{6}", "commit"),
        ("5", "\\boxed{5} + 1", "commit"),
        ("5", "\\boxed{5}, or maybe 6", "commit"),
        ("70 cm", "So it is $\\boxed{70}$ metres.", "equal"),
        ("5", "\\boxed{6}", "equal"),
        ("5", "\\boxed{4 \\text{ or } 5}", "equal"),
        ("5", "\\boxed{\\text{the reference answer}}", "read"),
    ],
)
def test_a_wrong_verdict_names_its_stage(reference: str, response: str, decided: str) -> None:
    assert stage(reference, response) == decided


@pytest.mark.parametrize(
    ("question", "reference", "right", "wrong"),
    [
        ("Convert 300° to radians.", "\\frac{5\\pi}{3}", "300^\\circ = 5\\pi/3", "300^\\circ"),
        ("Write the prime factorisation of 756.", "2^{2} \\cdot 3^{3} \\cdot 7", "2*2*3*3*3*7", "4 * 189"),
        ("Write 3/8 as a decimal.", "0.375", ".375", "6/16"),
        ("Write 0.375 as a fraction.", "3/8", "3/8", ".375"),
        ("Write 17/5 as a mixed number.", "3 2/5", "3\\frac{2}{5}", "\\frac{17}{5}"),
        ("Write 0.375 as a percentage.", "37.5%", "37.5 \\%", "0.375"),
        ("Write 45000 in scientific notation.", "4.5 \\times 10^4", "4.5e4", "45 * 10^3"),
        ("Rationalise $\\frac{1}{\\sqrt{2}}$.", "\\frac{\\sqrt2}{2}", "\\sqrt{2}/2", "1/\\sqrt{2}"),
        ("Write $y - 3 = 2(x-1)$ in slope-intercept form.", "y = 2x + 1", "1 + 2x", "y-3=2(x-1)"),
        ("Round $\\sqrt{11}$ to two decimal places.", "3.32", "\\sqrt{11} \\approx 3.32", "\\sqrt{11}"),
        ("Solve $x^2 > 9$.", "(-\\infty, -3) \\cup (3, \\infty)", "x < -3 or x > 3", "x^2 > 9"),
        ("Compute $3 \\cdot 4 + 5$.", "17", "17", "3 \\cdot 4 + 5"),
    ],
)
def test_a_question_may_demand_a_form(question: str, reference: str, right: str, wrong: str) -> None:
    assert stage(reference, f"\\boxed{{{right}}}", question) == "right"
    assert stage(reference, f"\\boxed{{{wrong}}}", question) in ("demand", "equal")
    if "demand" in stage(reference, f"\\boxed{{{wrong}}}", question):
        loose = Math(symbolic=False, form=False)
        assert stage(reference, f"\\boxed{{{wrong}}}", question, loose) == "right"


def test_unmarked_responses_are_refused_on_demand_and_told_apart() -> None:
    task = Task("t", "", "5", "math")
    assert LAST(task, "She has 5 apples left.").passed is True
    verdict = REFUSE(task, "She has 5 apples left.")
    assert (verdict.passed, dict(verdict.parts)) == (False, {"marked": 0.0})
    assert REFUSE(task, "The answer is 5.").passed is True
    assert dict(REFUSE(task, "The answer is 6.").parts) == {}


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.text(alphabet="abc xyz.,!é答 \n", max_size=60))
def test_words_around_a_box_change_no_verdict(value: int, other: int, words: str) -> None:
    assert (stage(str(value), f"{words}\n\\boxed{{{other}}}\n{words}") == "right") == (value == other)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=5, unique=True), st.data())
def test_candidates_side_by_side_never_earn_anything(values: list[int], data: st.DataObject) -> None:
    reference = str(data.draw(st.sampled_from(values)))
    for response in (
        " ".join(f"\\boxed{{{v}}}" for v in values),
        "\n".join(f"\\boxed{{{v}}}" for v in values),
        "\\boxed{" + ", ".join(map(str, values)) + "}",
        "Answer: " + " or ".join(map(str, values)),
        "It is " + " or ".join(map(str, values)),
    ):
        assert stage(reference, response) != "right", response


RESPONSES = Path(os.environ.get("ASSAY_DATA", "../shared/data")) / "real_responses.jsonl"


@pytest.mark.skipif(not RESPONSES.is_file(), reason=f"{RESPONSES} is not here: labelled responses of real models")
def test_responses_of_real_models() -> None:
    """At most 1.5 % of the right ones are refused by marked sources, 3 % of announced ones, 12 % of free chat."""
    most = {"abel_gsm8k": 1.5, "tora_gsm8k": 1.5, "qwen_math": 1.5, "gsm8k_gpt3": 3.0, "davinci_arith": 3.0,
            "davinci_yesno": 3.0, "mathvista": 12.0}  # fmt: skip
    refused: dict[str, list[bool]] = defaultdict(list)
    accepted: list[bool] = []
    for line in RESPONSES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["category"] in most:
            passed = LAST(Task("t", row["prompt"], row["reference"], "math"), row["response"]).passed is True
            (refused[row["category"]] if row["correct"] else accepted).append(passed is not row["correct"])
    assert {source: 100 * sum(r) / len(r) <= most[source] for source, r in refused.items()} == dict.fromkeys(most, True)
    assert sum(accepted) <= 0.01 * len(accepted)
