"""A small judge of three verdicts, fine-tuned on judged sums with and without what is added to them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.asking import ask
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.papers.judges.s119_compassverifier import tables
from assay.tasks.judging.boundary import boundary_cases
from assay.tasks.judging.formulas import formula_variants
from assay.tasks.judging.ternary import LETTERS, Item
from assay.tasks.judging.ternary_tasks import ternary_items
from assay.types import Episode, Task
from assay.verify.math.verifier import Math

_SHOWN = re.compile(r"Question: (.*)\nReference answer: (.*)\nResponse: (.*)\n\nReply with", re.DOTALL)
_SAME = Math()
BINS = 96


@dataclass(frozen=True, slots=True)
class Setting:
    """Softmax regression on what a reader sees at a glance, and on the words of question and response.

    It sees whether the last answer is the reference, literally and as mathematics; whether the response holds it; how
    long it is, whether it ends, repeats itself or asks; whether question and reference end; and words, hashed. What it
    is taught are sums of fractions, half of the responses wrong; an arm has the options of
    :func:`assay.tasks.judging.ternary_tasks.ternary_items`. It is tested on new sums, boundary cases and variants of
    formulas, of each as many.

    Args:
        items: judged responses to learn from.
        each: boundary cases of every pattern to be tested on.
        ridge: penalty of half the squared weights.
        steps: of accelerated gradient descent.
    """

    items: int = 400
    each: int = 3
    ridge: float = 0.001
    steps: int = 300

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``macro_f1`` and ``accuracy`` of three labels over all tests; ``sums``, ``boundary`` and ``formulas``,
        the accuracy on each; ``taught``, the number of training items."""
        rng = np.random.default_rng([seed, 119])
        taught = ternary_items([_sum(rng) for _ in range(self.items)], rng, **arm)
        judge = Fitted([item.task(str(k)) for k, item in enumerate(taught)], self.ridge, self.steps)
        cases = boundary_cases(self.each, rng)
        variants = [v for _ in range(len(cases) // 2) for v in formula_variants(_sum(rng), rng, 1)][: len(cases)]
        parts = {"sums": [_sum(rng) for _ in cases], "boundary": cases, "formulas": variants}
        test = [item for items in parts.values() for item in items]
        replies = [r.text for r in ask(judge, [item.task("t").question for item in test], Sampling(1, 0.0))]
        said = dict(zip(map(id, test), replies, strict=True))
        found = {
            name: tables(items, [said[id(item)] for item in items])["all"]["all"]
            for name, items in {**parts, "all": test}.items()
        }
        return {
            "macro_f1": found["all"].macro_f1,
            "accuracy": found["all"].ternary,
            **{name: found[name].ternary for name in parts},
            "taught": float(len(taught)),
        }


def _sum(rng: np.random.Generator) -> Item:
    a, b = (Fraction(int(rng.integers(1, 12)), int(rng.integers(2, 12))) for _ in range(2))
    value, right = a + b, bool(rng.random() < 0.5)
    said = value if right else value + Fraction(int(rng.choice([-1, 1])), int(rng.integers(1, 9)))
    text = f"<think>I take {a} and {b} to one denominator and add the numerators.</think>\nThe answer is {said}."
    return Item(f"What is {a} + {b}?", str(value), text, "A" if right else "B", "numerical", "math")


class Fitted(Keywords):
    """The judge of :class:`Setting`, an engine that replies with a letter.

    Args:
        tasks: with prompts of a judge and replies.
        ridge, steps: see there.
    """

    def __init__(self, tasks: Sequence[Task], ridge: float, steps: int):
        super().__init__(())
        x = np.array([features(t.question) for t in tasks])
        y = np.array([[t.reference == name for name in LETTERS] for t in tasks], float)
        self.weights = w = ahead = np.zeros((x.shape[1], len(LETTERS)))
        rate = 1 / (np.linalg.norm(x, 2) ** 2 / (2 * len(x)) + ridge)  # of a softmax's loss, whose Hessian is <= 1/2
        for k in range(steps):
            slope = x.T @ (_softmax(x @ ahead) - y) / len(x) + ridge * ahead
            new = ahead - rate * slope
            ahead, w = new + k / (k + 3) * (new - w), new
        self.weights = w

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            text = LETTERS[int(np.argmax(features(str(r.prompt)) @ self.weights))]
            token = self.encode(text)
            out.append([Episode(self.encode(r.prompt), token, token > 0, None, text, "eos")] * r.n)
        return out


def _softmax(x: np.ndarray) -> np.ndarray:
    p = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(p / p.sum(1, keepdims=True))


def features(prompt: str) -> np.ndarray:
    """Return what a judge sees of what it is shown."""
    found = _SHOWN.search(prompt)
    assert found is not None
    question, reference, response = found.groups()
    answer = response.rpartition("</think>")[2].strip()
    said = re.findall(r"\w+", response)
    same = _SAME(Task("", question, reference, "math"), response).passed
    marks = [
        1.0,
        answer.rstrip(".").endswith(reference),
        bool(same),
        reference in answer,
        np.log1p(len(answer)) / 4,
        answer[-1:].isalnum(),
        len(set(said)) / max(len(said), 1),
        "?" in answer,
        "<think>" in response and "</think>" not in response,
        sum(c.isascii() for c in answer) / max(len(answer), 1),
        question[-1:].isalnum(),
        reference.count("{") != reference.count("}"),
        reference.count(";") - answer.count(";"),
    ]
    words = np.zeros(BINS)
    for place, text in enumerate((question, answer)):
        for word in set(re.findall(r"[a-z]{3,}", text.lower())):
            words[zlib.crc32(f"{place}{word}".encode()) % BINS] = 1
    return np.concatenate([np.array(marks, float), words / 3])
