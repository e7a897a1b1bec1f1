"""S125: tools that answer in text, the judging policy in cases, rewards, what is hard, and a judge that uses tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from acted import played
from scripted import Talking

import assay
from assay import catalogue
from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.engines.base import Request
from assay.environments.checking.environment import Checking
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.lab.settings.judges.reckoning_judges import Setting
from assay.method import Method
from assay.papers.judges.s125_cosineverifier import cosineverifier, disputed, hard_negatives
from assay.registry import build
from assay.rewards.judges.tool_judge import ToolJudge, answered
from assay.tasks.judging.ternary import Item
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.number.computed import Computed

RIGHT, WRONG = say(r"It is. \boxed{Correct}"), say(r"\boxed{Incorrect}")


@pytest.mark.parametrize(
    ("reference", "answer", "right"),
    [
        ("32/11", "2.909", True),  # both are 2.91
        ("9.81", "9.8", False),
        ("1 m/s", "3.6 km/h", True),
        ("250 cm", "2.50 m", True),
        ("16 km", "16", True),
        ("16", "16 km", True),
        ("16 m", "16 km", False),
        ("1 kg", "1 m", False),
        ("x^2+2x+1", "(x+1)^2", True),
        (r"2 g \sin(30^\circ)", "9.8", True),
        (r"2 g \sin(30^\circ)", "9.81", True),
        (r"2 g \sin(30^\circ)", "10", True),
        (r"2 g \sin(30^\circ)", "9.9", False),
        ("{27/7,-8/7}", "{-8/7, 27/7}", True),
        ("0.001", "0.002", False),  # two decimals would make both nothing
        ("0.001", "0.00101", True),
        ("blue", "blue", True),
        ("blue", "red", False),
    ],
)
def test_the_policy_in_cases(reference: str, answer: str, right: bool) -> None:
    task = Task("t", "How much is it?", reference, "computed")
    assert Computed()(task, rf"We compute. So it is \boxed{{{answer}}}").passed is right


def test_switches_of_the_policy() -> None:
    task, lone = Task("t", "?", "9.81"), Task("t", "?", ["16 km", "17 km"])
    assert Computed(relative=0.01)(task, "9.8").passed is True and Computed(places=1)(task, "9.8").passed is True
    assert Computed(lenient=False)(lone, "16").passed is False and Computed()(lone, "17").passed is True
    fall = Task("t", "?", r"g \cos(0)")
    assert Computed(constants={"g": [5.0]})(fall, "5").passed is True and Computed()(fall, "5").passed is False
    assert Computed(constants={})(fall, "9.8").passed is not True and Computed()(fall, "9.8").passed is True
    unreadable = Task("t", "?", r"\int_0^1 x^n dx")
    asked: list[str] = []

    def fallback(task: Task, response: str) -> bool:
        asked.append(response)
        return True

    plain = Computed()(unreadable, "1/(n+1)").passed
    assert plain is not None or Computed(fallback=fallback)(unreadable, "1/(n+1)").passed is True
    assert Computed()(Task("t", "?", None), "5").passed is None
    assert (Computed().places, Computed().relative, Computed().lenient) == (2, 0.0, True)
    for options in ({"places": -1}, {"places": 13}, {"relative": 1.0}):
        with pytest.raises(UsageError, match="places is from 0"):
            Computed(**options)  # type: ignore[arg-type]


def world(**options: Any) -> tuple[Checking, Task]:
    made = Checking(**{"kinds": ("lengths",), **options})
    task = next(t for k in range(20) if (t := made.tasks()[k]).meta["label"])
    made.reset(task, 0)
    return made, task


def told(made: Checking, name: str, **arguments: Any) -> tuple[str, bool]:
    step = made.step(call(name, **arguments))
    return str(step.observation.messages[0]["content"]), step.valid


def test_tools_answer_in_text() -> None:
    made, _ = world(calls=8)
    convert = {"value": 3.6, "source_unit": "km/h", "target_unit": "m/s"}
    assert told(made, "unit_conversion", **convert) == ("1 m/s", True)
    cold = {"value": -40, "source_unit": "°C", "target_unit": "°F"}
    assert told(made, "unit_conversion", **cold) == ("-40 °F", True)
    said, valid = told(made, "unit_conversion", **{**convert, "source_unit": "kg"})
    assert "different things" in said and not valid
    said, valid = told(made, "unit_conversion", **{**convert, "source_unit": "quux"})
    assert "unknown unit" in said and not valid
    assert made.succeeded == 2 and made.left == 4
    step = made.step(RIGHT)
    assert step.terminated and made.verdict().parts == {"readable": 1.0, "tool": 1.0}


def test_the_interpreter_keeps_its_state_and_its_errors_are_text() -> None:
    made, _ = world(calls=4, seconds=0.3)
    assert told(made, "python_interpreter", code="x = 6\nprint('six')\nx * 7") == ("six\n42", True)
    assert told(made, "python_interpreter", code="x + 1")[0] == "7"
    said, valid = told(made, "python_interpreter", code="1/0")
    assert "ZeroDivisionError" in said and not valid and made.succeeded == 2
    said, valid = told(made, "python_interpreter", code="while True: pass")
    assert "timeout" in said and not valid
    assert told(made, "python_interpreter", code="1")[0] == "error: no calls are left; give the verdict now"
    made.step(WRONG)
    assert made.verdict().passed is False and made.verdict().parts == {"readable": 1.0, "tool": 0.0}
    made.close()
    assert made.session is None


def test_what_is_said_is_compared_with_the_label() -> None:
    made, task = world()
    for said, passed, readable in ((RIGHT, True, 1.0), (WRONG, False, 1.0), (say("perhaps"), False, 0.0)):
        verdict = played(world()[0], task, [said])[-1]
        # No tool has helped.
        assert (verdict.passed, verdict.parts) == (passed, {"readable": readable, "tool": 0.0})
    assert played(made, Task("t", "?"), [RIGHT])[-1].passed is None
    assert Checking(calls=0).available() == () and len(Checking().available()) == 2
    assert len({Checking().tasks()[k].meta["kind"] for k in range(30)}) == 4 and Checking().most == 5
    for options, message in (
        ({"kinds": ("length",)}, "'lengths'"),
        ({"kinds": ()}, "one or more"),
        ({"calls": -1}, "0 or"),
    ):
        with pytest.raises(UsageError, match=message):
            Checking(**options)  # type: ignore[arg-type]


def test_plans_pass() -> None:
    """Plans with units and words, which need no interpreter."""
    kinds = ("lengths", "speeds", "words")
    source = Checking(kinds=kinds).tasks()
    for k in range(12):
        made = Checking(kinds=kinds)
        made.reset(source[k], 0)
        *_, verdict = played(Checking(kinds=kinds), source[k], list(made.gold()))
        assert verdict.passed and verdict.parts["tool"] == float(source[k].meta["kind"] != "words")


@pytest.mark.slow
def test_the_audit_passes() -> None:
    kinds = ("lengths", "speeds", "words")
    source = Checking(kinds=kinds).tasks()
    worlds = Worlds({"name": "checking", "kinds": list(kinds)}, 1)
    try:
        findings = audit_environment(worlds, [source[k] for k in range(2)])
    finally:
        worlds.close()
    assert all(f.passed and f.of for f in findings)


def test_a_plan_with_a_program_passes() -> None:
    made = Checking(kinds=("fractions",))
    for k in range(2):
        made.reset(made.tasks()[k], 0)
        *_, verdict = played(made, made.tasks()[k], list(made.gold()))
        assert verdict.passed and verdict.parts["tool"] == 1.0
    made.close()


def test_judged_responses_are_tasks(tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "1+1", "response": "2", "correct": True, "reference": "2"}
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(row) + "\n" + json.dumps({**row, "response": "3", "correct": False}))
    source = build("environment", {"name": "checking", "path": str(file)}).tasks()
    assert [source[k].meta["label"] for k in range(source.size)] == [True, False]
    assert "Question: 1+1\nReference answer: 2\nResponse: 3" in source[1].question


def test_rewards_by_hand() -> None:
    """Right with a tool 1.1, right 1, wrong with a tool 0, unreadable 0."""
    none = np.zeros(1, np.int64)
    episodes = (Episode(none, none, none == 0, None, "", "eos"),) * 4
    rows = ((1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0))
    verdicts = tuple(Verdict(s, s == 1, {"readable": r, "tool": t}) for s, r, t in rows)
    batch = Batch.from_groups([Group(Ask(Task("t", "?"), 4), episodes, verdicts)], torch.float64)
    for beta, worth in ((0.1, 1.1), (0.2, 1.2)):
        reward = cosineverifier(beta=beta).reward
        assert reward(batch).values.tolist() == pytest.approx([worth, 1.0, 0.0, 0.0])  # type: ignore[operator, union-attr]
    made = catalogue.make("S125")
    assert isinstance(made, Method) and made.rollout == {"name": "multi_turn", "environment": "checking", "turns": 6}
    assert made.reward(batch).values.tolist()[0] == pytest.approx(1.1)  # type: ignore[operator, union-attr]
    assert made.objective.kl_weight == 0 and cosineverifier(kl_weight=0.5).objective.kl_weight == 0.5  # type: ignore[union-attr]


def test_what_is_hard() -> None:
    made = hard_negatives([Item("What is it?", "3/8", "", "A", "numerical")], np.random.default_rng(0))
    assert len(made) == 2 and all(i.label == "B" and i.kind == "numerical" and i.reference == "3/8" for i in made)
    assert {i.response for i in made} <= {f"The answer is ${x}$." for x in ("2/8", "4/8", "3/7", "3/9", "-3/8", "8/3")}
    assert len(hard_negatives([Item("?", "3/8", "", "A")] * 2, np.random.default_rng(0), 9)) == 12
    [far] = hard_negatives([Item("How fast?", "36 km/h", "", "A")], np.random.default_rng(0), 1)
    assert far.label == "B" and far.kind == "quantity" and far.pattern == "quantity nearly the same"
    assert disputed([[True, True], [True, None, False], [None, False], [], [False, True]]) == [1, 4]


class Judge(Talking):
    """Notes what it is asked."""

    def __init__(self, answer: Callable[[list[dict[str, Any]], list[str]], str]):
        self.seen: list[tuple[list[str], list[str]]] = []

        def say(messages: list[dict[str, Any]], tools: list[str]) -> str:
            self.seen.append(([m["content"] for m in messages], tools))
            return answer(messages, tools)

        super().__init__(say)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        assert all(r.sampling.temperature == 0 for r in requests)
        return super().generate(requests)


def converting(messages: list[dict[str, Any]], tools: list[str]) -> str:
    if messages[-1]["role"] == "tool":
        return r"\boxed{Correct}" if "250 cm" in messages[-1]["content"] else r"\boxed{Incorrect}"
    if not tools:
        return "I cannot tell."
    return call("unit_conversion", value=2.5, source_unit="m", target_unit="cm").text


def test_a_judge_uses_tools() -> None:
    engine, task = Judge(converting), Task("t", "How long?", "250 cm")
    judge = ToolJudge(engine)
    found = judge(task, "It is 2.5 m.")
    assert found.passed is True and found.score == 1.0 and found.parts["judge"] == 1.0
    [tokens] = [v for k, v in found.parts.items() if k.endswith("tokens")]
    written = len(call("unit_conversion", value=2.5, source_unit="m", target_unit="cm").text) + len(r"\boxed{Correct}")
    assert tokens == written  # what the tool said is not the judge's
    first, tools = engine.seen[0]
    assert sorted(tools) == ["python_interpreter", "unit_conversion"] and "Response: It is 2.5 m." in first[0]
    bare = ToolJudge(Judge(converting), calls=0)
    assert (
        bare(task, "x").passed is None
        and ToolJudge(Judge(converting), calls=0, unread="wrong")(task, "x").passed is False
    )
    assert judge.map([(Task("n", "q"), "1"), (task, "2.5 m")])[0].passed is None
    # One that calls on and on comes to an end.
    endless = Judge(lambda messages, tools: call("unit_conversion", value=1, source_unit="m", target_unit="m").text)
    assert ToolJudge(endless, calls=2)(task, "x").passed is None and len(endless.seen) == 3
    assert (judge.calls, judge.max_tokens) == (5, 2048)
    with pytest.raises(UsageError, match="calls -1"):
        ToolJudge(engine, calls=-1)


def test_thinking_is_not_judged() -> None:
    """Of a response the part behind its first closing tag is shown, and of that the last 16,384 characters."""
    engine, task = Judge(lambda messages, tools: r"\boxed{Correct}"), Task("t", "How long?", "250 cm")
    ToolJudge(engine).map([(task, "<think>Perhaps 3 m.</think>\nIt is 2.5 m."), (task, "9" + "8" * 16_384)])
    thought, long = (messages[0] for messages, _ in engine.seen)
    assert "It is 2.5 m." in thought and "Perhaps" not in thought and "think>" not in thought
    assert "8" * 16_384 in long and "98" not in long
    assert answered("a</think>b</think>c") == "b</think>c" and answered("none") == "none"


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "checking", "kinds": ["words"], "calls": 0}
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1800, "alphabet": alphabet}},
            "tasks": {"source": {"name": "environment", "environment": world}, "eval_size": 1},
            "warmup": {"steps": 2, "batch": 2, "lr": 0.01},
            "method": {"name": "S125", "options": {"environment": world, "calls": 0}},
            "rollout": {"prompts": 1, "group": 2, "max_tokens": 4},
            "train": {"steps": 1},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    stages = {json.loads(line)["stage"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()}
    assert {"warmup", "rl"} <= stages


def test_tools_help_with_units_in_the_lab() -> None:
    setting = Setting(items=20)
    tools, none = (setting.run({"calls": calls}, 0, Path()) for calls in (2, 0))
    assert tools["units"] > 0.9 > none["units"] and tools["words"] == none["words"] and tools["tokens"] > none["tokens"]
