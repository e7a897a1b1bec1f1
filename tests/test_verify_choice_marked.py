r"""What stands in, around, before and after an answer may deny it, also where a box or a tag marks it."""

from __future__ import annotations

import time

import pytest

from assay.types import Task
from assay.verify.choice.fields import disowned
from assay.verify.choice.inline import inlined, struck
from assay.verify.choice.verifier import Choice

PLANETS = {"A": "Venus", "B": "Mercury", "C": "Mars", "D": "Earth"}
PLANET = "Which planet is closest to the Sun?\nA) Venus\nB) Mercury\nC) Mars\nD) Earth"
GASES = {"A": "Oxygen", "B": "Nitrogen", "C": "Argon", "D": "Carbon dioxide"}
GAS = "Which of the following is the main gas in the Earth's atmosphere?"


def judge(response: str, question: str = PLANET, options: dict[str, str] = PLANETS) -> bool | None:
    return Choice()(Task("t", question, "B", "choice", meta={"options": options}), response).passed


MARKED = [
    r"The answer is not \boxed{B}.", r"\boxed{B} is wrong.", r"Maybe \boxed{B}, maybe C.", r"\boxed{\text{not B}}",
    "The answer is not <answer>B</answer>.", "<answer>maybe B</answer>", "<answer>B or A</answer>", "#### not B",
    r"According to my uncle, \boxed{B}.", r"\boxed{B} was the answer on last year's test.", r"\boxed{B}? No way.",
    r"My least favourite option: \boxed{B}", r"One could be forgiven for writing \boxed{B}.", r"idk \boxed{B}",
    r"Anything but \boxed{B}.", r"\boxed{B} or \boxed{A}", r"Suppose the answer is \boxed{B}.", r"Draft: \boxed{B}",
    r"I would mark \boxed{B} as wrong.", r"\boxed{\cancel{B}}", r"Final answer: ¬\boxed{B}", r"Is it \boxed{B}?",
    "<answer>To be determined: Mercury</answer>", r"Please put your answer as \boxed{B}.",
]  # fmt: skip
TAKEN_BACK = [
    "The answer is B. Retracted.", "The answer is B. I lied.", "Answer: B. It's wrong.", "Answer: B. No idea.",
    "The answer is B. There is an error in my reasoning.", "The answer is B. Pure guess.", "The answer is B. Invalid.",
    "The answer is B. Don't believe me.", "The answer is Mercury. It is not Mercury.", "The answer is B. ❌", "B /s",
    "The answer is B. Cross that out.", "The answer is B. Let me redo this.", "The answer is B. Bob told me so.",
    "So the answer is B. Wait, but the question asks", "The answer is B. That doesn't look right.", "B, 10% sure",
    "The answer is B, since the", "The answer is B -", "The answer is B. This contradicts the premise.",
]  # fmt: skip
ANOTHER = [
    "The answer is B. Actually, C.", "The answer is B. Or C.", "The answer is B.\n\nUse C instead.", "B no C", "C\nB",
    "The answer is B as well as C.", "The answer is B; C.", "The answer is B. C would be fine too.", "B. Rather C.",
    "The answer is B. Option A also works.", "1st choice: C\n2nd choice: B", "Answer: C\nAnswer: B",
    "The answer is B. On the other hand, A makes more sense.", "The answer is B.\n\nThis concludes that it is C) Mars.",
    "The answer is B because Mars is closest.", "Venus is closest. B.", "The closest planet is Venus.\n\nAnswer: B",
    "Venus, so B.", "The answer is B - Venus", "The answer is B. Venus is closest to the Sun.",
]  # fmt: skip
DISOWNED = [
    "Ruled out:\n- B", "Wrong:\nB", "## Bob's answer\nB", "## Guess\nB", "Distractors:\nB", "Bob wrote:\n\n**B**",
    "The following is false:\n\nB", "Options I considered:\nC\nB", "# Common misconception\nB", "What it is not:\nB",
    "I have no idea. B.", "None of the above. B.", "It depends. B.", "If not C, then B.", "Sorry, I can't help. B.",
    '{"answer": "B", "note": "this is wrong"}', "answer: B\ncorrect: false", '{"final_answer": "B", "answer": "C"}',
    '{"answer": "B. Mercury", "final_answer": "C. Mars"}', "| Option | Status |\n|---|---|\n| **B** | rejected |",
    "Answer != B", "Final answer: ¬option B", "Final answer: !Mercury", "Answer: -B", "Mercury is a planet.",
    "Case 1: B) Mercury", "banana Mercury", "The answer is B) Mercury banana", "Format: 56", "e.g. B", "x(B)x",
]  # fmt: skip
FOREIGN = [
    "La respuesta es B. Es broma.", "Die Antwort ist B. Eigentlich C.", "Ответ: B. Нет, C.", "Ответ: B. Хотя нет.",
    "La respuesta es B. Mentira.", "答案是B。其实是C。", "答えはBです。冗談です。", "답은 B입니다. 아니, C입니다.",
    r"Die Antwort ist alles andere als \boxed{B}.", r"答案是\boxed{B}吗?", r"لا أعرف، \boxed{B}.", "Keine Ahnung. B.",
    r"Odpowiedź to \boxed{C}, nie \boxed{B}.", "B이 아니라 C입니다.", r"Tahminim: \boxed{B}",
]  # fmt: skip


@pytest.mark.parametrize("response", [*MARKED, *TAKEN_BACK, *ANOTHER, *DISOWNED, *FOREIGN])
def test_what_stands_around_an_answer_may_deny_it(response: str) -> None:
    assert judge(response) is False


