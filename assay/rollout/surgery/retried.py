"""A response that is not good enough is followed by a second one, under a hint that was written after the first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.engines.asking import ask, filled, judge_of, shared
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.surgery.base import Surgeon, TrainUnder, own_group, plain_prompt, under
from assay.rollout.surgery.hints import HINT, told
from assay.rollout.templates import check_template, through_template
from assay.signals.likelihood import text_of_reference
from assay.types import Episode, Group, Task, Verdict

WRITE = """Someone attempted the following task. Write a hint of one sentence that would help them to do better at the
next try. Name what they overlooked, as it is in this task; never state what is right, nor imply which answer it is.

Task:
{question}

What is right:
{reference}

The attempt:
{response}

What was said of it:
{feedback}

Hint:"""


@part("rollout", "retried")
@dataclass(slots=True)
class Retried(Surgeon):
    """Every response whose verdict's score is below ``below`` gets a hint, and the policy tries again with it, once.

    Hints are the verdict's ``feedback``, the weakest that the ``task`` brings, or what an engine writes that is shown
    question, reference, response and feedback. One that states the reference, as a word of its own, is dropped, as is
    an empty one: that response is not tried again. A second try is learned from

    - ``plain``: as if it had been written to the prompt without the hint, beside the first tries, in their group;
    - ``hinted``: under the prompt with the hint, which it was sampled under, in a group of the second tries alone;
    - ``both``.

    Of a plain copy the log-probabilities are those under the hint; an objective that recomputes them takes its ratio to
    the policy before the update under the plain prompt, which begins at 1.

    Args:
        hints: ``feedback``, ``task``, or an engine or the specification of one.
        below: in (0, 1].
        train: see above.
        template: of the prompt with the hint, with ``{hint}`` and ``{question}``. It may show the ``{reference}`` too,
            for tasks whose reference is to be taken on, such as what somebody said, and not to be found.
        write: asks the engine, with ``{question}``, ``{reference}``, ``{response}`` and ``{feedback}``.
        max_tokens: of a hint that an engine writes.

    Raises:
        UsageError: ``below`` or ``max_tokens`` out of range, ``when`` or ``share`` given, a template without
            ``{hint}``, or hints from nowhere.
    """

    hints: Any = "feedback"
    below: float = 1.0
    train: TrainUnder = "both"
    template: str = HINT
    write: str = WRITE
    max_tokens: int = 512

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        if self.when != "none" or self.share != 0.5:
            raise UsageError("rollout 'retried' goes by each response's score: set below, not when or share")
        if not 0 < self.below <= 1 or self.max_tokens < 1:
            raise UsageError(
                f"rollout 'retried': below {self.below:g} must be in (0, 1], max_tokens {self.max_tokens} at least 1"
            )
        check_template(self.template, "hint", "rollout 'retried'", "reference")
        if self.hints not in ("feedback", "task"):
            self.hints = judge_of(self.hints, "rollout 'retried'")

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        if self.hints == "task" and tasks and not any(map(told, tasks)):
            raise UsageError(
                f"rollout 'retried' tries again with the task's hints, and task {tasks[0].id} has none; give its tasks "
                'hints, or take hints = "feedback" or an engine'
            )

    def wants(self, group: Group) -> bool:
        """Whether some response is not good enough."""
        return any(self._poor(v) for v in group.verdicts)

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        poor = [(i, k) for i in cases for k, v in enumerate(groups[i].verdicts) if self._poor(v)]
        said = self._hints([(groups[i], k) for i, k in poor], engine)
        hinted = [(place, hint) for place, hint in zip(poor, said, strict=True) if hint]
        self._seen["surgery/hints"] = len(hinted)
        prompts = [
            through_template(
                plain_prompt(groups[i]), self.template, hint=hint, reference=text_of_reference(groups[i].task)
            )
            for (i, _), hint in hinted
        ]
        tried = self.ask([groups[i] for (i, _), _ in hinted], prompts, [1] * len(hinted), engine, rng)
        second: dict[int, list[tuple[Episode, Verdict]]] = {}
        better = 0
        for ((i, k), hint), found in zip(hinted, tried, strict=True):
            for e, v in zip(found.episodes, found.verdicts, strict=True):
                second.setdefault(i, []).append((replace(e, meta={**e.meta, "hint": hint, "first": k}), v))
                better += v.score > groups[i].verdicts[k].score
        self._seen["surgery/mended"] = better
        for i, rows in second.items():
            groups[i] = self._extended(groups[i], rows, engine, rng)

    def _poor(self, verdict: Verdict) -> bool:
        return verdict.passed is not None and verdict.score < self.below

    def _extended(
        self, group: Group, rows: Sequence[tuple[Episode, Verdict]], engine: Engine, rng: np.random.Generator
    ) -> Group:
        """Return the group with the second tries."""
        again, verdicts = [e for e, _ in rows], tuple(v for _, v in rows)
        episodes, judged = list(group.episodes), list(group.verdicts)
        if self.train != "hinted":
            episodes += [under(e, engine.encode(plain_prompt(group))) for e in again]
            judged += verdicts
        if self.train != "plain":
            episodes += own_group(group, [replace(e, sampled_prompt=e.prompt) for e in again], "hinted", rng)
            judged += verdicts
        return replace(group, episodes=tuple(episodes), verdicts=tuple(judged))

    def _hints(self, poor: Sequence[tuple[Group, int]], engine: Engine) -> list[str]:
        """Return a hint for each response, empty where there is none that may be shown."""
        if self.hints == "task":
            found = [next(iter(told(group.task)), "") for group, _ in poor]
        elif self.hints == "feedback":
            found = [group.verdicts[k].feedback for group, k in poor]
        else:
            prompts = [
                filled(
                    self.write,
                    question=group.task.question,
                    reference=text_of_reference(group.task),
                    response=group.episodes[k].text,
                    feedback=group.verdicts[k].feedback,
                )
                for group, k in poor
            ]
            sampling = Sampling(self.max_tokens, 0.0)
            replies = shared(engine, prompts, lambda share: ask(self.hints, share, sampling))
            found = ["" if reply.stop == "error" else reply.text for reply in replies]
        kept = [hint.strip() for hint in found]
        leaked = [states(hint, text_of_reference(group.task)) for hint, (group, _) in zip(kept, poor, strict=True)]
        self._seen["surgery/leaked"] = sum(leaked)
        return ["" if leak else hint for hint, leak in zip(kept, leaked, strict=True)]


def states(text: str, reference: str) -> bool:
    """Whether the reference stands in a text, in any case, as a word of its own: not within a longer word or number."""
    wanted = reference.strip()
    return bool(wanted) and re.search(rf"(?i)(?<![\w.]){re.escape(wanted)}(?!\w|\.\d)", text) is not None
