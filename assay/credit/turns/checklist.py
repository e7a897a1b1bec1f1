"""Credit by what checklists earn: to a whole trajectory, to a turn of the dialogue, or to each of its steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.turns import turns_of
from assay.registry import part
from assay.verify.rubric.checklist import Item, backfilled, earned, eligible, flips

Level = Literal["trajectory", "turn", "step"]


@dataclass(slots=True)
class _Dialogue:
    """A turn of the dialogue in one trajectory: its steps, by their rows in the table of turns, and their marks."""

    items: tuple[Item, ...]
    steps: list[int]
    marks: list[list[bool]]


@part("credit", "checklist")
@dataclass(frozen=True, slots=True)
class ChecklistCredit:
    """The advantage of a step s in turn t of trajectory i, over the N trajectories of its group that reached the turn.

        trajectory:  (R_i - mean R) / F,  R_i = (1 / L) sum_t R_it,  R_it = sum over s, c of w_c r_sc
        turn:        (R_it - mean_i R_it) / F
        step:        sum over c in E_s of w_c (rb_sc - b_c) / F_c  /  sum over c in E_s of w_c;  0 where E_s is empty
                     b_c = mean_i d_ic,  d_ic = 1[item c flips in some step of i's turn t]

    r is 1 where an item flips, rb also in the eligible steps before it, E_s are the items that are eligible at s, see
    :mod:`assay.verify.rubric.checklist`; F is 1, or the population's standard deviation of what is compared. It reads
    ``Turn.info`` of environment ``checklist``. Trajectories whose judge or tool failed are not active: they are left
    out of all means and have no advantage. By turn and by step, a turn that ``least`` active trajectories reached, or
    fewer, has none.

    Args:
        level: see above.
        scale: ``none`` for F = 1, or ``std``.
        least: see above.

    Raises:
        UsageError: ``least`` below 0; when called, turns of another environment.

    Source: CM2, checklist rewards for multi-turn tool agents, and its authors' code.
    """

    level: Level = "trajectory"
    scale: Literal["none", "std"] = "none"
    least: int = 4

    group_relative = True

    def __post_init__(self) -> None:
        if self.least < 0:
            raise UsageError(f"credit 'checklist': least {self.least} must be 0 or more")

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        table = turns_of(batch)
        values = np.zeros(len(table))
        found: dict[int, dict[tuple[int, int], _Dialogue]] = defaultdict(dict)  # by group, (turn, trajectory)
        lengths: dict[int, int] = {}
        rows = zip(table.records, table.group.tolist(), table.trajectory.tolist(), table.active.tolist(), strict=True)
        for m, (record, group, trajectory, active) in enumerate(rows):
            if not active:
                continue
            if "marks" not in record.info:
                raise UsageError("credit 'checklist' reads the marks that environment 'checklist' notes of each step")
            info = record.info
            items = tuple(Item("", i["id"], i["weight"], tuple(i["after"])) for i in info["items"])
            here = found[group].setdefault((int(info["turn"]), trajectory), _Dialogue(items, [], []))
            here.steps.append(m)
            here.marks.append([bool(x) for x in info["marks"]])
            lengths[trajectory] = int(info["turns"])
        for dialogues in found.values():
            if self.level == "trajectory":
                self._trajectories(dialogues, lengths, values)
                continue
            for turn in dict.fromkeys(t for t, _ in dialogues):
                reached = [d for (t, _), d in dialogues.items() if t == turn]
                if len(reached) > self.least:
                    (self._turn if self.level == "turn" else self._steps)(reached, values)
        return table.on_tokens(torch.as_tensor(values, dtype=batch.rewards.dtype), batch)

    def _trajectories(
        self, dialogues: dict[tuple[int, int], _Dialogue], lengths: dict[int, int], values: np.ndarray
    ) -> None:
        worth: dict[int, float] = defaultdict(float)
        for (_, trajectory), d in dialogues.items():
            worth[trajectory] += earned(d.items, d.marks) / lengths[trajectory]
        compared = dict(zip(worth, self._compared(list(worth.values())), strict=True))
        for (_, trajectory), d in dialogues.items():
            values[d.steps] = compared[trajectory]

    def _turn(self, reached: Sequence[_Dialogue], values: np.ndarray) -> None:
        compared = self._compared([earned(d.items, d.marks) for d in reached])
        for d, value in zip(reached, compared, strict=True):
            values[d.steps] = value

    def _steps(self, reached: Sequence[_Dialogue], values: np.ndarray) -> None:
        done = np.array([np.any(flips(d.items, d.marks), axis=0) for d in reached], dtype=np.float64)
        mean, spread = done.mean(0), self._spread(done)
        for d in reached:
            weights = np.array([i.weight for i in d.items])
            can, will = (np.array(f(d.items, d.marks), dtype=np.float64) for f in (eligible, backfilled))
            share = (can * weights).sum(1)
            worth = (can * weights * (will - mean) / spread).sum(1)
            values[d.steps] = np.divide(worth, share, out=np.zeros_like(worth), where=share > 0)

    def _compared(self, worth: Sequence[float]) -> np.ndarray:
        x = np.array(worth)
        return np.asarray((x - x.mean()) / self._spread(x))

    def _spread(self, x: np.ndarray) -> np.ndarray:
        """F of the first axis; 1 where nothing differs, since there is nothing to divide."""
        std = x.std(0)
        return np.where((std > 1e-6) & (self.scale == "std"), std, 1.0)
