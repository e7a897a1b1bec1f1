"""A group that failed gets one response that is right, with the weakest hint that makes it so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.surgery.base import Surgeon, plain_prompt, under
from assay.rollout.surgery.hints import HINT, OPENS, Source, ladder
from assay.rollout.templates import check_template, through_template
from assay.types import Episode, Group, Task, Verdict

Mode = Literal["full", "strip", "two"]


@part("rollout", "weakest_hint")
@dataclass(slots=True)
class WeakestHint(Surgeon):
    """For a group that is to be changed, one response is asked for with each of its task's hints, all at once; the
    right one with the weakest hint takes the place of the group's first wrong response.

    A task without hints keeps its group, and so does one where no response with a hint is right. The response enters

    - ``full``: under the prompt with the hint, on-policy as it was sampled;
    - ``strip``: under the plain prompt, an objective's old log-probabilities being best recomputed there;
    - ``two``: twice, stripped in the place of the first wrong response and in full in that of the second.

    Args:
        mode: see above.
        source, shares: where hints are from, see :func:`~assay.rollout.surgery.hints.ladder`.
        only: names of the tiers that hints are taken from; all if empty.
        strongest: ask with the strongest hint alone.
        opens: as in :class:`~assay.rollout.surgery.reasked.Reasked`; of responses that are learned from in full alone.
        template: of the prompt with the hint, with ``{hint}`` and ``{question}``.

    Raises:
        UsageError: a template without ``{hint}``.
    """

    mode: Mode = "full"
    source: Source = "task"
    shares: Sequence[float] = (0.25, 0.5, 0.75)
    only: Sequence[str] = ()
    strongest: bool = False
    opens: bool = False
    template: str = HINT

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        check_template(self.template, "hint", "rollout 'weakest_hint'")
        if self.opens and self.mode != "full":
            raise UsageError("rollout 'weakest_hint': a response is not whole without what opens it; take mode full")

    def hints(self, task: Task) -> list[str]:
        """Return the hints that are tried, weakest first."""
        found = ladder(task, self.source, self.shares, self.only)
        return found[-1:] if self.strongest else found

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        if tasks and not any(map(self.hints, tasks)):
            raise UsageError(
                f"rollout 'weakest_hint' asks with hints, and task {tasks[0].id} has none; give its tasks hints, or "
                'tiers of them in meta["tiers"], or take source = "solution"'
            )

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        asked = [(i, level, hint) for i in cases for level, hint in enumerate(self.hints(groups[i].task))]
        template = OPENS if self.opens else self.template
        prompts = [through_template(plain_prompt(groups[i]), template, hint=hint) for i, _, hint in asked]
        begun = [hint for *_, hint in asked] if self.opens else None
        tried = self.ask([groups[i] for i, _, _ in asked], prompts, [1] * len(asked), engine, rng, begun)
        best: dict[int, tuple[int, Episode, Verdict]] = {}
        for (i, level, _), found in zip(asked, tried, strict=True):
            if i not in best and found.verdicts and found.verdicts[0].passed:
                best[i] = level, found.episodes[0], found.verdicts[0]
        for i, (level, episode, verdict) in best.items():
            groups[i] = self._mended(groups[i], episode, verdict, engine)
            self._seen["surgery/mended"] += 1
            self._seen["surgery/level"] += level + 1

    def _mended(self, group: Group, episode: Episode, verdict: Verdict, engine: Engine) -> Group:
        """Return the group with the right response in the place of wrong ones."""
        full = replace(episode, sampled_prompt=episode.prompt)
        strip = under(episode, engine.encode(plain_prompt(group)))
        enters = {"full": [full], "strip": [strip], "two": [strip, full]}[self.mode]
        wrong = [i for i, v in enumerate(group.verdicts) if v.passed is False]
        episodes, verdicts = list(group.episodes), list(group.verdicts)
        for i, new in zip(wrong, enters, strict=False):
            episodes[i], verdicts[i] = new, verdict
        return replace(group, episodes=tuple(episodes), verdicts=tuple(verdicts))
