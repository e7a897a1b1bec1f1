"""The testing team: one writes unit tests, anew for every version of the code, one plays; both tell what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from assay.verify.behaviour.drive import key
from assay.verify.behaviour.model import Case, Model, Reply, agrees, brief
from assay.verify.behaviour.truth import Truth, spread

PROBED = 120
"""Steps on which a version of the code is looked at before its tests are written."""


@dataclass(frozen=True, slots=True)
class Report:
    """A step that the model takes otherwise than the world: by whom it was found, and where in an episode."""

    tester: str
    case: Case
    got: Reply
    step: int | None = None

    def __str__(self) -> str:
        where = self.tester if self.step is None else f"{self.tester}, step {self.step}"
        right, got = _apart(self.case.right, self.got)
        return f"{where}: step({key(self.case.state)}, {self.case.action!r}): expected {right}, got {got}"


def _apart(right: Reply, got: Reply) -> tuple[str, str]:
    """Return in words in what two replies differ."""
    if got.problem:
        return str(right), got.problem
    state, reward, done = agrees(got, right)
    a, b = right.after, got.after
    if isinstance(a, dict) and isinstance(b, dict) and not state:
        some = [k for k in {**a, **b} if k not in a or k not in b or a[k] != b[k]]
        a, b = ({k: one[k] for k in some if k in one} for one in (a, b))
    sides = [
        ([f"state {brief(key(s))}"] if not state else [])
        + ([f"reward {one.reward:g}"] if not reward else [])
        + ([f"done {key(one.done)}"] if not done else [])
        for one, s in ((right, a), (got, b))
    ]
    return ", ".join(sides[0]), ", ".join(sides[1])


@dataclass(slots=True)
class Team:
    """The testers of one developer, round by round; they know the visible half of the world's steps.

    The unit tester looks at what the latest code does on some steps of every kind (what is refused, what changes, what
    ends) and writes ``tests`` new ones, as far as it finds any on those that come out wrong, the rest on others. The
    tests that were written stay: what was right before must stay right. The simulation tester plays ``episodes`` of the
    world, one in two by a plan that reaches what there is to reach and the others at random, and compares each step.

    Args:
        truth: the world.
        tests: new unit tests of a round.
        episodes: of a round.
        kept: unit tests of the rounds before.
        round: rounds so far.
    """

    truth: Truth
    tests: int = 12
    episodes: int = 4
    kept: dict[tuple[str, str], Case] = field(default_factory=dict)
    round: int = 0

    def reports(self, model: Model) -> tuple[list[Report], int]:
        """Test a model; return what differs, and how many steps were compared.

        Raises:
            Abstain: the sandbox failed.
        """
        units = self._written(model)
        played = self._played()
        steps = [case for episode in played for _, case in episode]
        found = model.steps([(case.state, case.action) for case in [*units, *steps]])
        self.round += 1
        reports = [
            Report("unit test", case, got)
            for case, got in zip(units, found, strict=False)
            if not all(agrees(got, case.right))
        ]
        rest = iter(found[len(units) :])
        for episode in played:
            wrong = [
                Report("episode", case, got, at)
                for (at, case), got in zip(episode, [next(rest) for _ in episode], strict=True)
                if not all(agrees(got, case.right))
            ]
            reports += wrong[:1]  # what comes after follows from it
        return reports, len(found)

    def _written(self, model: Model) -> list[Case]:
        """Write new tests for the latest code; return them after the old ones."""
        old = list(self.kept.values())
        looked = spread(self.truth.visible, PROBED, self.truth.seed + self.round)
        replies = model.steps([(case.state, case.action) for case in looked])
        wrong = [c for c, got in zip(looked, replies, strict=True) if not all(agrees(got, c.right))]
        right = [c for c, got in zip(looked, replies, strict=True) if all(agrees(got, c.right))]
        new = [c for pair in zip_longest(wrong, right) for c in pair if c is not None]
        fresh = [c for c in new if (key(c.state), c.action) not in self.kept][: self.tests]
        self.kept |= {(key(c.state), c.action): c for c in fresh}
        return [*old, *fresh]

    def _played(self) -> list[list[tuple[int, Case]]]:
        """Return the visible steps of this round's episodes, each with its place."""
        every, starts = self.truth.episodes, len(self.truth.starts)
        plans, walks = every[:starts], every[starts:]
        turns = [(self.round * self.episodes + k) // 2 for k in range(self.episodes)]
        chosen = [(walks if k % 2 else plans)[turn % len(walks if k % 2 else plans)] for k, turn in enumerate(turns)]
        return [
            [
                (at, self.truth.by_step[key(step[0]), step[1]])
                for at, step in enumerate(steps, 1)
                if not self.truth.hides(step[0], step[1])
            ]
            for _, steps in chosen
        ]


def told(reports: Sequence[Report], compared: int, most: int) -> str:
    """Return what the developer is told: how many findings there are, and the first of each tester, ``most`` in all."""
    if not reports:
        return f"All {compared} steps that were compared are right."
    lines = [f"{len(reports)} of the tests fail ({compared} steps were compared):"]
    by = [[r for r in reports if (r.step is None) == unit] for unit in (True, False)]
    first = [r for pair in zip_longest(*by) for r in pair if r is not None][:most]
    more = len(reports) - len(first)
    return "\n".join([*lines, *map(str, first), *([f"({more} more)"] if more else [])])
