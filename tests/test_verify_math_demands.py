"""What a right value does not make up for: a second answer, a negation, another form, unit or direction."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task

PENS = "Ali buys 13 boxes with 5 pens each. How many pens does he have?"
BALL = "A bag holds 10 balls, 4 of them red. One ball is drawn. What is the probability that it is red?"
PERIMETER = "A rectangle is 14 cm wide and 20 cm long. What is its perimeter?"
PRICE = "The price of a jacket went up from 60 euros to 75 euros. By what percentage did the price increase?"
LITRES = "A tank holds 240 litres. How many litres are left after 65 litres are used?"
PIECES = "Write $f(x) = |x - 3|$ as a piecewise function."
GOLD = r"f(x) = \begin{cases} x - 3, & x \ge 3 \\ 3 - x, & x < 3 \end{cases}"
SWAPPED = r"$\boxed{f(x) = \begin{cases} x - 3, & x < 3 \\ 3 - x, & x \ge 3 \end{cases}}$"
STRAIGHT = r"$\boxed{f(x) = \begin{cases} 3-x & x < 3 \\ x-3 & x \ge 3 \end{cases}}$"


def passed(question: str, reference: str, response: str) -> bool | None:
    return build("verify", "math")(Task("t", question, reference=reference, kind="math"), response).passed


WRONG = [
    # several answers
    (PENS, "65", "Final answer: 65\n\nFinal answer (alternative): 66"),
    (PENS, "65", "Final answer: 65\n\nBoth of these are offered; choose the one that fits."),
    (PENS, "65", "Answer 1: 66\nAnswer 2: 65"),
    (PENS, "65", "Option A: 66. Option B: 65."),
    (PENS, "65", "Reading 1 gives 66.\nReading 2 gives 65."),
    (PENS, "65", "66\n65"),
    (PENS, "65", "\\boxed{65}\n\nPlan B: 66"),
    (PENS, "65", "\\boxed{65}\n\nIn case that is not accepted: $66$"),
    (PENS, "65", "Answer: 65\nP.S. 66 works too."),
    (PENS, "65", "Answer: 65\n(66)"),
    (PENS, "65", "Answer: 65; with interest: 70"),
    ("Solve for the set.", "1, 2", "\\boxed{2}\n\nHold on, that is an error. Corrected: \\boxed{1}"),
    # negated clauses
    (BALL, "2/5", "I am sure that it is not $P = 0.4$."),
    (BALL, "2/5", "There is no way that the answer is 0.4."),
    (BALL, "2/5", "None of the computations gives \\boxed{0.4}."),
    (BALL, "2/5", "I refuse to accept that the answer is \\boxed{0.4}."),
    (BALL, "2/5", "The claim P = 0.4 fails."),
    (BALL, "2/5", "My neighbour says 0.4."),
    (BALL, "2/5", "Had he drawn twice, \\boxed{0.4}."),
    (PENS, "65", "question 65"),
    (PENS, "65", "Answer: the number before 65"),
    (PENS, "65", "I would guess 65."),
    (PENS, "65", "65 is a lower bound"),
    # another form
    ("Convert 300° to radians.", "\\frac{5\\pi}{3}", "\\boxed{300^\\circ}"),
    ("Convert 300° to radians.", "\\frac{5\\pi}{3}", "5π/3 degrees"),
    ("Convert $\\frac{5\\pi}{3}$ to degrees.", "300", "\\boxed{\\frac{5\\pi}{3}}"),
    ("Write the prime factorisation of 756.", "2^{2} \\cdot 3^{3} \\cdot 7", "756"),
    ("Write the prime factorisation of 756.", "2^{2} \\cdot 3^{3} \\cdot 7", "756 = 2^2 * 27 * 7"),
    ("Write 3/8 as a decimal.", "0.375", "6/16"),
    ("Write 0.375 as a fraction.", "3/8", ".375"),
    ("Write 17/5 as a mixed number.", "3 2/5", "\\frac{17}{5}"),
    ("Write 3 2/5 as an improper fraction.", "17/5", "3\\frac{2}{5}"),
    ("Write 0.375 as a percentage.", "37.5%", "0.375"),
    ("Write 45000 in scientific notation.", "4.5 \\times 10^4", "45 * 10^3"),
    ("Convert 411_5 to decimal.", "106", "411_5"),
    ("Rationalise $\\frac{1}{\\sqrt{2}}$.", "\\frac{\\sqrt2}{2}", "1/\\sqrt{2}"),
    ("Write $y - 3 = 2(x-1)$ in slope-intercept form.", "y = 2x + 1", "$y-3=2(x-1)$"),
    ("Round $\\sqrt{11}$ to two decimal places.", "3.32", "\\boxed{\\sqrt{11} \\approx 3.31}"),
    ("Round $\\sqrt{11}$ to two decimal places.", "3.32", "\\sqrt{11}"),
    ("Find x > 0 with x^2 = 11.", "\\sqrt{11}", "\\sqrt{11} \\approx 3.4"),
    (PIECES, GOLD, f"{STRAIGHT}\n\nHold on, there is an error above.\n\nCorrected final answer: {SWAPPED}"),
    # units and directions
    (PERIMETER, "68 cm", "The perimeter is \\(\\boxed{68}\\) metres."),
    (PERIMETER, "68 cm", "$\\boxed{68}\\text{ mm}$"),
    (PERIMETER, "68 cm", "\\boxed{68} cm^2"),
    (PERIMETER, "68 cm", "The answer in metres is \\boxed{68}."),
    ("Legs of 5 cm and 12 cm. How many centimetres is the hypotenuse?", "13", "13 cm²"),
    ("A batch needs 1/2 cup of sugar. How many cups do 3 batches need?", "1 1/2", "1 1/2 tablespoons"),
    ("Convert 105.75° to degrees and minutes.", "105° 45′", "105° 45″"),
    ("What is the area of a square of side 5 m?", "25", "25 m^3"),
    (PRICE, "25%", "**Final Answer:** a decrease of 25%"),
    (PRICE, "25%", "The price fell by \\boxed{25\\%}."),
    (LITRES, "175", "175 litres per minute"),
]
RIGHT = [
    (PENS, "65", "Final answer: 66\n\nWait, that is wrong. Final answer: 65"),
    (PENS, "65", "Answer 1 (by hand): 65\nAnswer 2 (checked): 65"),
    (PENS, "65", "\\boxed{65}\n\nCheck: 65/5 = 13"),
    (PENS, "65", "The answer is 65.\n\nA common mistake is 66."),
    (PENS, "65", "Boxes: 13\nPens: 5\nTotal: 65"),
    (PENS, "65", "60 + 6 = 66\n66 - 1 = 65"),
    (BALL, "2/5", "There is no doubt that the answer is 0.4."),
    (BALL, "2/5", "It does not matter which ball is drawn; the answer is 2/5."),
    (BALL, "2/5", "The probability of drawing no blue ball is \\boxed{0.4}."),
    ("Convert 300° to radians.", "\\frac{5\\pi}{3}", "300° = 5π/3 radians"),
    ("Write the prime factorisation of 756.", "2^{2} \\cdot 3^{3} \\cdot 7", "756 = 2*2*3*3*3*7"),
    ("Write 45000 in scientific notation.", "4.5 \\times 10^4", "4.5e4"),
    ("What is 1/2 of 3/4?", "3/8", "0.375"),
    ("Round $\\sqrt{11}$ to two decimal places.", "3.32", "√11 ≈ 3.3166 ≈ 3.32 (2 d.p.)"),
    ("Find x > 0 with x^2 = 11.", "\\sqrt{11}", "\\sqrt{11} \\approx 3.32"),
    (PIECES, GOLD, STRAIGHT),
    (PERIMETER, "68 cm", "\\boxed{68} cm"),
    (PERIMETER, "68 cm", "\\boxed{0.68} m"),
    (PERIMETER, "68 cm", "\\boxed{68}\n\nIn metres that is 0.68 m."),
    ("A batch needs 1/2 cup of sugar. How many cups do 3 batches need?", "1 1/2", "24 tablespoons"),
    (PRICE, "25%", "It went up by 25%, not down."),
    (LITRES, "175", "\\boxed{175}\\text{ L}"),
]


@pytest.mark.parametrize(("question", "reference", "response"), WRONG)
def test_a_right_value_is_no_right_answer(question: str, reference: str, response: str) -> None:
    assert passed(question, reference, response) is False


@pytest.mark.parametrize(("question", "reference", "response"), RIGHT)
def test_a_committed_answer_in_the_form_asked_for(question: str, reference: str, response: str) -> None:
    assert passed(question, reference, response) is True


def test_forms_count_only_where_they_are_asked_to() -> None:
    loose = build("verify", "math", form=False)
    task = Task("t", "Write 17/5 as a mixed number.", reference="3 2/5", kind="math")
    assert loose(task, "\\frac{17}{5}").passed is True


def test_a_choice_beside_another() -> None:
    question = "Which element has the symbol Na?\n(A) Nitrogen\n(B) Neon\n(C) Sodium\n(D) Nickel"
    judge = build("verify", "choice")
    task = Task("t", question, reference="C", kind="choice")
    assert judge(task, "Final answer: (C) Sodium").passed is True
    assert judge(task, "Final answer: (C) Sodium\n\nNote: A is a gas").passed is True
    assert judge(task, "Final answer: (C) Sodium\n\nFinal answer (alternative): A").passed is False
    assert judge(task, "Final answer: (C)\n\nChoose whichever you like.").passed is False