PLAINLY = [
    r"\boxed{B}", "<answer>B</answer>", "#### B", "## Answer\n\nB) Mercury\n\n## Explanation\n\nIt orbits at 0.39 AU.",
    r"Hence we obtain $\boxed{B}$, as required.", r"Putting it all together, we find that the answer is \boxed{B}.",
    "See:\n\n- A) Venus is the second planet.\n- B) Mercury is the first.\n\nTherefore, the answer is \\boxed{B}.",
    "The answer is **B**.\n\n- **A** is wrong because Venus is second.\n- **C** is wrong because Mars is fourth.",
    "**B) Mercury**\n\nMercury is the innermost planet. Venus is hotter, but it is farther away.",
    "Venus might seem closest because it is the hottest, but it is the second planet. The answer is B.",
    r"You might be tempted to pick Venus, but Mercury is closer. So the answer is $\boxed{B}$.", "B, not A.",
    "B) Mercury. Let me know if you have any other questions!", "The answer is:\n\n**B) Mercury**",
    "The correct option is:\n- B", '{"answer": "B", "explanation": "Mercury is the innermost planet."}',
    "We rule out Mars and Earth, since both are farther out. Between Venus and Mercury, Mercury is closer. Hence B.",
    "At first I thought of Venus, but Mercury is closer.\n\n\\boxed{B}",
    "B, because Venus is second and Mars is fourth.",
    "The answer is B.\n\nWhy not the others?\n- Venus: second planet\n- Mars: fourth planet",
    "**Answer: B**\n\nA common mistake is to choose Venus, which is the hottest planet but not the closest.",
    "The answer is B. (A is Venus, which is second.)", "La respuesta correcta es **B) Mercurio**.",
    "La respuesta es B. Mercurio está a 0,39 UA del Sol, mientras que Venus está a 0,72 UA.",
    r"Merkur ist der Planet, der der Sonne am nächsten ist. Daher ist die Antwort \boxed{B}.",
    "Правильный ответ: B. Меркурий находится ближе всего к Солнцу.", "正确答案是B。水星是离太阳最近的行星。",
    r"したがって、答えは\boxed{B}です。", "정답은 B입니다. 수성은 태양에서 가장 가까운 행성입니다.",
    "सही उत्तर B है। बुध सूर्य के सबसे निकट का ग्रह है।",
    "After considering all the options, the correct answer is B.", r"The option that best describes this is \boxed{B}.",
    r"Based on the above analysis, the answer is \boxed{B}.",
]  # fmt: skip
EXPLAINED = [
    "The answer is B. Nitrogen makes up about 78% of the air, while oxygen makes up only 21%.",
    "**B. Nitrogen**\n\nIt makes up about 78%. Oxygen (A) makes up about 21%, and argon (C) about 0.9%.",
    r"Many people think it is oxygen, but oxygen is only 21%. The correct answer is \boxed{B}.",
    "Oxygen: 21%.\nNitrogen: 78%.\nArgon: 0.9%.\n\nSo the answer is **B**.", "I'm confident the answer is B.",
    "The answer is B.\n\nI chose B because nitrogen makes up about 78% of the atmosphere.",
    "The answer is B. Don't confuse it with oxygen, which is only 21%.",
    r"The final answer is $\boxed{B}$. I hope it is correct.",
    "\\boxed{\\text{B. Nitrogen}}\n\nIt accounts for about 78% of the air by volume.",
    "Sure! The correct answer is **B. Nitrogen**. It makes up roughly 78% of Earth's atmosphere.",
    "The answer is B. I hope this helps! Let me know if you want more detail.",
    r"La réponse est \boxed{B}. L'azote représente environ 78 % de l'air.",
]  # fmt: skip


@pytest.mark.parametrize("response", PLAINLY)
def test_a_plain_answer_stays_right_with_its_explanation(response: str) -> None:
    assert judge(response) is True


@pytest.mark.parametrize("response", EXPLAINED)
def test_explanations_may_speak_of_the_other_options(response: str) -> None:
    assert judge(response, GAS, GASES) is True


def test_markers_are_written_out_with_what_they_hold() -> None:
    assert inlined(r"So $\boxed{\text{not } \boxed{B}}$.") == "So {not } B."
    assert inlined("It is <answer>not B</answer>.") == "It is not B."
    assert inlined("Working\n#### B\n") == "Working\nB\n"


def test_a_negated_option_may_be_an_answer_where_options_hold_negations() -> None:
    assert struck(r"\boxed{\neg P}", {"A": "P", "B": "Q"})
    assert not struck(r"\boxed{\neg P}", {"A": r"\neg P", "B": "Q"})


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ('{"answer": "B", "confidence": 0.1}', "confidence"),
        ('{"answer": "B", "confidence": 0.9, "reasoning": "not A"}', None),
        ("answer: B\nstatus: retracted", "status"),
        ("answer: B\nstatus: final", None),
        ('{"answer": "B", "true_answer": "A"}', "true_answer"),
    ],
)
def test_fields_beside_an_answer(written: str, key: str | None) -> None:
    def chosen(text: str) -> frozenset[str]:
        return frozenset(text if text in PLANETS else "")

    assert disowned(written, chosen, frozenset("B")) == key


def test_time_is_bounded_where_much_stands_around_an_answer() -> None:
    start = time.perf_counter()
    for text in (
        r"\boxed{" * 20_000 + "B",
        "The answer is B. " + "It is so. " * 20_000,
        "- B\n" * 20_000,
        "B: " * 50_000,
    ):
        judge(text)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    "response", ['{"choice": "B"}', '{"antwort": "B"}', '{"choice": "B", "because": "it is round"}']
)
def test_a_field_of_another_name_may_hold_the_letter(response: str) -> None:
    task = Task("c", "Which is round?", "B", "choice", meta={"options": {"A": "a box", "B": "a ball"}})
    assert Choice()(task, response).passed is True
