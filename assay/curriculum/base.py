"""The curriculum seam: what do we ask next, how often, with which hint?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from assay.types import Ask, Group, Task

if TYPE_CHECKING:  # curricula load without a tensor library
    from assay.batch import Batch


@runtime_checkable
class Stream(Protocol):
    """An endless supply of training tasks."""

    def next(self, n: int) -> list[Task]:
        """Return the next ``n`` tasks."""
        ...


@runtime_checkable
class Curriculum(Protocol):
    """Chooses what to ask and learns from what came back. Its state is in the checkpoint.

    Optional method: ``check(tasks)`` raises UsageError where it cannot act on what is known of the tasks before a run.
    """

    def next(self, step: int) -> list[Ask]:
        """Return the asks of training step ``step`` (0-based)."""
        ...

    def observe(self, groups: Sequence[Group]) -> None:
        """Take note of the judged groups of a step, as :func:`unaided` has them."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Surveying(Curriculum, Protocol):
    """A curriculum that looks at all of its data before some steps, by the policy as it is then.

    What it finds is kept in the run's folder, so that a run which goes on does not look again. Nothing is learned from
    the responses, and looking changes nothing else in the run. Optional attributes: ``needs``, signals that
    :meth:`look` reads beside those of the method; ``answers``, the rollout that is asked, the run's if there is none;
    ``again()``, whether the weights go back to those that RL began with once it is settled; ``wanting``, the step whose
    rows, too many for a checkpoint, it is to be given anew by ``recall(rows)``, ``None`` where it has them.
    """

    def survey(self, step: int) -> list[Ask]:
        """Return what is to be asked of the data before step ``step`` (0-based); nothing where no look is due.

        Called again before it is settled, it returns the same.
        """
        ...

    def look(self, groups: Sequence[Group], batch: Batch) -> list[dict[str, Any]]:
        """Return what is kept of judged groups: a row of plain data for each, its task's id under ``task``.

        Args:
            groups: as :func:`unaided` has them.
            batch: of these groups in their order, with signals and rewards, every weight 1.
        """
        ...

    def settle(self, step: int, rows: Sequence[dict[str, Any]]) -> str:
        """Go by what was found from here on, and return a line on what follows from it."""
        ...


def unaided(groups: Iterable[Group]) -> list[Group]:
    """Return what the policy did by itself with what was asked: no group that a rollout derived, and of one whose
    responses were changed since (hints, retries, a teacher's) the one before."""
    return [group.before or group for group in groups if not group.derived]
