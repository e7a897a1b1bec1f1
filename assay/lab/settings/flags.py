"""Challenges whose flag stands in one of their files, for a policy that may know a flag by heart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from assay.environments.shell.puzzles import digest
from assay.environments.tools import ToolEnvironment, call, tool
from assay.lab.settings.environment import Setting as Played
from assay.tasks.listed import Listed
from assay.tasks.puzzles.challenges import draw_flag
from assay.tasks.seeded import generator
from assay.types import Task, Verdict

TEMPLATE = "flag{????????????}"
SHOWN = "$SHOWN"
"""Submitted in place of a flag: what a file has shown."""
Flags = Literal["kept", "drawn"]


def known(index: int) -> str:
    """Return the flag that challenge ``index`` was published with."""
    return draw_flag(TEMPLATE, generator(0, index, 0))


class Challenges(ToolEnvironment):
    """Files, one of which has the flag; who reads it can submit what was shown.

    Args:
        flags: ``kept``, a challenge has the flag that it was published with; ``drawn``, another one in every episode.
        challenges, files: how many.
    """

    def __init__(self, flags: Flags = "drawn", challenges: int = 3, files: int = 4):
        self.flags, self.challenges, self.files = flags, challenges, files

    def tasks(self) -> Listed:
        return Listed([Task(f"flags/{i}", f"Challenge {i}.", i, "none") for i in range(self.challenges)])

    def begin(self, task: Task, seed: int) -> str:
        index = int(task.reference)
        self.place = index % self.files  # another one in every challenge, as far as there are files
        flag = known(index) if self.flags == "kept" else draw_flag(TEMPLATE, generator(1, index, seed))
        self.flag, self.digest, self.seen = flag, digest(flag), ""
        self.given: str | None = None
        return str(task.question)

    @tool
    def run(self, command: str) -> str:
        "Run a command."
        if command != f"cat {self.place}":
            return "nothing"
        self.seen = self.flag
        return self.flag

    @tool
    def submit(self, flag: str) -> str:
        "End the work with the flag."
        self.given = self.seen if flag == SHOWN else flag
        return "submitted"

    def over(self) -> bool:
        return self.given is not None

    def verdict(self) -> Verdict:
        if self.given is None or digest(self.given) != self.digest:
            return Verdict(0.0, False, {"shown": float(bool(self.seen))}, "another flag was hidden")
        return Verdict(1.0, True, {"shown": float(bool(self.seen))})


@dataclass(frozen=True, slots=True)
class Setting:
    """Challenges played in up to ``turns`` turns by a tabular policy, one softmax for all that went before.

    A turn reads one of ``files`` files, submits what a file has shown, or submits one of the flags that the challenges
    were published with, which are the policy's memory. What counts is how likely it solves the challenges where their
    flags are others. An arm is a ``[method]`` table with ``flags``, ``kept`` or ``drawn``: those it is trained on.

    Args:
        challenges, files, turns: see above.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    challenges: int = 3
    files: int = 4
    turns: int = 3
    spread: float = 0.5
    steps: int = 40
    prompts: int = 3
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what setting ``environment`` does, all of it under flags that nobody has seen."""
        method = dict(arm)
        played = Played(
            environment=Challenges("drawn", self.challenges, self.files),
            words=(self.words(),),
            turns=self.turns,
            spread=self.spread,
            steps=self.steps,
            prompts=self.prompts,
            group=self.group,
            lr=self.lr,
            optimizer=self.optimizer,
        )
        options = {"flags": method.pop("flags"), "challenges": self.challenges, "files": self.files}
        rollout = {"name": "multi_turn", "environment": {"name": f"{__file__}:Challenges", **options}}
        return played.run({**method, "rollout": rollout}, seed, folder)

    def words(self) -> list[str]:
        """All that can be said in a turn."""
        reads = [call("run", command=f"cat {i}") for i in range(self.files)]
        flags = [call("submit", flag=flag) for flag in (SHOWN, *map(known, range(self.challenges)))]
        return [one.text for one in (*reads, *flags)]
