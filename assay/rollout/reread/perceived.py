"""What there is to be seen is asked first; who sees nothing of it is not asked to reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.asking import filled
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.media import MARK
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.rollout.single_turn import SingleTurn
from assay.types import Ask, Episode, Group, Message, Task, pictures

PERCEIVED = "perceived"
"""Key of an episode's meta."""
TEMPLATE = "{question}Answer in a few words, one line for each, without reasons:\n{questions}"


@dataclass(frozen=True, slots=True)
class Perceived:
    """How much of a task's checklist was seen, and which of the two branches an episode is of.

    Attributes:
        item: the same for both branches of an ask, and different for different asks.
        mean: of the scores of its checklist, in [0, 1].
        perception: whether this is an answer to the checklist.
    """

    item: str
    mean: float
    perception: bool


def checklist_of(task: Task) -> list[tuple[str, str]]:
    """Return the questions and answers of ``task.meta["checklist"]``, each ``{"question": ..., "answer": ...}``.

    Raises:
        UsageError: there are none, or one is not of this form; says of which task.
    """
    given = task.meta.get("checklist")
    rows = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
    if not rows or not all(isinstance(row, Mapping) and {"question", "answer"} <= {*row} for row in rows):
        raise UsageError(
            f"task {task.id} has no checklist of what is to be seen; its meta needs one, such as "
            '{"checklist": [{"question": "How many cats?", "answer": 2}]}'
        )
    return [(str(row["question"]), str(row["answer"])) for row in rows]


def perception_task(task: Task, template: str = TEMPLATE) -> Task:
    """Return the task of answering a task's checklist, all of it in one prompt, with the same pictures."""
    rows = checklist_of(task)
    numbered = "\n".join(f"{k}. {question}" for k, (question, _) in enumerate(rows, 1))
    shown = pictures(task.prompt)
    text = filled(template, question="" if shown else f"{task.question}\n\n", questions=numbered)
    message: Message = {"role": "user", "content": f"{MARK}\n" * len(shown) + text, "images": shown}
    return Task(
        id=f"{task.id}/perception",
        prompt=(message,) if shown else text,
        reference=[answer for _, answer in rows],
        kind="short_answers",
        solution="\n".join(f"{k}. {answer}" for k, (_, answer) in enumerate(rows, 1)),
        meta={"source": "perception"},
        parent=task.id,
    )


@part("rollout", "perceived")
@dataclass(slots=True)
class PerceivedFirst:
    """Has the checklist of each task answered first, in as many responses as were asked for, and judged; then the task
    itself, unless no response has any of its checklist right.

    The groups that reason come first, then those that perceive, each an advantage group of its own with a ``parent``.
    All episodes have ``meta["perceived"]``, a :class:`Perceived`. What nobody sees anything of costs no reasoning.

    Args:
        sampling, judge, answer, more, curriculum: supplied by the run.
        inner: the rollout that reasons.
        template: with ``{questions}``, numbered, and ``{question}``, which is the task's own where it has no pictures.
        max_tokens: of an answer to a checklist, at most.

    Raises:
        UsageError: ``max_tokens`` below 1, or a template without the questions; when run, a task without a checklist.

    Source: PEARL (arXiv 2511.18437).
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    answer: Any = None
    more: Any = None
    curriculum: Any = None
    inner: Any = "single_turn"
    template: str = TEMPLATE
    max_tokens: int = 256
    _inner: Rollout = field(init=False)
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or "{questions}" not in self.template:
            raise UsageError(
                f"rollout 'perceived': max_tokens {self.max_tokens} must be at least 1, and the template show "
                "{questions}"
            )
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given, answer=self.answer)

    def metrics(self) -> dict[str, float]:
        """``perceived/mean``: how much of checklists was seen; ``perceived/gated``: the share of asks that nobody saw
        anything of."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        first = [Ask(perception_task(ask.task, self.template), ask.n) for ask in asks]
        sampling = replace(self.sampling, max_tokens=min(self.max_tokens, self.sampling.max_tokens))
        seen = self.judge(SingleTurn(sampling).collect(first, engine, rng))
        means = [_mean(group) for group in seen]
        open_ = [i for i, mean in enumerate(means) if mean > 0]
        thought = self.judge(self._inner.collect([asks[i] for i in open_], engine, rng)) if open_ else []
        told = {i: Perceived(f"{i}/{asks[i].task.id}", means[i], False) for i in range(len(asks))}
        self._metrics = {
            "perceived/mean": float(np.mean(means)) if means else 0.0,
            "perceived/gated": 1 - len(open_) / len(asks) if asks else 0.0,
        }
        return [
            *(_noted(group, told[i]) for i, group in zip(open_, thought, strict=True)),
            *(_noted(group, replace(told[i], perception=True)) for i, group in enumerate(seen)),
        ]


def _mean(group: Group) -> float:
    scores = [v.score for v in group.verdicts if v.passed is not None]
    return float(np.mean(scores)) if scores else 0.0


def _noted(group: Group, told: Perceived) -> Group:
    return replace(group, episodes=tuple(replace(e, meta={**e.meta, PERCEIVED: told}) for e in group.episodes))


def told_of(episode: Episode, who: str) -> Perceived:
    """Return what the rollout noted of an episode.

    Raises:
        UsageError: it is of another rollout; says for ``who``.
    """
    found = episode.meta.get(PERCEIVED)
    if not isinstance(found, Perceived):
        raise UsageError(f"{who} is for episodes of rollout 'perceived'; set method.rollout")
    return found
