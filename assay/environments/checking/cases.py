"""Judged answers: made up by the policy that a judge is told of, or those of a run or file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.asking import filled
from assay.tasks.judging.rare import answer_kind, rare_items
from assay.tasks.judging.ternary import Item, Letter
from assay.tasks.listed import Listed
from assay.tasks.seeded import check_index, generator
from assay.tasks.solutions.critiques import judged_groups
from assay.types import Task
from assay.verify.text.text import references

TEMPLATE = r"""Judge whether the response to a question is right, by the reference answer.

The reference and the question are not to be doubted. Only the final answer counts, not how it was found.
- What is equal after simplification, or rounded to two decimals, is right. A unit that is missing, or one more, is no
  fault; where units differ, convert them.
- Of an identity you are not sure of, compute both sides at several points.
- Of several parts all have to be right, in any order unless one is asked for. Of several references that mean the same
  one will do; of others all are needed.
- The letter of an option does for its content, and its content for the letter.
- A response that breaks off, repeats itself, or takes its answer back is wrong.

Question: {question}
Reference answer: {reference}
Response: {response}

Use the tools if there is something to compute. End with \boxed{Correct} or \boxed{Incorrect}."""

Call = tuple[str, dict[str, Any]]
Drawn = tuple[str, str, str, bool, list[Call]]
"""Question, reference, final answer, whether it is right, and the calls that show it."""


def task_of(question: str, reference: str, response: str, name: str, **meta: Any) -> Task:
    """Return the task of judging a response."""
    shown = {"question": question, "reference": reference, "response": response}
    return Task(name, filled(TEMPLATE, **shown), meta=meta)


def _lengths(rng: np.random.Generator) -> Drawn:
    cm, right = int(rng.integers(12, 990)), bool(rng.random() < 0.5)
    said = Fraction(cm + (0 if right else int(rng.choice([-10, 10]))), 100)
    calls: list[Call] = [("unit_conversion", {"value": float(said), "source_unit": "m", "target_unit": "cm"})]
    return "How long is the beam?", f"{cm} cm", f"{float(said):.2f} m", right, calls


def _speeds(rng: np.random.Generator) -> Drawn:
    speed, right = int(rng.integers(2, 60)), bool(rng.random() < 0.5)
    said = 3.6 * (speed if right else speed + 1)
    calls: list[Call] = [("unit_conversion", {"value": round(said, 1), "source_unit": "km/h", "target_unit": "m/s"})]
    return "How fast is the train?", f"{speed} m/s", f"{said:.1f} km/h", right, calls


def _fractions(rng: np.random.Generator) -> Drawn:
    a, b, right = int(rng.integers(3, 60)), int(rng.choice([7, 11, 13, 17])), bool(rng.random() < 0.5)
    said = f"{a / b + (0 if right else 0.02):.3f}"
    calls: list[Call] = [("python_interpreter", {"code": f"print(round({a} / {b}, 2) == round({said}, 2))"})]
    return f"What is {a} divided by {b}?", f"{a}/{b}", said, right, calls


def _words(rng: np.random.Generator) -> Drawn:
    one, other = (str(x) for x in rng.choice(["iron", "copper", "zinc", "tin", "lead"], size=2, replace=False))
    right = bool(rng.random() < 0.5)
    return "Which metal is it?", one, one if right else other, right, []


KINDS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "lengths": _lengths,
    "speeds": _speeds,
    "fractions": _fractions,
    "words": _words,
}


@dataclass(frozen=True, slots=True)
class Made:
    """Endless judged answers of some kinds; each has the calls that show its verdict, and its reply, as a plan."""

    seed: int
    kinds: Sequence[str]

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None))
        kind = self.kinds[int(rng.integers(len(self.kinds)))]
        question, reference, answer, right, calls = KINDS[kind](rng)
        meta = {"label": right, "plan": [{"name": n, "arguments": a} for n, a in calls], "kind": kind}
        # Equal draws are different tasks.
        return task_of(question, reference, f"The answer is {answer}.", f"checking/{self.seed}/{index}", **meta)


def judged_tasks(path: Path, rare: float = 0.0, seed: int = 0) -> Listed:
    """Return the judged responses of a run, an evaluation or a file of samples as tasks; see tasks ``critiques``.

    Those of rare kinds of answers are followed by others that are made from them, see
    :func:`~assay.tasks.judging.rare.rare_items`.

    Args:
        path: where they are.
        rare: to what share of the commonest kind of answer each other one is brought.
        seed: of the lots.

    Raises:
        UsageError: there are none, or something does not fit, with its line.
    """
    tasks, items = list[Task](), list[Item]()
    for group in judged_groups(path, {}, None):
        given = references(group.task.reference)
        gold, domain = " / ".join(given), str(group.task.meta.get("domain", ""))
        for episode, verdict in zip(group.episodes, group.verdicts, strict=True):
            if gold and verdict.passed is not None:
                name = f"{group.task.id}/checking/{len(tasks)}"
                kind = answer_kind(given[0])
                tasks.append(task_of(group.task.question, gold, episode.text, name, label=verdict.passed, kind=kind))
                # Of several references none stands for all of them.
                if len(given) == 1:
                    label: Letter = "A" if verdict.passed else "B"
                    items.append(Item(group.task.question, gold, episode.text, label, kind, domain))
    for i, item in enumerate(rare_items(items, generator(seed, len(items)), rare)):
        meta = {"label": item.label == "A", "kind": item.kind, "pattern": item.pattern}
        tasks.append(task_of(item.question, item.reference, item.response, f"rare/{seed}/{i}", **meta))
    return Listed(tasks)
