"""Ever new instances of problems that were written as programs."""

from __future__ import annotations

from pathlib import Path

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.making.task_file import read_tasks
from assay.tasks.seeded import check_index, check_seed
from assay.types import Task
from assay.verify.programs.specification import Failed, Specification

TRIES = 20
"""Draws for an instance, of which the first whose slots fit together is taken."""
_APART = 1_000_000_007
"""Between the draws of one seed of the source and the next."""


@part("tasks", "specified")
class Specified:
    """Endless: the specifications of a file that ``assay tasks make S183`` wrote take turns, an instance each.

    Args:
        path: the file; tasks without a specification in it are passed over.
        seed: >= 0; another seed has other instances.

    Raises:
        UsageError: no task of the file has a specification; when read, one that gives no instance.
    """

    def __init__(self, path: Path, seed: int = 0):
        check_seed("tasks 'specified'", seed)
        found = {str(t.meta["spec"]): t for t in read_tasks(Path(path)) if t.meta.get("spec")}
        if not found:
            raise UsageError(f"{path} has no task with a specification; assay tasks make S183 writes them")
        self.seed = seed
        self._kept = [(Specification(str(t.meta["seed"]), spec), t) for spec, t in found.items()]

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        number, which = divmod(check_index(index, None), len(self._kept))
        spec, like = self._kept[which]
        task = instance(spec, like, number + self.seed * _APART)
        if isinstance(task, Failed):
            raise UsageError(f"the specification of {spec.seed_id} gives no instance {number}: {task.reason}")
        return task


def instance(spec: Specification, like: Task, number: int) -> Task | Failed:
    """Return instance ``number`` of a specification as a task of the kind of ``like``, or why there is none."""
    drawn = spec.draws(range(number * TRIES, (number + 1) * TRIES))
    if isinstance(drawn, Failed):
        return drawn
    whole = next((draw for draw in drawn if draw.valid and draw.text.strip()), None)
    if whole is None:
        return Failed(f"none of {TRIES} draws has slots that fit together")
    meta = {"source": "specified", "seed": spec.seed_id, "spec": spec.source, "instance": number}
    return Task(f"{spec.seed_id}/{spec.generator_id}/{number}", whole.text, whole.answer, like.kind, meta=meta)
