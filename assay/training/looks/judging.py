"""Is a policy that learns to solve problems getting better at judging the steps of solutions, too?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.config import RunConfig
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.policies.policy import acts, draws
from assay.records.evaluation import Evaluation
from assay.records.judging import NAME
from assay.registry import build, part
from assay.rewards.process.error_step import question
from assay.rewards.process.first_error import FirstError, Found
from assay.statistics.judging import located
from assay.training.callbacks import Callback, Running
from assay.types import Task
from assay.verify.step_index import whole_number


@part("callback", "judging_of_steps")
@dataclass
class JudgingOfSteps(Callback):
    """At each evaluation the policy also judges solutions of which the first wrong step is known: two curves of a run.

    A line is said and added to ``judging.jsonl`` in the run's folder, and the report draws them. It has the ``step``
    and ``label`` of the evaluation and its ``pass@1`` on the run's own held-out tasks, and beside it

        f1 = 2 a b / (a + b),   a (``wrong``) the share of wrong solutions whose first wrong step is named,
                                b (``right``) the share of right ones that are said to have none

    over ``judged`` solutions; ``unreadable`` of these replies named no step and are no hits, ``failed`` ones beside
    them were no replies at all, and count for nothing. What cannot be told is left out. Evaluations come every
    ``evaluate.every`` steps, ten in the study. Judgements are greedy, so that a look draws nothing and changes nothing.

    Args:
        tasks: the source of judged solutions: ``step_labels`` (a file, as of ProcessBench), ``corrupted_chain``.
        count: the first so many of them.
        max_tokens: of a judgement, and with ``own`` of a solution.
        own: the policy first solves the problem and judges beside its own solution (Self-REF).
        template: see :class:`~assay.rewards.process.first_error.FirstError`.

    Raises:
        UsageError: before the first step, for what cannot be measured: no evaluations, several trainers, tasks without
            steps and index, a judgement that the model's context has no room for.

    Source: "Is PRM Necessary? Problem-Solving RL Implicitly Induces PRM Capability in LLMs" (arXiv 2505.11227).
    """

    tasks: Any
    count: int = 100
    max_tokens: int = 1024
    own: bool = False
    template: str | None = None
    known: list[Task] = field(default_factory=list, init=False, repr=False)
    truth: list[int] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.count < 1 or self.max_tokens < 1:
            raise UsageError(
                f"callback 'judging_of_steps': count {self.count} and max_tokens {self.max_tokens} must be 1 or more"
            )

    def check(self, config: RunConfig) -> None:
        if not config.evaluate.samples:
            raise UsageError("callback 'judging_of_steps' looks at evaluations: set evaluate.samples above 0")
        if config.scale.trainers > 1:
            raise UsageError("callback 'judging_of_steps' asks the engine of one process; set scale.trainers=1")
        if draws(config.model) or acts(config.model):
            raise UsageError("callback 'judging_of_steps' wants a policy that writes text; leave it out")
        source = build("tasks", self.tasks)
        self.known = [source[i] for i in range(min(self.count, source.size or self.count))]
        indices = [whole_number(str(task.reference)) for task in self.known]
        for task, index in zip(self.known, indices, strict=True):
            steps = task.meta.get("steps") or ()
            if index is None or "question" not in task.meta or not -1 <= index < len(steps):
                raise UsageError(
                    f"callback 'judging_of_steps': task {task.id} has no steps and index of the first wrong one; "
                    "use tasks step_labels or corrupted_chain"
                )
        self.truth = [index for index in indices if index is not None]
        if len({index < 0 for index in self.truth}) < 2:
            raise UsageError(
                f"callback 'judging_of_steps': the first {len(self.truth)} solutions are all right or all wrong, and "
                "F1 is of both; raise count"
            )

    def on_start(self, run: Running) -> None:
        policy: Any = run.policy
        room = self.max_tokens * (2 if self.own else 1)
        for (problem, steps), task in zip(self._solutions(), self.known, strict=True):
            prompt = question(problem, "", steps, self._judge(run.models.engine).words)
            if (size := len(policy.encode(prompt))) + room > policy.context:
                raise UsageError(
                    f"callback 'judging_of_steps': task {task.id} is asked in {size} tokens, which with {room} more do "
                    f"not fit the model's context of {policy.context}; lower max_tokens or leave it out"
                )

    def on_evaluation(self, run: Running, evaluation: Evaluation) -> None:
        own = evaluation.pass_interval(1)
        row: dict[str, Any] = {"step": evaluation.step, "label": evaluation.label}
        row |= {"pass@1": own.value} if own is not None else {}
        row |= judged(self._judge(run.models.engine).find(self._solutions()), self.truth)
        with (run.folder / NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        shown = "  ".join(f"{k} {row[k]:.3f}" for k in ("f1", "wrong", "right") if k in row)
        run.say(f"{evaluation.label}: judging of steps {shown or 'had no reply'}")

    def _solutions(self) -> list[tuple[str, Sequence[str]]]:
        return [(str(task.meta["question"]), tuple(task.meta["steps"])) for task in self.known]

    def _judge(self, engine: Any) -> FirstError:
        return FirstError(engine, self.own, self.template, Sampling(self.max_tokens, 0.0))


def judged(found: Sequence[Found], truth: Sequence[int]) -> dict[str, float]:
    """Return the numbers of :class:`JudgingOfSteps` for what was found of solutions whose first wrong step is known."""
    told = [(f.index, t) for f, t in zip(found, truth, strict=True) if not f.failed]
    score = located([index for index, _ in told], [t for _, t in told])
    values = {"wrong": score.wrong, "right": score.right, "f1": score.f1}
    counts = {
        "judged": len(told),
        "unreadable": sum(index is None for index, _ in told),
        "failed": len(truth) - len(told),
    }
    return {**{k: v for k, v in values.items() if v == v}, **counts}
