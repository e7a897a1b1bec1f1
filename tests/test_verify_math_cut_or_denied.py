"""Responses that are cut before they answer, talk about yes and no, offer prices, or mix up what was asked for."""

from __future__ import annotations

import pytest

from assay.types import Task
from assay.verify.choice.verifier import Choice
from assay.verify.math import Math

MATH, CHOICE = Math(symbolic=False), Choice()
PARALLEL = "Do the lines y = 2x + 1 and y = 3x - 4 run parallel?"
PAINTING = "Ann paints a room in 6 hours, Ben in 3 hours. How long do they need together, in hours?"
CHANGE = "1個120円のりんごを7個買い、1000円を払いました。おつりはいくらですか。"
PARTS = "What are the sum and the product of 8 and 3?"


@pytest.mark.parametrize(
    ("question", "reference", "response", "right"),
    [
        (PARALLEL, "No", "No is wrong here.", False),
        (PARALLEL, "No", "No would be incorrect.", False),
        ("Is it so?", "True", "True cannot be right.", False),
        ("Is it so?", "False", "False is not the answer.", False),
        ("Is it so?", "False", "False is the correct answer.", True),
        (PARALLEL, "No", "No, they do not.", True),
        ("Wat is de nieuwe prijs?", "€ 408", "Het is € 408 of € 418 of € 552.", False),
        ("Jaká je cena?", "$408", "Je to $408 nebo $418.", False),
        ("Wat is de nieuwe prijs?", "€ 408", "Het is € 408.", True),
        (PAINTING, "2", "They need **2 minutes** together.", False),
        (PAINTING, "2", "They need **2 hours** together.", True),
        (CHANGE, "160円", "おつりは 160 ドルです。", False),
        (CHANGE, "160円", "おつりは 160 円です。", True),
        (CHANGE, "160", "おつりは160円です。", True),
        ("What is the solution set?", r"\emptyset", r"$\boxed{\{\emptyset\}}$", False),
        ("What is the solution set?", r"\emptyset", r"$\boxed{\{\}}$", True),
        (PARTS, "11, 24", r"The sum is $\boxed{24}$ and the product is $\boxed{11}$.", False),
        (PARTS, "11, 24", r"The sum is $\boxed{11}$ and the product is $\boxed{24}$.", True),
        ("Solve $x^2 - 3x + 2 = 0$.", "1, 2", r"$x=\boxed{2}$ or $x=\boxed{1}$", True),
        ("How much interest?", "$300", "I = 2000 × 0.05 × 3 = ", False),
        ("How much interest?", "$300", "I = 2000 × 0.05 × 3 = 300", True),
        ("What is 2 + 3?", "5", "We add, and 2 + 3 = 5, so", False),
        ("What is 2 + 3?", "5", r"<think>2 and 3 make 5. So \boxed{5}", False),
        ("What is 2 + 3?", "5", r"<think>2 and 3 make 5.</think> So \boxed{5}", True),
    ],
)
def test_math(question: str, reference: str, response: str, right: bool) -> None:
    assert MATH(Task("t", question, reference, "math"), response).passed is right


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("<think>Let me consider each option. Option B", False),
        ("<think>Let me consider each option.</think> Option B", True),
        ("2^5 = 32 and 3^3 = 27, so", False),
        ("2^5 = 32 and 3^3 = 27, so B", True),
    ],
)
def test_choice(response: str, right: bool) -> None:
    task = Task("t", "What is 2^5 - 3^3?", "B", "choice", meta={"options": {"A": "1", "B": "5", "C": "23"}})
    assert CHOICE(task, response).passed is right
