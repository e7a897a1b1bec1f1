"""No questions but one's own: proposals of programs are asked for, and what was valid is kept to be solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.curriculum.base import Stream
from assay.errors import UsageError
from assay.registry import part
from assay.types import Ask, Group, Task
from assay.verify.programs.language import MODES, Language, Mode, Triplet, language
from assay.verify.programs.verifier import KIND, solving_reference


@part("curriculum", "absolute_zero")
@dataclass(slots=True)
class AbsoluteZero:
    """Asks for ``prompts`` proposals of each mode a step, and remembers the valid ones; the stream is never read.

    A proposer of deduction or abduction is shown ``shown`` earlier triplets of its mode, one of induction the program
    of an earlier triplet of another mode. Each mode's buffer begins with the identity function. Rollout
    ``absolute_zero`` says by :meth:`admit` what was valid and gets from :meth:`pick` what is to be solved.

    Source: Absolute Zero (arXiv 2505.03335), section 3.

    Args:
        stream, prompts, group: supplied by the run; ``group`` is how often a proposal is solved to see how hard it is.
        language: of the programs, see :data:`assay.verify.programs.language.LANGUAGES`.
        modes: any of ``deduction``, ``abduction``, ``induction``.
        shown: K, earlier triplets that a proposer sees.
        inputs: of a proposal of induction, at least 2; the first half is shown to who looks for the program.
        capacity: triplets of a mode that are kept, the latest ones.
        seed: of the draws.

    Raises:
        UsageError: an option out of range, an unknown mode or language.
    """

    stream: Stream
    prompts: int
    group: int
    language: str = "python"
    modes: tuple[Mode, ...] = MODES
    shown: int = 6
    inputs: int = 10
    capacity: int = 16_384
    seed: int = 0
    known: Language = field(init=False, repr=False)
    buffers: dict[Mode, list[Triplet]] = field(init=False, repr=False)
    _fresh: dict[Mode, int] = field(default_factory=dict, init=False, repr=False)
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.modes or set(self.modes) - set(MODES) or len(set(self.modes)) < len(self.modes):
            raise UsageError(f"curriculum 'absolute_zero': modes {list(self.modes)} must be some of {', '.join(MODES)}")
        if self.shown < 1 or self.inputs < 2 or self.capacity < 1:
            raise UsageError(
                f"curriculum 'absolute_zero': shown {self.shown} and capacity {self.capacity} must be at least 1, "
                f"inputs {self.inputs} at least 2"
            )
        self.known = language(self.language)
        first = self.known.identity
        self.buffers = {mode: [self._many(first) if mode == "induction" else first] for mode in self.modes}
        self._rng = np.random.default_rng([self.seed, 67])

    def _many(self, triplet: Triplet) -> Triplet:
        return Triplet(
            triplet.program, triplet.inputs * self.inputs, triplet.outputs * self.inputs, "It returns what it is given."
        )

    def next(self, step: int) -> list[Ask]:
        return [Ask(self._proposal(mode, f"{step}-{i}"), 1) for mode in self.modes for i in range(self.prompts)]

    def _proposal(self, mode: Mode, name: str) -> Task:
        shown, program = self._drawn(self.buffers[mode], self.shown), ""
        if mode == "induction":
            others = [t.program for m in self.modes if m != mode for t in self.buffers[m]]
            program = self._one(others or [t.program for t in shown])
        prompt = self.known.propose(mode, shown, program, self.inputs)
        reference = {"language": self.language, "mode": mode, "propose": self.inputs, "program": program}
        return Task(f"propose/{mode}/{name}", prompt, reference, KIND, meta={"mode": mode, "role": "propose"})

    def task(self, mode: Mode, triplet: Triplet, name: str, parent: str) -> Task:
        """Return the task of finding what is missing of a triplet in a mode."""
        seen = self.inputs // 2 if mode == "induction" else 0
        reference = solving_reference(self.language, mode, triplet, seen)
        prompt = self.known.solve(mode, triplet, seen)
        return Task(name, prompt, reference, KIND, meta={"mode": mode, "role": "solve"}, parent=parent)

    def admit(self, mode: Mode, valid: Sequence[Triplet]) -> None:
        """Keep a step's valid triplets, however easy: they are solved first."""
        self.buffers[mode] = [*self.buffers[mode], *valid][-self.capacity :]
        self._fresh[mode] = min(len(valid), self.capacity)

    def pick(self, mode: Mode, step: str) -> list[Task]:
        """Return ``prompts`` tasks of a mode: the newest valid ones, as far as they go, and others of its buffer."""
        buffer, fresh = self.buffers[mode], min(self._fresh.get(mode, 0), self.prompts)
        chosen = [*reversed(buffer[len(buffer) - fresh :])]
        chosen += self._drawn(buffer[: len(buffer) - fresh] or buffer, self.prompts - len(chosen))
        return [self.task(mode, t, f"solve/{mode}/{step}-{i}", f"buffer/{mode}") for i, t in enumerate(chosen)]

    def _drawn(self, buffer: Sequence[Triplet], count: int) -> list[Triplet]:
        """Draw from a buffer, without replacement as far as it goes."""
        order = self._rng.permutation(len(buffer))[:count].tolist()
        more = self._rng.integers(len(buffer), size=max(0, count - len(buffer))).tolist()
        return [buffer[i] for i in [*order, *more]]

    def _one(self, programs: Sequence[str]) -> str:
        return programs[int(self._rng.integers(len(programs)))]

    def observe(self, groups: Sequence[Group]) -> None:
        """Nothing: the rollout has said what is valid."""

    def state_dict(self) -> dict[str, Any]:
        return {
            "buffers": {mode: [t.plain() for t in buffer] for mode, buffer in self.buffers.items()},
            "fresh": dict(self._fresh),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.buffers = {mode: [Triplet.of(t) for t in state["buffers"][mode]] for mode in self.modes}
        self._fresh = dict(state["fresh"])
        self._rng.bit_generator.state = state["rng"]
