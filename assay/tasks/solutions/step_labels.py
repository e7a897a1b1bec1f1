"""Solutions in steps of which it is known where they first go wrong, as tasks for a verifier of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.chain import Chain
from assay.tasks.seeded import check_index, generator
from assay.types import Task


def step_task(id: str, problem: str, steps: Sequence[str], error: int, template: str | None = None) -> Task:
    r"""Return the task, of kind ``step_index``, of finding the first wrong step; its prompt is that of ``Flex``.

    Args:
        id: of the task.
        problem: what was to be solved.
        steps: of the solution.
        error: index of the first wrong one, from 0; -1 for none.
        template: with ``{question}`` and ``{steps}``; by default that of :class:`assay.inference.scoring.flex.Flex`.

    Raises:
        UsageError: there is no such step, or the template does not fit.
    """
    from assay.verify.step_index import TEMPLATE

    if not -1 <= error < len(steps):
        raise UsageError(f"task {id}: its first error is at step {error}, but the solution has {len(steps)} steps")
    numbered = "\n".join(f"[{k}] {s.strip()}" for k, s in enumerate(steps))
    try:
        prompt = (TEMPLATE if template is None else template).format(question=problem, steps=numbered)
        if numbered not in prompt:
            raise KeyError("steps")
    except (KeyError, IndexError, ValueError):
        raise UsageError(
            "tasks for a verifier of steps: the template has to contain {steps}, may contain {question}, and writes "
            "other braces twice"
        ) from None
    meta = {"question": problem, "steps": tuple(steps)}
    return Task(id, prompt, str(error), "step_index", f"\\boxed{{{error}}}", meta=meta)


@part("tasks", "step_labels")
class StepLabels:
    """Solutions from a file, their steps in a list and the index of the first wrong one, as ProcessBench has them.

    Args:
        path: a JSONL, JSON or Parquet file.
        problem, steps, label, id: names of the fields; rows are numbered where ``id`` is ``None``.
        template: see :func:`step_task`.

    Raises:
        UsageError: no rows, or one that does not fit, with its line.
    """

    def __init__(
        self,
        path: Path,
        problem: str = "problem",
        steps: str = "steps",
        label: str = "label",
        id: str | None = None,
        template: str | None = None,
    ):
        path = Path(path)
        self.tasks: list[Task] = []
        for number, (where, row) in enumerate(read_rows(path)):
            names = [n for n in (problem, steps, label, id) if n is not None]
            if not isinstance(row, Mapping) or any(n not in row for n in names):
                present = ", ".join(map(str, row)) if isinstance(row, Mapping) else type(row).__name__
                raise UsageError(f"{where} lacks one of the fields {', '.join(names)} (present: {present})")
            listed, error = row[steps], row[label]
            if not isinstance(listed, list) or not listed or not all(isinstance(s, str) for s in listed):
                raise UsageError(f"{where}: field {steps!r} is not a list of steps")
            if not isinstance(error, int) or isinstance(error, bool):
                raise UsageError(f"{where}: field {label!r} is {error!r}, not the index of a step or -1")
            name = f"{path.name}/{number}" if id is None else str(row[id])
            try:
                self.tasks.append(step_task(name, str(row[problem]), listed, error, template))
            except UsageError as wrong:
                raise UsageError(f"{where}: {wrong}") from None
        if not self.tasks:
            raise UsageError(f"{path} has no rows")
        if len({t.id for t in self.tasks}) < len(self.tasks):
            raise UsageError(f"{path} has two rows of one {id}; ids must be unique")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


@part("tasks", "corrupted_chain")
@dataclass(frozen=True, slots=True)
class CorruptedChain:
    """Endless worked solutions of chains of modular arithmetic, some of which go wrong at one step.

    One step of a corrupted solution has a wrong result; the steps after it follow from that result without a mistake,
    so that this step is the only one to be found.

    Args:
        wrong: share of corrupted solutions.
        template: see :func:`step_task`.
        seed, length, min_length, modulus, ops: of the chains, see :class:`~assay.tasks.chain.Chain`.

    Raises:
        UsageError: an option out of range.
    """

    wrong: float = 0.5
    template: str | None = None
    seed: int = 0
    length: int = 4
    min_length: int | None = None
    modulus: int = 10
    ops: str = "+-*"
    _chain: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.wrong <= 1:
            raise UsageError(f"tasks 'corrupted_chain': wrong {self.wrong} must be in [0, 1]")
        chain = Chain(self.seed, self.length, self.min_length, self.modulus, self.ops)
        object.__setattr__(self, "_chain", chain)

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        chain = self._chain[index]
        steps = str(chain.solution).split("\n")[:-1]
        rng = generator(self.seed, index, 1)
        spoiled, place, shift = rng.random() < self.wrong, rng.integers(len(steps)), rng.integers(1, self.modulus)
        error = int(place) if spoiled else -1
        if spoiled:
            left, _, result = steps[error].partition("=")
            value = (int(result) + int(shift)) % self.modulus
            steps[error] = f"{left}={value}"
            for k in range(error + 1, len(steps)):
                rest = steps[k].partition("=")[0].lstrip("0123456789")
                before, operand = value, int(rest[1:])
                value = {"+": before + operand, "-": before - operand, "*": before * operand}[rest[0]] % self.modulus
                steps[k] = f"{before}{rest}={value}"
        return step_task(f"corrupted_{chain.id}", str(chain.prompt), steps, error, self.template)
