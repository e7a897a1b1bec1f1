"""A dialogue with a user who has recorded turns, tools that are recorded or simulated, and a checklist of each turn."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.environments.base import Action, EnvironmentFailure, Step
from assay.environments.checklist.made import Made, read_dialogues
from assay.environments.tools import ToolEnvironment, ToolError, call, say
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.base import TaskSource
from assay.tasks.seeded import check_seed
from assay.types import Task, Tool, Verdict
from assay.verify.rubric.checklist import Item, earned, read_checklist

JUDGE = """Does what the assistant has done in this turn of a dialogue so far meet the criterion? What is not shown \
was not done.

Earlier turns:
{before}

This turn:
{turn}

Criterion: {item}

End with one word, yes or no."""
SIMULATE = """You stand in for a tool. Reply with what it would return, in the form of the examples, and nothing else.

Tool:
{tool}

Calls that were made, and what they returned:
{examples}

Call:
{call}"""


@part("environment", "checklist")
class ChecklistDialogue(ToolEnvironment):
    """A user says the next recorded thing as long as each turn's strict items are met when the assistant replies.

    A turn is a step for each message of the assistant; one without a call is its reply, and ends it. After every step
    each item of the turn's checklist is marked, by its rule or by a judge. An item earns its weight when it is first
    met, in a step before which all that it is after was met (:func:`assay.verify.rubric.checklist.flips`), and

        score = (1 / L) sum over turns, steps and items of weight * flip

    with L the recorded turns, reached or not; the verdict passes at 1. Its parts are what each turn earned. Of each
    step ``info`` has ``turn``, ``turns`` (L), ``items`` and ``marks``, which credit ``checklist`` reads.

    A call that is recorded, name and arguments, returns what is recorded; another is simulated with the recorded ones
    as examples, or refused where there is no simulator. A judge or simulator that fails is the world's own failure: the
    episode abstains.

    Args:
        dialogues: a file, or rows, see :func:`~assay.environments.checklist.made.read_dialogues`; made up if left out,
            with items that rules check.
        judge, simulator: engines, or specifications of such.
        turns: of a made-up dialogue.
        temperature, top_p: of judge and simulator.
        seed: of made-up dialogues.

    Raises:
        UsageError: dialogues that cannot be read, an option out of range; at the start of an episode, an item without a
            rule where there is no judge.

    Source: CM2, checklist rewards for multi-turn tool agents.
    """

    def __init__(
        self,
        dialogues: Path | Sequence[Mapping[str, Any]] | None = None,
        judge: Any = None,
        simulator: Any = None,
        turns: int = 2,
        temperature: float = 0.6,
        top_p: float = 0.8,
        seed: int = 0,
    ):
        check_seed("environment 'checklist'", seed)
        if turns < 1:
            raise UsageError(f"environment 'checklist': turns {turns} must be 1 or more")
        self.source: TaskSource = Made(seed, turns) if dialogues is None else read_dialogues(dialogues)
        who = "environment 'checklist'"
        self.judge, self.simulator = (None if e is None else judge_of(e, who) for e in (judge, simulator))
        self.sampling = Sampling(2048, temperature, top_p)

    def tasks(self) -> TaskSource:
        return self.source

    def begin(self, task: Task, seed: int) -> None:
        meta = task.meta
        self.lists = [read_checklist(t["items"], f"task {task.id}, turn {k}") for k, t in enumerate(meta["turns"], 1)]
        if self.judge is None and any(not item.check for items in self.lists for item in items):
            raise UsageError(f"environment 'checklist': task {task.id} has items without a rule; give it a judge")
        self.users = [str(t["user"]) for t in meta["turns"]]
        self.known = tuple(Tool(t["name"], t.get("description", ""), t["parameters"]) for t in meta["tools"])
        self.recorded = {_key(r["name"], r["arguments"]): str(r["output"]) for r in meta["recorded"]}
        self.turn = 0
        self.marks: list[list[list[bool]]] = [[]]
        self.made: list[dict[str, Any]] = []  # calls of the turn that were answered
        self.before, self.shown = list[str](), [f"user: {self.users[0]}"]

    def available(self) -> tuple[Tool, ...]:
        return self.known

    def make_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        said = self.recorded.get(_key(name, arguments))
        if said is None:
            said = self._simulated(name, arguments)
        self.made.append({"name": name, "arguments": dict(arguments)})
        return said

    def said(self, text: str) -> str | None:
        self._mark(text, failed=False)
        met = [any(row[k] for row in self.marks[-1]) for k in range(len(self.lists[self.turn]))]
        strict = [m for m, item in zip(met, self.lists[self.turn], strict=True) if item.strict]
        if not all(strict) or self.turn + 1 == len(self.users):
            return None
        self.before += self.shown
        return self.users[self.turn + 1]

    def step(self, action: Action) -> Step:
        if not self._under_way:
            return super().step(action)
        turn = self.turn
        self.shown.append(f"assistant: {action.text}")
        step = super().step(action)
        if action.calls:
            self.shown += [f"tool: {m['content']}" for m in step.observation.messages]
            self._mark(action.text, failed=not step.valid)
        items = [{"id": i.id, "weight": i.weight, "after": list(i.after)} for i in self.lists[turn]]
        info = {"turn": turn, "turns": len(self.users), "items": items, "marks": self.marks[turn][-1]}
        if not action.calls and not step.terminated:
            self.turn, self.made = turn + 1, []
            self.marks.append([])
            self.shown = [f"user: {self.users[self.turn]}"]
        return replace(step, info=info)

    def state_key(self) -> str:
        return f"{self.task.id}: {self.turn} {self.marks}"

    def verdict(self) -> Verdict:
        worth = [earned(items, rows) for items, rows in zip(self.lists, self.marks, strict=False)]
        score = min(sum(worth) / len(self.users), 1.0)
        parts = {f"turn {k}": min(w, 1.0) for k, w in enumerate(worth, 1)}
        passed = score > 1 - 1e-9
        return Verdict(score, passed, parts, "" if passed else f"turns earned {', '.join(f'{w:.2f}' for w in worth)}")

    def gold(self) -> Sequence[Action]:
        """Return the rest of the task's plan, a call a turn.

        Raises:
            UsageError: the task has none.
        """
        if not self.task.meta.get("plan"):
            raise UsageError(f"task {self.task.id} has no plan")
        rest = [step for turn in self.task.meta["plan"][self.turn :] for step in turn][len(self.marks[-1]) :]
        return [say(s["say"]) if "say" in s else call(s["name"], **s["arguments"]) for s in rest]

    def _mark(self, text: str, failed: bool) -> None:
        items = self.lists[self.turn]
        judged = [k for k, item in enumerate(items) if not item.check]
        before, turn = "\n".join(self.before) or "none", "\n".join(self.shown)
        prompts = [filled(JUDGE, before=before, turn=turn, item=items[k].criterion()) for k in judged]
        said = {}
        for k, reply in zip(judged, ask(self.judge, prompts, self.sampling) if self.judge else [], strict=True):
            words = re.findall(r"\b(yes|no)\b", reply.text.lower())
            if reply.stop == "error" or not words:
                raise EnvironmentFailure(f"the judge of a checklist said {reply.text.strip()[-40:]!r}")
            said[k] = words[-1] == "yes"
        row = [self._checked(item, text) if item.check else said[k] for k, item in enumerate(items)]
        void = [failed and item.focus == "tools" for item in items]
        self.marks[-1].append([m and not v for m, v in zip(row, void, strict=True)])

    def _checked(self, item: Item, text: str) -> bool:
        if "says" in item.check:
            return re.search(str(item.check["says"]), text) is not None
        wanted = item.check.get("arguments")
        return any(c["name"] == item.check["called"] and wanted in (None, c["arguments"]) for c in self.made)

    def _simulated(self, name: str, arguments: Mapping[str, Any]) -> str:
        if self.simulator is None:
            raise ToolError(f"{name} knows nothing of {json.dumps(dict(arguments), ensure_ascii=False)}")
        [told] = [t for t in self.known if t.name == name]
        shown = "\n".join(f"{key} -> {output}" for key, output in self.recorded.items())
        tool = json.dumps({"name": name, "description": told.description, "parameters": told.parameters})
        prompt = filled(SIMULATE, tool=tool, examples=shown or "none", call=_key(name, arguments))
        [reply] = ask(self.simulator, [prompt], self.sampling)
        if reply.stop == "error":
            raise EnvironmentFailure("the simulator of tools failed")
        return reply.text


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({json.dumps(dict(arguments), sort_keys=True, ensure_ascii=False)})"
