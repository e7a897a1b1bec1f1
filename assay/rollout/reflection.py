"""Reflections beside the episodes: the same policy says what is to be learned from one, and a judge how far that
helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.registry import build, part
from assay.rollout.single_turn import SingleTurn, fits
from assay.signals.rubrics import read_scores
from assay.signals.stages import REFLECTION
from assay.types import Ask, Episode, Group, Verdict

JUDGE = """A lesson was drawn from an attempt at a task. Judge it strictly by two questions.

What it was drawn from:
{attempt}

The lesson:
{lesson}

Within: would another attempt at this very task be better for it, because it names what was wrong and what to do?
Across: would it help with other tasks of this kind, because it holds beyond this one and gives no answer away?

Reply with two numbers from 0 to 1 in <scores>within, across</scores>, such as <scores>0.7, 0.2</scores>."""


@part("rollout", "reflection")
@dataclass(frozen=True, slots=True)
class Reflections:
    """Rollout ``reflection``: tasks of kind ``reflection`` (of the curriculum of that name) are answered in one turn
    and judged here; all others are answered by the rollout ``inner``.

    A lesson is what a response has in its last ``<reflection>``; one without earns 0. The judge gives two numbers in
    [0, 1], how far it helps with the task and how far with others; the score is their mean, and a lesson is accepted if
    both are at least ``accept``. Where the judge fails or cannot be read the verdict abstains. A prompt that leaves no
    room for a response in the model's context is left out.

    Source: RubricEM (arXiv 2605.10899); wording, mean and threshold are choices.

    Args:
        sampling: supplied by the run.
        inner: a rollout's name, or a table with ``name`` and options.
        assessor: an engine, or the specification of one; without one no reflection can be judged.
        accept: in [0, 1].
        max_tokens: of the judge's reply, which is greedy.

    Raises:
        UsageError: ``accept`` out of range; when called, a reflection without an assessor.
    """

    sampling: Sampling
    inner: Any = "single_turn"
    assessor: Any = None
    accept: float = 0.5
    max_tokens: int = 1024
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.accept <= 1:
            raise UsageError(f"rollout 'reflection': accept {self.accept:g} must be in [0, 1]")
        object.__setattr__(self, "inner", build("rollout", self.inner, sampling=self.sampling))
        if self.assessor is not None:
            object.__setattr__(self, "assessor", judge_of(self.assessor, "reflections"))

    def metrics(self) -> dict[str, float]:
        """Those of the rollout inside, and of reflections their mean ``score``, the share ``accepted``, and how many
        prompts were ``left_out``."""
        return self._seen

    def __getattr__(self, name: str) -> Any:
        """Of the rollout inside, where it has one: ``demonstrate``."""
        if name != "demonstrate":
            raise AttributeError(name)
        return self.inner.demonstrate

    @property
    def plays(self) -> bool:
        """Whether the rollout inside plays episodes of several turns."""
        return hasattr(self.inner, "play")

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Play as the rollout inside does."""
        found: list[Group] = self.inner.play(asks, seeds, engine)
        return found

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        """Return the groups of reflections after all others."""
        others = [a for a in asks if a.task.kind != REFLECTION]
        groups = self.inner.collect(others, engine, rng) if others else []
        looked = [a for a in asks if a.task.kind == REFLECTION]
        fitting = [a for a in looked if fits(a, engine, self.sampling)]
        reflected = self._judged(SingleTurn(self.sampling).collect(fitting, engine, rng), engine)
        verdicts = [v for g in reflected for v in g.verdicts if v.passed is not None]
        self._seen.clear()
        self._seen.update(getattr(self.inner, "metrics", dict)())
        self._seen["reflection/left_out"] = float(len(looked) - len(fitting))
        if verdicts:
            self._seen["reflection/score"] = float(np.mean([v.score for v in verdicts]))
            self._seen["reflection/accepted"] = float(np.mean([bool(v.passed) for v in verdicts]))
        return [*groups, *reflected]

    def _judged(self, groups: Sequence[Group], engine: Any) -> list[Group]:
        rows = [(group.task.question, lesson_of(e.text)) for group in groups for e in group.episodes]
        # Of several processes each judges some, and all go by the same verdicts.
        divided = getattr(engine, "divided", None)
        work = [row for row in rows if row[1]]
        told = divided(work, lambda share, _: self._verdicts(share)) if divided else self._verdicts(work)
        found = iter(told)
        out = []
        for group in groups:
            episodes, verdicts = list[Episode](), list[Verdict]()
            for e in group.episodes:
                lesson = lesson_of(e.text)
                verdict = next(found) if lesson else Verdict.wrong("it has no <reflection>")
                if e.stop == "error":
                    verdict = Verdict.abstain(str(e.meta.get("error", "generation failed")), "infrastructure")
                episodes.append(replace(e, meta={**e.meta, "role": REFLECTION, "lesson": lesson}))
                verdicts.append(verdict)
            out.append(replace(group, episodes=tuple(episodes), verdicts=tuple(verdicts)))
        return out

    def _verdicts(self, rows: Sequence[tuple[str, str]]) -> list[Verdict]:
        if not rows:
            return []
        if self.assessor is None:
            raise UsageError("rollout 'reflection' has reflections judged: give an engine, assessor = {name = ...}")
        prompts = [filled(JUDGE, attempt=attempt, lesson=lesson) for attempt, lesson in rows]
        return [self._verdict(reply) for reply in ask(self.assessor, prompts, Sampling(self.max_tokens, 0.0))]

    def _verdict(self, reply: Episode) -> Verdict:
        found = None if reply.stop == "error" else read_scores(reply.text, 2)
        if found is None:
            return Verdict.abstain("the judge of reflections said no two scores", "infrastructure")
        within, across = found
        return Verdict((within + across) / 2, min(found) >= self.accept, {"within": within, "across": across})


def lesson_of(response: str) -> str:
    """Return the lesson of a response, empty if it has none."""
    found = re.findall(r"<reflection>(.*?)</reflection>", response, re.DOTALL)
    return found[-1].strip() if found else ""
