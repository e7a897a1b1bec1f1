"""Few prompts, chosen by how often the policy solves them: a hard one it can solve, with an easy one it can fail."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from assay.curriculum.base import Stream
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.types import Ask, Group, Task

PATIENCE = 10
"""Probing ends after this many times the candidates asked for, if no pair is found."""


@dataclass(slots=True)
class Probe:
    """What is known of a candidate: where the stream stood before it, how many responses were right, and judged."""

    task: Task
    where: Mapping[str, Any]
    right: int = 0
    judged: int = 0

    @property
    def rate(self) -> float:
        return self.right / self.judged


@part("curriculum", "paired")
@dataclass(slots=True)
class Paired:
    """Probes candidates first, then asks the same few prompts in every step.

    Probing: ``prompts`` tasks of the stream per step, ``group`` responses to each, until ``candidates`` of them were
    asked and a choice can be made; these tasks have ``meta["probe"]``, so that ``select = "unprobed"`` learns nothing
    from them. With p the share of right responses of a candidate and G the group, a choice is ``pairs`` times

    - ``pair``: a hard prompt, 0 < p <= ``most`` / G, the lowest p first, and an easy one, 1 - ``most`` / G <= p < 1,
      the highest first; never one that was always or never solved;
    - ``variance``: the two prompts of p nearest to 1/2, the usual choice by the variance of the verdict.

    Afterwards a step asks pair after pair, again from the first if there are more prompts in a step. Its tasks have
    ``meta["pair"]``, counted within the step, and ``meta["role"]``, ``hard`` or ``easy``.

    Source: "Beyond Variance: Prompt-Efficient RLVR" (arXiv 2602.03452).

    Args:
        stream, prompts, group: supplied by the run.
        candidates: prompts to probe, at least.
        most: successes (of hard prompts), or failures (of easy ones), in a group at most.
        choose: see above.
        pairs: to choose.
        pools: labels of ``task.meta["source"]`` that hard and easy prompts are taken from; ``None``: from all.

    Raises:
        UsageError: fewer than two prompts per step, or an option below 1.
        RunError: ten times the candidates were probed and there is no such prompt among them.
    """

    stream: Stream
    prompts: int
    group: int
    candidates: int = 64
    most: int = 2
    choose: Literal["pair", "variance"] = "pair"
    pairs: int = 1
    pools: tuple[str, str] | None = None
    _probes: dict[str, Probe] = field(default_factory=dict, init=False)
    _asked: int = field(default=0, init=False)
    _chosen: list[tuple[str, str]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.prompts < 2:
            raise UsageError("curriculum 'paired' asks prompts in pairs; rollout.prompts must be 2 or more")
        if min(self.candidates, self.most, self.pairs) < 1:
            raise UsageError("curriculum 'paired': candidates, most and pairs must be at least 1")

    def next(self, step: int) -> list[Ask]:
        if self._chosen:
            return [self._ask(slot, step) for slot in range(self.prompts)]
        if self._asked >= PATIENCE * self.candidates:
            raise RunError(
                f"curriculum 'paired' found no pair among {len(self._probes)} prompts: {self._complaint()}; take other "
                "tasks, a larger rollout.group, or a larger 'most'"
            )
        asks = []
        for _ in range(self.prompts):
            where = dict(getattr(self.stream, "state_dict", dict)())
            [task] = self.stream.next(1)
            self._probes.setdefault(task.id, Probe(task, where))
            asks.append(Ask(replace(task, meta={**task.meta, "probe": True}), self.group))
        self._asked += len(asks)
        return asks

    def observe(self, groups: Sequence[Group]) -> None:
        """Count the verdicts of probes; an abstention says nothing of a prompt."""
        for group in groups:
            if group.task.meta.get("probe") and group.task.id in self._probes:
                probe = self._probes[group.task.id]
                passed = [v.passed for v in group.verdicts if v.passed is not None]
                probe.right, probe.judged = probe.right + sum(passed), probe.judged + len(passed)
        if not self._chosen and self._asked >= self.candidates:
            self._chosen = self._choice()

    def _choice(self) -> list[tuple[str, str]]:
        """Return the chosen pairs of task ids, hard one first, or none while there are not enough."""
        if self.choose == "variance":
            known = [k for k, probe in self._probes.items() if probe.judged and 0 < probe.right < probe.judged]
            known = sorted(known, key=lambda k: abs(self._probes[k].rate - 0.5))[: 2 * self.pairs]
            if len(known) < 2 * self.pairs:
                return []
            both = [sorted(known[i : i + 2], key=lambda k: self._probes[k].rate) for i in range(0, len(known), 2)]
            return [(low, high) for low, high in both]
        hard, easy = self._hard(), self._easy()
        easy = [k for k in easy if k not in hard[: self.pairs]]
        return list(zip(hard, easy, strict=False))[: self.pairs] if min(len(hard), len(easy)) >= self.pairs else []

    def _hard(self) -> list[str]:
        """Ids of candidates seldom solved, the most seldom first."""
        bound = self.most / self.group + 1e-9
        fit = [k for k, p in self._of(0) if p.right > 0 and p.rate <= bound]
        return sorted(fit, key=lambda k: self._probes[k].rate)

    def _easy(self) -> list[str]:
        """Ids of candidates seldom failed, the most seldom first."""
        bound = self.most / self.group + 1e-9
        fit = [k for k, p in self._of(1) if p.right < p.judged and 1 - p.rate <= bound]
        return sorted(fit, key=lambda k: -self._probes[k].rate)

    def _of(self, pool: int) -> list[tuple[str, Probe]]:
        label = None if self.pools is None else self.pools[pool]
        known = [(k, p) for k, p in self._probes.items() if p.judged]
        return [(k, p) for k, p in known if label is None or p.task.meta.get("source") == label]

    def _complaint(self) -> str:
        if self.choose == "variance":
            return "too few are solved sometimes"
        share = self.most / self.group
        return (
            f"{len(self._hard())} are solved sometimes but in at most {share:.3g} of the responses, "
            f"{len(self._easy())} failed sometimes but in at most {share:.3g}, and {self.pairs} of each are needed"
        )

    def _ask(self, slot: int, step: int) -> Ask:
        pair = slot // 2
        each = (self.prompts + 1) // 2
        chosen = self._chosen[(step * each + pair) % len(self._chosen)]
        task = self._probes[chosen[slot % 2]].task
        role = "easy" if slot % 2 else "hard"
        return Ask(replace(task, meta={**task.meta, "pair": pair, "role": role}), self.group)

    def state_dict(self) -> dict[str, Any]:
        """Return counts and choice; a task is kept as the place in the stream where it came from."""
        probes = [[k, dict(p.where), p.right, p.judged] for k, p in self._probes.items()]
        return {"probes": probes, "asked": self._asked, "chosen": [list(pair) for pair in self._chosen]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        # A stream of its own reads the tasks again, the run's keeps its place.
        stream: Any = copy.copy(self.stream)
        self._probes = {}
        for key, where, right, judged in state["probes"]:
            stream.load_state_dict(where)
            [task] = stream.next(1)
            self._probes[key] = Probe(task, where, right, judged)
        self._asked, self._chosen = state["asked"], [(hard, easy) for hard, easy in state["chosen"]]
