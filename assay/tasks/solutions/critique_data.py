"""What a verifier that explains itself learns from: judged solutions, and critiques by a model that knew the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from assay.errors import UsageError
from assay.types import Group, Task
from assay.verify.answer.extract import extract
from assay.verify.text.compare import same

if TYPE_CHECKING:
    from assay.engines.base import Engine, Sampling

HINTED = r"""Question:
{question}

The right answer, which you must not mention: {reference}
{worked}
Proposed solution:
{response}

Explain, without referring to any given answer, why the solution is right or where it goes wrong. Then write
\boxed{{True}} if its final answer is right, and \boxed{{False}} if not."""
WORKED = """
A right solution, which you must not mention either:
{solution}
"""
TELLS = (
    *("given answer", "provided answer", "reference answer", "correct answer provided"),
    *("reference solution", "official solution", "ground truth"),
)
"""Of these a critique speaks that refers to what its author was given."""


def critique_tasks(
    groups: Sequence[Group], rng: np.random.Generator, most: float = 1.0, template: str | None = None
) -> list[Task]:
    """Return tasks for the verifier, (question, solution) -> True or False, from the solver's judged responses.

    Of questions with 0 < accuracy < 1, and accuracy at most ``most``: one right solution, by lot, and wrong ones whose
    answers differ pairwise. Then as many True as False, the surplus left out by lot.

    Args:
        groups: judged; abstentions are left out.
        rng: of the lots.
        most: see above.
        template: with ``{question}`` and ``{response}``.

    Returns:
        Tasks of kind ``critique`` whose reference is ``True`` or ``False``; ``meta`` keeps question, response,
        answer (the question's reference, or, where that is not known, what the right solution answers) and, where the
        question has one, its worked solution.

    Raises:
        UsageError: a template that does not fit.
    """
    from assay.verify.critique import TEMPLATE

    shown, tasks = TEMPLATE if template is None else template, []
    try:
        fits = all(mark in shown.format(question="\0", response="\1") for mark in "\0\1")
    except (KeyError, IndexError, ValueError):
        fits = False
    if not fits:
        raise UsageError("tasks 'critiques': the template has {question} and {response}; other braces are doubled")
    for group in groups:
        judged = [(e, v.passed) for e, v in zip(group.episodes, group.verdicts, strict=True) if v.passed is not None]
        right = [e for e, p in judged if p]
        if not 0 < len(right) < len(judged) or len(right) / len(judged) > most:
            continue
        taken = [(right[int(rng.integers(len(right)))], True)]
        answers: list[str] = []
        for e, passed in judged:
            answer = extract(e.text)
            if not passed and answer and not any(same(answer, a) for a in answers):
                answers.append(answer)
                taken.append((e, False))
        reference = extract(taken[0][0].text) if group.task.reference is None else group.task.reference
        for k, (e, label) in enumerate(taken):
            meta = {"question": group.task.question, "answer": reference, "response": e.text}
            if group.task.solution is not None:
                meta["worked"] = group.task.solution
            prompt = shown.format(question=group.task.question, response=e.text)
            tasks.append(Task(f"{group.task.id}/critique/{k}", prompt, str(label), "critique", meta=meta))
    return balanced(tasks, rng)


def critiques_with_hint(
    tasks: Sequence[Task],
    critic: Engine,
    rng: np.random.Generator,
    tries: int = 8,
    sampling: Sampling | None = None,
) -> list[Task]:
    """Return the tasks with a critique as worked solution, for the supervised start.

    The critic sees the right answer, and the worked solution where one is known; a critique is kept if its verdict is
    the label and it does not speak of what was given. The first that passes is taken; tasks without one are left out.

    Args:
        tasks: of :func:`critique_tasks`.
        critic: any instruction-following model.
        rng: of the seeds.
        tries: critiques of each.
        sampling: how they are drawn.
    """
    from assay.engines.base import Request, Sampling
    from assay.verify.critique import said

    drawn = sampling or Sampling(max_tokens=1024)
    asked = [Request(_hinted(t), tries, drawn, int(rng.integers(2**63))) for t in tasks]
    out = []
    for task, replies in zip(tasks, critic.generate(asked) if asked else [], strict=True):
        fit = [r.text for r in replies if r.stop != "error" and said(r.text) is (task.reference == "True")]
        fit = [text for text in fit if not _tells(text)]
        if fit:
            out.append(replace(task, solution=fit[0]))
    return out


def balanced(tasks: Sequence[Task], rng: np.random.Generator) -> list[Task]:
    """Return as many tasks labelled True as False, the surplus left out by lot, in an order by lot."""
    kinds = [[t for t in tasks if t.reference == label] for label in ("True", "False")]
    size = min(map(len, kinds))
    chosen = [some[int(i)] for some in kinds for i in rng.permutation(len(some))[:size]]
    return [chosen[int(i)] for i in rng.permutation(len(chosen))]


def _hinted(task: Task) -> str:
    """What the critic is asked."""
    worked = WORKED.format(solution=task.meta["worked"]) if "worked" in task.meta else ""
    return HINTED.format(
        question=task.meta["question"], reference=task.meta["answer"], worked=worked, response=task.meta["response"]
    )


def _tells(critique: str) -> bool:
    """Whether a critique speaks of what its author was given."""
    low = critique.lower()
    return any(words in low for words in TELLS)
