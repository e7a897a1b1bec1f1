"""Serve a user by calls on a database whose rules cannot be broken; what counts is the state it ends in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from assay.environments.base import Action
from assay.environments.shop.database import Database, image
from assay.environments.shop.domain import Domain, Operation
from assay.environments.shop.explore import proven
from assay.environments.shop.tasks import Made
from assay.environments.shop.themes import CLAUSES, THEMES
from assay.environments.shop.user import Scripted, Spoken, User, speaker
from assay.environments.shop.writing import calls_of, is_written
from assay.environments.shop.written import domain_of
from assay.environments.tools import ToolEnvironment, call, say
from assay.errors import UsageError, nearest
from assay.registry import part
from assay.tasks.seeded import check_seed
from assay.types import Task, Tool, Verdict
from assay.verify.structured.state import Facts, Granularity, compared, facts, potential

RECENT = 512
"""Tasks whose beginnings are kept."""


@part("environment", "shop")
class Shop(ToolEnvironment):
    """Tools create, read, update and delete rows; rules of a policy are triggers, which refuse or have effects.

    A rule's precondition is a trigger before the change that aborts it with a stable code (``POLICY_FULL``), its effect
    one after it; the tools' descriptions say both. Tasks are found forwards, see
    :mod:`~assay.environments.shop.explore`. The verdict is that of the verifier ``state``: it passes where the tables
    are those of the goal, and its score is how much nearer they are than at the start, so that what was changed besides
    costs as much as what is missing. Tasks whose domains, clients and talks models have written, those of ``assay tasks
    make S004``, are played here too.

    Args:
        themes: domains, of which one is drawn for each task; all, if empty: {themes}.
        rules: clauses of a domain's policy, at most, 2 to 6.
        wishes: of the user, at most, 2 or 3.
        user: ``told`` says all at once, and goes once he is spoken to; ``scripted`` keeps details back and answers
            questions; or the specification of an engine that speaks for him, whose failure is nobody's fault.
        granularity: of the facts that states differ in: ``cell`` or ``row``.
        score: of the verdict: Phi, clipped to [0, 1]; or ``exact``, whether it passes and nothing else.
        turn_rewards: whether a turn's reward is Phi after it less Phi before it, unclipped; else there is none.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range.

    Source: LOGIGEN (arXiv 2603.00540).
    """

    def __init__(
        self,
        themes: tuple[str, ...] = ("shop",),
        rules: int = 4,
        wishes: int = 3,
        user: str | dict[str, Any] = "told",
        granularity: Granularity = "cell",
        score: Literal["phi", "exact"] = "phi",
        turn_rewards: bool = False,
        seed: int = 0,
    ):
        check_seed("environment 'shop'", seed)
        for theme in themes:
            if theme not in THEMES:
                raise UsageError(f"environment 'shop': there is no theme {theme!r}{nearest(theme, THEMES)}")
        if not 2 <= rules <= len(CLAUSES) or not 2 <= wishes <= 3:
            raise UsageError(
                f"environment 'shop': rules {rules} must be 2 to {len(CLAUSES)} and wishes {wishes} 2 or 3"
            )
        self.engine = None if user in ("told", "scripted") else speaker(user)
        self.repeats = self.engine is None
        self.made = Made(seed, themes, rules, wishes, user != "told")
        self.user_kind, self.granularity, self.turn_rewards = user, granularity, turn_rewards
        self.score = score
        self.database: Database | None = None

    def tasks(self) -> Made:
        return self.made

    def begin(self, task: Task, seed: int) -> None:
        self.close()
        own = not is_written(task)
        self.domain = proven(task.meta["theme"], tuple(task.meta["clauses"])) if own else domain_of(task.meta["domain"])
        self._known = _prepared(task, self.domain, self.granularity)
        self.database = Database(self.domain, self._known.image)
        self._seen = self._valued = self.database.changes
        self._key, self._phi = self._known.key, 0.0
        self.user: User = Scripted(task.meta["details"])
        if self.engine is not None:
            self.user = Spoken(self.engine, task.meta["wishes"], task.question.rpartition("\n\n")[2])
        self._under_way = True

    def close(self) -> None:
        super().close()
        if self.database is not None:
            self.database.close()
            self.database = None

    @property
    def _open(self) -> Database:
        if self.database is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self.database

    def available(self) -> tuple[Tool, ...]:
        return self._known.tools

    def make_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        operation, _, table = name.partition("_")
        kind: Operation = operation  # type: ignore[assignment]
        return self._open.call(kind, table, arguments)

    def said(self, text: str) -> str | None:
        return None if self.user_kind == "told" else self.user.answer(text)

    def state_json(self) -> Any:
        return self._open.tables()

    def state_key(self) -> str:
        if self._seen != self._open.changes:
            self._key, self._seen = f"{self.task.id}: {self._open.digest()}", self._open.changes
        return self._key

    def turn_reward(self) -> float | None:
        if not self.turn_rewards:
            return None
        before = self._phi
        if self._valued != self._open.changes:
            self._phi = potential(self._facts(self.state_json()), self._known.start, self._known.goal)
            self._valued = self._open.changes
        return self._phi - before

    def verdict(self) -> Verdict:
        found = compared(self._facts(self.state_json()), self._known.start, self._known.goal)
        return found if self.score == "phi" else replace(found, score=float(found.passed is True))

    def _facts(self, state: Any) -> Facts:
        return facts(state, self.domain.keys, self.granularity, self.domain.volatile)

    def gold(self) -> Sequence[Action]:
        """Return, for the beginning of an episode: a question for what the user keeps back, a look at the tables, the
        calls that were found, and a goodbye."""
        if is_written(self.task):
            played = [call(f"{operation}_{table}", **arguments) for operation, table, arguments in calls_of(self.task)]
            return [*played, say("It is done.")]
        found = self.made.found(self.task.meta["index"])
        theme = found.theme
        asked = [
            say(f"What about {words[0]}: which one, and how many {theme.unit}?")
            for words, _ in self.task.meta["details"]
        ]
        looks = [call(f"read_{theme.actor}", name=found.client)]
        looks += [call(f"read_{theme.resource}", category=w.category) for w in found.wishes if w.category]
        looks += [call(f"read_{theme.claim}"), call("read_calendar")]
        made = [call(f"{operation}_{table}", **arguments) for operation, table, arguments in found.calls]
        return [*asked, *looks, *made, say("It is done.")]

    def snapshot(self) -> bytes:
        """Return the episode as it stands: a backup of the database, and what is not in it; not what an engine said."""
        about = {"task": self.task.id, "answer": self.answer, "going": self._under_way, "phi": self._phi}
        head = json.dumps(about).encode()
        return len(head).to_bytes(4, "big") + head + self._open.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Come back to a snapshot of an episode of the task that was last begun.

        Raises:
            RuntimeError: it is of another task.
        """
        size = int.from_bytes(snapshot[:4], "big")
        about = json.loads(snapshot[4 : 4 + size])
        if about["task"] != self.task.id:
            raise RuntimeError(f"the snapshot is of another task, {about['task']}")
        self.close()
        self.database = Database(self.domain, snapshot[4 + size :])
        self.answer, self._under_way, self._phi, self._seen = about["answer"], about["going"], about["phi"], -1
        self._valued = self.database.changes


Shop.__doc__ = (Shop.__doc__ or "").replace("{themes}", ", ".join(THEMES))


class _Prepared(NamedTuple):
    """What every episode of a task begins with: database, tools, the facts at its start and its goal, its first key."""

    reference: Mapping[str, Any]
    image: bytes
    tools: tuple[Tool, ...]
    start: Facts
    goal: Facts
    key: str


_RECENT: dict[tuple[str, str], _Prepared] = {}


def _prepared(task: Task, domain: Domain, granularity: Granularity) -> _Prepared:
    found = _RECENT.get((task.id, granularity))
    if found is None or found.reference != task.reference:
        start, goal = (facts(task.reference[s], domain.keys, granularity, domain.volatile) for s in ("start", "goal"))
        begun = image(domain, task.reference["start"])
        first = Database(domain, begun)
        found = _Prepared(task.reference, begun, domain.tools(), start, goal, f"{task.id}: {first.digest()}")
        first.close()
    _RECENT[task.id, granularity] = found
    while len(_RECENT) > RECENT:
        _RECENT.pop(next(iter(_RECENT)), None)
    return found
