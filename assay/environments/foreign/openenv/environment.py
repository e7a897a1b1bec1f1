"""OpenEnv's environments, behind their servers or in this process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.environments.base import Action, EnvironmentFailure, Observation, Step
from assay.environments.foreign.openenv.sessions import Local, Remote, Talk, Unfit
from assay.environments.foreign.openenv.wire import messages_of, observed, result_of, tool_of
from assay.environments.lines import answered
from assay.errors import UsageError
from assay.from_file import from_file, is_reference
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task, Tool, Verdict


@dataclass(frozen=True, slots=True)
class Resets:
    """Tasks that are what ``reset`` is asked: of a split the places of its tasks, else endless seeds."""

    name: str
    data: Mapping[str, Any]
    split: str | None
    count: int | None
    seed: int

    @property
    def size(self) -> int | None:
        return self.count

    def __getitem__(self, index: int) -> Task:
        check_index(index, self.count)
        if self.split is not None:
            asked = {**self.data, "split": self.split, "index": index}
        else:
            asked = {**self.data, "seed": int(generator(self.seed, index).integers(2**31))}
        # What is first seen is the prompt; there is none before an episode has begun.
        return Task(f"openenv/{self.name}/{self.seed}/{index}", "", {"reset": asked}, "none", meta={"reset": asked})


@part("environment", "openenv")
class OpenEnv:
    """An environment of OpenEnv's, unchanged: behind a server that speaks its protocol, or in this process.

    What the policy says becomes an action by the action's JSON Schema. One with a field ``text``, or with a single text
    to fill, takes the turn's text as it is. Where the environment takes ``call_tool``, its tools are the policy's, and
    a turn's calls are made one by one until one ends the episode. Any other action is a call of the tool ``act`` with
    the schema's fields. What does not fit is answered by the reason and makes the turn invalid. An observation's
    messages are shown as they are, its one text as it is, and anything else as JSON.

    The verdict is the environment's reward once it says ``done``: its score is the last reward, or their sum, clipped
    to [0, 1], and it passes if that reaches ``passes``. Where the environment adds a ``verdict`` to its metadata, as
    environments served here do, that is taken. An episode that is not done is wrong.

    Args:
        server: its URL, ``package.module:Class`` or ``file.py:Class``.
        reset: what every reset is asked, beside its seed.
        split: of the environment's tasks, whose places are the tasks here; by default they are seeds.
        field: of an action that takes the turn's text, where there are several.
        passes: reward that passes.
        reward: ``last``, or ``sum`` of an episode's.
        headers: of every request to a server.
        seconds: that an answer may take.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: there is no such environment, or no server answers.
    """

    def __init__(
        self,
        server: str,
        reset: dict[str, Any] | None = None,
        split: str | None = None,
        field: str | None = None,
        passes: float = 1.0,
        reward: Literal["last", "sum"] = "last",
        headers: dict[str, str] | None = None,
        seconds: float = 60.0,
        seed: int = 0,
    ):
        check_seed("environment 'openenv'", seed)
        self.where = f"environment 'openenv': {server}"
        self.passes, self.reward, self.field = passes, reward, field
        self.make = self._opener(server, headers or {}, seconds)
        self.talk: Talk | None = None
        self._schema: Mapping[str, Any] | None = None
        self._under_way = False
        count = None
        if split is not None:
            count = self._count(split)
        name = re.sub(r"^\w+://", "", server)
        self._tasks = Resets(name, dict(reset or {}), split, count, seed)

    def tasks(self) -> Resets:
        return self._tasks

    def reset(self, task: Task, seed: int) -> Observation:
        if "reset" not in task.meta:
            raise UsageError(f"{self.where}: task {task.id} has no meta['reset']; take its own tasks")
        talk = self._opened()
        told = talk.reset(task.meta["reset"])
        self.rewards: list[float] = []
        self.found: Mapping[str, Any] | None = None
        self.last: float | None = None
        self.done, self._under_way = False, True
        self._note(told)
        self.tools, self.form = self._protocol(talk, told)
        return observed(told, messages_of(told["observation"]), self.tools)

    def step(self, action: Action) -> Step:
        if not self._under_way or self.talk is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._by_tools(action) if self.form == "tools" else self._by_one(action)

    def verdict(self) -> Verdict:
        if not self.done:
            return Verdict.wrong("the environment does not say that it is done")
        if self.found is not None:
            return Verdict(
                float(self.found["score"]),
                self.found["passed"],
                {},
                str(self.found.get("feedback", "")),
                self.found["fault"],
            )
        if self.last is None and self.reward == "last":
            return Verdict.abstain("the environment gave no reward at its end", "tests")
        total = float(sum(self.rewards)) if self.reward == "sum" else float(self.last or 0.0)
        notes = {"return | sum of rewards": float(sum(self.rewards))}
        return Verdict(float(np.clip(total, 0.0, 1.0)), total >= self.passes, notes, f"reward {total:.6g}")

    def close(self) -> None:
        talk, self.talk, self._under_way = self.talk, None, False
        if talk is not None:
            talk.close()

    def _by_tools(self, action: Action) -> Step:
        """Make a turn's calls; words alone go to the environment if it takes words, else they end nothing."""
        assert self.talk is not None
        if not action.calls:
            return self._refused(action, f"call one of the tools {', '.join(t.name for t in self.tools)}")
        messages, errors, reward, told = [], [], None, None
        for made in action.calls:
            problem, text = made.reason or made.problem, ""
            if self.done:
                problem = "not made; the episode is over"
            elif not problem:
                told, problem = self._tell({"type": "call_tool", "tool_name": made.name, "arguments": made.arguments})
                if told is not None:
                    text, problem = result_of(told["observation"])
                    reward = told["reward"] if told["reward"] is not None else reward
            if problem:
                errors.append(problem)
            messages.append(
                Message(role="tool", content=text or f"error: {problem}", tool_call_id=made.id, name=made.name)
            )
        return self._step(tuple(messages), told, reward, "; ".join(errors))

    def _by_one(self, action: Action) -> Step:
        if self.form == "text":
            return self._sent({self._text_field(): action.text}, action)
        if len(action.calls) != 1 or action.calls[0].problem or action.calls[0].name != "act":
            reason = action.calls[0].reason if action.calls else ""
            return self._refused(action, reason or "call the tool act, once")
        return self._sent(dict(action.calls[0].arguments or {}), action)

    def _sent(self, content: Mapping[str, Any], action: Action) -> Step:
        told, problem = self._tell(content)
        if told is None:
            return self._refused(action, problem)
        seen = told["observation"]
        error = str(seen.get("error") or "") if seen.get("valid") is False else ""
        shown = messages_of(seen)
        if action.calls and all(m["role"] == "user" for m in shown):
            shown, _ = answered(action, "\n".join(m["content"] for m in shown), "")
        return self._step(shown, told, told["reward"], error)

    def _tell(self, content: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
        """Return what an action led to, and why it could not be taken."""
        assert self.talk is not None
        try:
            told = self.talk.step(content)
        except Unfit as unfit:
            return None, " ".join(str(unfit).split())[:500]
        self._note(told)
        return told, ""

    def _refused(self, action: Action, reason: str) -> Step:
        messages, error = answered(action, reason, reason)
        return self._step(messages, None, None, error)

    def _step(
        self, messages: tuple[Message, ...], told: Mapping[str, Any] | None, reward: float | None, error: str
    ) -> Step:
        self._under_way = not self.done
        metadata = dict((told or {}).get("metadata") or {})
        cut = self.done and bool(metadata.get("truncated", False))
        # What a turn is worth alone, where that is told apart from the verdict in the end.
        turn = metadata.get("turn_reward", reward)
        shown = observed(told, messages)
        return Step(shown, turn, self.done and not cut, cut, valid=not error, error=error)

    def _note(self, told: Mapping[str, Any]) -> None:
        if told.get("reward") is not None:
            self.last = float(told["reward"])
            self.rewards.append(float(told["reward"]))
        self.done = bool(told.get("done", False))
        found = (told.get("metadata") or {}).get("verdict")
        if isinstance(found, Mapping) and {"score", "passed", "fault"} <= found.keys():
            self.found = found

    def _protocol(self, talk: Talk, told: Mapping[str, Any]) -> tuple[tuple[Tool, ...], str]:
        """Return the tools of an episode, and how its actions are said: as ``text``, by ``tools``, or by ``act``."""
        fields = self._fields()
        tools: tuple[Tool, ...] = ()
        kind = fields.get("type", {})
        if "call_tool" in (kind.get("const"), *kind.get("enum", ())):
            listed = told["observation"].get("tools")
            if listed is None:
                listed = talk.step({"type": "list_tools"})["observation"]["tools"]
            tools = tuple(tool_of(t) for t in listed)
        if self._text_field():
            return tools, "text"
        if tools:
            return tools, "tools"
        parameters = {k: v for k, v in self._opened_schema().items() if k not in ("title", "description")}
        parameters["properties"] = fields
        return (Tool("act", "Take one action.", {"additionalProperties": False, **parameters}),), "act"

    def _text_field(self) -> str:
        """Return the field that takes a turn's text: the one named, ``text``, or the only one there must be."""
        fields = self._fields()
        if self.field is not None or "text" in fields:
            return self.field or "text"
        required = set(self._opened_schema().get("required", ())) - {"metadata"}
        texts = [k for k in required if fields.get(k, {}).get("type") == "string" and "enum" not in fields[k]]
        return texts[0] if len(required) == len(texts) == 1 and "tool_name" not in texts else ""

    def _fields(self) -> dict[str, Any]:
        properties = self._opened_schema().get("properties", {})
        return {k: v for k, v in properties.items() if k != "metadata"}

    def _opened_schema(self) -> Mapping[str, Any]:
        if self._schema is None:
            self._schema = self._opened().schema()
            if self.field is not None and self.field not in self._schema.get("properties", {}):
                raise UsageError(f"{self.where}: its actions have no field {self.field!r}")
        return self._schema

    def _opened(self) -> Talk:
        if self.talk is None:
            self.talk = self.make()
        return self.talk

    def _opener(self, server: str, headers: Mapping[str, str], seconds: float) -> Callable[[], Talk]:
        if re.match(r"(https?|wss?)://", server):
            try:
                import websockets.sync.client  # noqa: F401
            except ImportError:
                raise UsageError(f"{self.where} needs websockets: pip install 'assay[openenv]'") from None
            return lambda: Remote(server, headers, seconds)
        if is_reference(server):
            made = from_file(server, "OpenEnv environment")
            return lambda: Local(made, self.where)
        module, _, name = server.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(f"{self.where}: {error}; give a URL, package.module:Class or file.py:Class") from None
        return lambda: Local(found, self.where)

    def _count(self, split: str) -> int:
        """Return how many tasks a split has."""
        talk = self._opened()
        try:
            if isinstance(talk, Remote):
                [name, *_] = talk.get("/list_environments")
                count = talk.get(f"/{name}/num_tasks", {"split": split})["num_tasks"]
            else:
                count = talk.world.num_tasks(split)  # type: ignore[attr-defined]
        except (EnvironmentFailure, AttributeError, KeyError, ValueError) as error:
            raise UsageError(f"{self.where} does not say how many tasks split {split!r} has: {error}") from None
        return int(count)
