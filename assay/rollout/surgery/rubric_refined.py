"""Where every response misses some of a rubric, the best of them is refined by what it misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.asking import shared
from assay.engines.base import Engine
from assay.engines.marking import MARKS
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.spliced import exchanged
from assay.rollout.surgery.base import Surgeon, plain_prompt, under
from assay.rollout.templates import through_template
from assay.types import Ask, Episode, Group, Origin, Task
from assay.verify.none import told

REFINE = """{question}

An attempt:
{attempt}

What it misses:
{criteria}

Write the answer anew, from its beginning. Keep what is right, and mend what is missing."""


@part("rollout", "rubric_refined")
@dataclass(slots=True)
class RubricRefined(Surgeon):
    """Every response is marked by its task's rubric; R_i is what the marks of response i come to.

    A group with max_i R_i >= ``bar`` stays as it is. Else the policy is shown the response with the largest R, the
    first of equals, and what it misses, and refines it, ``tries`` times; the refinement with the largest R, if that is
    above max_i R_i, takes the place of the response with the smallest. It is trained under the plain prompt, as of
    origin ``TEACHER`` and with log-probabilities that are not known, since none of those it was sampled with are of
    that prompt. Responses whose marks are open, or whose verifier failed, take no part. Marks are kept
    (``meta["marks"]``), so that reward ``rubric`` asks for none again; refinements have ``meta["refined"]``, the place
    of the response that was shown.

    Args:
        marker: marks, as :class:`assay.rewards.judges.rubric_judge.RubricJudge` does; method S101 makes one.
        bar: in (0, 1]; at 1 a group stays if some response meets all criteria.
        tries: refinements of each response, at least 1.
        template: with ``{attempt}``, ``{criteria}`` and ``{question}``; of a chat, the last user message is put through
            it.

    Raises:
        UsageError: no marker, an option out of range, ``when`` or ``share`` given, or a template that does not show
            attempt and criteria; of tasks, one without a rubric.
    """

    marker: Any = None
    bar: float = 1.0
    tries: int = 1
    template: str = REFINE
    _kinds: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        if self.when != "none" or self.share != 0.5:
            raise UsageError("rollout 'rubric_refined' goes by marks: set bar, not when or share")
        if not 0 < self.bar <= 1 or self.tries < 1:
            raise UsageError(
                f"rollout 'rubric_refined': bar {self.bar:g} must be in (0, 1], tries {self.tries} at least 1"
            )
        if not hasattr(self.marker, "marks"):
            raise UsageError(
                "rollout 'rubric_refined' needs a marker, an object that marks rubrics; method S101 makes one of an "
                "engine: method.options.judge"
            )
        if "{attempt}" not in self.template or "{criteria}" not in self.template:
            raise UsageError("rollout 'rubric_refined': the template must show the {attempt} and the {criteria}")

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.marker.rubric(task)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = Surgeon.collect(self, asks, engine, rng)
        self._kinds = self.by_kind([group.before or group for group in groups])
        return groups

    def metrics(self) -> dict[str, float]:
        """Those of any surgeon, and ``rubric/KIND``: the mean mark of a kind's criteria, before refinement."""
        return {**Surgeon.metrics(self), **self._kinds}

    def judged(self, groups: Sequence[Group], engine: Engine) -> list[Group]:
        """Return groups with verdicts, and marks where neither response nor verifier failed."""
        found = self.judge(groups)
        places = [
            (g, i)
            for g, group in enumerate(found)
            for i, (e, v) in enumerate(zip(group.episodes, group.verdicts, strict=True))
            if e.stop != "error" and told(v)
        ]
        pairs = [(found[g].task, found[g].episodes[i].text) for g, i in places]
        marks = dict(zip(places, shared(engine, pairs, self.marker.marks), strict=True))
        return [
            replace(
                group,
                episodes=tuple(
                    replace(e, meta={**e.meta, MARKS: marks[g, i]}) if (g, i) in marks else e
                    for i, e in enumerate(group.episodes)
                ),
            )
            for g, group in enumerate(found)
        ]

    def wants(self, group: Group) -> bool:
        """Whether responses have been marked, and none reaches the bar."""
        known = list(self.values(group).values())
        return bool(known) and max(known) < self.bar

    def values(self, group: Group) -> dict[int, float]:
        """Return R by a response's place, where it is known."""
        rubric = self.marker.rubric(group.task)
        found = {i: self.marker.value(rubric, e.meta[MARKS]) for i, e in enumerate(group.episodes) if MARKS in e.meta}
        return {i: value for i, value in found.items() if value is not None}

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        chosen = [self._best(groups[i]) for i in cases]
        prompts = [self.prompt(groups[i], best) for i, best in zip(cases, chosen, strict=True)]
        tried = self.ask([groups[i] for i in cases], prompts, [self.tries] * len(cases), engine, rng)
        for i, best, found in zip(cases, chosen, tried, strict=True):
            values, new = self.values(groups[i]), self.values(found)
            if not new or new[self._best(found)] <= values[best]:
                continue
            k = self._best(found)
            refined = self._off_policy(groups[i], found.episodes[k], best, engine)
            groups[i] = exchanged(groups[i], min(values, key=lambda j: values[j]), refined, found.verdicts[k])
            self._seen["surgery/mended"] += 1

    def prompt(self, group: Group, place: int) -> Any:
        """Return the prompt that asks for a refinement of a response."""
        episode, rubric = group.episodes[place], self.marker.rubric(group.task)
        missed = self.marker.verdict(rubric, episode.meta[MARKS]).feedback
        return through_template(plain_prompt(group), self.template, attempt=episode.text, criteria=missed)

    def by_kind(self, groups: Sequence[Group]) -> dict[str, float]:
        """Return ``rubric/KIND``, see :meth:`metrics`."""
        found: dict[str, list[float]] = {}
        for group in groups:
            criteria = self.marker.rubric(group.task).criteria
            for marks in (e.meta[MARKS] for e in group.episodes if MARKS in e.meta):
                for criterion, mark in zip(criteria, marks, strict=True):
                    if criterion.kind and mark is not None:
                        found.setdefault(f"rubric/{criterion.kind}", []).append(mark)
        return {name: float(np.mean(marks)) for name, marks in found.items()}

    def _best(self, group: Group) -> int:
        values = self.values(group)
        return max(values, key=lambda i: values[i])

    def _off_policy(self, group: Group, episode: Episode, shown: int, engine: Engine) -> Episode:
        """Return a refinement as it is learned from."""
        return replace(
            under(episode, engine.encode(plain_prompt(group))),
            logprobs=None,
            entropies=None,
            origins=np.full(len(episode.tokens), Origin.TEACHER, dtype=np.uint8),
            meta={**episode.meta, "refined": shown},
        )
