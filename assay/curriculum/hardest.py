"""A set of problems that shrinks to the hardest, as the policy of the moment finds them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.curriculum.base import Stream
from assay.curriculum.pass_rates import PassRates
from assay.curriculum.pool import Pool
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.types import Ask, Group, Task


def lowest(rates: Mapping[str, float | None], keep: float) -> list[str]:
    """Return the ceil(keep n) of n problems that are solved least often, in their order; ties go to the earlier.

    Problems without a verdict come last: nobody knows how hard they are.
    """
    by_rate = sorted(rates, key=lambda task: math.inf if (rate := rates[task]) is None else rate)
    kept = set(by_rate[: math.ceil(round(keep * len(rates), 9))])
    return [task for task in rates if task in kept]


@part("curriculum", "hardest")
@dataclass(slots=True)
class Hardest:
    """In phases: all problems that are left are tried, the hardest part of them stays, and that is learned from.

    The pool is the first ``pool`` different tasks of the stream. A phase begins by asking each problem that is left
    once, with ``group`` responses; these tasks have ``meta["probe"]``, so that ``select = "unprobed"`` learns nothing
    from them. The ceil(keep n) of lowest pass rate stay, those that were never solved among them, and are asked in turn
    for ``steps`` steps; then the next phase begins, and the last goes on to the end. What was dropped never comes back.

    Source: DRIVE (arXiv 2511.06307), its filter before each phase of the second stage.

    Args:
        stream, prompts, group: supplied by the run.
        pool: problems to begin with.
        steps: of learning in each phase but the last.
        keep: share that stays, for each phase.
        history: of pass rates, supplied by the run.

    Raises:
        UsageError: a share outside (0, 1], no phase, or a number below 1.
        RunError: the stream has not so many different tasks, none of them was judged, or the rollout left some out.
    """

    stream: Stream
    prompts: int
    group: int
    pool: int = 64
    steps: int = 50
    keep: tuple[float, ...] = (0.7, 0.5)
    history: PassRates = field(default_factory=PassRates)
    _pool: Pool = field(init=False)
    _left: list[str] = field(default_factory=list, init=False)
    _phase: int = field(default=0, init=False)
    _probed: int = field(default=0, init=False)
    _looked: int = field(default=0, init=False)
    _begun: int = field(default=0, init=False)
    _narrowed: bool = field(default=False, init=False)
    _learned: int = field(default=0, init=False)
    _turn: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not self.keep or not all(0 < share <= 1 for share in self.keep):
            raise UsageError(f"curriculum 'hardest': keep holds shares in (0, 1], one a phase, not {list(self.keep)}")
        if min(self.pool, self.steps) < 1:
            raise UsageError("curriculum 'hardest': pool and steps must be at least 1")
        self._pool = Pool(self.stream, self.pool, "curriculum 'hardest'")

    def next(self, step: int) -> list[Ask]:
        if not self._left:
            self._left = self._pool.gather()
        if self._probed < len(self._left) and not self._narrowed:
            if self._probed == 0:
                self._begun = step
            some = self._left[self._probed : self._probed + self.prompts]
            self._probed += len(some)
            return [Ask(self._labelled(task, probe=True), self.group) for task in some]
        asked = [self._left[(self._turn + i) % len(self._left)] for i in range(self.prompts)]
        self._turn += self.prompts
        return [Ask(self._labelled(task), self.group) for task in asked]

    def observe(self, groups: Sequence[Group]) -> None:
        """Count what was tried; once all were, keep the hardest."""
        probes = sum(bool(group.task.meta.get("probe")) for group in groups)
        self._looked += probes
        if not probes and self._narrowed:
            self._learned += 1
            if self._learned >= self.steps and self._phase + 1 < len(self.keep):
                self._phase, self._narrowed = self._phase + 1, False
                self._probed = self._looked = self._learned = 0
        elif not self._narrowed and self._looked >= len(self._left):
            rates = {task: self.history.rate(task, self._begun) for task in self._left}
            if all(rate is None for rate in rates.values()):
                raise RunError("curriculum 'hardest': no response to any of its problems could be judged")
            self._left = lowest(rates, self.keep[self._phase])
            self._narrowed, self._turn = True, 0
        elif not self._narrowed and self._looked and not probes:
            raise RunError(
                f"curriculum 'hardest': of {len(self._left)} problems that were tried {self._looked} came back; take a "
                "rollout that answers whatever is asked (not one such as 'dynamic', which leaves groups out)"
            )

    def _labelled(self, task: str, **more: Any) -> Task:
        found = self._pool.tasks[task]
        return replace(found, meta={**found.meta, "phase": self._phase + 1, **more})

    def state_dict(self) -> dict[str, Any]:
        """Return how far it is, and of each problem the place in the stream where it came from."""
        counts = [self._phase, self._probed, self._looked, self._begun, self._narrowed, self._learned, self._turn]
        return {**self._pool.state_dict(), "left": list(self._left), "counts": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._pool.load_state_dict(state)
        self._left = list(state["left"])
        counts = state["counts"]
        self._phase, self._probed, self._looked, self._begun, self._narrowed, self._learned, self._turn = counts
