"""Programs of steps on one digit, an output, an input or the program to be found; and proposals of such tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task
from assay.verify.programs.language import MODES, Mode, Triplet
from assay.verify.programs.steps import ALPHABET, LONGEST, Steps, work
from assay.verify.programs.verifier import KIND, solving_reference


@part("tasks", "steps")
@dataclass(frozen=True, slots=True)
class StepPrograms:
    """Endless tasks over random programs of the language ``steps`` (:class:`assay.verify.programs.steps.Steps`).

    Programs have ``min_length`` to ``length`` steps, each an operation and a digit at random; modes take turns. Inputs
    of an induction are digits at random, half of them shown.

    A solution is the answer: of a deduction, in a share ``scratchpad`` of them, after a line for each step. A share
    ``proposals`` of tasks asks for a proposal, whose solution is a random program with a random input: what imitates
    them knows the form, and nothing of what is worth proposing.

    Args:
        seed: >= 0.
        modes: which of ``deduction``, ``abduction``, ``induction``.
        length, min_length: of programs.
        inputs: of an induction, at least 2.
        scratchpad, proposals: shares in [0, 1].
        shown: earlier triplets that a proposer is shown.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    modes: tuple[Mode, ...] = MODES
    length: int = 3
    min_length: int = 1
    inputs: int = 10
    scratchpad: float = 1.0
    proposals: float = 0.0
    shown: int = 2

    def __post_init__(self) -> None:
        check_seed("tasks 'steps'", self.seed)
        if not 1 <= self.min_length <= self.length <= LONGEST:
            raise UsageError(
                f"tasks 'steps': min_length {self.min_length} and length {self.length} must satisfy 1 <= min_length <= "
                f"length <= {LONGEST}"
            )
        if not self.modes or set(self.modes) - set(MODES):
            raise UsageError(f"tasks 'steps': modes {list(self.modes)} must be some of {', '.join(MODES)}")
        if self.inputs < 2 or self.shown < 1 or not 0 <= self.scratchpad <= 1 or not 0 <= self.proposals <= 1:
            raise UsageError(
                "tasks 'steps': inputs must be at least 2, shown at least 1, scratchpad and proposals in [0, 1]"
            )

    @property
    def size(self) -> None:
        return None

    @property
    def alphabet(self) -> str:
        """Every character of prompts and solutions."""
        return ALPHABET

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng, known = generator(self.seed, index), Steps()
        mode = self.modes[index % len(self.modes)]
        program = self._program(rng)
        count = self.inputs if mode == "induction" else 1
        inputs = tuple(str(d) for d in rng.integers(10, size=count))
        triplet = Triplet(program, inputs, tuple(str(work(program, i)[-1]) for i in inputs))
        name = f"steps/{self.seed}/{index}"
        meta = {"source": "steps", "mode": mode, "difficulty": len(program) // 2}
        if rng.random() < self.proposals:
            shown = [Triplet(self._program(rng), (str(rng.integers(10)),), ()) for _ in range(self.shown)]
            prompt = known.propose(mode, shown, program, self.inputs)
            reference = {"language": "steps", "mode": mode, "propose": self.inputs, "program": program}
            said = "".join(inputs) if mode == "induction" else f"{program}|{inputs[0]}"
            return Task(name, prompt, reference, KIND, said, meta=meta)
        seen = self.inputs // 2 if mode == "induction" else 0
        answer = {"deduction": triplet.outputs[0], "abduction": inputs[0], "induction": program}[mode]
        steps = _shown(program, inputs[0]) if mode == "deduction" and rng.random() < self.scratchpad else []
        reference = solving_reference("steps", mode, triplet, seen)
        prompt = known.solve(mode, triplet, seen)
        return Task(name, prompt, reference, KIND, "\n".join([*steps, answer]), meta=meta)

    def _program(self, rng: np.random.Generator) -> str:
        length = int(rng.integers(self.min_length, self.length + 1))
        return "".join("+-*"[int(rng.integers(3))] + str(rng.integers(10)) for _ in range(length))


def _shown(program: str, given: str) -> list[str]:
    values = work(program, given)
    steps = [program[i : i + 2] for i in range(0, len(program), 2)]
    return [f"{before}{step}={after}" for before, step, after in zip(values, steps, values[1:], strict=False)]
