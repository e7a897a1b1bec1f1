"""Environments in which the policy proves what it has done: it cites turns, and a judge sees those alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

from assay.environments.base import Action, Environment, Guided, Observation, Step
from assay.environments.calls import THOUGHTS
from assay.environments.corridor import stopped
from assay.environments.opinion import MOST, Cited, Judge, judge_from, verdict_of, voted
from assay.environments.screens.shown import ScreenJudge
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import build, part
from assay.types import NOTE, Message, Task, Tool, Verdict

SUBMIT = Tool(
    "submit",
    "End the task: a final message, and the turns whose observations prove that it was done.",
    {
        "type": "object",
        "properties": {"message": {"type": "string"}, "evidences": {"type": "array", "items": {"type": "integer"}}},
        "required": ["message", "evidences"],
        "additionalProperties": False,
    },
)
RULES = """Besides doing the task you have to prove it. Your last action is to submit a final message with evidence:
numbers of turns, counted from 0, whose action and observation show that the task is done. A judge sees these turns and
nothing else.
Completeness: together they show everything that was asked for. Conciseness: cite one to three turns, the decisive ones.
Creativity: where no turn so far shows the outcome, take further actions whose observations do."""
AS_TEXT = 'Submit by a last line such as: submit {"message": "It is done.", "evidences": [2]}'
_LINE = re.compile(r"^\s*submit\s*(\{.*\})\s*$", re.MULTILINE)
DONE = "It is done."
JUDGES: dict[str, Judge] = {"screens": ScreenJudge(), "corridor": stopped}
"""Judges that derive from a task what evidence of it looks like."""


@part("environment", "submit_evidence")
class Submitted:
    """Another environment; an episode ends when the policy submits a message and the turns that prove its success.

    Turns are numbered from 0; turn e as evidence is what was done in it and what was observed right after. ``submit``
    is a tool where the other environment has tools, else a line ``submit {"message": ..., "evidences": [...]}``. When
    the other environment has ended there is nothing left to do but submit.

    The verdict is a judge's, asked ``votes`` times, who is shown the task, the message and the cited turns: it passes
    where more than half of the opinions that could be had are for success
    (:func:`~assay.environments.opinion.verdict_of`). If none could be had it abstains. Not to submit, to submit more
    than once, to cite no turn or one that is none, is wrong, and nobody is asked: the part ``submitted`` is 0 then. The
    part ``concise`` is one over the number of turns cited, 0 where it does not pass; ``state`` is the other
    environment's own verdict, for comparison, and nothing is made of it.

    Args:
        environment: the other one: a part's name, or a table with ``name`` and options.
        judge: ``screens``, which derives what to look for from the task, and so cannot be shown what has left no trace
            in sight; ``corridor``; a function ``(task, message, cited) -> Opinion`` in a file; an engine's
            specification, or ``openai:MODEL@URL``.
        votes: opinions on each submission, at least 1.
        unjudged: what becomes of a submission without opinions: ``abstain``, or ``fail`` as in the authors' code.
        rules: what the policy is told.

    Raises:
        UsageError: no votes, or a judge that is none.

    Source: SmartSnap (arXiv 2512.22322).
    """

    def __init__(
        self,
        environment: str | dict[str, Any] = "screens",
        judge: Any = "screens",
        votes: int = 3,
        unjudged: Literal["abstain", "fail"] = "abstain",
        rules: str = RULES,
    ):
        if votes < 1:
            raise UsageError(f"environment 'submit_evidence': votes {votes} must be at least 1")
        spec = {"name": "screens", "names": ["settings"]} if environment == "screens" else environment
        self.spec = spec
        self.inner: Environment = build("environment", spec)
        self.judge: Judge = judge_from(judge, JUDGES.get)
        self.votes, self.unjudged, self.rules = votes, unjudged, rules
        self.repeats = getattr(self.inner, "repeats", True)
        self._under_way = False

    def tasks(self) -> Any:
        return self.inner.tasks()

    def reset(self, task: Task, seed: int) -> Observation:
        shown = self.inner.reset(task, seed)
        self.task, self.seed = task, seed
        self.turns: list[Cited] = []
        self.done: list[Action] = []  # in the other environment
        self.message, self.submits = "", 0
        self.evidences: tuple[Any, ...] = ()
        self._under_way, self._inner_over, self.tooled = True, False, bool(shown.tools)
        told = self.rules if self.tooled else f"{self.rules}\n{AS_TEXT}"
        tools = (*shown.tools, SUBMIT) if self.tooled else ()
        return replace(shown, messages=(Message(role="system", content=told), *shown.messages), tools=tools)

    def step(self, action: Action) -> Step:
        if not self._under_way:
            raise RuntimeError("no episode is under way; call reset first")
        found = self._submissions(action)
        if found:
            self.submits = len(found)
            self.message, self.evidences = found[0]
            self._under_way = False
            return Step(Observation((), state=f"submitted {list(self.evidences)}"), terminated=True, tag="submit")
        if self._inner_over:
            reply = "There is nothing left to do but submit."
            self.turns.append(Cited(len(self.turns), action.text, reply))
            return Step(self._noted(Observation((Message(role="user", content=reply),))), valid=False, error=reply)
        step = self.inner.step(action)
        self.done.append(action)
        self.turns.append(_cited(len(self.turns), action, step))
        self._under_way, self._inner_over = not step.truncated, step.terminated
        return replace(step, observation=self._noted(step.observation), terminated=False)

    def _noted(self, shown: Observation) -> Observation:
        """Return what is observed with the number of the turn that it came of."""
        first, *others = shown.messages or (Message(role="user", content=""),)
        text = f"[turn {len(self.turns) - 1}]\n{first['content']}"
        return replace(shown, messages=({**first, "content": text}, *others))

    def _submissions(self, action: Action) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the message and the evidence of each submission in a turn; one that cannot be read is none."""
        if self.tooled:
            made = [c.arguments for c in action.calls if c.name == SUBMIT.name and not c.problem]
        else:
            made = []
            for found in _LINE.findall(THOUGHTS.sub(" ", action.text)):
                try:
                    made.append(json.loads(found))
                except ValueError:
                    continue
        return [
            (a["message"], tuple(a["evidences"]))
            for a in made
            if a and isinstance(a.get("message"), str) and isinstance(a.get("evidences"), list)
        ]

    def problem(self) -> str:
        """Return what is wrong with the submission, empty where it can be judged."""
        if self.submits != 1:
            return f"submitted {self.submits} times"
        if not self.evidences:
            return "no evidence"
        known = range(len(self.turns))
        wrong = [e for e in self.evidences if isinstance(e, bool) or not isinstance(e, int) or e not in known]
        return f"no turn {wrong[0]!r}" if wrong else ""

    def verdict(self) -> Verdict:
        state = self.inner.verdict()
        own = {"state": None if state.passed is None else state.score}
        if reason := self.problem():
            notes = {
                f"submitted{NOTE}cited": float(len(self.evidences)),
                f"submitted{NOTE}actions": float(len(self.turns)),
            }
            return Verdict(0.0, False, {"submitted": 0.0, **notes, **own}, reason)
        # Cited twice is cited once.
        cited = [self.turns[e] for e in dict.fromkeys(self.evidences)]
        votes = voted(self.judge, self.votes, self.task, self.message, cited)
        found = verdict_of(votes, len(self.evidences), len(self.turns), self.unjudged)
        concise = {"concise": 1 / len(self.evidences) if found.passed else 0.0}
        return replace(found, parts={**found.parts, **concise, **own})

    def close(self) -> None:
        self._under_way = False
        self.inner.close()

    def gold(self) -> Sequence[Action]:
        """Return the other environment's plan and a submission of the fewest turns that convince the judge.

        Raises:
            UsageError: the other environment has no plan.
        """
        if not isinstance(self.inner, Guided):
            raise UsageError("environment 'submit_evidence': the environment within has no plan")
        plan = list(self.inner.gold())
        world: Environment = build("environment", self.spec)
        world.reset(self.task, self.seed)
        for action in self.done:
            world.step(action)
        turns = list(self.turns)
        for action in plan:
            turns.append(_cited(len(turns), action, world.step(action)))
        world.close()
        chosen = (some for n in range(1, MOST + 1) for some in combinations(reversed(turns), n))
        proof = next((some for some in chosen if self.judge(self.task, DONE, some).success), tuple(turns[-MOST:]))
        evidences = sorted(c.turn for c in proof)
        if self.tooled:
            return [*plan, call(SUBMIT.name, message=DONE, evidences=evidences)]
        return [*plan, say(f"submit {json.dumps({'message': DONE, 'evidences': evidences})}")]


def _cited(turn: int, action: Action, step: Step) -> Cited:
    return Cited(turn, action.text, "\n".join(m["content"] for m in step.observation.messages))
