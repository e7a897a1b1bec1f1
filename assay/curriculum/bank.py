"""Lessons of earlier attempts, kept by the question they were learned from, and found again by its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assay.environments.search.bm25 import BM25
from assay.errors import UsageError
from assay.signals.embeddings import embedding

OTHERS = "Lessons from other tasks:"
OWN = "A lesson from earlier attempts at this task:"


class Bank:
    """The latest lesson of each task.

    Args:
        capacity: tasks that it has a lesson of, at least 1; the oldest lessons go first.
        embeddings: what questions are compared by, see :func:`assay.signals.embeddings.embedding`; their words if
            empty.

    Raises:
        UsageError: ``capacity`` below 1, or there is no such model.
    """

    def __init__(self, capacity: int = 10_000, embeddings: str = ""):
        if capacity < 1:
            raise UsageError(f"a bank of lessons: capacity {capacity} must be at least 1")
        self.capacity, self.embeddings = capacity, embeddings
        self._embed = embedding(embeddings) if embeddings else None
        self.lessons: dict[str, tuple[str, str]] = {}
        self._index: tuple[list[str], Callable[[str], np.ndarray]] | None = None

    def __len__(self) -> int:
        return len(self.lessons)

    def add(self, task: str, question: str, lesson: str) -> None:
        """Keep a lesson of a task, in place of the one before."""
        self.lessons.pop(task, None)
        self.lessons[task] = question, lesson
        while len(self.lessons) > self.capacity:
            del self.lessons[next(iter(self.lessons))]
        self._index = None

    def similar(self, task: str, question: str, k: int) -> list[str]:
        """Return up to ``k`` lessons of other tasks whose questions share words with this one, or have embeddings with
        a cosine above 0, the best first."""
        if not self.lessons:
            return []
        if self._index is None:
            names = list(self.lessons)
            questions = [self.lessons[name][0] for name in names]
            self._index = names, BM25(questions).scores if self._embed is None else self._cosines(questions)
        names, scored = self._index
        scores = scored(question)
        best = [i for i in (-scores).argsort(kind="stable").tolist() if scores[i] > 0 and names[i] != task]
        return [self.lessons[names[i]][1] for i in best[:k]]

    def _cosines(self, questions: Sequence[str]) -> Callable[[str], np.ndarray]:
        def unit(texts: Sequence[str]) -> np.ndarray:
            assert self._embed is not None
            found = np.asarray(self._embed(list(texts)), dtype=np.float64)
            return found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), 1e-12)

        known = unit(questions)
        return lambda question: np.asarray(known @ unit([question])[0])

    def hint(self, task: str, question: str, k: int, own: bool) -> str | None:
        """Return what to put before a question: its own lesson, if it may have that, or up to ``k`` of similar ones."""
        if own and task in self.lessons:
            return f"{OWN}\n{self.lessons[task][1]}\n"
        found = self.similar(task, question, k)
        return "\n".join([OTHERS, *(f"- {lesson}" for lesson in found), ""]) if found else None

    def state_dict(self) -> dict[str, Any]:
        return {
            "lessons": [[task, *kept] for task, kept in self.lessons.items()],
            "embeddings": self.embeddings,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.lessons = {task: (question, lesson) for task, question, lesson in state["lessons"]}
        self._index = None
