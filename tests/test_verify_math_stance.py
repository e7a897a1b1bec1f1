"""Responses that name the right value without standing by it, each beside honest ones with the same surface."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task

MATH = build("verify", {"name": "math", "symbolic": False})


def passed(reference: str, response: str, question: str = "?") -> bool | None:
    return MATH(Task("t", question, reference, "math"), response).passed


MARKS = ("\\boxed{5}", "The answer is 5", "<answer>5</answer>", "#### 5\n")

WITHDRAWALS = (
    "No, this is wrong. I withdraw it: the problem has no solution.",
    "Actually that is incorrect.",
    "Scratch that.",
    "Ignore the above.",
    "This cannot be right.",
    "Hmm, that can't be correct.",
    "I take it back.",
    "I retract this answer.",
    "Please disregard my answer.",
    "I was wrong.",
    "Sorry, I made a sign error.",
    "I no longer believe this.",
    "I don't stand by this result.",
    "That was only a guess.",
    "The answer above is not correct.",
    "My previous answer is mistaken.",
    "Never mind, forget what I said.",
    "Nope. Wrong.",
    "There is no solution.",
    "This does not satisfy the equation.",
    "So the result in the box is invalid.",
    "I have no idea, really.",
    "It turns out to be completely false, since 5 is not prime.",
    "Wait, no. It is 6.",
    "The correct value is 6.",
    "Final answer: banana",
    "On reflection I am not happy with this.",
    "Update: the answer should be 6.",
    "However, this violates the condition, so there is no answer.",
    "Then again, maybe not.",
    "But x cannot be 5.",
    "Therefore x ≠ 5.",
    "EDIT: this is incorrect.",
    # in other languages
    "J'annule ma réponse.",
    "No estoy seguro.",
    "Ich bin nicht sicher.",
    "以上结果无效。",
    "Esto es incorrecto, lo retiro.",
    "Me equivoqué.",
    "C'est faux, je me suis trompé.",
    "Je retire cette réponse.",
    "Nein, das ist falsch.",
    "Das stimmt nicht, ich nehme es zurück.",
    "Isto está errado.",
    "Mi sono sbagliato, è sbagliato.",
    "Это неверно, я ошибся.",
    "不对，我算错了。",
    "以上答案作废。",
    "これは間違いです。撤回します。",
    "틀렸습니다. 취소합니다.",
    "هذا خطأ، أسحب الجواب.",
    "यह गलत है।",
    "To jest błędne, wycofuję się.",
    "Dit is fout, negeer dit.",
    "Bu yanlış.",
    "Đáp án trên không đúng.",
    "Itu salah, abaikan.",
)


@pytest.mark.parametrize("withdrawal", WITHDRAWALS)
def test_an_answer_withdrawn_is_no_answer(withdrawal):
    for mark in MARKS:
        assert passed("5", f"{mark}.\n\n{withdrawal}") is False, mark
        assert passed("5", f"{mark}. {withdrawal}") is False, mark


REMARKS = (
    "This can be checked by substitution.",
    "The computation was done twice.",
    "I hope this helps!",
    "This is correct, since 2 + 3 = 5.",
    "No other value is possible.",
    "Let me know if anything is unclear.",
    "This matches our expectation.",
    "Note that the order does not matter.",
    "Actually, it is that simple.",
    "Hence the claim follows.",
    "Wrong answers such as 6 come from forgetting the sign.",
    "If you had forgotten the sign you would get 6, which is wrong.",
    "Note: the second equation has no real roots.",
    "Thus the required number is not divisible by 3.",
    "The key was not to ignore the sign.",
    "Das war zu zeigen.",
    "C'est la seule valeur possible.",
    "C.Q.D.",
    "验证无误。",
    "Wait, let me check: 2 + 3 = 5. Yes, it is 5.",
    "This is wrong? No: a second computation gives 5.",
)


@pytest.mark.parametrize("remark", REMARKS)
def test_an_answer_with_a_remark_stands(remark):
    for mark in MARKS:
        assert passed("5", f"{mark}.\n\n{remark}") is True, mark


UNCOMMITTED = {
    "5": [
        # conditions
        "Answer: $5$ if I copied the problem correctly, otherwise $-5$", "The answer is 5 unless I misread, then 6.",
        "\\boxed{5} assuming I did not slip; else 6", "The answer is 5, provided that I am right, if not 7.",
        "If I copied it correctly, the answer is 5.", "The answer depends: 5 or 6.", "Die Antwort ist 5, sonst 6.",
        "La réponse est 5, sinon 6.", "La respuesta es 5, si no 6.", "答案是5，否则是6。", "Ответ: 5, иначе 6",
        "<answer>5 unless the sign is wrong</answer>", "\\boxed{5 \\text{ if I read it right, otherwise } 6}",
        # alternatives
        "The answer is 5 / 6.", "\\boxed{5 \\text{ or } 6}", "\\boxed{5, 6}", "<answer>5 or 6</answer>", "#### 5 or 6",
        "The answer is 5, maybe 6.", "\\boxed{5} (or 6)", "\\boxed{5}; 6 would be just as likely.",
        "\\boxed{5}, but it could also be 6", "The answer is one of 4, 5, 6.", "La respuesta es 5 o 6.",
        "Die Antwort ist 5 oder 6.", "La réponse est 5 ou 6.", "Ответ: 5 или 6", "答案是5或6。", "答えは5または6です。",
        "\\boxed{5} \\lor \\boxed{6}", "5|6", "\\boxed{\\{5, 6\\}}", "\\boxed{5 \\vee 6}", "either \\boxed{5} or 6",
        # probabilities
        "I am 70% sure it is 5, 30% that it is 6.", "The answer is 5 (70% sure), 6 (30% likely).",
        "With probability 0.7 the answer is 5, with probability 0.3 it is 6.", "70% sure: \\boxed{5}, 30% sure: 6",
        # ranges and bounds
        "The answer is between 4 and 6.", "The answer is at least 5.", "\\boxed{\\ge 5}", "\\boxed{4-6}",
        "\\boxed{[4,6]}",
        "\\boxed{5 \\pm 1}", "The answer is 4 to 6.", "The answer is at most 5.", "The answer is more than 5.",
        "\\boxed{\\le 5}", "The answer is 5 or less.", "The answer is not less than 5.", "\\boxed{x \\geq 5}",
        # contradictions
        "x = 5 and x = 6", "The answer is 5 and also 6.", "\\boxed{5} = \\boxed{6}", "\\boxed{5 = 6}",
        "The answer is 5, that is, 6.", "5 ≠ 5", "\\boxed{5 \\neq 5}", "<answer>5</answer><answer>6</answer>",
        "<answer>6</answer>\nThe answer is 5 or so I thought.", "<ANSWER>5. No, this is wrong.</ANSWER>",
        "#### 5 (scratch that)", "\\boxed{5 \\text{ is wrong}}", "\\boxed{\\text{not } 5}",
        # of somebody else, or the slot names something else
        "My friend says the answer is 5, but I refuse to agree.",
        "\\boxed{5} would be the answer if it were positive.", "\\boxed{5}... not!", "\\boxed{5}, which is wrong.",
        "\"The answer is 5\", wrote a student. That is wrong.",
        "Someone claimed that the answer is 5.", "Bob said the answer is \\boxed{5}.", "He thinks the answer is 5.",
        "We get 5.\n\nFinal answer: six", "5\n\n\\boxed{\\text{unknown}}", "\\boxed{5}\n\n\\boxed{\\text{none}}",
        "It is 5.\n\n<final_answer>I don't know</final_answer>", "<answer>5</answer>\n<answer>?</answer>",
        # in one language, withdrawn in another
        "答案是5。 No, that is wrong.", "La respuesta es 5. 不对。", "The answer is 5. Das ist falsch.",
    ],
    "5.23": ["The answer is approximately 5.", "\\boxed{\\approx 5}", "The answer is 5.2 or so", "\\boxed{5.3}"],
    "\\frac{1}{3}": ["\\boxed{0.33}", "The answer is about 0.3.", "The answer is 33 or 1/3."],
    "(-2, -3)": ["The problem has no solution.", "\\boxed{\\emptyset}", "The answer is either $(2, 3)$ or $(-2, -3)$.",
                 "The answer is $(-2, -3)$ or $(2, 3)$."],
    "2, 3": ["The answer is either $2, 3$ or $4, 5$.", "The answer is either $\\{4, 5\\}$ or $\\{2, 3\\}$.",
    "\\boxed{2, 3, 4}", "The solutions are 2 and 3, or 4.", "2 or 3 or neither"],
    "-7\\sqrt{7}": ["Answer: $-7\\sqrt{7}$ if I copied the problem correctly, otherwise $\\sqrt{343}$"],
    "yes": ["Yes and no.", "Yes. No, this is wrong.", "\\boxed{\\text{Yes}}. I take it back."],
    "C": ["\\boxed{C}. No, that is wrong.", "C unless D", "\\boxed{C} or maybe D", "70% C, 30% D"],
}  # fmt: skip

COMMITTED = {
    "5": [
        "The answer is 5 if we round to the nearest integer.", "If $x > 0$, the answer is 5.", "\\boxed{5} \\ (= 10/2)",
        "It is either 5 or 6. Since 6 fails, the answer is 5.", "I first said 6, which was wrong. The answer is 5.",
        "\\boxed{6}. No, this is wrong. The correct answer is \\boxed{5}.",
        "Bob says the answer is 6. The answer is 5.",
        "The probability that it is 6 is 0%. The answer is 5.", "\\boxed{5}, or $10/2$",
        "<final_answer>5</final_answer>",
        "< answer > 5 </ answer >", "<ANSWER>\n5\n</ANSWER>", "**Answer:** 5", "**Final answer:** **5**",
        "My friend says 6, but the answer is 5.", "The answer is 5 (see above).", "Das Ergebnis ist also 5.",
        "Das Endergebnis lautet somit 5.", "إذن الإجابة النهائية هي 5", "अतः अंतिम उत्तर 5 है।",
        "Donc la réponse est donc 5.",
        "Bob says the answer is 5. I agree.", "The answer is 5; this is the only possible value.",
        "The question asks how many; the answer is 5.", "The answer is 5, no matter what.",
    ],
    "30%": ["There is a 30% chance.", "The answer is 30%.", "\\boxed{30\\%}, the other 70% is the chance of rain."],
    "no solution": ["There is no solution.", "\\boxed{\\text{no solution}}. Indeed the equation has no solution."],
    "no": ["\\boxed{\\text{No}}. No, because 3 is odd.", "No, this is impossible.", "The answer is no."],
    "x^2 \\text{ if } x > 0, \\text{ otherwise } 0": [
        "\\boxed{x^2 \\text{ if } x > 0, \\text{ otherwise } 0}",
    ],
    "C": ["\\boxed{C}. The other options are wrong."],
    "2, 3": ["The solutions are 2 and 3, not 4.", "x = 2 or x = 3"],
}  # fmt: skip


@pytest.mark.parametrize(("reference", "response"), [(r, a) for r, some in UNCOMMITTED.items() for a in some])
def test_an_uncommitted_answer_is_wrong(reference, response):
    assert passed(reference, response) is False


@pytest.mark.parametrize(("reference", "response"), [(r, a) for r, some in COMMITTED.items() for a in some])
def test_an_honest_answer_is_right(reference, response):
    assert passed(reference, response) is True


# --- forms ------------------------------------------------------------------------------------------------------------

WAYS = "In how many ways can 2 of 8 people be chosen? Any exact form is accepted."
FORMS = [
    ("28", "C(8,2)", WAYS, True), ("28", "**Answer:** C(8, 2)", WAYS, True), ("28", "\\boxed{C(8,3)}", WAYS, False),
    ("28", "\\boxed{{}_8C_2}", WAYS, True), ("28", "\\boxed{{8 \\choose 2}}", WAYS, True), ("28", "8C2", WAYS, True),
    ("28", "8 choose 2", WAYS, True), ("28", "\\boxed{C_8^2}", WAYS, True), ("28", "\\boxed{{}^{8}C_{2}}", WAYS, True),
    ("28", "\\boxed{\\frac{8!}{2!\\,6!}}", WAYS, True), ("28", "\\boxed{\\frac{8!}{2!\\,5!}}", WAYS, False),
    ("28", "nCr(8, 2)", WAYS, True), ("56", "\\boxed{P(8,2)}", WAYS, True), ("56", "\\boxed{{}_8P_2}", WAYS, True),
    ("120", "5 * 4!", "In how many orders? Any exact form is accepted.", True), ("120", "5 * 4!", "How many?", False),
    ("(2, 3)", "P(2, 3)", "?", True), ("6", "P(2, 3)", "?", False),
    ("\\frac{5}{2}", "2 and 1/2", "?", True), ("\\frac{5}{2}", "\\boxed{2 \\text{ and } \\frac{1}{2}}", "?", True),
    ("\\frac{5}{2}", "2 and 1/3", "?", False), ("1", "2 and 1/2", "?", False), ("2, 1/2", "2 and 1/2", "?", True),
    ("2, 1/2", "5/2", "?", False),
    ("\\text{€}10.50", "1050 cents", "?", True), ("\\text{€}10.50", "105 cents", "?", False),
    ("\\$10.50", "1050 cents", "?", True), ("£10.50", "1050 pence", "?", True),
    ("10.50 pounds", "1050 pence", "?", True), ("10.50 pounds", "£10.50", "?", True),
    ("£10.50", "1050 cents", "?", False),
    ("1379", "MCCCLXXIX", "Write 1379 as a Roman numeral.", True), ("MCCCLXXIX", "1379", "Which number is this?", True),
    ("MCCCLXXIX", "1379", "Write 1379 as a Roman numeral.", False),
    ("MCCCLXXIX", "MCCCLXXIX", "Write 1379 as a Roman numeral.", True),
    ("H2O", "<answer>$H_2O$</answer>", "?", True), ("H2O", "H2O2", "?", False), ("CO2", "\\text{CO}_2", "?", True),
    ("apple, fig, kiwi", "[\"apple\", \"fig\", \"kiwi\"]", "Sort.", True),
    ("apple, fig, kiwi", "[fig, apple, kiwi]", "Sort.", False), ("right", "The answer is **It is right**.", "?", True),
    ("right", "It is not right.", "?", False),
    ("7^{278}", "$7 \\cdot 7^{277}$", "Leave the answer as a product of powers.", True),
    ("7^{278}", "$7 \\cdot 7^{278}$", "Leave the answer as a product of powers.", False),
    ("7^{90001}", "\\boxed{7 \\cdot 7^{90000}}", "?", True), ("7^{90001}", "\\boxed{7 \\cdot 7^{90001}}", "?", False),
    ("6^{90000}", "\\boxed{2^{90000} \\cdot 3^{90000}}", "?", True), ("6^{90000}", "\\boxed{6^{90000} + 1}",
    "?", False),
    ("4^{90000}", "\\boxed{2^{180000}}", "?", True), ("4^{90000}", "\\boxed{-2^{180000}}", "?", False),
    ("\\begin{pmatrix} 1 \\\\ 0 \\end{pmatrix}", "\\boxed{i}", "?", True),
    ("(3, 8)", "\\boxed{\\color{blue}{x = 3,\\ y = 8}}", "?", True),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "response", "question", "label"), FORMS)
def test_forms(reference, response, question, label):
    assert passed(reference, response, question) is label


NUMBERS = {
    "cincuenta y ocho": 58, "veintiséis": 26, "dieciséis": 16, "ciento uno": 101, "novecientos noventa y nueve": 999,
    "quinientos": 500, "setecientas diez": 710, "dos mil tres": 2003, "mil": 1000, "treinta y un": 31,
    "menos cinco": -5,
    "quatre-vingt-quinze": 95, "soixante et onze": 71, "vingt et un": 21, "quatre-vingts": 80, "deux cents": 200,
    "trois cent quarante-deux": 342, "septante-cinq": 75, "quatre-vingt-onze": 91, "mille neuf cent": 1900,
    "cent un": 101,
    "siebenundsechzig": 67, "dreiundfünfzig": 53, "dreiundfuenfzig": 53, "neunhundertneunundneunzig": 999, "zwölf": 12,
    "hunderteins": 101, "einhundert": 100, "fünftausenddreihundert": 5300, "einundzwanzig": 21, "dreißig": 30,
}  # fmt: skip


@pytest.mark.parametrize(("words", "value"), NUMBERS.items())
def test_numbers_in_words_of_other_languages(words, value):
    assert passed(str(value), f"\\boxed{{\\text{{{words}}}}}") is True
    assert passed(words, f"\\boxed{{{value}}}") is True
    assert passed(str(value + 1), f"\\boxed{{\\text{{{words}}}}}") is False


@pytest.mark.parametrize("words", ["veinte y treinta", "cinco diez", "zwanzigfünf", "vingt cent cent", "ein", "once"])
def test_no_numbers_in_words(words):
    assert passed("25", f"\\boxed{{\\text{{{words}}}}}") is False


@pytest.mark.parametrize(
    ("response", "passed"),
    [
        ("The textbook got 70, which is a mistake.", False),
        (r"According to the textbook it is \boxed{70}, which cannot be right.", False),
        ("An online calculator says 70, but that is wrong.", False),
        ("We can rule out 70.", False),
        ("We can rule out 71, so the answer is 70.", True),
        ("First I got 69, which is a mistake. The answer is 70.", True),
        ("The answer is 70, which is right.", True),
        (r"\boxed{70}, which cannot be simplified further.", True),
    ],
)
def test_an_answer_that_is_set_aside_is_none(response: str, passed: bool) -> None:
    assert build("verify", "math")(Task("t", "How many are there?", "70", "math"), response).passed is passed
