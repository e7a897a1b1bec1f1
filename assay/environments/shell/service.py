"""A folder and a shell, and a service elsewhere that has the flag and can only be visited."""

from __future__ import annotations

from collections.abc import Sequence

from assay.environments.base import Action, EnvironmentFailure
from assay.environments.shell.environment import Shell
from assay.environments.tools import ToolError, call, tool
from assay.errors import RunError
from assay.registry import part
from assay.tasks.puzzles.challenges import draw_flag
from assay.tasks.puzzles.forge import image_of
from assay.tasks.puzzles.image import visited
from assay.tasks.seeded import generator
from assay.types import Task

MOST = 4000
"""Characters that are sent in a visit, and shown of its answer."""


@part("environment", "challenges")
class Challenges(Shell):
    """As ``shell``, with a service that can be visited where the task has one: those that ``assay tasks make S143``
    makes.

    A service runs in a sandbox of its own, where the flag of this episode is; the folder of the player has neither the
    service's files nor the flag. Each visit sends a text as a whole and shows what is answered to it; the service
    begins anew with each, and a visit counts as a command does.

    Args:
        kind, steps, commands, seconds, shown, partial, progress, reveal, seed: as for ``shell``.

    Raises:
        UsageError: as ``shell``.
    """

    def begin(self, task: Task, seed: int) -> str:
        self.image = image_of(task)
        self.there = draw_flag(str(task.meta.get("flag", "")), generator(self.made.seed, seed, 4))
        return super().begin(task, seed)

    @tool
    def visit(self, text: str) -> str:
        "Send the service a text, line by line as it wants it, and see what it answers."
        if self.image is None:
            raise ToolError("there is no service here")
        if not self.left:
            raise ToolError("no commands are left; call submit")
        if len(text) > MOST or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ToolError(f"a visit sends text of at most {MOST} characters")
        self.left -= 1
        try:
            said, why = visited(self.image, self.there, text)
        except RunError as error:
            raise EnvironmentFailure(str(error)) from None
        self.found = self.found or self.there in said
        ended = f"\n({why})" if why else ""
        return f"{said[:MOST] or '(it says nothing)'}{ended}\n({self.left} left)"

    def gold(self) -> Sequence[Action]:
        if self.image is None:
            return super().gold()
        return [call("visit", text=f"{self.plan[0]}\n"), call("submit", flag=self.there)]
