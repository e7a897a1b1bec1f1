"""A group that failed is asked anew with a hint, a stronger one if it fails again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.surgery.base import Surgeon, TrainUnder, own_group, plain_prompt, under
from assay.rollout.surgery.hints import BEGINNING, OPENS, Source, ladder
from assay.rollout.templates import check_template, through_template
from assay.types import Group, Task


@part("rollout", "reasked")
@dataclass(slots=True)
class Reasked(Surgeon):
    """A group that is to be changed gives way to as many responses to its prompt with a hint; the hints are gone
    through from the weakest on, until a response is right or there is no stronger one.

    What the last hint brought takes the group's place, right or not. It is learned from

    - ``hinted``: under the prompt with the hint, which it was sampled under;
    - ``plain``: under the prompt without, with the log-probabilities under the hint, so that a ratio to them has
      numerator and denominator under different prompts;
    - ``both``: once under each, two advantage groups.

    With ``opens`` the hint is where the response begins: it stands right after the question, and what is judged is the
    hint with what the policy writes after it.

    A task without hints keeps its group, and so does one whose prompt with the hint leaves no room for a response.

    Args:
        source: ``task`` for the hints a task brings, ``solution`` for beginnings of its worked solution.
        shares: of a solution's characters that are shown, each in (0, 1].
        most: hints that are tried, the weakest ones; all if ``None``.
        train: see above.
        cold, cold_share: for the first ``cold`` steps of the run the one hint is this share of the solution.
        opens: see above; ``template`` is then not used.
        template: of the prompt with the hint, with ``{hint}`` and ``{question}``; of a chat, the last user message.

    Raises:
        UsageError: a share or number out of range, or a template without ``{hint}``.
    """

    source: Source = "solution"
    shares: Sequence[float] = (0.25, 0.5, 0.75)
    most: int | None = None
    train: TrainUnder = "hinted"
    cold: int = 0
    cold_share: float = 0.5
    opens: bool = False
    template: str = BEGINNING

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        if not self.shares or not all(0 < s <= 1 for s in (*self.shares, self.cold_share)):
            raise UsageError(f"rollout 'reasked': shares {list(self.shares)} and cold_share must be in (0, 1]")
        if self.cold < 0 or (self.most is not None and self.most < 1):
            raise UsageError(f"rollout 'reasked': cold {self.cold} must be at least 0, most {self.most} at least 1")
        if self.opens and self.train != "hinted":
            raise UsageError("rollout 'reasked': a response is not whole without what opens it; train hinted")
        check_template(self.template, "hint", "rollout 'reasked'")

    def hints(self, task: Task) -> list[str]:
        """Return the hints to try now, weakest first."""
        if self.progress()[0] < self.cold:
            return ladder(task, "solution", [self.cold_share])
        return ladder(task, self.source, self.shares)[: self.most]

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        if tasks and not any(ladder(task, self.source, self.shares) for task in tasks):
            what = "hints" if self.source == "task" else "worked solution"
            raise UsageError(
                f"rollout 'reasked' asks again with hints, and task {tasks[0].id} has no {what}; give its tasks some, "
                "or take another method"
            )

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        left = {i: hints for i in cases if (hints := self.hints(groups[i].task))}
        shown: dict[int, Group] = {}
        level = 0
        while open_ := [i for i, hints in left.items() if level < len(hints)]:
            template = OPENS if self.opens else self.template
            hints = [left[i][level] for i in open_]
            asked = [groups[i] for i in open_]
            prompts = [through_template(plain_prompt(g), template, hint=h) for g, h in zip(asked, hints, strict=True)]
            many = [len(group.episodes) for group in asked]
            tried = self.ask(asked, prompts, many, engine, rng, hints if self.opens else None)
            for i, found in zip(open_, tried, strict=True):
                if all(v.passed is None for v in found.verdicts):
                    del left[i]  # no room for this hint, nor for a longer one; or nothing is known of it
                    continue
                shown[i] = found
                if any(v.passed for v in found.verdicts):
                    self._seen["surgery/mended"] += 1
                    self._seen["surgery/level"] += level + 1
                    del left[i]
            level += 1
        for i, found in shown.items():
            groups[i] = self._learned(groups[i], found, engine, rng)

    def _learned(self, group: Group, found: Group, engine: Engine, rng: np.random.Generator) -> Group:
        """Return the group that takes the other's place."""
        plain = [under(e, engine.encode(plain_prompt(group))) for e in found.episodes]
        hinted = [replace(e, sampled_prompt=e.prompt) for e in found.episodes]
        if self.train == "both":
            hinted = own_group(group, hinted, "hinted", rng)
        episodes = {"hinted": hinted, "plain": plain, "both": [*plain, *hinted]}[self.train]
        return Group(group.ask, tuple(episodes), found.verdicts * (2 if self.train == "both" else 1))
