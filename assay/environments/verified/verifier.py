"""A verifier of trajectories: a rubric of the task alone, evidence for each criterion, process and outcome apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.environments.opinion import Cited
from assay.environments.verified.credit import Aim, Mark, process
from assay.environments.verified.prompts import CASCADE, CLAIMED, OUTCOME, RELEVANT, RUBRIC, SEEN, read_json
from assay.errors import UsageError
from assay.media import MARK
from assay.types import Message, Prompt

Evidence = Literal["relevant", "last", "account"]


class Unjudged(Exception):
    """The judge failed, or what it said cannot be read."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verifier makes of a trajectory: marks by criterion, how much each turn tells of each, and the outcome."""

    aims: tuple[Aim, ...]
    marks: tuple[Mark, ...]
    relevance: tuple[tuple[float, ...], ...]
    success: bool

    @property
    def process(self) -> float | None:
        return process(self.marks)


class TrajectoryVerifier:
    """Judges what an agent did at a computer, by asking a model.

    1. A rubric is made of the task's text; nothing of a trajectory is shown to who writes it. It is kept.
    2. Each turn's screen is looked at once, for how much it tells of each criterion.
    3. Criteria are marked twice: by the agent's own account, without screens, and by the ``top`` screens that tell most
       of each, in requests of their own. Claims beyond what is seen are contradictions.
    4. Criteria that do not apply count neither way, what could not be helped costs nothing, and an error costs once,
       see :class:`~assay.environments.verified.credit.Mark`.
    5. Whether the user has got what was asked for is asked apart, by the same screens and the last one.

    Args:
        judge: an engine, or the specification of one; greedy.
        top: screens of a criterion, at least 1.
        evidence: ``relevant``: see above; ``last``: the last ``top`` screens, whatever they tell; ``account``: none,
            so that the agent's word is taken.
        max_tokens: of a reply.

    Raises:
        UsageError: no engine, or a number below 1.

    Source: "The Art of Building Verifiers for Computer Use Agents" (arXiv 2604.06240); numbers and wording are choices.
    """

    def __init__(self, judge: Any, top: int = 5, evidence: Evidence = "relevant", max_tokens: int = 2048):
        if min(top, max_tokens) < 1:
            raise UsageError(f"a verifier of trajectories: top {top} and max_tokens {max_tokens} must be at least 1")
        self.judge = judge_of(judge, "a verifier of trajectories")
        self.top, self.evidence, self.sampling = top, evidence, Sampling(max_tokens, 0.0)
        self._rubrics: dict[str, tuple[Aim, ...]] = {}

    def rubric(self, task: str) -> tuple[Aim, ...]:
        """Return the rubric of a task's text.

        Raises:
            Unjudged: none could be had.
        """
        if task not in self._rubrics:
            [found] = self._asked([filled(RUBRIC, task=task)])
            if not isinstance(found, list) or not found:
                raise Unjudged("no rubric: a list of criteria was asked for")
            try:
                self._rubrics[task] = tuple(aim_of(row) for row in found)
            except (TypeError, KeyError, ValueError) as error:
                raise Unjudged(f"no rubric: {error}") from None
        return self._rubrics[task]

    def judged(self, task: str, turns: Sequence[Cited], message: str, aims: Sequence[Aim] | None = None) -> Judged:
        """Return what a trajectory is worth.

        Args:
            task: what was asked for.
            turns: what was done and seen.
            message: the agent's last words.
            aims: the rubric; made of ``task`` unless given.

        Raises:
            Unjudged: the judge failed.
        """
        rubric = self.rubric(task) if aims is None else tuple(aims)
        matrix = self.relevance(task, rubric, turns)
        chosen = [self.chosen(matrix, k, len(turns)) for k in range(len(rubric))]
        marks = self.marks(task, rubric, turns, message, chosen)
        shown = sorted({i for some in chosen for i in some} | ({len(turns) - 1} if turns and self._looks else set()))
        asked = _shown(OUTCOME, [turns[i] for i in shown], task=task, message=message)
        [found] = self._asked([asked])
        if not isinstance(found, dict) or not isinstance(found.get("success"), bool):
            raise Unjudged("no outcome could be read")
        return Judged(rubric, tuple(self.charged(task, rubric, turns, message, marks)), matrix, found["success"])

    def relevance(self, task: str, aims: Sequence[Aim], turns: Sequence[Cited]) -> tuple[tuple[float, ...], ...]:
        """Return how much each turn tells of each criterion, in [0, 10]; nothing where that is not gone by."""
        if self.evidence != "relevant":
            return ()
        asked = [_shown(RELEVANT, [turn], task=task, criteria=_listed(aims)) for turn in turns]
        return tuple(_numbers(row, len(aims), 10.0) for row in self._asked(asked))

    def chosen(self, matrix: Sequence[Sequence[float]], criterion: int, turns: int) -> list[int]:
        """Return the turns whose screens a criterion is marked by, in their order; of equal ones the later."""
        order = {
            "relevant": sorted(range(len(matrix)), key=lambda i: (-matrix[i][criterion], -i)),
            "last": list(range(turns - 1, -1, -1)),
            "account": [],
        }[self.evidence]
        return sorted(order[: self.top])

    def marks(
        self, task: str, aims: Sequence[Aim], turns: Sequence[Cited], message: str, chosen: Sequence[Sequence[int]]
    ) -> list[Mark]:
        """Return the marks by the agent's account, and by what is seen where screens are looked at."""
        account = account_of(turns, message)
        [claims] = self._asked([filled(CLAIMED, task=task, account=account, criteria=_listed(aims))])
        most = [aim.points for aim in aims]
        claimed = [min(x, m) for x, m in zip(_numbers(claims, len(aims), math.inf), most, strict=True)]
        if not self._looks:
            return [Mark(c, m, claimed=c) for c, m in zip(claimed, most, strict=True)]
        seen = self._asked(
            [
                _shown(SEEN, [turns[i] for i in some], task=task, criterion=_one(aim), account=account)
                for aim, some in zip(aims, chosen, strict=True)
            ]
        )
        return [_mark(row, aim, claim) for row, aim, claim in zip(seen, aims, claimed, strict=True)]

    def charged(
        self, task: str, aims: Sequence[Aim], turns: Sequence[Cited], message: str, marks: Sequence[Mark]
    ) -> list[Mark]:
        """Return the marks in which an error that breaks several criteria is charged at the first of them alone."""
        lost = [k for k, m in enumerate(marks) if m.applies and not m.blocked and m.earned < m.most]
        if len(lost) < 2:
            return list(marks)
        told = "\n".join(f"{k + 1}. {_one(aims[k])}: earned {marks[k].earned:g}" for k in lost)
        [found] = self._asked([filled(CASCADE, task=task, lost=told, account=account_of(turns, message))])
        out = list(marks)
        for row in found if isinstance(found, list) else [found]:
            try:
                k, first, points = int(row["criterion"]) - 1, int(row["first"]) - 1, float(row["points"])
            except (TypeError, KeyError, ValueError):
                raise Unjudged("what is lost by the same error cannot be read") from None
            if k in lost and first in lost and first < k:
                out[k] = replace(out[k], first=first, as_if=min(max(points, 0.0), out[k].most))
        return out

    @property
    def _looks(self) -> bool:
        return self.evidence != "account"

    def _asked(self, prompts: Sequence[Prompt]) -> list[Any]:
        out = []
        for reply in ask(self.judge, prompts, self.sampling):
            if reply.stop == "error":
                raise Unjudged("the judge failed")
            try:
                out.append(read_json(reply.text))
            except ValueError as error:
                raise Unjudged(str(error)) from None
        return out


