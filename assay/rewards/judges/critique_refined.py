"""What a critique is worth: that it judges rightly, and what a frozen actor makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Episode, Task
from assay.verify.episodes import judge_episodes
from assay.verify.make import make_verifier

Refined = Literal["refine", "delta", "correct"]

TEMPLATE = r"""Question:
{question}

Your earlier solution:
{response}

A critique of it:
{critique}

Write an improved solution, and end with the answer in \boxed{}."""


def refined_value(before: bool, after: bool, mode: Refined) -> float:
    """Return what a refinement is worth, by whether the answer was right ``before`` and is ``after``.

    - ``refine``: 1 if it is right after;
    - ``delta``: after - before;
    - ``correct``: 0.2 for a right one kept, 1 for a wrong one mended, else 0.
    """
    if mode == "refine":
        return float(after)
    if mode == "delta":
        return float(after) - float(before)
    return (0.2 if before else 1.0) if after else 0.0


@part("reward", "critique_refined")
@dataclass(slots=True)
class CritiqueRefined:
    """R = d in the first stage; then -1 where d = -1, else :func:`refined_value` of the refinement + ``bonus``.

    d = 1 where the critique's verdict on the solution is right, -1 where it is wrong or cannot be read, as the verifier
    says (``critique``). In the second stage the actor, which does not learn, is shown question, solution and critique
    and writes one new solution, which is judged. It is asked only about critiques with d = 1. A critique has no reward
    where the actor or the check of its answer failed, or the task does not bring ``meta`` of question, response and
    answer (as those of source ``critiques`` do).

    Terms: ``discrimination`` (d = 1), and of the refinements that were judged ``refined`` (right after), ``repaired``
    and ``spoiled`` (wrong to right, right to wrong), each as a share of all critiques.

    Args:
        actor: an engine, or the specification of one; none is needed while the first stage lasts.
        first: steps of the first stage.
        mode: ``refine``, ``delta`` or ``correct``.
        bonus: of a right judgement in the second stage.
        max_tokens: of a refinement, which is greedy.
        verify: the verifier of refined answers, against the task's ``answer``.
        template: with ``{question}``, ``{response}`` and ``{critique}``.

    Raises:
        UsageError: a template that does not show the critique; a run longer than the first stage without an actor.

    Source: Critique-RL (arXiv 2510.24320), equations 3 to 5.
    """

    actor: Any = None
    first: int = 500
    mode: Refined = "refine"
    bonus: float = 0.2
    max_tokens: int = 1024
    verify: Any = "math"
    template: str = TEMPLATE
    _verifier: Any = field(init=False, repr=False, compare=False)
    _done: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.first < 0 or "{critique}" not in self.template:
            raise UsageError("reward 'critique_refined': first is at least 0, and the template shows {critique}")
        if self.actor is not None:
            self.actor = judge_of(self.actor, "reward 'critique_refined'")
        self._verifier = make_verifier(self.verify)

    def planned(self, steps: int) -> None:
        """Refuse a run in which nobody could refine."""
        if self.actor is None and steps > self.first:
            raise UsageError(
                f"reward 'critique_refined': after {self.first} steps a model refines by the critiques; name an "
                "actor, or first = the run's steps"
            )

    def __call__(self, batch: Batch) -> Reward:
        second, self._done = self._done >= self.first, self._done + 1
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        values = torch.where(right, 1.0, -1.0).to(batch.rewards.dtype)
        valid = judged(batch)
        terms = {"discrimination": right.to(values.dtype)}
        if second:
            after = self._after(batch, right & valid)
            terms |= {name: torch.zeros_like(values) for name in ("refined", "repaired", "spoiled")}
            for i in (right & valid).nonzero()[:, 0].tolist():
                if after[i] is None:
                    valid[i] = False
                    continue
                before, now = _label(batch.tasks[i]), bool(after[i])
                values[i] = refined_value(before, now, self.mode) + self.bonus
                found = {"refined": now, "repaired": now and not before, "spoiled": before and not now}
                for name, value in found.items():
                    terms[name][i] = float(value)
        return Reward(values, valid=valid, terms=terms)

    def _after(self, batch: Batch, rows: torch.Tensor) -> list[bool | None]:
        """Whether the refinement by each critique is right; ``None`` where none was asked for or it is not known."""
        index = [i for i in rows.nonzero()[:, 0].tolist() if _shown(batch.tasks[i]) is not None]
        prompts = [
            filled(self.template, **(_shown(batch.tasks[i]) or {}), critique=batch.episodes[i].text) for i in index
        ]
        replies: Sequence[Episode] = ask(self.actor, prompts, Sampling(self.max_tokens, 0.0)) if index else []
        answers = [Task(t.id, t.meta["question"], t.meta["answer"]) for t in (batch.tasks[i] for i in index)]
        verdicts = judge_episodes(self._verifier, list(zip(answers, replies, strict=True)))
        out: list[bool | None] = [None] * len(batch)
        for i, verdict in zip(index, verdicts, strict=True):
            out[i] = verdict.passed
        return out

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._done = int(state["done"])


def _shown(task: Task) -> dict[str, str] | None:
    """What the actor is shown of a task beside the critique."""
    if any(task.meta.get(name) is None for name in ("question", "response", "answer")):
        return None
    return {name: str(task.meta[name]) for name in ("question", "response")}


def _label(task: Task) -> bool:
    """Whether the solution of a task is right."""
    return str(task.reference).strip().lower() == "true"
