"""Write a world model from a text, and mend it by what testers find; judged by tests that nobody is told of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from assay.environments.base import Action, EnvironmentFailure, Step
from assay.environments.search.bm25 import BM25
from assay.environments.tools import ToolEnvironment, ToolError, call, tool
from assay.environments.world_models.attacks import LARGEST, attacks_on
from assay.environments.world_models.made import MAKERS, Kind, WorldTasks
from assay.errors import UsageError
from assay.registry import part
from assay.sandbox import sandbox
from assay.tasks.seeded import check_seed
from assay.types import Task, Tool, Verdict
from assay.verify.behaviour.static import fault
from assay.verify.behaviour.testers import Team, told
from assay.verify.behaviour.truth import Truth, truth_of
from assay.verify.behaviour.verifier import hidden_share, judged_model
from assay.verify.code.results import Abstain

T = TypeVar("T")

HOW = (
    "Every version is looked at by testers, who tell what differs from the world; there are {rounds} versions. Others, "
    "who tell nothing, decide. Call submit when it is done."
)
FACTS = 2
"""Facts that are shown at a time."""


@part("environment", "world_models")
class WorldModels(ToolEnvironment):
    """A developer writes an executable model of a described world, and a testing team plays in it.

    Each ``write`` or ``edit`` is a version: static validation comes first; what passes it goes to the testers
    (:class:`~assay.verify.behaviour.testers.Team`), whose reports say step, state, action, what was expected and what
    came. The episode ends when they find nothing more, when the versions are spent, or with ``submit``. The verdict is
    that of the verifier ``behaviour`` on the last version, from steps that no tester tells of.

    With ``turn_rewards`` a turn earns the increase of the share of *hidden* tests passed, from that of the draft, or
    from nothing; what testers tell is for the developer to read, and never paid for.

    Kinds of worlds: ``grid``, gridworlds with ice, pits, keys, coins and edges; ``home``, those of ``household``;
    ``ledger``, the databases of ``shop`` with their triggers; ``domain``, planning domains in PDDL. Any task of kind
    ``behaviour`` is played here too. Programs run in the sandbox alone.

    Args:
        kinds: of worlds, which take turns.
        versions: of an episode, at most.
        tests, episodes: of the testers in a round.
        shown: findings that are told, at most.
        calls: of the other tools in an episode.
        hidden: tests of a world, at most.
        gaps: rules that the description leaves out: ``look_up`` finds them among those of other worlds.
        draft: whether there is a model with one fault to begin from, which ``read`` shows.
        turn_rewards: see above; else turns have none.
        partial: score the accuracy of what does not pass; else 0.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range, or a machine that cannot run programs in isolation.

    Source: Agent2World (arXiv 2512.22336).
    """

    def __init__(
        self,
        kinds: Sequence[Kind] = tuple(MAKERS),
        versions: int = 4,
        tests: int = 12,
        episodes: int = 4,
        shown: int = 4,
        calls: int = 12,
        hidden: int = 400,
        gaps: int = 0,
        draft: bool = False,
        turn_rewards: bool = True,
        partial: bool = False,
        seed: int = 0,
    ):
        check_seed("environment 'world_models'", seed)
        if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= set(MAKERS):
            raise UsageError(f"environment 'world_models': kinds {list(kinds)} must be some of {', '.join(MAKERS)}")
        if min(versions, tests, episodes, shown, hidden) < 1 or min(calls, gaps) < 0:
            raise UsageError(
                f"environment 'world_models': versions {versions}, tests {tests}, episodes {episodes}, shown {shown} "
                f"and hidden {hidden} must be at least 1, calls {calls} and gaps {gaps} at least 0"
            )
        sandbox().check()
        self.made = WorldTasks(seed, tuple(kinds), hidden, gaps, draft)
        self.versions, self.tests, self.episodes, self.shown, self.calls = versions, tests, episodes, shown, calls
        self.turn_rewards, self.partial = turn_rewards, partial

    def tasks(self) -> WorldTasks:
        return self.made

    def begin(self, task: Task, seed: int) -> str:
        if task.kind != "behaviour":
            raise UsageError(f"environment 'world_models': task {task.id} is of kind {task.kind!r}, not 'behaviour'")
        self.truth: Truth = _sound(lambda: truth_of(task.reference))
        self.source = str(task.meta.get("draft", ""))
        self.facts = tuple(map(str, task.meta.get("facts", ())))
        self.team = Team(self.truth, self.tests, self.episodes)
        self.left, self.spare, self.ended = self.versions, self.calls, False
        self.share = self._hidden_share()
        self.earned = 0.0
        return f"{task.question}\n{HOW.format(rounds=self.versions)}"

    def available(self) -> tuple[Tool, ...]:
        return tuple(t for t in self.tools() if t.name != "look_up" or self.facts)

    @tool
    def write(self, source: str) -> str:
        "Write the model, in place of what there was."
        return self._version(source)

    @tool
    def edit(self, old: str, new: str) -> str:
        "Replace a text in the model by another one; it must stand there exactly once."
        times = self.source.count(old) if old else 0
        if times != 1:
            raise ToolError(f"the text stands there {times} times, not once" if old else "old must be some text")
        return self._version(self.source.replace(old, new))

    @tool
    def read(self) -> str:
        "Show the model."
        self._spend()
        return self.source or "(nothing is written)"

    @tool
    def run(self, state: str, action: str) -> str:
        "Show what the model makes of an action in a state, which is given as JSON."
        self._spend()
        if why := self._fault():
            raise ToolError(why)
        try:
            given = json.loads(state)
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the state is no JSON: {error}") from None
        model = self.truth.model(self.source)
        return _sound(lambda: str(model.steps([(given, action)])[0]))

    @tool
    def look_up(self, question: str) -> str:
        "Search facts for what the description leaves open."
        self._spend()
        found = BM25(self.facts).top(question, FACTS)
        return "\n".join(self.facts[i] for i, _ in found) or "nothing found"

    @tool
    def submit(self) -> str:
        "End the work."
        self.ended = True
        return "submitted"

    def _version(self, source: str) -> str:
        """Take a new version; return what the testers say."""
        if len(source) > LARGEST:
            raise ToolError(f"a model has at most {LARGEST} characters")
        self.source, self.left = source, self.left - 1
        before, self.share = self.share, self._hidden_share()
        self.earned += self.share - before
        if why := self._fault():
            return f"Static validation: {why}"
        found, compared = _sound(lambda: self.team.reports(self.truth.model(self.source)))
        self.ended = not found
        return told(found, compared, self.shown)

    def _fault(self) -> str:
        return fault(self.source, self.truth.language, self.truth.problems)

    def _hidden_share(self) -> float:
        return _sound(lambda: hidden_share(self.truth, self.source)) if self.turn_rewards else 0.0

    def _spend(self) -> None:
        if not self.spare:
            raise ToolError("no calls are left but of write, edit and submit")
        self.spare -= 1

    def step(self, action: Action) -> Step:
        self.earned = 0.0
        return super().step(action)

    def said(self, text: str) -> str | None:
        raise ToolError("call a tool, or submit when it is done")

    def over(self) -> bool:
        return self.ended or not self.left

    def turn_reward(self) -> float | None:
        return self.earned if self.turn_rewards else None

    def state_json(self) -> Any:
        return {"source": self.source, "versions": self.left, "calls": self.spare, "submitted": self.ended}

    def state_key(self) -> str:
        return hashlib.sha256(json.dumps(self.state_json()).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def verdict(self) -> Verdict:
        return _sound(lambda: judged_model(self.truth, self.source, self.partial))

    def gold(self) -> Sequence[Action]:
        """Return the true world as a model."""
        return [call("write", source=self.truth.source)]

    def attacks(self) -> Sequence[Sequence[Action]]:
        """Return models that would pass if anything but behaviour that was never told were judged."""
        return [[call("write", source=source), call("submit")] for source in attacks_on(self.truth)]

    def snapshot(self) -> bytes:
        kept = [self.task.id, self.source, self.left, self.spare, self.ended, self.share, self._under_way, self.answer]
        return json.dumps([*kept, self.team.round, list(self.team.kept)]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Come back to a snapshot of an episode of the task that was last begun.

        Raises:
            RuntimeError: it is of another task.
        """
        id, *kept, round, tests = json.loads(snapshot)
        if id != self.task.id:
            raise RuntimeError(f"the snapshot is of another task, {id}")
        self.source, self.left, self.spare, self.ended, self.share, self._under_way, self.answer = kept
        written = {(state, action): self.truth.by_step[state, action] for state, action in tests}
        self.team = Team(self.truth, self.tests, self.episodes, written, round)


def _sound(made: Callable[[], T]) -> T:
    """Return what is made, where nothing of the world's own fails.

    Raises:
        EnvironmentFailure: the sandbox does, or the task's reference.
    """
    try:
        return made()
    except Abstain as error:
        raise EnvironmentFailure(error.reason) from error
