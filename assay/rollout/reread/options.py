"""A question with its options in another order."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from assay.types import Task
from assay.verify.answer.options import listed, places

LETTERS = string.ascii_uppercase


def order_of(rng: np.random.Generator, n: int, kind: Literal["derangement", "any"]) -> tuple[int, ...]:
    """Return a random order of n options: any, or one that leaves none in its place, each as likely; ``n`` >= 2."""
    while True:
        order = tuple(rng.permutation(n).tolist())
        if kind == "any" or n < 2 or all(i != k for i, k in enumerate(order)):
            return order


def reordered(task: Task, order: Sequence[int]) -> Task:
    """Return the task with the texts of its options moved: the i-th is what was the ``order[i]``-th.

    Options stand in the question, see :func:`~assay.verify.answer.options.listed`, and, where they are there too, in
    the reference or ``meta``; a reference that is a letter, or letters, follows its text.

    Raises:
        ValueError: the question lists another number of options.
    """
    if len(listed(task.question)) != len(order):
        raise ValueError(f"task {task.id} lists {len(listed(task.question))} options, the order has {len(order)}")
    if isinstance(task.prompt, str):
        prompt: Any = _moved(task.prompt, order)
    else:
        [*_, last] = [i for i, m in enumerate(task.prompt) if len(listed(m["content"])) == len(order)]
        prompt = tuple(
            {**m, "content": _moved(m["content"], order)} if i == last else m for i, m in enumerate(task.prompt)
        )
    reference, meta = task.reference, task.meta
    if isinstance(reference, Mapping):
        reference = {**reference, "answer": _relabelled(reference.get("answer"), order)}
        if "options" in reference:
            reference["options"] = _permuted(reference["options"], order)
    else:
        reference = _relabelled(reference, order)
    if "options" in meta:
        meta = {**meta, "options": _permuted(meta["options"], order)}
    return replace(task, prompt=prompt, reference=reference, meta=meta)


def _moved(question: str, order: Sequence[int]) -> str:
    at = list(places(question).values())
    texts, out, end = [question[a:b] for a, b in at], [], 0
    for (a, b), k in zip(at, order, strict=True):
        out += [question[end:a], texts[k]]
        end = b
    return "".join([*out, question[end:]])


def _relabelled(answer: Any, order: Sequence[int]) -> Any:
    if isinstance(answer, list | tuple):
        return [_relabelled(one, order) for one in answer]
    if isinstance(answer, str) and answer.upper() in LETTERS[: len(order)]:
        return LETTERS[list(order).index(LETTERS.index(answer.upper()))]
    return answer


def _permuted(options: Any, order: Sequence[int]) -> Any:
    if isinstance(options, Mapping):
        values = list(options.values())
        return {label: values[k] for label, k in zip(options, order, strict=True)}
    return [options[k] for k in order]
