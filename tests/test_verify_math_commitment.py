"""A response is right only where it stands by its answer: words around the answer, in English and other languages."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task

MATH = build("verify", {"name": "math", "symbolic": False})
QUESTION = "A theatre has 20 rows of 23 seats. For tonight 23 tickets are sold. How many seats are still free?"


def passed(reference: str, response: str, question: str = QUESTION) -> bool | None:
    return MATH(Task("t", question, reference, "math"), response).passed


BEFORE = (
    "It is not true that the answer is 437.",
    "It is rumoured that the answer is 437.",
    "Allegedly the answer is 437.",
    "An incorrect answer is 437.",
    "The naive answer is 437; the correct one is 447.",
    "Let us guess that the answer is 437 and see where that leads.",
    '"The answer is 437", somebody wrote on the blackboard.',
    "Under no circumstances is the answer 437.",
    "The only number I can exclude is 437.",
    "Let x = 437. Then 447 is the answer.",
    "I must decline to answer. For the record, 437 was in my notes.",
    "There is no answer. 437 is what a calculator shows.",
    "Ein Schüler behauptet, die Antwort ist 437.",
    "Supposons que la réponse soit 437.",
    "假设答案是 437。",
    "누군가는 답은 437 라고 말한다.",
)
WITHIN = (
    "The answer is slightly over 437.",
    "The answer can be any number apart from 437.",
    "The answer fails to be 437.",
    "The answer of 437 has to be rejected.",
    "Answer: 437 ❌",
    "<answer>437 is false</answer>",
    "<answer>¬437</answer>",
    "Answer: 437 and 447, take your pick",
    "Answer: 437 (alternatively 447)",
    "Answer: 437 (unverified)",
    "Final answer: 437 ± something",
    "The answer may well be 437.",
    "The answer is 437 minus",
    "The answer is 437,",
    "La respuesta es cualquier cosa menos 437.",
    "Die Antwort ist vielleicht 437.",
    "La réponse est soit 437, soit 447.",
    "答案可能是 437。",
    "答えは 437 ではありません。",
    "Odpowiedź to nie 437.",
)
AFTER = (
    "On checking, this fails the condition in the question, so it has to go.",
    "I was asked for a number and made that one up.",
    "Strike the last line; the working has a gap.",
    "That turns out to be the value for another question.",
    "I would not trust this value.",
    "The above box is a placeholder until I find the real value.",
    "Make that 447.",
    "Erratum: read 447 instead.",
    "**EDIT:** should be 447.",
    "Sorry, I mixed up the numbers. It's 447.",
    "A reader pointed out a slip; the value is really 447.",
    "Entschuldigung, richtig ist 447.",
    "Perdón, me equivoqué: es 447.",
    "すみません、計算ミスでした。正しくは 447 です。",
    "죄송합니다. 올바른 값은 447 입니다.",
    "Xin lỗi, tôi tính nhầm: đúng ra là 447.",
    "Das kann nicht stimmen, die Probe geht nicht auf.",
)
STANDS = (
    "The answer is not 447 but 437.",
    "The answer isn't 447; it is 437.",
    "It is not true that the answer is 447. The answer is 437.",
    "The answer is none other than 437.",
    "Die Antwort ist nicht 447, sondern 437.",
    "La respuesta no es 447, sino 437.",
    "答案不是 447，而是 437。",
    "\\boxed{447}\n\nEntschuldigung, das war falsch. Die Antwort ist 437.",
    "My friend claims 447, so the claim is wrong and the final answer is 437.",
    "The answer is 447. Make that 437.\n\nFinal answer: 437",
    "Die Antwort ist 437.\n\nDie Probe geht auf.",
    "\\boxed{437}\n\nI hope I did not make a mistake.",
    "\\boxed{437}\n\nNote: do not forget the sold tickets, otherwise you would get 460.",
    "The answer is 437. (A common error is to add 23 and get 483.)",
    "At first it seemed that this cannot be determined, but it can. The answer is 437.",
    "Is the answer 447? No, the check fails. The answer is 437.",
)
DRESSED = (
    "Thus, we get 437 as our final answer.",
    "So it's 437.",
    "Si ottiene 437.",
    "Final answer:\n\n> 437",
    "[answer: 437]",
    "ANSWER = 437 !!!",
    "\\textbf{Answer:} 437",
    "**Result**\n437",
    "➡️ **437** ∎",
    "### Answer\n\n437\n\n---\n",
    "答：还剩４３７个。",
    "รวม ๔๓๗",
)


@pytest.mark.parametrize("response", BEFORE + WITHIN)
def test_an_answer_that_is_not_stood_by_is_none(response):
    assert passed("437", response) is False


@pytest.mark.parametrize("remark", AFTER)
def test_what_follows_may_take_an_answer_back(remark):
    for mark in ("\\boxed{437}", "The answer is 437.", "<answer>437</answer>"):
        assert passed("437", f"{mark}\n\n{remark}") is False, mark


@pytest.mark.parametrize("response", STANDS + DRESSED)
def test_an_honest_answer_stands(response):
    assert passed("437", response) is True


def test_a_list_of_options_chooses_none():
    choice = build("verify", {"name": "choice"})
    task = Task("t", "Which is it?\nA. 67\nB. 63\nC. 660\nD. 66", "D", "choice")
    assert choice(task, "A. 67\nB. 63\nC. 660\nD. 66").passed is False
    assert choice(task, "A. 67 is too large.\nSo the answer is D. 66").passed is True
    assert choice(task, "The sum is 66.\nD. 66").passed is True
