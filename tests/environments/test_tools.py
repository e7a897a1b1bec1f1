"""A class with tools as an environment: what is made, what is refused, and who is to blame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from assay.environments.base import Action, Environment, Evidence, Guided
from assay.environments.calls import find_calls
from assay.environments.tools import ToolEnvironment, ToolError, call, say, tool
from assay.errors import UsageError
from assay.tasks.listed import Listed
from assay.types import Task, ToolCall


class Till(ToolEnvironment):
    """Pays from a till."""

    def tasks(self) -> Listed:
        return Listed([Task("t", "Pay 3.", json.dumps({"cash": 7}), "json", meta={"cash": 10})])

    def begin(self, task: Task, seed: int) -> None:
        self.cash: int = task.meta["cash"]

    @tool
    def pay(self, amount: int, to: Literal["till", "bank"] = "bank") -> str:
        "Pay an amount from the till."
        if amount > self.cash:
            raise ToolError("not enough cash")
        self.cash -= amount
        return f"left {self.cash}"

    @tool
    def look(self) -> dict[str, int]:
        "Look into the till."
        return {"cash": self.cash}

    @tool
    def broken(self) -> str:
        "Is out of order."
        raise OSError("no till")

    def state_json(self) -> Any:
        return {"cash": self.cash}

    def gold(self) -> Sequence[Action]:
        return [call("pay", amount=3)]


def begun() -> tuple[Till, Task]:
    till = Till()
    task = till.tasks()[0]
    till.reset(task, 0)
    return till, task


def test_it_is_an_environment() -> None:
    assert isinstance(Till(), Environment) and isinstance(Till(), Guided) and isinstance(Till(), Evidence)
    till = Till()
    shown = till.reset(till.tasks()[0], 0)
    assert [m["content"] for m in shown.messages] == ["Pay 3."]
    assert [t.name for t in shown.tools] == ["broken", "look", "pay"]
    pay = shown.tools[2]
    assert pay.description == "Pay an amount from the till."
    assert pay.parameters["required"] == ["amount"] and pay.parameters["properties"]["amount"] == {"type": "integer"}
    assert pay.parameters["properties"]["to"]["enum"] == ["till", "bank"]


def test_gold_passes_and_nothing_does_not() -> None:
    till, _ = begun()
    assert till.verdict().passed is False
    for action in till.gold():
        till.step(action)
    assert till.verdict().passed is True


def test_gold_reads_as_the_call_it_is() -> None:
    [action] = Till().gold()
    [found] = find_calls(action.text, Till.tools())
    assert (found.name, found.arguments, found.problem) == ("pay", {"amount": 3}, "")


def test_calls_are_answered_in_order() -> None:
    till, _ = begun()
    text = "".join(call(n, **a).text for n, a in [("pay", {"amount": 2}), ("look", {}), ("pay", {"amount": 99})])
    step = till.step(Action(text, find_calls(text, till.tools())))
    assert [m["content"] for m in step.observation.messages] == ["left 8", '{"cash": 8}', "error: not enough cash"]
    assert [m["role"] for m in step.observation.messages] == ["tool"] * 3
    assert [m["tool_call_id"] for m in step.observation.messages] == ["call_0", "call_1", "call_2"]
    assert (step.valid, step.error, step.terminated) == (False, "not enough cash", False)


@pytest.mark.parametrize(
    "made",
    [
        ToolCall("pay", None, 0, 1, "not_json", "arguments: no JSON"),
        ToolCall("pay", {"amount": 3}, 0, 1, "unclosed", "it is not closed"),
        ToolCall("pay", {"amount": "3"}, 0, 1),
        ToolCall("rob", {}, 0, 1),
        ToolCall("state_json", {}, 0, 1),
        ToolCall("begin", {"task": None, "seed": 0}, 0, 1),
    ],
)
def test_what_is_no_call_is_not_made(made: ToolCall) -> None:
    till, _ = begun()
    step = till.step(Action("", (made,)))
    assert till.cash == 10 and not step.valid and step.error
    assert step.observation.messages[0]["content"].startswith("error: ")


def test_what_breaks_is_not_the_policys_fault() -> None:
    till, _ = begun()
    with pytest.raises(OSError, match="no till"):
        till.step(call("broken"))


def test_saying_something_ends_it_unless_it_is_answered() -> None:
    till, _ = begun()
    step = till.step(say("done"))
    assert step.terminated and till.answer == "done" and not step.observation.messages
    with pytest.raises(RuntimeError, match="no episode"):
        till.step(say("more"))

    class Chatty(Till):
        def said(self, text: str) -> str | None:
            return None if text == "bye" else f"{text}?"

    chatty = Chatty()
    chatty.reset(chatty.tasks()[0], 0)
    step = chatty.step(say("hello"))
    assert not step.terminated and [m["content"] for m in step.observation.messages] == ["hello?"]
    assert chatty.step(say("bye")).terminated


def test_closing_ends_an_episode_and_another_begins() -> None:
    till, task = begun()
    till.step(call("pay", amount=5))
    till.close()
    till.close()
    with pytest.raises(RuntimeError):
        till.step(call("look"))
    till.reset(task, 0)
    assert till.cash == 10


def test_a_parameter_without_a_type_is_refused() -> None:
    class Careless(ToolEnvironment):
        @tool
        def take(self, what) -> str:  # type: ignore[no-untyped-def]
            return ""

    with pytest.raises(UsageError, match="tool take: its parameter what needs a type"):
        Careless.tools()
