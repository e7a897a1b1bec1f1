"""The reward of who labels sentences: faithfulness, correctness, and more for what is found to be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.grounding.sentence_labels import Label, read_labels, truth


def sentence_rewards(said: Sequence[Label], labels: Sequence[Label], alpha: float, bonus: float) -> list[float]:
    """Return r_j = alpha 1[f_j = f*_j] + (1 - alpha) 1[c_j = c*_j] + bonus 1[c_j = c*_j = 0] of each sentence."""
    return [
        alpha * (f is true_f) + (1 - alpha) * (c is true_c) + bonus * (not c and not true_c)
        for (f, c), (true_f, true_c) in zip(said, labels, strict=True)
    ]


@part("reward", "sentence_labels")
@dataclass(frozen=True, slots=True)
class SentenceLabelReward:
    """R_i = the mean of :func:`sentence_rewards` over the sentences that a task has labels of, 0 for a reply that does
    not label just these in their form.

    Terms: ``faithful`` and ``correct``, the shares of either label that are right; ``found``, the share of wrong
    sentences that are called so, 1 where none is wrong.

    Source: TRM (arXiv 2509.25409).

    Args:
        alpha: weight of faithfulness.
        bonus: for a wrong sentence that is called wrong.

    Raises:
        UsageError: ``alpha`` outside [0, 1] or ``bonus`` below 0; before a run, a task without labels.
    """

    alpha: float = 0.5
    bonus: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1 or self.bonus < 0:
            raise UsageError(
                f"reward 'sentence_labels': alpha {self.alpha:g} is in [0, 1], and bonus {self.bonus:g} not below 0"
            )

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task without labels of sentences."""
        for task in tasks:
            if truth(task) is None:
                raise UsageError(f"reward 'sentence_labels': task {task.id} has no labels of sentences for a reference")

    def __call__(self, batch: Batch) -> Reward:
        valid, rows = judged(batch), []
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            labels = truth(task)
            valid[i] &= labels is not None
            said = read_labels(episode.text, len(labels)) if labels else None
            rows.append(self._of(said, labels) if said is not None and labels is not None else (0.0,) * 4)
        table = torch.tensor(rows, dtype=batch.rewards.dtype).reshape(-1, 4)
        names = ("faithful", "correct", "found")
        return Reward(table[:, 0], valid=valid, terms={name: table[:, k] for k, name in enumerate(names, 1)})

    def _of(self, said: Sequence[Label], labels: Sequence[Label]) -> tuple[float, ...]:
        n, pairs = len(labels), list(zip(said, labels, strict=True))
        faithful, correct = (sum(a[k] is b[k] for a, b in pairs) / n for k in (0, 1))
        wrong = [not c for (_, c), (_, true) in pairs if not true]
        found = sum(wrong) / len(wrong) if wrong else 1.0
        return sum(sentence_rewards(said, labels, self.alpha, self.bonus)) / n, faithful, correct, found