def aim_of(row: Any) -> Aim:
    """Return a criterion from a table of ``text``, ``points`` and perhaps ``condition``; from a text with one point.

    Raises:
        TypeError, KeyError, ValueError: it is none.
    """
    if isinstance(row, str):
        return Aim(row, 1.0)
    points = float(row["points"])
    if not 0 < points < math.inf:
        raise ValueError(f"{points:g} points")
    return Aim(str(row["text"]), points, str(row.get("condition") or ""))


def account_of(turns: Sequence[Cited], message: str) -> str:
    """Return what the agent did and said, without what it saw."""
    return "\n".join([*(f"[{t.turn}] {t.action}" for t in turns), f"Last words: {message}"])


def _shown(template: str, turns: Sequence[Cited], **told: str) -> Prompt:
    """Return a prompt with the screens of turns, and their pictures where they stand in these."""
    images = [picture for turn in turns for picture in turn.images]
    if not images:
        return filled(template, shown=_screens(turns), **told)
    # Only what a screen says of its own pictures may hold the place of one.
    turns = [
        replace(t, action=_plain(t.action), observation=t.observation if t.images else _plain(t.observation))
        for t in turns
    ]
    text = filled(template, shown=_screens(turns), **{name: _plain(words) for name, words in told.items()})
    return (Message(role="user", content=text, images=images),)


def _plain(text: str) -> str:
    return text.replace(MARK, "")


def _screens(turns: Sequence[Cited]) -> str:
    return "\n\n".join(f"[{t.turn}] {t.action}\n{t.observation}" for t in turns) or "nothing"


def _one(aim: Aim) -> str:
    return f"{aim.text} ({aim.points:g} points{'; ' + aim.condition if aim.condition else ''})"


def _listed(aims: Sequence[Aim]) -> str:
    return "\n".join(f"{k}. {_one(aim)}" for k, aim in enumerate(aims, 1))


def _numbers(found: Any, count: int, most: float) -> tuple[float, ...]:
    if not isinstance(found, list) or len(found) != count:
        raise Unjudged(f"{count} numbers were asked for")
    if not all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in found):
        raise Unjudged(f"{found} are not all numbers")
    return tuple(min(max(float(x), 0.0), most) for x in found)


def _mark(found: Any, aim: Aim, claimed: float) -> Mark:
    if not isinstance(found, dict) or not isinstance(found.get("applies"), bool):
        raise Unjudged("a criterion's mark cannot be read")
    applies = found["applies"] or not aim.condition
    [earned] = _numbers([found.get("points", 0.0 if not applies else None)], 1, aim.points)
    blocked = earned < aim.points and found.get("controllable") is False
    return Mark(earned, aim.points, applies, blocked, claimed=claimed)
