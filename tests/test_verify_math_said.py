"""Whole unmarked responses: answers that are said in other words or with a check behind, and what only looks like one.

Every row is a question, its reference, responses that give it, and responses that do not.
"""

from __future__ import annotations

import pytest
from math_rows import right, wrong

from assay.registry import build
from assay.types import Task

pytest.importorskip("math_verify", reason="assay[math] is not installed")

CYCLES = "Write the permutation with 1 to 3, 3 to 2, 2 to 1, 4 to 5 and 5 to 4 in disjoint cycle notation."
ORDER = "Arrange in increasing order: $0.5$, $\\frac13$, $0.45$."
ROWS: list[tuple[str, str, list[str], list[str]]] = [
    (
        "How many primes are there below 50?",
        "15",
        [
            "Nicht 16, sondern 15.",
            "Ce n'est pas 14, c'est 15.",
            "No son 16 sino 15.",
            "Не 16, а 15.",
            "16ではなく15です。",
            "Il y en a quinze.",
            "Es sind fünfzehn Primzahlen.",
            "<result>15</result>",
            "「15」",
            "<html><body><p>There are <strong>15</strong></p></body></html>",
            "$n = \\framebox{15}$",
            "| kind | total |\n|---|---|\n| primes | 15 |",
            "| kind | number |\n|---|---|\n| primes | **15** |",
            "There are 15.\n\nCheck: 8 below 20 and 7 from 20 to 50, 8 + 7 = 15.",
            "n = 15. Probe: 8 + 7 = 15.",
        ],
        [
            "Nicht 15, sondern 16.",
            "Ce n'est pas 15, c'est 14.",
            "No son 15 sino 16.",
            "15ではなく16です。",
            '{"answer": 15, "correct": false}',
            '{"answer": 15, "corrected_answer": 16}',
            "```python\nprint(15)\n# e.g. 15\n```",
            "n = 15. Check: 8 + 7 ≠ 15.",
            "n = 15. Check: it fails.",
            "| kind | total |\n|---|---|\n| primes | 16 |",
            "I can't confirm whether it is 15.",
            "Il y en a quinze ou seize.",
            "Es sind nicht fünfzehn.",
        ],
    ),
    (
        "Is every continuous function differentiable? True or false?",
        "False",
        ["False. |x| is a counterexample.", "Falsch – |x| ist nicht differenzierbar.", "Неверно", "错误。反例：|x|。"],
        ["True. |x| is an example.", "False? True.", "No idea.", "No comment.", "верно"],
    ),
    (
        "Find $\\lim_{x\\to0}\\frac{|x|}{x}$.",
        "Does not exist",
        ["Der Grenzwert existiert nicht.", "La limite n'existe pas.", "El límite no existe.", "極限は存在しない"],
        ["The limit exists.", "Der Grenzwert existiert.", "1", "infinity"],
    ),
    (
        "How many solutions does the system have?",
        "infinitely many",
        ["Infinitely many solutions.", "Unendlich viele", "une infinité de solutions", "бесконечно много", "∞ many"],
        ["no solution", "one", "finitely many"],
    ),
    (
        CYCLES,
        "(1\\,3\\,2)(4\\,5)",
        ["$(132)(45)$", "$(4\\;5)(1\\;3\\;2)$", "(1, 3, 2)(4, 5)", "$(2\\ 1\\ 3)(4\\ 5)$", "(5 4)(3 2 1)"],
        ["(123)(45)", "(132)", "(132)(4)(5)", "(1 3 2)(4 1)", "(13)(2)(45)"],
    ),
    (
        "A rectangle has length 12 and width 5. Find its perimeter and the length of its diagonal.",
        "Perimeter: 34; diagonal: 13",
        ["Perimeter = 34, diagonal = 13", "The diagonal is 13 and the perimeter is 34.", "P = 34, d = √(144+25) = 13"],
        ["Perimeter = 13, diagonal = 34", "The perimeter is 34.", "Perimeter = 34, diagonal = 12", "P = 34, d = 31"],
    ),
    (
        ORDER,
        "\\frac13, 0.45, 0.5",
        ["$\\frac13<0.45<0.5$", "1/3 < 0.45 < 1/2", "$\\frac13\\to0.45\\to0.5$", "1. 1/3\n2. 0.45\n3. 0.5"],
        ["0.5 > 0.45 > 1/3", "1/3 > 0.45 > 0.5", "0.45 < 1/3 < 0.5", "1/3 < 0.5", "1. 0.5\n2. 0.45\n3. 1/3"],
    ),
    (
        "Arrange in increasing order: $\\frac12$, $\\frac13$.",
        "\\frac13, \\frac12",
        ["$\\frac13<\\frac12$", "1/3 < 1/2"],
        ["1/2 > 1/3", "1/2 < 1/3", "x < 1/2"],
    ),
    (
        "The general solution of $y''-y=0$ is:",
        "y=C_1e^{x}+C_2e^{-x}",
        ["$y(x)=Ae^{x}+Be^{-x}$", "y = A·exp(x) + B·exp(−x)", "$y = k_1 e^{-x} + k_2 e^x$"],
        ["$y=Ae^{x}$", "$y=Ae^{x}+Be^{-2x}$", "$y=e^{x}+e^{-x}$"],
    ),
    (
        "Simplify $\\frac{x^{5}}{x^{2}}\\cdot\\sqrt{16}$.",
        "4x^3",
        ["4x³", "$4x^3$"],
        ["x⁵/x² · √16", "$\\frac{x^5}{x^2}\\cdot\\sqrt{16}$"],
    ),
    (
        "Solve $x^2=49$.",
        "x=\\pm 7",
        ["$x=\\pm7$", "$x=\\pm7$; only these two remain."],
        ["$x=\\pm7$; since $x$ must be positive we keep only $x=7$.", "$x=\\pm7$, but only 7 is valid."],
    ),
    (
        "Find the inverse of the matrix.",
        "\\begin{pmatrix} 3 & -1 \\\\ -5 & 2 \\end{pmatrix}",
        ["$\\begin{pmatrix}3&-1\\\\-5&2\\end{pmatrix}$"],
        ["Formally $\\begin{pmatrix}3&-1\\\\-5&2\\end{pmatrix}$, but it is singular, so no inverse exists."],
    ),
    (
        "What word does the cipher text 'IFMMP' stand for?",
        "HELLO",
        ["HELLO", "The word is HELLO."],
        ["Hello! I'm happy to help. Which key should I use?", "Hello there."],
    ),
    (
        "Find the infinite sum.",
        "3/2",
        ["答えは3/2です。", "정답은 3/2 입니다."],
        [
            "答えは3/2ではありません。",
            "答えは$3/2$か$2$のどちらかです。",
            "정답은 $3/2$ 또는 $2$ 입니다.",
            "Het antwoord is $3/2$ of $2$, kies zelf maar.",
            "Nobody should answer 3/2 here.",
            "The answer is 3/2, said nobody. It's 2.",
        ],
    ),
    (
        "A class has 18 girls and 12 boys. What is the ratio of girls to boys?",
        "3:2",
        ["The ratio of girls to boys is 3:2.", "3:2"],
        ["The ratio of boys to girls is 3:2.", "Guess 1: 2:3\nGuess 2: 3:2", "girls:boys = 18:12 = ..."],
    ),
    (
        "Convert $150^\\circ$ to radians.",
        "\\frac{5\\pi}{6}",
        ["$\\frac{5\\pi}{6}$ radians", "5π/6"],
        ["$\\frac{5\\pi}{6}$ degrees", "5π/6°"],
    ),
    (
        "Write 360 as a product of prime factors.",
        "2^3\\cdot 3^2\\cdot 5",
        ["$2^3\\cdot3^2\\cdot5$", "2 × 2 × 2 × 3 × 3 × 5", "2³·3²·5"],
        ["$2^3\\cdot 5\\cdot 9$", "8 · 45", "The result is 2^3\\cdot 5\\cdot 9, as required."],
    ),
    ("Solve $x^2=20$.", "\\pm 2\\sqrt{5}", [], ["<answer>\\pm 2\\sqrt{5}</answer>\n<answer>2\\sqrt{5}</answer>"]),
    ("一本书多少钱？", "15元", ["15元", "15 元"], ["15角"]),
    ("x/2 + 1 = 4.5 מצאו", "7", ["התשובה היא 7."], ["התשובה איננה 7.", "התשובה אינה 7."]),
]


def judge(question: str, reference: str, response: str) -> bool | None:
    return build("verify", "math")(Task("t", question, reference, "math"), response).passed


@pytest.mark.parametrize(("question", "reference", "response"), right(ROWS))
def test_accepted(question, reference, response):
    assert judge(question, reference, response) is True


@pytest.mark.parametrize(("question", "reference", "response"), wrong(ROWS))
def test_refused(question, reference, response):
    assert judge(question, reference, response) is False
