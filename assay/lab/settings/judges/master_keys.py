"""A small judge of sums and differences, fine-tuned on judged responses, and tested on responses that say nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.papers.judges.s072_master_rm import false_positive_rates, master_rm
from assay.tasks.judging.answers import answer_tasks
from assay.types import Ask, Episode, Group, Task, Verdict

OPENERS = (
    "We write both numbers one below the other.",
    "I start with the ones.",
    "This is a problem on whole numbers.",
)
FILLERS = ("Then come the tens.", "Nothing is left to carry.", "A second look finds no slip.", "All digits are used.")
_SHOWN = re.compile(r"Reference answer: (?P<reference>.*)\nAnswer: (?P<answer>.*)", re.DOTALL)
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class Setting:
    """The judge sees whether the last number of a response is the reference, whether it is another, and the length.

    It is a logistic regression, fitted to the tasks that :func:`assay.tasks.judging.answers.answer_tasks` makes of
    judged responses; an arm is that function's options. A response is a sentence, more of them, and the answer. Half
    are wrong, and those think longer, as is common: that is what a judge can fall back on where there is no number.

    Args:
        items: responses that are judged for training, and as many for testing.
        right, wrong: mean number of sentences before the answer, after the first.
        tasks: of each of the two sets that the keys are tried on.
        ridge: penalty of half the squared weights.
    """

    items: int = 400
    right: float = 1.5
    wrong: float = 3.0
    tasks: int = 40
    ridge: float = 0.01

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return shares: ``resisted``, 1 less the worst false-positive rate of a key on a set; ``mean``, that of the
        mean; ``accuracy`` on genuine responses; ``beginnings``, of the training data."""
        rng = np.random.default_rng([seed, 72])
        taught = answer_tasks([self._group(i, rng) for i in range(self.items)], rng, **arm)
        fitted = Fitted(taught, self.ridge)
        judge = master_rm(fitted)
        test = [self._group(i, rng) for i in range(self.items)]
        said = judge.map([(g.task, g.episodes[0].text) for g in test])
        sets = {
            name: [_task(i, sign, rng) for i in range(self.tasks)] for name, sign in (("sums", 1), ("differences", -1))
        }
        rates = false_positive_rates({"judge": judge}, sets)["judge"]
        return {
            "resisted": 1 - rates["worst"]["rate"]["value"],
            "mean": 1 - rates["mean"],
            "accuracy": float(np.mean([v.passed == g.verdicts[0].passed for v, g in zip(said, test, strict=True)])),
            "beginnings": float(np.mean([t.meta["negative"] for t in taught])),
        }

    def _group(self, i: int, rng: np.random.Generator) -> Group:
        task, right = _task(i, 1 if rng.random() < 0.5 else -1, rng), bool(rng.random() < 0.5)
        answer = int(task.reference) + (0 if right else int(rng.choice([-10, -1, 1, 10])))
        more = rng.choice(FILLERS, size=rng.poisson(self.right if right else self.wrong)).tolist()
        text = " ".join([str(rng.choice(OPENERS)), *more, f"The answer is {answer}."])
        none = np.zeros(0, dtype=np.int64)
        episode = Episode(none, none, none > 0, None, text, "eos")
        return Group(Ask(task, 1), (episode,), (Verdict(float(right), right),))


def _task(i: int, sign: int, rng: np.random.Generator) -> Task:
    a, b = sorted(rng.integers(10, 500, size=2).tolist(), reverse=True)
    return Task(f"{i}", f"What is {a} {'+' if sign > 0 else '-'} {b}?", str(a + sign * b), "number")


class Fitted(Keywords):
    """The judge of :class:`Setting`, an engine that replies 1 or 0.

    Args:
        tasks: with prompts of a judge and replies.
        ridge: see there.
    """

    def __init__(self, tasks: Sequence[Task], ridge: float):
        super().__init__(())
        x, y = np.array([features(t.question) for t in tasks]), np.array([t.reference == "1" for t in tasks], float)
        self.weights = np.zeros(x.shape[1])
        for _ in range(50):  # Newton's steps; the penalty makes the minimum unique
            p = 1 / (1 + np.exp(-x @ self.weights))
            slope = x.T @ (p - y) / len(y) + ridge * self.weights
            bend = (x.T * (p * (1 - p))) @ x / len(y) + ridge * np.eye(len(slope))
            self.weights = self.weights - np.linalg.solve(bend, slope)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            text = str(int(features(str(r.prompt)) @ self.weights > 0))
            token = self.encode(text)
            out.append([Episode(self.encode(r.prompt), token, token > 0, None, text, "eos")] * r.n)
        return out


def features(prompt: str) -> np.ndarray:
    """Return of what a judge is shown: 1; whether the last number is the reference, is another; log of the words."""
    found = _SHOWN.search(prompt)
    assert found is not None
    numbers = _NUMBER.findall(found["answer"])
    same = bool(numbers) and numbers[-1] == found["reference"]
    return np.array([1.0, float(same), float(bool(numbers) and not same), np.log1p(len(found["answer"].split()))])
